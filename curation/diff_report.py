"""A diff as rows of a table and as JSON."""

from __future__ import annotations

from dataclasses import fields

from curation.diff import Diff


def summary_rows(diff: Diff) -> list[dict[str, object]]:
    """Return one row of counts a config, for a table."""
    return [
        {
            "config": config.config,
            "rows": f"{_or_dash(config.old_rows)} → {_or_dash(config.new_rows)}",
            "added": len(config.added),
            "removed": len(config.removed),
            "changed": len(config.changed),
            "new ids": len(config.renamed),
            "columns": " ".join(config.columns),
            "step": config.step,
        }
        for config in diff.configs
    ]


def _or_dash(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def as_document(diff: Diff) -> dict[str, object]:
    """Return a diff as values that JSON can hold."""
    configs = [
        {
            **{f.name: getattr(config, f.name) for f in fields(config)},
            "renamed": [[pair.old, pair.new] for pair in config.renamed],
            "changed": [{"question_id": row.question_id, "columns": row.columns} for row in config.changed],
            "step": config.step,
        }
        for config in diff.configs
    ]
    return {"step": diff.step, "configs": configs, "files": diff.files}

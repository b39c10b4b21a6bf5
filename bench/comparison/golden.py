"""A golden table of acceptance lengths, and the gate of an engine's CI against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from bench.errors import BenchError, ConfigError, UnpublishedFigure

DEFAULT_SHARE = 0.90


class _Length(BaseModel):
    acceptance_length: float = Field(ge=1.0, allow_inf_nan=False)


class _Reference(BaseModel):
    split_sha256: str
    categories: dict[str, _Length] = Field(min_length=1)


class _CountedLength(_Length):
    n: int = Field(ge=1)


class _Golden(BaseModel):
    share: float = Field(gt=0.0, le=1.0)
    split_sha256: str
    sampling: dict[str, Any]
    categories: dict[str, _CountedLength] = Field(min_length=1)


def parse_golden(data: bytes, where: str) -> dict[str, Any]:
    """Return the golden table in the bytes of a file; `where` names it in errors.

    Raises
    ------
    ConfigError
        If it is not JSON, or lacks something that a gate needs: no table passes for want of it.
    """
    return _parsed(_Golden, data, where)


def parse_reference(data: bytes, where: str) -> dict[str, Any]:
    """Return published lengths in the bytes of a file, a golden table or less; `where` names it in errors.

    Raises
    ------
    ConfigError
        If it is not JSON, or does not name its rows and its lengths.
    """
    return _parsed(_Reference, data, where)


def _parsed(kind: type[BaseModel], data: bytes, where: str) -> dict[str, Any]:
    try:
        return kind.model_validate_json(data).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "golden table"
        raise ConfigError(f"{where}: {field}: {first['msg']}; `bench gate RESULT --write` makes one") from None


def golden_from(summary: Mapping[str, Any], run: Mapping[str, Any], share: float = DEFAULT_SHARE) -> dict[str, Any]:
    """Return the table that a published result makes: acceptance length (mean over conversations) by category.

    Raises
    ------
    UnpublishedFigure
        If a gate holds the result back.
    """
    _refuse_unpublished(summary)
    categories = {
        name: {"acceptance_length": length, "n": table["figures"]["acceptance_length"]["n"]}
        for name, table in summary["by"]["category"].items()
        if (length := table["figures"]["acceptance_length"]["request_mean"]) is not None
    }
    if not categories:
        raise BenchError(f"{summary['name']}: tells no acceptance length")
    return {
        "share": share,
        "split_sha256": run["split"]["sha256"],
        "source": summary["evidence"]["source"],
        "sampling": run["config"]["sampling"],
        "categories": categories,
    }


def judge(summary: Mapping[str, Any], run: Mapping[str, Any], golden: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a line for each category of the golden table: its value, the reference, and whether it holds.

    A category holds if it has all conversations of the reference and at least `share` of its acceptance length.

    Raises
    ------
    UnpublishedFigure
        If a gate holds the result back.
    BenchError
        If the result is over other rows or another sampling than the table.
    """
    _refuse_unpublished(summary)
    for name, ours, theirs in (
        ("split", run["split"]["sha256"], golden["split_sha256"]),
        ("sampling", run["config"]["sampling"], golden["sampling"]),
    ):
        if ours != theirs:
            raise BenchError(f"{summary['name']}: its {name} is {ours}, the golden table's {theirs}: not comparable")
    rows = []
    for name, reference in golden["categories"].items():
        figure = summary["by"]["category"].get(name, {}).get("figures", {}).get("acceptance_length", {})
        value, n = figure.get("request_mean"), figure.get("n", 0)
        least = golden["share"] * reference["acceptance_length"]
        holds = value is not None and n >= reference["n"] and value >= least
        rows.append(
            {"category": name, "value": value, "least": least, "n": n, "n_golden": reference["n"], "holds": holds}
        )
    return rows


def reference_lengths(golden: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the published acceptance lengths by category; None if they are over other rows than the run's."""
    if golden["split_sha256"] != run["split"]["sha256"]:
        return None
    return {name: float(row["acceptance_length"]) for name, row in golden["categories"].items()}


def _refuse_unpublished(summary: Mapping[str, Any]) -> None:
    if not summary["published"]:
        shut = "; ".join(f"{gate['name']}: {gate['detail']}" for gate in summary["gates"])
        raise UnpublishedFigure(f"{summary['name']}: held back by {shut}")

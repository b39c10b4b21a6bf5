"""A whole build of a dozen rows, written with the writer of real builds: what verify and release are tried on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cards.facts import CardFacts, CategoryFacts
from cards.render import render_card, render_licenses
from curation.ids import question_id, turns_sha256
from curation.publish import write_config
from curation.recipe import Recipe
from curation.row_facts import config_facts, source_facts
from curation.schema import SPLIT_SCHEMA
from curation.stages.base import Drop, ledger_table
from curation.store import BuildFolder, file_digests, package_versions, write_checksums, write_json, write_table
from curation.store import write_text as write
from curation.tokenizer import load_tokenizer
from sources.lock import Lock, LockedFile, LockedSource, missing_pins, source_revision, write_lock
from sources.registry import SOURCES

SPECS = {name: source.spec for name, source in SOURCES.items()}
BUCKET = 64
RECIPE = Recipe.model_validate(
    {
        "name": "tiny",
        "selection": {"quota": 2, "categories": ["math", "reasoning", "stem"]},
        "throughput": {"buckets": [BUCKET], "rows_per_cell": 1},
    }
)
TOKENIZER = load_tokenizer(RECIPE.tokenizer)
CONFIGS = ("qualitative", f"throughput_{BUCKET}")

ROWS = {
    "qualitative": [
        ("math", "gsm8k", "g1", ["A ferry takes 12 cars a crossing. How many crossings for 50 cars?"]),
        ("math", "gsm8k", "g2", ["Ana bakes 3 trays of 8 rolls and sells 19. How many are left?"]),
        ("reasoning", "mt_bench_101", "m1", ["Which weighs more, a stone of feathers or of lead?", "And on the moon?"]),
        ("reasoning", "mmlu_pro", "p7", ["All roses are flowers; some fade. Do some roses fade? Say why."]),
        ("stem", "hle", "h1", ["What does the Chern number of a filled band count?"]),
        ("stem", "hle", "h2", ["Name the defect whose Burgers vector is not a lattice vector."]),
    ],
    f"throughput_{BUCKET}": [
        ("high_entropy", "gutenberg", "b1", ["The coast road went on" + " and on" * 29 + "."]),
        ("mixed", "hle", "h9", ["Answer each of these" + " and on" * 30]),
        ("low_entropy", "long_code_arena", "l1", ["def f(x):\n    return x" + " + x" * 27 + "\n"]),
    ],
}
LICENSES = {"long_code_arena": "mit"}


def count(text: str) -> int:
    return len(TOKENIZER.encode_ordinary(text))


def _fitted(text: str) -> str:
    while count(text) < BUCKET:
        text += " on"
    assert count(text) == BUCKET, text
    return text


def lock_of(names: tuple[str, ...]) -> Lock:
    """Pins for some sources, made up: the digest of a file is that of its path."""
    pinned = {}
    for name in names:
        spec = SPECS[name]
        paths = sorted(p for f in spec.files.values() for p in (f.urls or [f.path.replace("*", "a").replace("?", "a")]))
        files = tuple(LockedFile(path=p, sha256=hashlib.sha256(p.encode()).hexdigest(), size=1) for p in paths)
        revision = spec.revision or ("" if spec.host == "web" else hashlib.sha1(name.encode()).hexdigest())
        pinned[name] = LockedSource(revision=revision, files=files)
    return Lock(sources=pinned)


def rows_table(config: str, rows: list[tuple[str, str, str, list[str]]], lock: Lock) -> pa.Table:
    made = []
    for category, name, src_id, turns in rows:
        texts = [_fitted(turns[0])] if config.startswith("throughput") else turns
        spec = SPECS[name]
        made.append(
            {
                "question_id": question_id(config, spec.source, src_id),
                "category": category,
                "sub_category": "",
                "turns": texts,
                "source": spec.source,
                "src_id": src_id,
                "difficulty": "",
                "multiturn": len(texts) > 1,
                "text_status": "full",
                "source_revision": source_revision(spec, lock),
                "license": LICENSES.get(name, spec.license.id),
                "template_id": "",
                "record_ids": [f"{name}:{src_id}"],
                "num_tokens": sum(map(count, texts)),
                "pad_tokens": 0,
                "turns_sha256": turns_sha256(texts),
            }
        )
    made.sort(key=lambda row: (row["category"], row["question_id"]))
    return pa.Table.from_pylist(made, schema=SPLIT_SCHEMA)


def tiny_build(
    root: Path, rows: dict[str, list[Any]] | None = None, *, origin: str = "hub", card: Callable[[str], str] = str
) -> Path:
    """Write a build and its lock below a folder, and return its `dist/`."""
    rows = rows or ROWS
    names = tuple(sorted({name for listed in rows.values() for _, name, _, _ in listed}))
    lock = lock_of(names)
    root.mkdir(parents=True, exist_ok=True)
    write_lock(lock, root / "lock.toml")
    folder = BuildFolder(root / "build")
    folder.begin()
    for config, listed in rows.items():
        write_config(folder, config, rows_table(config, listed, lock), SPECS)
    write_table(folder.root / "ledger.parquet", ledger_table([Drop("gsm8k:g9", "dedup", "exact copy", "gsm8k:g1")]))
    revisions = {name: source_revision(SPECS[name], lock) for name in names}
    facts = CardFacts(
        recipe=RECIPE.name,
        recipe_digest=RECIPE.digest(),
        origin="the sources at their pinned revisions",
        embedder="none",
        tokenizer=f"{TOKENIZER.name} ({TOKENIZER.version})",
        languages=("en", "no"),
        configs=config_facts(folder.dist, tuple(rows)),
        sources=source_facts(folder.dist, tuple(rows), SPECS, revisions),
        categories=tuple(CategoryFacts(c, 9, 2, None, None, None) for c in ("math", "reasoning", "stem")),
        drops=(("dedup", "exact copy", 1),),
    )
    for target in (folder.dist, folder.full):
        write(target / "README.md", card(render_card(facts)))
        write(target / "LICENSE.md", render_licenses(facts))
        write_checksums(target)
    sources = {
        name: {
            "revision": revisions[name],
            "locked": not missing_pins(SPECS[name], lock),
            "files": {f.path: f.sha256 for f in lock.sources[name].files},
            "absent": [],
        }
        for name in names
    }
    document = {
        "recipe": RECIPE.model_dump(mode="json"),
        "recipe_digest": RECIPE.digest(),
        "origin": origin,
        "allow_short": False,
        "parts": ["qualitative", "throughput"],
        "versions": package_versions(),
        "tokenizer": {"name": TOKENIZER.name, "version": TOKENIZER.version, "sha256": TOKENIZER.sha256},
        "sources": sources,
        "configs": list(rows),
        "files": file_digests(folder.root),
    }
    write_json(folder.manifest, document)
    return folder.dist


def remake(dist: Path, config: str, change: Callable[[dict[str, Any]], None], *, whole: bool = False) -> None:
    """Change rows of a config in place, and its digests with them, so that only the change itself can be found."""
    for folder in (dist, dist.parent / "full") if whole else (dist,):
        path = folder / "data" / f"{config}.parquet"
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            change(row)
        write_table(path, pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA))
    seal(dist)


def seal(dist: Path) -> None:
    """Write the digests of a build again: what a forger would do."""
    for folder in (dist, dist.parent / "full"):
        write_checksums(folder)
    path = dist.parent / "manifest.json"
    document = json.loads(path.read_text("utf-8"))
    path.unlink()
    write_json(path, {**document, "files": file_digests(dist.parent)})


def copy_of(build: Path, target: Path) -> Path:
    """Copy a whole build with its lock, and return the `dist/` of the copy."""
    shutil.copytree(build, target)
    return target / "build" / "dist"

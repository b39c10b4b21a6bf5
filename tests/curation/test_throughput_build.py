"""The whole builder on our samples: what the issue asks of every row, and that nothing else decides a byte."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers

from curation.errors import BuildError
from curation.ids import question_id, turns_sha256
from curation.reading import OpenSource, read_passages
from curation.recipe import Recipe, SampledConfig, ThroughputConfig, TokenizerConfig, load_recipe
from curation.schema import SPLIT_SCHEMA
from curation.stages.base import Drop
from curation.throughput.build import build_throughput, row_builder
from curation.throughput.report import ThroughputReport, write_tier_plot
from curation.throughput.rows import provenance_of
from curation.throughput.shelf import Shelf
from curation.tokenizer import load_tokenizer
from sources.base import TIERS
from sources.origins import SamplesOrigin
from sources.passages import Passage
from sources.registry import THROUGHPUT

TOKENIZER = load_tokenizer(TokenizerConfig())
FACTS = provenance_of(THROUGHPUT, {"bamboo": "b" * 40})
SAMPLED = SampledConfig(distribution="uniform", rows=9, min_tokens=300, max_tokens=1_500)


def recipe(**throughput: Any) -> Recipe:
    values = {"buckets": (512, 1_000, 2_000), "rows_per_cell": 4, "sampled": SAMPLED, **throughput}
    return load_recipe("demo").model_copy(update={"throughput": ThroughputConfig(**values)})


@dataclass
class Split:
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    report: ThroughputReport | None = None

    def sink(self, config: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.calls += [(config, tier) for tier in dict.fromkeys(row["category"] for row in rows)]
        self.rows.setdefault(config, []).extend(dict(row) for row in rows)

    def every(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for config, rows in self.rows.items():
            for row in rows:
                yield config, row


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    origin = SamplesOrigin()
    return list(read_passages([OpenSource(s, origin.files(s.spec)) for s in THROUGHPUT], []))


def build(passages: Sequence[Passage], folder: Path, used: Recipe, **options: Any) -> Split:
    split = Split()
    split.report = build_throughput(passages, FACTS, used, split.sink, folder=folder, **options)
    assert list(folder.iterdir()) == [], "the shelf is gone after the build"
    return split


@pytest.fixture(scope="module")
def split(passages: list[Passage], tmp_path_factory: pytest.TempPathFactory) -> Split:
    return build(passages, tmp_path_factory.mktemp("build"), recipe())


@pytest.fixture(scope="module")
def shelf(passages: list[Passage], tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf.write(tmp_path_factory.mktemp("shelf") / "passages.bin", passages)


def test_every_row_is_exact_in_the_parquet_file(split: Split, tmp_path: Path) -> None:
    for config, rows in split.rows.items():
        path = tmp_path / f"{config}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, SPLIT_SCHEMA), path)
        for row in pq.read_table(path).to_pylist():
            (text,) = row["turns"]
            assert len(TOKENIZER.encode_ordinary(text)) == row["num_tokens"]
            assert row["turns_sha256"] == turns_sha256([text])
            assert config == "throughput_sampled" or config.endswith(_bucket(row["num_tokens"]))


def _bucket(n: int) -> str:
    return f"_{n // 1000}k" if n % 1000 == 0 else f"_{n}"


def test_every_cell_is_full_and_rows_come_in_the_order_of_publication(split: Split) -> None:
    assert split.report is not None
    assert [(c.found, c.wanted) for c in split.report.cells] == [(4, 4)] * 9 + [(3, 3)] * 3
    for rows in split.rows.values():
        keys = [(row["category"], row["question_id"]) for row in rows]
        assert keys == sorted(keys)
    assert split.calls == [(c, t) for c in split.rows for t in sorted(TIERS)]


def test_the_columns_say_what_the_row_is(split: Split, shelf: Shelf) -> None:
    names = {FACTS[name].source: name for name in FACTS if name not in ("stackselect", "textsort")}
    for config, row in split.every():
        assert row["question_id"] == question_id(config, row["source"], row["src_id"])
        assert row["difficulty"] == ""
        assert (row["multiturn"], row["text_status"]) == (False, "full")
        assert re.fullmatch(r"[a-z_]+/v\d+", row["template_id"])
        assert row["sub_category"]
        name = names.get(row["source"], "stackselect" if row["category"] == "mixed" else "textsort")
        assert row["category"] == FACTS[name].tier
        assert f"{name}:{row['src_id']}" in row["record_ids"] == sorted(set(row["record_ids"]))
        assert {r.partition(":")[0] for r in row["record_ids"]} == {name}
        assert row["source_revision"] == ("b" * 40 if name == "bamboo" else "")
        assert row["pad_tokens"] <= 8
        code = {"repobench_python", "repobench_java", "long_code_arena"}
        assert row["license"] == (
            {"long_code_arena": "mit"}.get(name, "apache-2.0") if name in code else FACTS[name].license
        )


def test_no_record_is_the_target_of_two_rows_of_a_config(split: Split) -> None:
    for rows in split.rows.values():
        targets = [(row["source"], row["src_id"].partition("@")[0]) for row in rows if row["category"] == "mixed"]
        targets += [(row["source"], row["src_id"]) for row in rows if row["category"] != "mixed"]
        assert len(set(targets)) == len(targets)


def test_no_two_rows_of_a_config_share_64_tokens(split: Split) -> None:
    assert split.report is not None
    for shared in split.report.shared:
        firsts = {tuple(TOKENIZER.encode_ordinary(row["turns"][0])[:64]) for row in split.rows[shared.config]}
        assert len(firsts) == len(split.rows[shared.config])
        assert shared.longest_prefix is not None
        assert shared.longest_prefix < 64
        assert set(shared.share_by_row) == {row["question_id"] for row in split.rows[shared.config]}
        assert all(0 <= share <= 1 for share in shared.share_by_row.values())


def test_no_replacement_character_is_added(split: Split, shelf: Shelf) -> None:
    assert not any("\ufffd" in str(shelf.read(record_id)) for record_id in shelf.entries)
    assert not any("\ufffd" in row["turns"][0] for _, row in split.every())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_rows_for_any_order_and_any_number_of_workers(
    workers: int, passages: list[Passage], split: Split, tmp_path: Path
) -> None:
    shuffled = random.Random(workers).sample(passages, len(passages))
    again = build(shuffled, tmp_path, recipe(), workers=workers)
    assert again.rows == split.rows
    assert again.report == split.report


def test_any_row_can_be_built_alone(split: Split, shelf: Shelf) -> None:
    builder = row_builder(shelf, FACTS, recipe())
    by_source = {}
    for config, row in split.every():
        by_source.setdefault((row["source"], row["category"], config), (config, row))
    for config, row in by_source.values():
        name = row["record_ids"][0].partition(":")[0]
        assert builder.rebuild(config, name, row["src_id"], row["num_tokens"]).row == row


def test_a_short_cell_is_refused_by_name_or_delivered_short(passages: list[Passage], tmp_path: Path) -> None:
    used = recipe(buckets=(1_000,), rows_per_cell=60, sampled=None)
    with pytest.raises(BuildError, match=r"throughput_1k/high_entropy: the pool is used up at \d+ of 60 rows"):
        build(passages, tmp_path, used)
    short = build(passages, tmp_path, used, allow_short=True)
    assert short.report is not None
    assert any(0 < c.found < c.wanted for c in short.report.cells)
    assert short.report.drops, "what was tried and refused stands in the ledger"
    assert all(isinstance(d, Drop) and d.against.startswith("throughput_1k") for d in short.report.drops)
    assert len({d.reason for d in short.report.drops}) < 8, "reasons are counted on the card: figures stand in `score`"


def test_head_and_tail_that_exceed_the_bucket_are_refused_by_id(passages: list[Passage], tmp_path: Path) -> None:
    small = build(passages, tmp_path, recipe(buckets=(128,), sampled=None), allow_short=True)
    assert small.report is not None
    refused = {d.record_id: d for d in small.report.drops if d.reason == "head and tail alone are longer"}
    assert any(record_id.startswith("repobench_python:") for record_id in refused)
    assert all(d.score is not None and d.score > 128 and d.against == "throughput_128" for d in refused.values())


def test_a_tier_without_sources_is_short(tmp_path: Path) -> None:
    empty = build([], tmp_path, recipe(), allow_short=True)
    assert empty.report is not None
    assert all(cell.found == 0 for cell in empty.report.cells)
    assert all(shared.longest_prefix is None for shared in empty.report.shared)
    assert all(order.holds is None for order in empty.report.orders)


def test_the_split_is_exact_in_another_models_tokens(passages: list[Passage], tmp_path: Path) -> None:
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    model.train_from_iterator([p.text or p.parts[0].text for p in passages[:20]], trainer)
    path = tmp_path / "model.json"
    model.save(str(path))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    pinned = TokenizerConfig(name=str(path), sha256=sha256)
    used = recipe(buckets=(512,), rows_per_cell=2, sampled=None).model_copy(update={"tokenizer": pinned})
    (tmp_path / "work").mkdir()
    other = build(passages, tmp_path / "work", used)
    assert [len(rows) for rows in other.rows.values()] == [6]
    for _, row in other.every():
        assert len(model.encode(row["turns"][0], add_special_tokens=False).ids) == row["num_tokens"] == 512
        assert len(TOKENIZER.encode_ordinary(row["turns"][0])) != 512


def test_the_report_is_json_and_names_tiers_that_come_out_of_order(split: Split) -> None:
    assert split.report is not None
    document = json.loads(json.dumps(split.report.as_document()))
    assert {m["tier"] for m in document["measures"]} == set(TIERS)
    failing = [o for o in split.report.orders if o.holds is not True]
    assert len(document["sentences"]) == len(failing)


def test_the_plot_is_a_picture_of_the_same_bytes(split: Split, tmp_path: Path) -> None:
    assert split.report is not None
    for name in ("a.png", "b.png"):
        write_tier_plot(split.report, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()

"""The compiled kernel: what it is loaded with, and that nothing that counts is lost to its filter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.audit import machine_code
from curation.audit.fast_kernel import FastKernel
from curation.kernels.audit_candidates import Candidates, find_candidates
from curation.kernels.audit_fold import three_byte_table, two_byte_table
from curation.kernels.audit_index import OverlapIndex, build_index
from curation.kernels.audit_overlap import judge, scan
from curation.kernels.audit_postings import find_postings
from curation.kernels.audit_tokens import Ints, join_texts, tokenize_prepared
from tests.audit.corpora import FILLER, FOG, MILL, WIRE, hits_of, write_jsonl

BOWLS = "A shelf holds 17 bowls and a cart carries 48 shelves so how many bowls travel on 6 carts"
PROMPTS = (MILL, WIRE, FOG, BOWLS, "Name four lakes", "水が冷たい", "Compute 5127 * 486 - 39.")

_WITHOUT_NUMBA = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numba":
            raise ImportError("numba is not there")

sys.meta_path.insert(0, Blocked())
from speedbench.cli import cli
cli(sys.argv[1:], standalone_mode=False)
assert "numba" not in sys.modules
"""


@cache
def index_of_prompts() -> OverlapIndex:
    return build_index(PROMPTS, range(len(PROMPTS)))


@cache
def kernel(near_misses: bool) -> FastKernel:
    return FastKernel(index_of_prompts(), near_misses=near_misses)


def test_machine_code_is_loaded_without_numba(tmp_path: Path, benchmark_dist: Path) -> None:
    kernel(False)
    made, home = machine_code._path(), tmp_path / "other"
    (home / "audit").mkdir(parents=True)
    shutil.copy(made, home / "audit")
    corpus = write_jsonl(tmp_path / "c.jsonl", [f"{FILLER} {MILL}", FILLER])
    command = ["audit", "run", str(corpus), "--benchmark", str(benchmark_dist), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "SPEEDBENCH_CACHE": str(home)}
    subprocess.run([sys.executable, "-c", _WITHOUT_NUMBA, *command, "--kernel", "numba"], env=environment, check=True)
    assert [hit["class"] for hit in hits_of(tmp_path / "out")] == ["exact"]


def test_kept_characters_are_those_of_the_definition() -> None:
    for _ in ("made", "kept"):
        for table in (two_byte_table, three_byte_table):
            assert np.array_equal(machine_code.kept_characters(table), table())


@st.composite
def edited_prompts(draw: st.DrawFn) -> str:
    """Stretches of prompts, with words changed, put in, left out and made up."""
    words: list[str] = []
    for prompt in draw(st.lists(st.sampled_from(PROMPTS), max_size=3)):
        own = prompt.split() if " " in prompt else list(prompt)
        low = draw(st.integers(0, len(own) // 2))
        for word in own[low : low + draw(st.integers(1, len(own)))]:
            change = draw(st.sampled_from("......................cil"))
            words += {"c": ["zebra"], "i": [word, "quite"], "l": [], ".": [word]}[change]
        words += draw(st.lists(st.sampled_from(["grey", "31", "the", "雾"]), max_size=3))
    return " ".join(words)


def rows(candidates: Candidates, first: Ints) -> list[list[float]]:
    """Candidates with their places counted from the document's first token, which one kernel may have further up."""
    places = ("low", "high", "diagonal", "begin", "end")
    columns = {name: getattr(candidates, name) for name in Candidates.__slots__}
    return [(c - first[candidates.document] if name in places else c).tolist() for name, c in columns.items()]


@given(st.lists(edited_prompts(), min_size=1, max_size=4), st.booleans())
def test_the_compiled_filter_drops_nothing_that_is_asked_for(texts: list[str], near_misses: bool) -> None:
    index = index_of_prompts()
    raw, offsets = join_texts(texts)
    batch = tokenize_prepared(raw, offsets)
    found = kernel(near_misses)(raw, offsets[:-1], offsets[1:] - 1)
    for slow, fast in zip(find_postings(batch.tokens, index), found.postings, strict=True):
        expected = find_candidates(batch.tokens, slow, index, near_misses=near_misses)
        candidates = find_candidates(found.batch.tokens, fast, index, near_misses=near_misses)
        assert rows(candidates, found.batch.tokens.first) == rows(expected, batch.tokens.first)
    assert found.num_tokens.tolist() == np.diff(batch.tokens.first).tolist()
    assert judge(found, index, near_misses=near_misses).hits == scan(raw, offsets, index, near_misses=near_misses).hits

"""GSM8K: grade-school word problems (Cobbe et al., 2021), the 80 of its test set that Spec-Bench ships.

Rules
-----
- They are the rows of category `math_reasoning`, one turn each, used as they are; the id is Spec-Bench's
  `question_id` (401 to 480).
- All of them go to `math` with difficulty easy, as the paper has it.
- The licence is GSM8K's own, MIT; the file around it is Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources import spec_bench_file
from sources.base import Files, Record, Rejected, SourceSpec
from sources.licenses import MIT

SPEC = SourceSpec(
    name="gsm8k",
    title="GSM8K",
    repo=spec_bench_file.REPO,
    host="github",
    license=MIT,
    files=spec_bench_file.FILES,
    feeds=("math",),
    citation="""@article{cobbe2021training,
  title = {Training Verifiers to Solve Math Word Problems},
  author = {Cobbe, Karl and Kosaraju, Vineet and Bavarian, Mohammad and Chen, Mark and Jun, Heewoo and others},
  journal = {arXiv preprint arXiv:2110.14168},
  year = {2021}
}""",
    priority=11,
    samples="spec_bench",
)


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield GSM8K's problems."""
    return spec_bench_file.records(files, SPEC.name, {"math_reasoning": "math"}, {})

"""Natural Questions (Kwiatkowski et al., 2019): Spec-Bench's 80 bare questions and 80 with retrieved passages.

Rules
-----
- Rows of category `qa` go to `qa`, rows of category `rag` (Wikipedia passages, then the question) to `rag`; one turn
  each, used as they are. The id is Spec-Bench's `question_id` (321 to 400 and 481 to 560).
- They are the only source of `qa`, as in the paper.
- The paper gives neither category a difficulty.
- The licence is the file's, Apache-2.0; the passages are Wikipedia's, which may be passed on with attribution.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources import spec_bench_file
from sources.base import Files, Record, Rejected, SourceSpec
from sources.licenses import APACHE_2_0

SPEC = SourceSpec(
    name="natural_questions",
    title="Natural Questions",
    repo=spec_bench_file.REPO,
    host="github",
    license=APACHE_2_0,
    files=spec_bench_file.FILES,
    feeds=("qa", "rag"),
    citation="""@article{kwiatkowski2019natural,
  title = {Natural Questions: A Benchmark for Question Answering Research},
  author = {Kwiatkowski, Tom and Palomaki, Jennimaria and Redfield, Olivia and Collins, Michael and others},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {7},
  pages = {453--466},
  year = {2019}
}""",
    priority=12,
    samples="spec_bench",
)


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the questions, with and without passages."""
    return spec_bench_file.records(files, SPEC.name, {"qa": "qa", "rag": "rag"}, {})

"""WritingBench: real-world writing requests over six domains (Wu et al., 2025).

Rows hold `index`, `domain1` (one of 6), `domain2` (one of 100), `lang` (`en` or `zh`), `query` and a checklist for
judges. The query is the single turn, as it stands; no instruction of ours is added.

Rules
-----
- English only, as in the paper: rows in another language are not ours to judge and are passed over, not rejected.
- The native id is `index`; the sub-category is `domain1`.
- A row without a query, without a domain or without a language is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, SourceSpec
from sources.licenses import APACHE_2_0
from sources.passages import Passage

SPEC = SourceSpec(
    name="writingbench",
    title="WritingBench",
    repo="X-PLUG/WritingBench",
    host="github",
    license=APACHE_2_0,
    files={
        "queries": FileSpec(
            "benchmark_query/benchmark_all.jsonl",
            "jsonl",
            {"index": "int64", "domain1": "string?", "lang": "string?", "query": "string?"},
        )
    },
    feeds=("writing", "high_entropy"),
    citation="""@article{wu2025writingbench,
  title   = {WritingBench: A Comprehensive Benchmark for Generative Writing},
  author  = {Wu, Yuning and Mei, Jiahao and Yan, Ming and Li, Chenliang and Lai, Shaopeng and Ren, Yuran and others},
  journal = {arXiv preprint arXiv:2503.05244},
  year    = {2025}
}""",
)


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the English requests."""
    for row in files.rows("queries"):
        language = row.get("lang", "")
        query, domain = row.get("query", ""), row.get("domain1", "")
        if not language:
            yield row.reject("no language")
        elif language != "en":
            continue
        elif not query.strip():
            yield row.reject("empty query")
        elif not domain:
            yield row.reject("no domain")
        else:
            yield Record(
                SPEC.name,
                str(row["index"]),
                "writing",
                turns=(query,),
                text=query,
                sub_category=domain,
                language="en",
            )


def passages(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the English requests for the throughput split, grouped by domain."""
    for item in parse(files):
        if isinstance(item, Rejected):
            yield item
        else:
            domain = item.sub_category
            yield Passage(item.source, item.native_id, domain, item.text, group=domain)

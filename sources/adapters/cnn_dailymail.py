"""CNN/DailyMail 3.0.0: news articles to be summarised (Hermann et al., 2015; See et al., 2017).

Rows of the test split hold `article`, `highlights` (the reference summary) and `id`, the SHA-1 of the article's
address. The single turn is an instruction of ours and the article; it is the only source of `summarization`.

Rules
-----
- The native id is the source's `id`. The paper's own instruction is not used; ours asks for the main points in a few
  sentences, so that an answer is longer than a headline.
- The sub-category is `news`. The highlights are not read: they may be empty or absent.
- The text is given by reference. The card's tag, Apache-2.0, covers the work of those who collected the set; the
  articles are news of CNN and the Daily Mail, who keep their copyright.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, SourceSpec
from sources.licenses import APACHE_2_0

SPEC = SourceSpec(
    name="cnn_dailymail",
    title="CNN/DailyMail 3.0.0",
    repo="abisee/cnn_dailymail",
    license=APACHE_2_0,
    withheld="The articles are copyrighted news of their publishers, which the card's licence tag does not cover.",
    files={"test": FileSpec("3.0.0/test-*.parquet", "parquet", {"article": "string?", "id": "string?"})},
    feeds=("summarization",),
    citation="""@inproceedings{see2017get,
  title     = {Get To The Point: Summarization with Pointer-Generator Networks},
  author    = {See, Abigail and Liu, Peter J. and Manning, Christopher D.},
  booktitle = {Proceedings of the 55th Annual Meeting of the Association for Computational Linguistics},
  year      = {2017}
}""",
)

INSTRUCTION = "Read this news article and summarise it in three to five sentences that cover its main points.\n\n"


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the articles of the test split, each under our instruction."""
    for row in files.rows("test"):
        article, native_id = row.get("article", ""), row.get("id", "").strip()
        if not native_id:
            yield row.reject("no id")
        elif not article.strip():
            yield row.reject("empty article")
        else:
            yield Record(
                SPEC.name,
                native_id,
                "summarization",
                turns=(INSTRUCTION + article,),
                text=article,
                sub_category="news",
                language="en",
                template_id=f"{SPEC.name}/v1",
            )

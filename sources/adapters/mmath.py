"""MMATH: competition mathematics in ten languages (Luo et al., 2025).

One file a language, `mmath/<lang>.json`, with the same 374 problems: `question`, `answer`, `data_source` (MATH500,
AIME2024, AIME2025, CNMO), `lang` and `gid`, the number of the problem, which is the same in all languages. The
question is the single turn, as it stands.

Rules
-----
- The native id is `<lang>_<gid>`: `gid` alone names ten records.
- The language is the row's own `lang`, not the name of its file; one that is none of the ten is rejected.
- The sub-category is the task, `math`; every record is multilingual, English included, as in the paper's table.
- No difficulty: the paper gives one to the categories coding, humanities, math and stem alone.
- Licence: MIT, as NVIDIA's list of licences has it; the GitHub repository holds no licence file.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, SourceSpec
from sources.licenses import MIT

SPEC = SourceSpec(
    name="mmath",
    title="MMATH",
    repo="RUCAIBox/MMATH",
    license=MIT,
    files={
        "problems": FileSpec("mmath/*.json", "json", {"question": "string?", "lang": "string", "gid": "int64"}),
    },
    feeds=("multilingual",),
    citation="""@article{luo2025mmath,
  title   = {MMATH: A Multilingual Benchmark for Mathematical Reasoning},
  author  = {Luo, Wenyang and Zhao, Wayne Xin and Sha, Jing and Wang, Shijin and Wen, Ji-Rong},
  journal = {arXiv preprint arXiv:2505.19126},
  year    = {2025}
}""",
)

LANGUAGES = ("ar", "en", "es", "fr", "ja", "ko", "pt", "th", "vi", "zh")
"""As the files name them; each is also its BCP 47 tag."""


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield every problem in every language."""
    for row in files.rows("problems"):
        question, language = row.get("question", ""), row["lang"]
        if language not in LANGUAGES:
            yield row.reject(f"language {language!r} is none of {', '.join(LANGUAGES)}")
        elif not question.strip():
            yield row.reject("empty question")
        else:
            yield Record(
                SPEC.name,
                f"{language}_{row['gid']}",
                "multilingual",
                turns=(question,),
                text=question,
                sub_category="math",
                language=language,
            )

"""MCIF v1.0: instructions about scientific talks in English, German, Italian and Chinese (Papi et al., 2025).

A track (`long`, `short`) and text language has a file of prompts with fixed wording, one with mixed wording, and one
of references. In each, `task` elements (`track`, `text_lang`) hold `sample` elements: `id`, and inside `audio_path`,
`video_path`, `text_path` (not for transcription) and `instruction`; the references add the attributes `iid` and `task`
(ASR, TRANS, QA, SUM). `LONG_TEXTS/<talk>.en` is the transcript of a talk. This schema is taken from public
descriptions and from the code that builds the set; the adapter has not seen the real files, and their exact names are
resolved by `sources lock`.

Rules
-----
- The long track and the mixed wording, as the paper says: the short track has no text.
- The text of a prompt is the transcript, a blank line, and the instruction, all as the source has them; no words of
  ours are added. In a conversation the transcript stands in the first turn only.
- `rag`: English QA. The questions on one talk, sorted by id, are cut into conversations of two to five turns, each
  size drawn by a seeded hash of the id of the first question; a last question may stand alone.
- `multilingual`: QA, translation and summarization in German, Italian and Chinese. A sample is a record.
- One talk, one use. All prompts on a talk share its transcript, so that dedup would keep one of them, and always of
  the language that sorts first. A seeded hash of the talk's name draws its category, and for `multilingual` the
  language and task, among those that the talk has. Samples that were not drawn are rejected with that reason.
- Transcription needs the audio, and English summaries are neither multilingual nor retrieval: they are passed over.
- The native id is `<iid>_<text_lang>`. The language is the text language, that of the instruction and of the answer;
  of a translation it is that of the text, English. The sub-category is `qa`, `summarization` or
  `translation en-<text_lang>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, joined_id, seeded_choice, seeded_int
from sources.licenses import CC_BY_4_0

SPEC = SourceSpec(
    name="mcif",
    title="MCIF",
    repo="FBK-MT/MCIF",
    license=CC_BY_4_0,
    files={
        "prompts": FileSpec("*long.*.src.mixedprompts.xml", "xml", {"element": "any"}, row_tag="task"),
        "references": FileSpec("*long.*.ref.xml", "xml", {"element": "any"}, row_tag="task"),
        "transcripts": FileSpec("*LONG_TEXTS/*.en", "text", {"text": "string"}),
    },
    feeds=("multilingual", "rag"),
    citation="""@article{papi2025mcif,
  title   = {MCIF: Multimodal Crosslingual Instruction-Following Benchmark from Scientific Talks},
  author  = {Papi, Sara and Z{\\"u}fle, Maike and Gaido, Marco and Savoldi, Beatrice and Liu, Danni and
             Douros, Ioannis and Bentivogli, Luisa and Niehues, Jan},
  journal = {arXiv preprint arXiv:2507.19634},
  year    = {2025}
}""",
)

TASKS = {"QA": "qa", "SUM": "summarization", "TRANS": "translation"}
"""MCIF's tasks that work on text, and what we call them."""

LANGUAGES = ("de", "en", "it", "zh")
MIN_TURNS, MAX_TURNS = 2, 5

_Key = tuple[str, str]  # text language, sample id


@dataclass(frozen=True, slots=True, order=True)
class _Sample:
    iid: str
    language: str
    task: str
    talk: str
    instruction: str

    @property
    def category(self) -> str:
        return "rag" if self.language == "en" else "multilingual"

    @property
    def use(self) -> str:
        return "English QA" if self.language == "en" else f"{self.language} {TASKS[self.task]}"

    @property
    def native_id(self) -> str:
        return f"{self.iid}_{self.language}"


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield conversations over a talk (`rag`) and prompts about one in another language (`multilingual`)."""
    transcripts = {PurePosixPath(row.file).stem: row["text"].strip() for row in files.rows("transcripts")}
    tasks = _tasks(files)
    found: list[tuple[_Sample, Row]] = []
    for row in files.rows("prompts"):
        for element in row["element"].iter("sample"):
            sample = _sample(element, row["element"].get("text_lang", ""), tasks, transcripts)
            if isinstance(sample, str):
                yield row.reject(sample)
            elif sample is not None:
                found.append((sample, row))
    found.sort(key=lambda pair: pair[0])  # so that neither the order of files nor of samples matters
    uses = _uses([sample for sample, _ in found])
    drawn: dict[str, _Sample] = {}
    for sample, row in found:
        if sample.use != uses[sample.talk]:
            yield row.reject(f"sample {sample.native_id}: the talk {sample.talk} serves {uses[sample.talk]}")
        elif sample.native_id in drawn:
            yield row.reject(f"sample {sample.native_id}: stands twice")
        else:
            drawn[sample.native_id] = sample
    yield from _records(list(drawn.values()), transcripts)


def _tasks(files: Files) -> dict[_Key, tuple[str, str]]:
    tasks: dict[_Key, tuple[str, str]] = {}
    for row in files.rows("references"):
        language = row["element"].get("text_lang", "")
        for sample in row["element"].iter("sample"):
            key = (language, sample.get("id", ""))
            tasks[key] = (sample.get("task", ""), sample.get("iid", ""))
    return tasks


def _sample(
    element: Any, language: str, tasks: Mapping[_Key, tuple[str, str]], transcripts: Mapping[str, str]
) -> _Sample | str | None:
    """Return a sample of use to us, why it is none, or None for a task that is not ours."""
    number = element.get("id", "")
    if language not in LANGUAGES:
        return f"sample {number}: text language {language!r} is none of {', '.join(LANGUAGES)}"
    task, iid = tasks.get((language, number), ("", ""))
    if not task or not iid:
        return f"sample {number} ({language}): no task and iid in the references"
    if task not in TASKS or (language == "en" and task != "QA"):
        return None
    talk = PurePosixPath((element.findtext("text_path") or "").strip()).stem
    if not transcripts.get(talk):
        return f"sample {iid}_{language}: no transcript of the talk {talk!r}"
    instruction = (element.findtext("instruction") or "").strip()
    return (
        _Sample(iid, language, task, talk, instruction) if instruction else f"sample {iid}_{language}: no instruction"
    )


def _uses(samples: list[_Sample]) -> dict[str, str]:
    """Return for each talk the one use that is drawn for it."""
    by_talk: dict[str, dict[str, set[str]]] = {}
    for sample in samples:
        by_talk.setdefault(sample.talk, {}).setdefault(sample.category, set()).add(sample.use)
    drawn: dict[str, str] = {}
    for talk, categories in by_talk.items():
        category = seeded_choice(sorted(categories), f"{SPEC.name}-category", talk)
        drawn[talk] = seeded_choice(sorted(categories[category]), f"{SPEC.name}-use", talk)
    return drawn


def _records(samples: list[_Sample], transcripts: Mapping[str, str]) -> Iterator[Record]:
    questions: dict[str, list[_Sample]] = {}
    for sample in samples:
        if sample.category == "rag":
            questions.setdefault(sample.talk, []).append(sample)
        else:
            yield _record([sample], transcripts[sample.talk])
    for talk, left in sorted(questions.items()):
        while left:
            size = MIN_TURNS + seeded_int(MAX_TURNS - MIN_TURNS + 1, f"{SPEC.name}-size", left[0].native_id)
            yield _record(left[:size], transcripts[talk])
            del left[:size]


def _record(samples: list[_Sample], transcript: str) -> Record:
    first = samples[0]
    members = tuple(sample.native_id for sample in samples)
    turns = (f"{transcript}\n\n{first.instruction}", *(sample.instruction for sample in samples[1:]))
    is_translation = first.task == "TRANS"
    return Record(
        SPEC.name,
        joined_id(members),
        first.category,
        turns=turns,
        text="\n\n".join(turns),
        sub_category=f"translation en-{first.language}" if is_translation else TASKS[first.task],
        language="en" if is_translation else first.language,
        members=members,
    )

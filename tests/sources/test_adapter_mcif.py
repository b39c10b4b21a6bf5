"""MCIF: prompts about a talk, from XML; each talk serves one category, language and task."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest

from sources.adapters.mcif import MAX_TURNS, SPEC
from sources.base import Row
from sources.registry import SOURCES

SOURCE = SOURCES["mcif"]
LANGUAGES = ("en", "de", "it", "zh")


class Talks:
    """Files about some talks, each with a translation, a summary and questions in every language."""

    def __init__(self, talks: dict[str, str], questions: int = 4) -> None:
        self.by_key: dict[str, list[Row]] = {
            "transcripts": [Row({"text": text}, f"LONG_TEXTS/{talk}.en", 1) for talk, text in talks.items()],
            "prompts": [],
            "references": [],
        }
        for language in LANGUAGES:
            prompts, references = (Element("task", track="long", text_lang=language) for _ in range(2))
            for i, (iid, task, talk) in enumerate(_samples(talks, questions)):
                if task == "TRANS" and language == "en":
                    continue
                add(prompts, str(i), talk, f"{language} {iid}!")
                SubElement(references, "sample", id=str(i), iid=iid, task=task)
            for key, element in (("prompts", prompts), ("references", references)):
                self.by_key[key].append(Row({"element": element}, f"long.{language}.{key}.xml", 1))

    def rows(self, key: str) -> list[Row]:
        return self.by_key[key]

    def task(self, key: str, language: str) -> Any:
        return self.by_key[key][LANGUAGES.index(language)]["element"]


def _samples(talks: dict[str, str], questions: int) -> list[tuple[str, str, str]]:
    samples = []
    for v, talk in enumerate(talks):
        samples += [(f"ASR_{v}", "ASR", talk), (f"TRANS_{v}", "TRANS", talk), (f"SUM_{v}", "SUM", talk)]
        samples += [(f"QA_{v}_{k}", "QA", talk) for k in range(questions)]
    return samples


def add(task: Any, number: str, talk: str, instruction: str) -> None:
    sample = SubElement(task, "sample", id=number)
    SubElement(sample, "text_path").text = f"{talk}.en"
    SubElement(sample, "instruction").text = instruction


TWENTY = {f"talk{i}": f"This is talk number {i}." for i in range(20)}


def _talk(record: Any) -> str:
    return "talk" + record.text.partition(".")[0].removeprefix("This is talk number ")


def test_a_talk_serves_one_category_language_and_task(parsed: Any) -> None:
    records, rejected = parsed(SOURCE, Talks(TWENTY))
    uses = defaultdict(set)
    for record in records:
        uses[_talk(record)].add((record.category, record.turns[0].split("\n\n")[1][:2], record.sub_category))
    assert set(uses) == set(TWENTY), "every talk serves something"
    assert all(len(served) == 1 for served in uses.values())
    assert {category for ((category, _, _),) in uses.values()} == {"multilingual", "rag"}
    made = sum(len(r.members) for r in records)
    # Per talk and language: 4 questions; a summary and a translation in three languages. English summaries never count.
    assert made + len(rejected) == 20 * (4 * 4 + 3 + 3)
    assert all(" serves " in r.reason for r in rejected)


def test_retrieval_is_the_english_questions_of_a_talk_with_the_transcript_once(parsed: Any) -> None:
    records, _ = parsed(SOURCE, Talks(TWENTY, questions=9))
    rag = [r for r in records if r.category == "rag"]
    for record in rag:
        transcript = TWENTY[_talk(record)]
        instructions = [f"en {m.removesuffix('_en')}!" for m in record.members]
        assert record.turns == (f"{transcript}\n\n{instructions[0]}", *instructions[1:])
        assert record.text == "\n\n".join(record.turns)
        assert (record.language, record.sub_category, record.template_id) == ("en", "qa", "")
        assert len(record.turns) <= MAX_TURNS
    sizes = [len(r.turns) for r in rag]
    assert set(sizes) >= {2, 3, 4, 5}
    assert sizes.count(1) <= len({_talk(r) for r in rag}), "only what is left of a talk stands alone"


def test_multilingual_records_name_task_and_language(parsed: Any) -> None:
    records, _ = parsed(SOURCE, Talks({f"t{i}": f"Talk {i}." for i in range(80)}))
    seen = set()
    for record in (r for r in records if r.category == "multilingual"):
        iid, _, asked = record.native_id.rpartition("_")
        assert record.turns[0].endswith(f"\n\n{asked} {iid}!")
        assert len(record.turns) == 1
        task = iid.partition("_")[0]
        expected = {"QA": ("qa", asked), "SUM": ("summarization", asked), "TRANS": (f"translation en-{asked}", "en")}
        assert (record.sub_category, record.language) == expected[task], "a translation has the language of its text"
        seen.add((task, asked))
    assert seen == {(task, language) for task in ("QA", "SUM", "TRANS") for language in ("de", "it", "zh")}


def test_order_of_files_and_samples_does_not_matter(parsed: Any) -> None:
    talks = Talks(TWENTY)
    records, _ = parsed(SOURCE, talks)
    for key, rows in talks.by_key.items():
        random.Random(f"files {key}").shuffle(rows)
        for row in rows if key != "transcripts" else []:
            samples = list(row["element"])
            random.Random(f"samples {key}").shuffle(samples)
            row["element"][:] = samples
    assert parsed(SOURCE, talks)[0] == records


@pytest.mark.parametrize(
    ("number", "talk", "instruction", "reason"),
    [
        ("900", "t", "Antworte!", "sample 900 (de): no task and iid in the references"),
        ("901", "gone", "Antworte!", "sample QA_901_de: no transcript of the talk 'gone'"),
        ("902", "t", " ", "sample QA_902_de: no instruction"),
    ],
)
def test_a_bad_sample_is_rejected_alone(number: str, talk: str, instruction: str, reason: str, parsed: Any) -> None:
    talks = Talks({"t": "A talk."})
    before, _ = parsed(SOURCE, talks)
    add(talks.task("prompts", "de"), number, talk, instruction)
    if number != "900":
        SubElement(talks.task("references", "de"), "sample", id=number, iid=f"QA_{number}", task="QA")
    after, rejected = parsed(SOURCE, talks)
    assert after == before
    assert reason in [r.reason for r in rejected]


def test_a_sample_that_stands_twice_is_rejected_the_second_time(parsed: Any) -> None:
    talks = Talks(TWENTY)
    before, _ = parsed(SOURCE, talks)
    for language in LANGUAGES:
        task = talks.task("prompts", language)
        task.extend(list(task))
    after, rejected = parsed(SOURCE, talks)
    assert after == before
    assert sum(r.reason.endswith("stands twice") for r in rejected) == sum(len(r.members) for r in before)


def test_an_unknown_text_language_is_rejected(parsed: Any) -> None:
    talks = Talks({"t": "A talk."})
    task = Element("task", track="long", text_lang="fr")
    add(task, "1", "t", "Réponds !")
    talks.by_key["prompts"].append(Row({"element": task}, "long.fr.xml", 1))
    reasons = [r.reason for r in parsed(SOURCE, talks)[1]]
    assert "sample 1: text language 'fr' is none of de, en, it, zh" in reasons


def test_transcripts_are_found_by_the_name_of_the_talk(sample_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, sample_files(SPEC)[0])
    assert {r.category for r in records} == {"multilingual", "rag"}
    assert sum(" serves " not in r.reason for r in rejected) == 3

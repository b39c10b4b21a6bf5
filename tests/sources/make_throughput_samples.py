"""Write our samples of the throughput split's own sources: invented texts in each source's schema.

Run by hand; the files are package data. Sentences come from a small grammar, so that a few lines of ours give texts
that are long enough for prompts of 2,000 tokens.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLES = Path(__file__).parents[2] / "sources" / "samples"

WHO = (
    "the harbour master", "a girl with a red umbrella", "old Tobias", "the clockmaker's widow", "Captain Ilse Brandt",
    "the youngest of the surveyors", "a pedlar from the hills", "the schoolteacher", "Doctor Amadi", "the night porter",
    "my aunt Philippa", "the cartographer", "a boy named Joss", "the ferryman", "Miss Calloway", "the gardener",
)  # fmt: skip
DID = (
    "carried", "had hidden", "was looking for", "sold", "described to nobody but the cat", "found again", "measured",
    "lost in the snow", "painted over", "would not part with", "mended", "inherited", "wrapped in oilcloth", "named",
    "counted twice", "promised to return",
)  # fmt: skip
WHAT = (
    "a brass compass", "the ledger of the spice company", "three letters in a foreign hand", "a lantern without glass",
    "the map of the drowned valley", "a violin case full of seeds", "the key to the upper gallery", "a jar of sand",
    "the only photograph of the bridge", "a coat too large for anyone", "the list of passengers", "a slow clock",
    "the second half of the poem", "an almanac from the year of the flood", "a bell with no tongue", "the deeds",
)  # fmt: skip
WHERE = (
    "before the tide turned", "behind the customs house", "on the road to Varnholt", "in the last week of September",
    "under the eyes of the whole market", "where the two canals meet", "by the light of a single candle", "at the inn",
    "while the rain beat on the roof", "long after the others had gone to bed", "in the garden of the sanatorium",
    "between two trains", "as the fog came in from the marshes", "on the steps of the library", "without a word",
)  # fmt: skip
THEN = (
    "Nobody asked why.", "It was a Tuesday, and the shops were shut.", "“You will want to write that down,” she said.",
    "The dog slept through all of it.", "Years later they still spoke of it at table.", "And yet the door stood open.",
    "There was, of course, another explanation.", "He laughed, which he seldom did.", "The price had been agreed.",
    "Outside, someone was singing.", "That was the first mistake.", "Only the gulls had seen it.",
)  # fmt: skip
NAMES = ("Marta Lind", "Owen Price", "Sefa Adeyemi", "Councillor Hruby", "Dr Okafor", "Ines", "Bram", "The Chair")
NOUNS = ("buffer", "window", "ledger", "cursor", "packet", "segment", "voucher", "sensor", "route", "journal", "tariff")
VERBS = ("parse", "merge", "flush", "count", "sort", "rotate", "validate", "encode", "split", "append", "measure")


def sentence(rng: random.Random) -> str:
    first = rng.choice(WHO)
    text = f"{first} {rng.choice(DID)} {rng.choice(WHAT)} {rng.choice(WHERE)}"
    if rng.random() < 0.4:
        text += f", and {rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHAT)}"
    return text[0].upper() + text[1:] + "."


def paragraph(rng: random.Random) -> str:
    parts = [sentence(rng) for _ in range(rng.randint(3, 7))]
    parts.insert(rng.randrange(len(parts)), rng.choice(THEN))
    return " ".join(parts)


def wrapped(text: str, width: int = 70) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def conversation(rng: random.Random, turns: int) -> dict[str, str]:
    people = rng.sample(NAMES, 4)
    lines = [f'"{sentence(rng)} {rng.choice(THEN)}" said by {rng.choice(people)}' for _ in range(turns)]
    return {"content": "\n".join([*lines, f'"{sentence(rng)}" said by ']), "answer": f" {rng.choice(people)}"}


def function(rng: random.Random, java: bool) -> str:
    verb, noun, other = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    limit = rng.randint(2, 400)
    if java:
        name = f"{verb}{noun.capitalize()}{rng.randint(1, 99)}"
        return (
            f"    /** Returns how often {other} exceeds {limit}. */\n    int {name}(List<Integer> {noun}s) {{\n"
            f"        int total = 0;\n        for (int {noun} : {noun}s) {{\n            if ({noun} > {limit}) {{\n"
            f"                total += {noun} % {rng.randint(2, 9)};\n            }}\n        }}\n"
            "        return total;\n    }\n"
        )
    name = f"{verb}_{noun}_{rng.randint(1, 99)}"
    return (
        f'def {name}({noun}s, limit={limit}):\n    """Return {noun}s that {verb} before {other}."""\n    kept = []\n'
        f"    for {noun} in {noun}s:\n        if {noun}.{other} is None:\n            continue\n"
        f"        if {noun}.{other} > limit:\n            kept.append({noun}.{verb}())\n    return kept\n\n"
    )


def module(rng: random.Random, functions: int, java: bool = False) -> str:
    if java:
        body = "\n".join(function(rng, java) for _ in range(functions))
        return f"package org.example.{rng.choice(NOUNS)};\n\nclass {rng.choice(NOUNS).capitalize()} {{\n{body}}}\n"
    return f'"""Works on every {rng.choice(NOUNS)} of a {rng.choice(NOUNS)}."""\n\nimport sys\n\n\n' + "\n".join(
        function(rng, java) for _ in range(functions)
    )


def bamboo() -> None:
    rng = random.Random("bamboo")
    for task in ("meetingpred", "showspred"):
        for size, turns in (("4k", 44), ("16k", 60)):
            rows: list[Any] = [conversation(rng, turns) for _ in range(4)]
            odd = (
                {"content": " ", "answer": " Ines"} if size == "4k" else {"content": rows[0]["content"], "answer": None}
            )
            write_lines(SAMPLES / "bamboo" / "datasets" / f"{task}_{size}.jsonl", [*rows, odd])


def gutenberg() -> None:
    rng = random.Random("gutenberg")
    for number, title in ((84, "Frankenstein"), (98, "A Tale of Two Cities"), (1342, "Pride and Prejudice")):
        chapters = [f"CHAPTER {i}\n\n" + "\n\n".join(wrapped(paragraph(rng)) for _ in range(14)) for i in range(1, 11)]
        mark = f"PROJECT GUTENBERG EBOOK {title.upper()} ***"
        note = (
            "A sample in the form of a Project Gutenberg file. The text was invented for tests; the book is another.\n"
        )
        text = (
            f"{note}\n*** START OF THE {mark}\n\n"
            + "\n\n\n".join(chapters)
            + f"\n\n*** END OF THE {mark}\n\nLicence.\n"
        )
        write_text(SAMPLES / "gutenberg" / f"{number}.txt", text.replace("\n", "\r\n") if number == 98 else text)
    write_text(SAMPLES / "gutenberg" / "99999999.txt", "A book that no list names.\n")


def stackselect() -> None:
    rng = random.Random("stackselect")
    for size, answers in (("1k", 3), ("2k", 6), ("8k", 9), ("16k", 10), ("32k", 12)):
        rows: list[Any] = []
        for i in range(8):
            texts = [" ".join(paragraph(rng).split()[: rng.randint(60, 160)]) for _ in range(answers)]
            question = f"How do I {rng.choice(VERBS)} a {rng.choice(NOUNS)} when {sentence(rng)[:-1]}? ({size}, {i})"
            rows.append(
                {
                    "question_id": f"sample-{size}-{i}",
                    "question": question,
                    "all_answers": texts,
                    "answer": f"A{rng.randint(1, answers)}",
                    "tags": ["sample"],
                }
            )
        rows.append(
            {"question_id": f"sample-{size}-bad", "question": "Which?", "all_answers": ["One."], "answer": "A2"}
        )
        write_json(SAMPLES / "stackselect" / f"stackselect_{size}.json", rows)


def textsort() -> None:
    rng = random.Random("textsort")
    for size, paragraphs in (("1k", 2), ("2k", 3), ("8k", 5), ("16k", 6), ("32k", 6), ("64k", 7)):
        rows: list[Any] = []
        for i in range(4):
            order = rng.sample((1, 2, 3, 4), 4)
            parts = ["\n\n".join(paragraph(rng) for _ in range(paragraphs)) for _ in range(4)]
            shown = "\n\n\n".join(f"Part {n}: {text}" for n, text in enumerate(parts, start=1))
            prompt = (
                "Put the parts into order. An example:\n\nBefore: XXX\n\n\nPart 1: XXX\n\n\nPart 2: XXX\n\n\n"
                "Part 3: XXX\n\n\nPart 4: XXX\n\n\nAfter: XXX\n\nAnswer: [4, 1, 3, 2]\n\nNow yours:\n\n"
                f"Before: {paragraph(rng)}\n\n\n{shown}\n\n\nAfter: {paragraph(rng)}"
            )
            answer: Any = order if i % 2 else json.dumps(order)
            rows.append({"book_id": f"sample-{i}", "para_offset": [i, 7], "prompt": prompt, "answer": answer})
        rows.append({"book_id": "sample-bad", "para_offset": [1], "prompt": "Part 1: alone", "answer": [1, 2, 3, 4]})
        write_json(SAMPLES / "textsort" / f"textsort_{size}.json", rows)


MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software.\n"


def long_code_arena() -> None:
    rng = random.Random("lca")
    for size, files in (("medium", 8), ("large", 10)):
        rows = []
        for i in range(5):
            snapshot = [(f"src/{rng.choice(NOUNS)}_{n}.py", module(rng, 8)) for n in range(files)]
            if i < 4:
                snapshot.append(("LICENSE", MIT))
            code = module(rng, 12)
            calls = [n for n, line in enumerate(code.split("\n")) if "kept.append" in line]
            rows.append(
                {
                    "repo": f"sample__{size}-{i}",
                    "commit_hash": f"{i:040x}",
                    "completion_file": {"filename": f"src/main_{i}.py", "content": code},
                    "completion_lines": {"inproject": calls, "random": [3]},
                    "repo_snapshot": {"filename": [n for n, _ in snapshot], "content": [t for _, t in snapshot]},
                }
            )
        write_table(SAMPLES / "long_code_arena" / f"{size}_context" / "test-00000-of-00001.parquet", rows)


def repobench(language: str) -> None:
    java = language == "java"
    rng = random.Random(language)
    for setting in ("cross_file_first", "cross_file_random", "in_file"):
        rows = []
        for i in range(5):
            context = [
                {
                    "identifier": rng.choice(NOUNS),
                    "path": f"lib/{rng.choice(NOUNS)}{n}.{language}",
                    "snippet": module(rng, 6, java),
                }
                for n in range(4)
            ]
            code = module(rng, 5 + i, java)
            cut = code.rindex("total +=" if java else "kept.append")
            cut = code.rindex("\n", 0, cut) + 1
            rows.append(
                {
                    "repo_name": "unlisted/repository" if i == 4 else "speedbench/samples",
                    "file_path": f"app/{setting}_{i}.{language}",
                    "context": context,
                    "import_statement": "",
                    "token_num": 2000,
                    "cropped_code": code[:cut],
                    "all_code": code,
                    "next_line": code[cut:].split("\n")[0],
                    "gold_snippet_index": 0,
                    "created_at": "2023-11-01 00:00:00",
                    "level": "2k",
                }
            )
        write_table(SAMPLES / f"repobench_{language}" / "data" / f"{setting}-00000-of-00001.parquet", rows)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def write_lines(path: Path, rows: list[Any]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_json(path: Path, rows: list[Any]) -> None:
    write_text(path, json.dumps(rows, ensure_ascii=False, indent=0) + "\n")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd", compression_level=9, write_statistics=False)


def main() -> None:
    """Write every file in place."""
    bamboo()
    gutenberg()
    stackselect()
    textsort()
    long_code_arena()
    repobench("python")
    repobench("java")


if __name__ == "__main__":
    main()

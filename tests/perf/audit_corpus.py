"""A corpus with a benchmark planted in it, and the truth about every plant."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curation.kernels.audit_fold import tokenize

SHARES = {"en": 0.60, "code": 0.15, "zh": 0.08, "ja": 0.08, "th": 0.03, "ru": 0.06}
"""Share of the corpus' bytes by language."""

PROMPTS = {"en": 4900, "code": 400, "zh": 700, "ja": 600, "th": 250, "ru": 450}
NUM_TEMPLATE, NUM_NUMBERS, NUM_SHORT, NUM_LONG = 500, 300, 200, 200
PLANTS = {
    "exact_alone": 300,
    "exact_embedded": 900,
    "format": 900,
    "edit5": 500,
    "edit15": 500,
    "half": 200,
    "number": 80,
}
TRAPS = 400
HELD_OUT = 0.2
FILES, ROW_GROUP = 8, 4_000
NUM_BIG, BIG_BYTES, NUM_EMPTY = 20, 2_000_000, 400
SPACED = ("en", "code", "ru")
PREFIX = (
    "You are a careful assistant. Read the task that follows the line below, think about it in steps that you do not "
    "show, check the answer once more against the wording of the task, and then reply with the answer alone, in plain "
    "words and without a heading or list."
)
"""The instruction that the template prompts share."""


@dataclass(frozen=True)
class Prompt:
    """A prompt of the benchmark, its language, and the kind by which recall is told."""

    id: str
    language: str
    kind: str
    text: str


@dataclass(frozen=True)
class Plant:
    """What was put where: a document holds the prompt in this form."""

    document: str
    prompt: str
    form: str
    language: str
    num_tokens: int


def build(folder: Path, pools: dict[str, list[str]], seed: int, num_bytes: int) -> None:
    """Write `dist/`, `corpus/` and `truth.json` under a folder."""
    rng = random.Random(seed)
    shown, held = {}, {}
    for name, pool in pools.items():
        mixed = rng.sample(pool, len(pool))
        cut = int(len(mixed) * HELD_OUT)
        held[name] = mixed[:cut]
        shown[name] = _unlike(mixed[cut:], held[name], spaced=name in SPACED)
    prompts = list(_prompts(held, rng))
    documents = list(_filler(shown, rng, num_bytes))
    plants = list(_plants(prompts, shown, rng, documents))
    rng.shuffle(documents)
    _write_benchmark(folder, prompts)
    _write_corpus(folder, documents)
    truth = {"plants": [asdict(p) for p in plants], "prompts": [asdict(p) for p in prompts]}
    (folder / "truth.json").write_text(json.dumps(truth), "utf-8")


def _unlike(pool: list[str], held: list[str], *, spaced: bool) -> list[str]:
    """Leave out sentences that nearly repeat a held-out one: manuals do, and then the truth would not be known."""
    size = 4 if spaced else 6
    owners: dict[tuple[str, ...], list[int]] = {}
    sizes = []
    for i, text in enumerate(held):
        grams = _grams(text, size, spaced=spaced)
        sizes.append(len(grams))
        for gram in grams:
            owners.setdefault(gram, []).append(i)
    kept = []
    for text in pool:
        shared = Counter(i for gram in _grams(text, size, spaced=spaced) for i in owners.get(gram, ()))
        if not any(count >= 0.3 * sizes[i] for i, count in shared.items()):
            kept.append(text)
    return kept


def _grams(text: str, size: int, *, spaced: bool) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower()) if spaced else [c for c in text.lower() if c.isalnum()]
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def _prompts(held: dict[str, list[str]], rng: random.Random) -> Iterator[Prompt]:
    """Yield prompts; every held-out sentence serves once, so that no two prompts share one."""
    supply = {name: iter(pool) for name, pool in held.items()}
    joint = {name: " " if name in SPACED else "" for name in supply}
    for name, count in PROMPTS.items():
        for i in range(count):
            parts = [next(supply[name]) for _ in range(1 if name == "code" else rng.choice((1, 1, 2, 3)))]
            yield Prompt(f"{name}-{i}", name, "plain", joint[name].join(parts))
    for i in range(NUM_LONG):
        text = ""
        while len(text) < rng.randint(4_000, 9_000):
            text += next(supply["en"]) + " "
        yield Prompt(f"long-{i}", "en", "long", text.strip())
    for i in range(NUM_TEMPLATE):
        yield Prompt(f"template-{i}", "en", "template", f"{PREFIX}\n---\n{next(supply['en'])}")
    for i in range(NUM_NUMBERS):
        a, b, c = (rng.randint(100, 99_999) for _ in range(3))
        yield Prompt(f"number-{i}", "en", "number", f"Compute {a} {rng.choice('+-*')} {b} {rng.choice('+-*')} {c}.")
    words = [w for text in held["en"][-3_000:] for w in text.split() if w.isalpha() and len(w) > 4]
    for i in range(NUM_SHORT):
        yield Prompt(f"short-{i}", "en", "short", " ".join(rng.sample(words, rng.randint(3, 6))) + "?")


def _filler(shown: dict[str, list[str]], rng: random.Random, num_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield id and text of documents made of sentences that no prompt holds."""
    number = 0
    for name, share in SHARES.items():
        left = share * num_bytes
        while left > 0:
            size = BIG_BYTES if name == "en" and number < NUM_BIG else int(rng.lognormvariate(7.2, 1.0))
            text = _text(shown[name], rng, size, "\n" if name == "code" else " " if name in SPACED else "")
            yield f"d{number}", text
            left -= len(text.encode())
            number += 1
    for i in range(NUM_EMPTY):
        yield f"e{i}", rng.choice(("", "   ", "！！！", "\n\n", "--"))


def _text(pool: list[str], rng: random.Random, size: int, joint: str) -> str:
    parts, held = [], 0
    while held < size:
        part = pool[rng.randrange(len(pool))]
        parts.append(part)
        held += len(part) + 1
    return joint.join(parts)


def _plants(
    prompts: list[Prompt], shown: dict[str, list[str]], rng: random.Random, documents: list[tuple[str, str]]
) -> Iterator[Plant]:
    plain = [p for p in prompts if p.kind != "template"]
    supply = iter(rng.sample(plain, len(plain)))
    number = 0
    for form, count in sorted(PLANTS.items(), key=lambda item: item[0] != "number"):  # few prompts hold numbers
        made = 0
        while made < count:
            prompt = next(supply)
            text = _FORMS[form](prompt, shown[prompt.language], rng)
            if text is None:
                continue
            name = f"p{number}"
            documents.append((name, text if form == "exact_alone" else _embedded(text, shown[prompt.language], rng)))
            yield Plant(name, prompt.id, form, prompt.language, len(tokenize(prompt.text)[0]))
            number, made = number + 1, made + 1
    for i in range(TRAPS):
        question = shown["en"][rng.randrange(len(shown["en"]))]
        documents.append((f"t{i}", f"{PREFIX}\n---\n{question}"))


def _embedded(text: str, pool: list[str], rng: random.Random) -> str:
    return "\n\n".join([_text(pool, rng, 900, " "), text, _text(pool, rng, 900, " ")])


def _reformatted(prompt: Prompt, _: list[str], rng: random.Random) -> str:
    """Return the prompt in another form: the letters, digits and signs stay."""
    wrap = _wrapped if prompt.language in SPACED else _wrapped_anywhere
    return rng.choice((str.upper, _without_punctuation, wrap, _typeset, _decomposed, _full_width))(prompt.text)


def _without_punctuation(text: str) -> str:
    if any(unicodedata.category(c) in ("Sm", "Sc") or c in "*/%&@#^~|\\_`$+=<>-" for c in text):
        return text.title()
    return " ".join("".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in text).split())


def _wrapped(text: str) -> str:
    words = text.split()
    return "\n".join(" ".join(words[i : i + 6]) for i in range(0, len(words), 6))


def _wrapped_anywhere(text: str) -> str:
    return re.sub(r"(?<=[\u0e01-\u0e2e\u3040-\u9fff])(?=[\u0e01-\u0e2e\u3040-\u9fff].{3}[^ ])", _every_ninth(), text)


def _every_ninth() -> Callable[[re.Match[str]], str]:
    counter = iter(range(1_000_000))
    return lambda _: "\n" if next(counter) % 9 == 8 else ""


def _typeset(text: str) -> str:
    return text.replace('"', "\u201c").replace("'", "\u2019").replace(" ", "\u00a0")


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _edited(share: float) -> Callable[[Prompt, list[str], random.Random], str | None]:
    def edit(prompt: Prompt, pool: list[str], rng: random.Random) -> str | None:
        spaced = prompt.language in SPACED
        words = prompt.text.split() if spaced else list(prompt.text)
        places = [i for i, w in enumerate(words) if tokenize(w)[0]]
        if len(tokenize(prompt.text)[0]) < 8 or len(places) < 8:
            return None
        for i in rng.sample(places, max(1, round(share * len(places)))):
            other = pool[rng.randrange(len(pool))]
            options = [w for w in (other.split() if spaced else other) if tokenize(w)[0] and w != words[i]]
            words[i] = rng.choice(options or ["zebra"])
        return (" " if spaced else "").join(words)

    return edit


def _half(prompt: Prompt, _: list[str], __: random.Random) -> str | None:
    return prompt.text[: len(prompt.text) // 2] if len(tokenize(prompt.text)[0]) >= 30 else None


def _other_numbers(prompt: Prompt, _: list[str], rng: random.Random) -> str | None:
    words = prompt.text.split(" ")
    places = [i for i, w in enumerate(words) if w.isascii() and w.isdigit()]
    if prompt.kind == "number" or not places or len(words) < 12:
        return None
    for i in places:
        words[i] = str(int(words[i]) + rng.randint(1, 50))
    return " ".join(words)


def _same(prompt: Prompt, _: list[str], __: random.Random) -> str | None:
    return prompt.text if len(tokenize(prompt.text)[0]) >= 3 else None


_FORMS: dict[str, Callable[[Prompt, list[str], random.Random], str | None]] = {
    "exact_alone": _same,
    "exact_embedded": _same,
    "format": _reformatted,
    "edit5": _edited(0.05),
    "edit15": _edited(0.15),
    "half": _half,
    "number": _other_numbers,
}


def _write_benchmark(folder: Path, prompts: list[Prompt]) -> None:
    data = folder / "dist" / "data"
    data.mkdir(parents=True)
    table = pa.table(
        {
            "question_id": [p.id for p in prompts],
            "category": [p.kind for p in prompts],
            "turns": [[p.text] for p in prompts],
            "source": [p.language for p in prompts],
            "src_id": [p.id for p in prompts],
        }
    )
    pq.write_table(table, data / "qualitative.parquet")


def _write_corpus(folder: Path, documents: list[tuple[str, str]]) -> None:
    corpus = folder / "corpus"
    corpus.mkdir()
    share = -(-len(documents) // FILES)
    for i in range(FILES):
        part = documents[i * share : (i + 1) * share]
        table = pa.table({"id": [name for name, _ in part], "text": [text for _, text in part]})
        pq.write_table(table, corpus / f"part-{i}.parquet", compression="zstd", row_group_size=ROW_GROUP)

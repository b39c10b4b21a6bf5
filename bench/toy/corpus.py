"""What the toy pair is trained on: the standard library's code and manual, and prose and dialogues of our own."""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).with_name("corpus")
"""The folder of texts that were written for this project."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ASK_CODE = ("Write the Python function `{name}`. {about}", "Implement `{name}` in Python.", "Write code: {about}")
_ASK_ABOUT = ("What does `{name}` do?", "Explain `{name}`.", "What is `{name}` in the module {module} for?")
_ASK_NEXT = ("Continue: {first}", "Go on with this text: {first}", "Write what comes next.\n{first}")
_ASK_WHOLE = ("Write a text that begins: {words}", "Write a paragraph about this: {words}", "Tell me about {words}.")
_ASK_SHORT = ("Summarize this text.\n{text}", "Give the main point.\n{text}", "{text}\n\nWhat is this about?")


@dataclass(frozen=True, slots=True)
class Chat:
    """One conversation: user and assistant by turns, and what it is about (`code`, `manual`, `prose`, `dialogue`)."""

    kind: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """All texts, in a fixed order.

    Attributes
    ----------
    code
        Source files.
    manual
        Chapters of the language's manual, as `help()` shows them.
    prose
        The project's own texts.
    """

    code: tuple[str, ...]
    manual: tuple[str, ...]
    prose: tuple[str, ...]
    chats: tuple[Chat, ...]


def read_corpus(seed: int) -> Corpus:
    """Return the corpus of this interpreter's standard library and the project's texts; `seed` words the questions."""
    rng = random.Random(seed)
    library = Path(sysconfig.get_paths()["stdlib"])
    files = {path.stem: path.read_text("utf-8") for path in sorted(library.glob("*.py"))}
    manual = _manual()
    prose = own_prose()
    chats = [chat for name, text in files.items() for chat in _code_chats(name, text, rng)]
    chats += [chat for text in manual for chat in _paragraph_chats("manual", text, rng)]
    chats += [chat for text in prose for chat in _paragraph_chats("prose", text, rng)]
    chats += own_dialogues()
    return Corpus(tuple(files.values()), manual, prose, tuple(chats))


def _manual() -> tuple[str, ...]:
    from pydoc_data import topics

    chapters: dict[str, str] = topics.topics
    return tuple(chapters[name].strip() for name in sorted(chapters))


def own_prose() -> tuple[str, ...]:
    """Return the project's texts; in a file, a line of `---` stands between two."""
    files = [path.read_text("utf-8") for path in sorted(OWN.glob("prose*.txt"))]
    return tuple(part.strip() for text in files for part in text.split("\n---\n"))


def own_dialogues() -> list[Chat]:
    """Return the project's dialogues."""
    return [chat for path in sorted(OWN.glob("dialogues*.txt")) for chat in read_dialogues(path.read_text("utf-8"))]


def read_dialogues(text: str) -> list[Chat]:
    """Return the dialogues of a text: lines that begin `Q: ` and `A: ` by turns, a blank line before each dialogue.

    Raises
    ------
    ValueError
        If a dialogue does not go question, answer, question, answer; names it by its first line.
    """
    chats = []
    for block in re.split(r"\n\n(?=Q: )", text.strip()):
        pieces = re.split(r"^([QA]): ", block, flags=re.MULTILINE)[1:]
        speakers, turns = pieces[::2], tuple(piece.rstrip() for piece in pieces[1::2])
        if not turns or "".join(speakers) != "QA" * (len(turns) // 2):
            raise ValueError(f"a dialogue must go Q, A, Q, A; not so after {block.splitlines()[0]!r}")
        chats.append(Chat("dialogue", turns))
    return chats


def _code_chats(module: str, text: str, rng: random.Random) -> Iterator[Chat]:
    """Yield questions about the functions of a module: the code for its name, the docstring for the question."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        about = ast.get_docstring(node) or ""
        first = about.split("\n\n")[0].replace("\n", " ")
        source = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        if 60 <= len(source) <= 500:
            asked = rng.choice(_ASK_CODE if first else _ASK_CODE[1:2]).format(name=node.name, about=first)
            yield Chat("code", (asked, source.strip()))
        if 30 <= len(about) <= 400:
            yield Chat("manual", (rng.choice(_ASK_ABOUT).format(name=node.name, module=module), about))


def _paragraph_chats(kind: str, text: str, rng: random.Random) -> Iterator[Chat]:
    """Yield, for the paragraphs of a text, requests to go on, to write the whole, and to shorten."""
    for paragraph in text.split("\n\n"):
        sentences = _SENTENCE.split(paragraph.strip())
        if len(sentences) < 2 or not paragraph[:1].isalpha() or len(paragraph) > 900:
            continue
        cut = rng.randrange(1, len(sentences))
        first, rest = " ".join(sentences[:cut]), " ".join(sentences[cut : cut + rng.randrange(1, 4)])
        yield Chat(kind, (rng.choice(_ASK_NEXT).format(first=first), rest))
        if len(paragraph) <= 450:
            words = " ".join(paragraph.split()[: rng.randrange(3, 7)])
            yield Chat(kind, (rng.choice(_ASK_WHOLE).format(words=words), paragraph))
        if len(sentences) > 2:
            yield Chat(kind, (rng.choice(_ASK_SHORT).format(text=paragraph), sentences[0]))


def texts_for_tokenizer(corpus: Corpus) -> Sequence[str]:
    """Return the texts that the vocabulary is learned from: a part of the code, and all else."""
    return [*(text[:12_000] for text in corpus.code), *(text[:3_000] for text in corpus.manual), *(corpus.prose * 3)]

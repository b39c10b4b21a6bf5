"""RoleBench: questions to characters of films and series (Wang et al., 2023).

Two test files of role-specific questions, one a way of generalising (`instruction-generalization`: 95 roles,
`role-generalization`: 10 roles); a row holds `role`, `question`, reference answers and a `type` that is a list in one
file and a text in the other and is not read. `profiles-eng/desc.json` maps a role to its description and catchphrases.

Rules
-----
- A record is a conversation with one role. The questions of a role within one file, sorted by id, are cut into
  conversations of one to five turns; each size is drawn by a seeded hash of the id of the first question.
- First turn: one of eight system prompts of ours, drawn by a seeded hash of the conversation's id, with the role and
  its description, and the first question. Its number stands in the `template_id`, `rolebench/v1.<1 to 8>`.
- Most questions begin with an address ("John Coffey, what ..."). The first keeps it. In later turns it is taken off
  and the sentence begun with a capital: a speaker does not repeat the name. An address is a beginning up to a comma,
  all of whose words are words of the role's name or titles (`Mr.`, `Professor`, ...).
- There is no native id: a question's is the digest of role and question, blanks at its ends aside. Row order and place
  play no part. A question that stands twice, in one file or in both (738 of the 7,284 real ones), is rejected the
  second time; `instruction-generalization` is read first.
- A role without a description is rejected with its question.
- The sub-category is the task, `character interview`; the role is in the text, and 95 roles would make no table.
- The record's own text is its questions alone, as the source has them. The description stands in every conversation
  of a role and would make them all near duplicates of one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from sources.base import (
    Files,
    FileSpec,
    Record,
    Rejected,
    SourceSpec,
    canonical_id,
    joined_id,
    seeded_choice,
    seeded_int,
)
from sources.licenses import APACHE_2_0

_FOLDERS = ("instruction-generalization", "role-generalization")

SPEC = SourceSpec(
    name="rolebench",
    title="RoleBench",
    repo="ZenMoore/RoleBench",
    revision="a57ed54f9613921e4a5f1b63601a558cd5acf971",
    license=APACHE_2_0,
    files={
        "descriptions": FileSpec("profiles-eng/desc.json", "json_dict", {"key": "string", "value": "string"}),
        **{
            folder: FileSpec(
                f"rolebench-eng/{folder}/role_specific/test.jsonl", "jsonl", {"role": "string?", "question": "string?"}
            )
            for folder in _FOLDERS
        },
    },
    feeds=("roleplay",),
    citation="""@article{wang2023rolellm,
  title   = {RoleLLM: Benchmarking, Eliciting, and Enhancing Role-Playing Abilities of Large Language Models},
  author  = {Wang, Zekun Moore and Peng, Zhongyuan and Que, Haoran and Liu, Jiaheng and Zhou, Wangchunshu and others},
  journal = {arXiv preprint arXiv:2310.00746},
  year    = {2023}
}""",
)

MAX_TURNS = 5

TEMPLATES = (
    "You are {role}. {description}\n\nAnswer every question as {role} would, and never step out of the part.",
    (
        "For this conversation, become {role}.\n\nWho you are: {description}\n\nSpeak in the first person and keep the "
        "voice of the character."
    ),
    "Let us play a scene: I ask, and you reply as {role}. About the character: {description}",
    (
        "Character: {role}\nBackground: {description}\n\nWrite the replies of this character, with the knowledge, the "
        "opinions and the manner of speaking that belong to it."
    ),
    (
        "Imagine an interview with {role}. {description} I am the interviewer; you are the guest, and you stay "
        "yourself from the first answer to the last."
    ),
    (
        "Take on the role of {role} and hold it. Use what is known of this person: {description} Do not mention that "
        "you are a language model."
    ),
    "{description}\n\nThat is {role}, and that is who you are now. Reply to what I say in character.",
    "A fan has the chance to talk to {role}. Play {role} for them. Keep to this description: {description}",
)
"""System prompts in our own words; their order is part of `template_id`."""

# fmt: off
_TITLES = frozenset({
    "agent", "aunt", "capt", "captain", "coach", "colonel", "dear", "detective", "doctor", "dr", "emperor", "general",
    "hello", "hey", "judge", "king", "lady", "lord", "madam", "maestro", "marshal", "miss", "mr", "mrs", "ms",
    "officer", "president", "prince", "princess", "prof", "professor", "queen", "saint", "senator", "sergeant",
    "sheriff", "sir", "uncle",
})
# fmt: on
_WORD = re.compile(r"[^\W_]+")


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the conversations of both files, by role."""
    descriptions = {row["key"]: row["value"].strip() for row in files.rows("descriptions") if row["value"].strip()}
    asked: set[str] = set()
    for folder in _FOLDERS:
        questions: list[tuple[str, str, str]] = []  # role, id, question
        for row in files.rows(folder):
            role, question = row.get("role", "").strip(), row.get("question", "").strip()
            native_id = canonical_id({"question": question, "role": role})
            reason = _fault(role, question, descriptions)
            if not reason and native_id in asked:
                reason = "the same question to this role was read before"
            if reason:
                yield row.reject(reason)
                continue
            asked.add(native_id)
            questions.append((role, native_id, question))
        yield from _conversations(questions, descriptions)


def _fault(role: str, question: str, descriptions: Mapping[str, str]) -> str:
    if not role:
        return "no role"
    if not question:
        return "empty question"
    return "" if role in descriptions else f"no description of the role {role}"


def _conversations(questions: list[tuple[str, str, str]], descriptions: Mapping[str, str]) -> Iterator[Record]:
    for role, of_role in groupby(sorted(questions), key=lambda item: item[0]):
        left = [(native_id, question) for _, native_id, question in of_role]
        while left:
            size = 1 + seeded_int(MAX_TURNS, f"{SPEC.name}-size", left[0][0])
            yield _record(role, descriptions[role], left[:size])
            del left[:size]


def _record(role: str, description: str, questions: list[tuple[str, str]]) -> Record:
    members = tuple(native_id for native_id, _ in questions)
    native_id = joined_id(members)
    number = seeded_choice(range(len(TEMPLATES)), f"{SPEC.name}-template", native_id)
    prompt = TEMPLATES[number].format(role=role, description=description)
    texts = [question for _, question in questions]
    return Record(
        SPEC.name,
        native_id,
        "roleplay",
        turns=(f"{prompt}\n\n{texts[0]}", *(without_address(text, role) for text in texts[1:])),
        text="\n\n".join(texts),
        sub_category="character interview",
        language="en",
        template_id=f"{SPEC.name}/v1.{number + 1}",
        members=members,
    )


def without_address(question: str, role: str) -> str:
    """Return a question without a beginning that addresses the role, its first letter then a capital.

    >>> without_address("Dr. House, why a cane?", "Gregory House")
    'Why a cane?'
    """
    address, comma, rest = question.partition(",")
    words = _WORD.findall(address.casefold())
    of_role = frozenset(_WORD.findall(role.casefold()))
    is_address = any(word in of_role for word in words) and all(word in of_role | _TITLES for word in words)
    rest = rest.lstrip()
    return rest[:1].upper() + rest[1:] if comma and rest and is_address else question

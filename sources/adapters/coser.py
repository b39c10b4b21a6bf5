"""CoSER: scenes of novels and plays, to be played by one of their characters (Wang et al., 2025).

A row of the test set is a scene: `book`, `scenario`, `topic`, `key_characters` (name and `motivation`, in the copy on
GitHub `thought`), `major_characters`, `character_profiles` (name to text, null for names of other rows), `i_p`, `i_c`.

Rules
-----
- Books in the public domain only, as in the paper: a row of any title that is not in `PUBLIC_DOMAIN` is rejected. The
  list names works published before 1930, with their number at Project Gutenberg, where each can be checked. Titles are
  compared whole, ignoring case and the shape of quotes: a shortened title could be another, younger book.
- The character is drawn by a seeded hash of the record's id among the row's `major_characters` that have a profile;
  a row in which none has one is rejected.
- One turn: book, profile, scene, the profiles of the other characters of the scene, the character's motivation (or a
  sentence of ours where the row has none) and how the reply is to be written. The instruction is ours.
- There is no native id: it is the digest of book, place in the book (`i_p`, `i_c`), topic and scenario.
- The sub-category is the task, `scene role-play`. The record's own text is the profiles, the scenario and the
  motivation.
- Licence: MIT, by the card; the GitHub repository holds no licence file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, canonical_id, seeded_choice
from sources.licenses import MIT

SPEC = SourceSpec(
    name="coser",
    title="CoSER",
    repo="Neph0s/CoSER",
    license=MIT,
    files={
        "test": FileSpec(
            "test/test_set.json",
            "json",
            {
                "book": "string?",
                "scenario": "string?",
                "topic": "string?",
                "key_characters": "list<struct>?",
                "major_characters": "list<string>?",
                "character_profiles": "struct?",
                "i_p": "int64?",
                "i_c": "int64?",
            },
        )
    },
    feeds=("roleplay",),
    citation="""@inproceedings{wang2025coser,
  title     = {CoSER: Coordinating LLM-Based Persona Simulation of Established Roles},
  author    = {Wang, Xintao and Wang, Heng and Zhang, Yifei and Yuan, Xinfeng and Xu, Rui and others},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  year      = {2025}
}""",
)

# fmt: off
PUBLIC_DOMAIN = {
    "A Christmas Carol": 46, "A Connecticut Yankee in King Arthur's Court": 86, "A Doll's House": 2542,
    "A Little Princess": 146, "A Midsummer Night's Dream": 1514, "A Passage to India": 61221,
    "A Portrait of the Artist as a Young Man": 4217, "A Room with a View": 2641, "A Study in Scarlet": 244,
    "A Tale of Two Cities": 98, "Adventures of Huckleberry Finn": 76, "Alice's Adventures in Wonderland": 11,
    "Alice's Adventures in Wonderland & Through the Looking-Glass": 11,
    "Alice's Adventures in Wonderland / Through the Looking-Glass": 11,
    "Anna Karenina": 1399, "Anne of Avonlea": 47, "Anne of Avonlea (Anne of Green Gables, #2)": 47,
    "Anne of Green Gables": 45, "Anne of Green Gables (Anne of Green Gables, #1)": 45, "Anne of the Island": 51,
    "Anne of the Island (Anne of Green Gables, #3)": 51, "Around the World in Eighty Days": 103, "As You Like It": 1523,
    "Beowulf": 16328, "Black Beauty": 271, "Bleak House": 1023, "Candide": 19942, "Cranford": 394,
    "Crime and Punishment": 2554, "Cyrano de Bergerac": 1254, "Daisy Miller": 208, "David Copperfield": 766,
    "Don Quixote": 996, "Dracula": 345, "Dubliners": 2814, "Emma": 158, "Ethan Frome": 4517,
    "Far from the Madding Crowd": 107, "Flatland: A Romance of Many Dimensions": 201, "Frankenstein": 84,
    "Frankenstein: The 1818 Text": 84, "Great Expectations": 1400, "Gulliver's Travels": 829, "Hamlet": 1524,
    "Hard Times": 786, "Heart of Darkness": 219, "Hedda Gabler": 4093, "Heidi": 1448, "Henry V": 1521,
    "Howards End": 2891, "Ivanhoe": 82, "Jane Eyre": 1260, "Journey to the Center of the Earth": 18857,
    "Jude the Obscure": 153, "Julius Caesar": 1522, "Kim": 2226, "King Lear": 1532, "Lady Susan": 946,
    "Les Misérables": 135, "Little Dorrit": 963, "Little Women": 514, "Little Women (Little Women, #1)": 514,
    "Macbeth": 1533, "Madame Bovary": 2413, "Mansfield Park": 141, "Middlemarch": 145, "Moby Dick": 2701,
    "Moby-Dick": 2701, "Moby-Dick or, the Whale": 2701, "Moby-Dick, or, the Whale": 2701, "Mrs. Dalloway": 71865,
    "Much Ado About Nothing": 1519, "My Ántonia": 242, "Nicholas Nickleby": 967, "North and South": 4276,
    "Northanger Abbey": 121, "Notes from Underground": 600, "O Pioneers!": 24, "Of Human Bondage": 351,
    "Oliver Twist": 730, "Othello": 1531, "Our Mutual Friend": 883, "Paradise Lost": 26, "Persuasion": 105,
    "Peter Pan": 16, "Pollyanna": 1450, "Pride and Prejudice": 1342, "Pygmalion": 3825, "Richard III": 1503,
    "Robinson Crusoe": 521, "Romeo and Juliet": 1513, "Sense and Sensibility": 161, "Siddhartha": 2500,
    "Silas Marner": 550, "Sister Carrie": 233, "Sons and Lovers": 217, "Tess of the D'Urbervilles": 110,
    "The Adventures of Huckleberry Finn": 76, "The Adventures of Pinocchio": 500,
    "The Adventures of Sherlock Holmes": 1661, "The Adventures of Tom Sawyer": 74, "The Aeneid": 228,
    "The Age of Innocence": 541, "The Brothers Karamazov": 28054, "The Call of the Wild": 215,
    "The Canterbury Tales": 2383, "The Count of Monte Cristo": 1184, "The Great Gatsby": 64317,
    "The Hound of the Baskervilles": 2852, "The House of Mirth": 284, "The Hunchback of Notre-Dame": 2610,
    "The Idiot": 2638, "The Iliad": 6130, "The Importance of Being Earnest": 844, "The Invisible Man": 5230,
    "The Island of Dr. Moreau": 159, "The Jungle": 140, "The Jungle Book": 236, "The Man Who Was Thursday": 1695,
    "The Mayor of Casterbridge": 143, "The Merchant of Venice": 1515, "The Metamorphosis": 5200,
    "The Mill on the Floss": 6688, "The Moon and Sixpence": 222, "The Moonstone": 155, "The Odyssey": 1727,
    "The Phantom of the Opera": 175, "The Picture of Dorian Gray": 174, "The Pickwick Papers": 580,
    "The Portrait of a Lady": 2833, "The Prince and the Pauper": 1837, "The Red Badge of Courage": 73,
    "The Return of the Native": 122, "The Scarlet Letter": 25344, "The Scarlet Pimpernel": 60,
    "The Secret Garden": 113, "The Sign of Four": 2097, "The Strange Case of Dr. Jekyll and Mr. Hyde": 43,
    "The Sun Also Rises": 67138, "The Taming of the Shrew": 1508, "The Tempest": 1540,
    "The Tenant of Wildfell Hall": 969, "The Thirty-Nine Steps": 558, "The Three Musketeers": 1257,
    "The Time Machine": 35, "The Trial": 7849, "The Turn of the Screw": 209, "The War of the Worlds": 36,
    "The Wind in the Willows": 289, "The Woman in White": 583, "The Wonderful Wizard of Oz": 55,
    "The Wonderful Wizard of Oz (Oz, #1)": 55, "This Side of Paradise": 805, "Through the Looking-Glass": 12,
    "Treasure Island": 120, "Twelfth Night": 1526, "Twenty Thousand Leagues Under the Sea": 164, "Ulysses": 4300,
    "Uncle Tom's Cabin": 203, "Vanity Fair": 599, "Villette": 9182, "War and Peace": 2600, "White Fang": 910,
    "Women in Love": 4240, "Wuthering Heights": 768,
}
# fmt: on
"""Titles whose works are in the public domain in the United States, and their number at Project Gutenberg."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})

NO_MOTIVATION = "Nothing is said of what {name} wants here: let the character and the scene decide."
PROMPT = """Play {name}, a character of {book}, in the scene below.

Who {name} is:
{profile}

The scene:
{scenario}
{others}
What moves {name} now:
{motivation}

Write the next contribution of {name}, and of no one else. Put what {name} thinks, but does not say, in square \
brackets, what {name} does in round brackets, and what {name} says as plain text."""


def _folded(title: str) -> str:
    return " ".join(title.translate(_QUOTES).casefold().split())


_FOLDED_TITLES = frozenset(_folded(title) for title in PUBLIC_DOMAIN)


def is_public_domain(title: str) -> bool:
    """Tell whether a book's title is on the list, ignoring case, blanks and the shape of quotes."""
    return _folded(title) in _FOLDED_TITLES


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield one character's part in each scene of a book in the public domain."""
    seen: set[str] = set()
    for row in files.rows("test"):
        native_id = canonical_id({name: row.get(name) for name in ("book", "i_p", "i_c", "topic", "scenario")})
        reason = _fault(row) or ("the same scene was read before" if native_id in seen else "")
        if reason:
            yield row.reject(reason)
        else:
            seen.add(native_id)
            yield _record(row, native_id)


def _fault(row: Row) -> str:
    book = row.get("book", "").strip()
    if not book:
        return "no book"
    if not is_public_domain(book):
        return f"the book {book!r} is not on the list of titles in the public domain"
    if not row.get("scenario", "").strip():
        return "empty scenario"
    if not _playable(row):
        return "no major character has a profile"
    return ""


def _playable(row: Row) -> list[str]:
    profiles = _profiles(row)
    return sorted({name for name in row.get("major_characters", []) if name in profiles})


def _profiles(row: Row) -> dict[str, str]:
    """Return the profiles that are there: read as a table, the column holds null for every name of another row."""
    profiles = row.get("character_profiles", {})
    return {name: text.strip() for name, text in profiles.items() if isinstance(text, str) and text.strip()}


def _record(row: Row, native_id: str) -> Record:
    name = seeded_choice(_playable(row), f"{SPEC.name}-character", native_id)
    profiles = _profiles(row)
    cast = [other.get("name") for other in row.get("key_characters", [])] + row.get("major_characters", [])
    others = [f"{other}: {text}" for other, text in sorted(profiles.items()) if other in cast and other != name]
    motivation = _motivation(row, name)
    prompt = PROMPT.format(
        name=name,
        book=row["book"].strip(),
        profile=profiles[name],
        scenario=row["scenario"].strip(),
        others="\nAlso in the scene:\n" + "\n".join(f"- {other}" for other in others) + "\n" if others else "",
        motivation=motivation or NO_MOTIVATION.format(name=name),
    )
    own = [profiles[name], row["scenario"].strip(), *others, motivation]
    return Record(
        SPEC.name,
        native_id,
        "roleplay",
        turns=(prompt,),
        text="\n\n".join(part for part in own if part),
        sub_category="scene role-play",
        language="en",
        template_id=f"{SPEC.name}/v1",
    )


def _motivation(row: Row, name: str) -> str:
    for character in row.get("key_characters", []):
        if character.get("name") == name:
            text: Any = character.get("motivation") or character.get("thought")
            return text.strip() if isinstance(text, str) else ""
    return ""

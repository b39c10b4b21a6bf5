"""What a pair of document and prompt is called: the faults of other tools, with inputs of our own."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.audit_index import STATUS, OverlapIndex, build_index
from curation.kernels.audit_overlap import find_overlaps
from curation.kernels.audit_rules import RULES, near_coverage, partial_run
from tests.audit.corpora import FILLER, FOG, MILL, WIRE


def index_of(*prompts: str, rule: str = "adaptive") -> OverlapIndex:
    return build_index(prompts, range(len(prompts)), max_prompts=RULES[rule].max_prompts)


def kinds(document: str, *prompts: str) -> dict[int, str]:
    return {hit.prompt: hit.kind for hit in find_overlaps([document], index_of(*prompts))}


def status(*prompts: str) -> list[str]:
    return [STATUS[s] for s in index_of(*prompts).status]


@pytest.mark.parametrize(
    "prompt", [MILL, WIRE, FOG, "Name four lakes that freeze in June.", "Compute 5127 * 486 - 39."]
)
def test_a_verbatim_prompt_inside_a_document_is_exact(prompt: str) -> None:
    """Rows 1, 3, 5 and 11: scripts without spaces, short prompts, numbers alone, a benchmark of one prompt."""
    document = FILLER * 3 + prompt + " " + FILLER * 3
    (hit,) = find_overlaps([document], index_of(prompt))
    assert hit.kind == "exact"
    assert hit.coverage == 1.0
    core = document[hit.begin : hit.end]
    assert prompt.startswith(core)
    assert len(prompt) - len(core) <= 1  # the closing sign is no token


def test_a_prompt_broken_every_seven_words_between_long_paragraphs_is_found() -> None:
    """Row 7, and case 17: the share of the prompt decides, not the share of the document."""
    words = MILL.split()
    wrapped = "\n".join(" ".join(words[i : i + 7]) for i in range(0, len(words), 7))
    assert kinds(FILLER * 40 + "\n\n" + wrapped + "\n\n" + FILLER * 40, MILL) == {0: "exact"}


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda t: t.replace('"', "\u201c").replace(" ", "\u00a0"),
        lambda t: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in t),
        lambda t: "".join(c for c in t if c.isalnum() or c == " "),
        lambda t: unicodedata.normalize("NFD", t.upper()),
        lambda t: t.replace(" — ", ", "),
    ],
)
def test_case_punctuation_width_and_normal_form_are_format(change: object) -> None:
    """Rows 8 and 9."""
    prompt = 'Wie viele Körbe — "blaue" — stehen nach Jahresende im Speicher?'
    assert callable(change)
    assert kinds(f"{FILLER} {change(prompt)} {FILLER}", prompt) == {0: "format"}


def test_dashes_that_stand_alone_do_not_break_a_run() -> None:
    """Row 9."""
    prompt = "a carter moves on average eleven loads of gravel each week"
    assert kinds("a carter moves - on average - eleven loads of gravel each week", prompt) == {0: "format"}


def test_changed_numbers_are_a_class_of_their_own() -> None:
    """Row 4."""
    prompt = "A shelf holds 17 bowls and a cart carries 48 shelves so how many bowls travel on 6 carts"
    other = "A shelf holds 93 bowls and a cart carries 75 shelves so how many bowls travel on 2 carts"
    assert kinds(other, prompt) == {0: "number_variant"}


def test_a_shared_instruction_is_no_evidence() -> None:
    """Row 6."""
    head = "Read the order below and answer in one short line without any heading. Order:"
    tasks = ["name a bitter herb", "spell the word harbour", "count to six in Welsh", "draw a kite with signs"]
    tasks += ["list two tall trees", "say which river is longer", "give a rhyme for candle", "sort these four nuts"]
    prompts = [f"{head} {task} {i} times over the evening" for i, task in enumerate([*tasks, "fold a paper boat"])]
    assert kinds(f"{head} tell me who painted this ceiling", *prompts) == {}
    assert kinds(f"{FILLER} {prompts[3]} {FILLER}", *prompts) == {3: "exact"}


def test_a_prompt_that_is_nothing_but_template_cannot_be_audited() -> None:
    template = "Choose the right answer from the four that follow"
    many = build_index([template, *(f"{template} {i} a b c d" for i in range(9))], range(10))
    assert STATUS[many.status[0]] == "boilerplate"
    assert status(template) == ["auditable"]


@pytest.mark.parametrize("prompt", ["", "   ", "！！！", "Go on", "\u200b"])
def test_a_prompt_without_enough_tokens_is_listed_and_matches_nothing(prompt: str) -> None:
    """Rows 14 and 15: two empty texts are not equal."""
    assert status(prompt) == ["too_short"]
    assert kinds(prompt, prompt) == {}


def test_code_that_differs_in_an_operator_is_neither_exact_nor_format() -> None:
    """Row 25."""
    prompt = "def shift(value): return value << 2"
    assert kinds("def shift(value): return value >> 2", prompt) == {0: "near"}
    assert kinds("DEF  shift( value ):\n    return value<<2", prompt) == {0: "format"}


def test_a_formula_that_two_prompts_share_is_laid_to_neither() -> None:
    """Row 26."""
    formula = "a ring covers pi times R squared minus r squared"
    a = f"A pond lies inside a round lawn and {formula} so how much grass must the gardener cut on a dry day in June"
    b = f"A washer is stamped from a coin of brass and {formula} so what does the brass weigh if the coin weighs nine"
    assert kinds(f"Recall that {formula}.", a, b) == {}


def test_texts_with_one_frame_and_other_content_are_no_pair() -> None:
    """Row 24, in words."""
    assert kinds("Explain why the chimney smokes", "Explain why the orchard sleeps") == {}


def test_texts_that_share_half_their_words_are_no_near_copy() -> None:
    """Row 16: sharing much is not being a copy; only the long run is told, as a part."""
    words = WIRE.split()
    half = " ".join(words[: len(words) // 2]) + " " + FILLER
    assert set(kinds(half, WIRE).values()) <= {"partial"}


def test_a_chain_of_overlapping_texts_is_judged_pair_by_pair() -> None:
    """Rows 17 and 18: A is like B and B like C, which makes A and C no pair; the order of documents changes nothing."""
    words = [
        f"{a}{b}" for a in ("oak", "elm", "ash", "fir", "yew") for b in ("wood", "leaf", "bark", "root", "seed", "twig")
    ]
    a, b, c = (" ".join(words[i : i + 20]) for i in (0, 5, 10))
    index = index_of(a)
    assert [h.kind for h in find_overlaps([b, c], index)] == [h.kind for h in find_overlaps([c, b], index)][::-1]
    assert all(h.kind == "partial" for h in find_overlaps([b], index))
    assert find_overlaps([c], index) == []


def test_many_near_copies_are_all_found() -> None:
    """Row 18: no cap on neighbours."""
    documents = [MILL.replace("rye", f"grain{i}") for i in range(300)]
    hits = find_overlaps(documents, index_of(MILL))
    assert [h.document for h in hits] == list(range(300))
    assert {h.kind for h in hits} == {"near"}


def test_a_span_cuts_no_character() -> None:
    """Row 22."""
    prompt = "Весной лодка уходит далеко в море"
    document = f"Весной лодка уходит. {prompt}! Весной лодка уходит."
    (hit,) = find_overlaps([document], index_of(prompt))
    assert document[hit.begin : hit.end] == prompt


def test_a_span_is_right_where_characters_had_to_be_rewritten() -> None:
    prompt = "Die Fähre braucht für den Weg genau eine halbe Stunde"
    document = f"㌔ ½ Seite, ﷺ. {unicodedata.normalize('NFD', '각국 ')} {prompt} ㌔"
    (hit,) = find_overlaps([document], index_of(prompt))
    assert document[hit.begin : hit.end] == prompt


def test_an_edited_copy_is_near_and_a_rewritten_one_is_not() -> None:
    words = WIRE.split()
    edited = [("zebra" if i % 9 == 4 else w) for i, w in enumerate(words)]
    rewritten = [("zebra" if i % 2 else w) for i, w in enumerate(words)]
    assert kinds(" ".join(edited), WIRE) == {0: "near"}
    assert kinds(" ".join(rewritten), WIRE) == {}


def test_words_put_in_and_left_out_leave_a_near_copy() -> None:
    words = WIRE.split()
    changed = [*words[:9], "quite", *words[9:20], *words[21:]]
    assert kinds(" ".join(changed), WIRE) == {0: "near"}


def test_half_a_prompt_is_partial() -> None:
    assert kinds(FILLER + " ".join(MILL.split()[:22]) + FILLER, MILL) == {0: "partial"}


def test_a_very_long_prompt_is_found_by_a_sample_of_its_shingles() -> None:
    text = " ".join(f"w{i * 7919 % 10007} of the {i}" for i in range(3_000)) + "."
    index = index_of(text)
    assert index.stride[0] > 1
    (hit,) = find_overlaps([FILLER + text + FILLER], index)
    assert (hit.kind, hit.coverage) == ("exact", 1.0)
    cut = text[: len(text) // 2]
    assert [h.kind for h in find_overlaps([cut], index)] == ["partial"]


@pytest.mark.parametrize(("name", "ngram"), [("open-r1", 8), ("datatrove", 12), ("lm-eval", 13)])
def test_a_preset_flags_a_run_of_its_length_and_none_shorter(name: str, ngram: int) -> None:
    rule, words = RULES[name], MILL.split()
    index = index_of(MILL, rule=name)
    for length, found in ((ngram, 1), (ngram - 1, 0)):
        document = f"zebra {' '.join(words[6 : 6 + length])} zebra {FILLER}"
        hits = find_overlaps([document], index, rule)
        assert len(hits) == found
        assert all(h.kind == "ngram" and h.run == ngram for h in hits)


def test_a_preset_knows_no_template_text_as_its_tool_does_not() -> None:
    head = "Read the order below with care and answer it in one short line without a heading or list. Order:"
    prompts = [f"{head} count {i} boats" for i in range(12)]
    index = build_index(prompts, range(12), max_prompts=RULES["lm-eval"].max_prompts)
    assert len(find_overlaps([f"{head} paint a wall"], index, RULES["lm-eval"])) == 12


def test_thresholds_by_length() -> None:
    assert [near_coverage(n, n, n) for n in (3, 7, 8, 20)] == [math.inf, math.inf, 0.82, 0.82]
    assert near_coverage(35, 35, 35) == pytest.approx(0.76)
    assert near_coverage(50, 50, 50) == near_coverage(500, 500, 500) == pytest.approx(0.70)
    assert near_coverage(20, 10, 20) == pytest.approx(0.87)
    assert [partial_run(n, n, n) for n in (20, 52, 100, 200, 900)] == [13, 13, 25, 50, 50]
    assert partial_run(20, 10, 20) == 26


@given(st.lists(st.text(st.sampled_from("ab c.中文ก1é\n"), max_size=30), max_size=5), st.data())
def test_hits_do_not_depend_on_what_else_is_in_the_batch(documents: list[str], data: st.DataObject) -> None:
    prompt = data.draw(st.text(st.sampled_from("ab c中文1"), min_size=8, max_size=20))
    index = index_of(prompt, MILL)
    together = [(h.document, h.kind, h.begin, h.end) for h in find_overlaps(documents, index)]
    alone = [(i, h.kind, h.begin, h.end) for i, d in enumerate(documents) for h in find_overlaps([d], index)]
    assert together == alone

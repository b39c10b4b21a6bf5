"""The recipe of the toy pair, as far as it runs without torch: the corpus, the rows, the card."""

import itertools
import re

import numpy as np
import pytest

from bench.prompts import load_chat_format
from bench.toy.card import KINDS, TEMPLATE, CorpusFacts, Made, ModelFacts, render_card
from bench.toy.corpus import Chat, Corpus, own_dialogues, own_prose, read_corpus, read_dialogues
from bench.toy.files import hf_folder, toy_folder
from bench.toy.plan import DRAFT_STAGES, TARGET_STAGES, learning_rate_at, row_lengths
from bench.toy.rows import HELD_OUT, Drawer, Encoded, Mixture, chat_ids, encode_corpus
from bench.toy.vocabulary import ASSISTANT_ID, BOS_ID, EOS_ID, POSITIONS, SIZE, SPECIALS, USER_ID, train_tokenizer

MIXTURE = Mixture(code=1, manual=1, prose=1, chat=1, chats={"code": 1, "dialogue": 1})


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    chats = tuple(Chat(kind, (f"Ask {kind} {n}?", f"Answer {n}.")) for kind in ("code", "dialogue") for n in range(50))
    return Corpus(
        code=tuple(f"def f{n}(x):\n    return x + {n}\n" * 90 for n in range(40)),
        manual=tuple(f"Chapter {n}. The word {n} is kept.\n" * 90 for n in range(40)),
        prose=tuple(f"On day {n} it rained. " * 90 for n in range(40)),
        chats=chats,
    )


@pytest.fixture(scope="module")
def encoded(corpus: Corpus) -> Encoded:
    return encode_corpus(corpus, train_tokenizer([*corpus.code, *corpus.prose]), held_out=False)


def test_a_tokenizer_has_all_bytes_and_the_special_tokens_first(corpus):
    tokenizer = train_tokenizer(corpus.code)
    assert [tokenizer.id_to_token(n) for n in range(4)] == list(SPECIALS)
    assert tokenizer.get_vocab_size() <= SIZE
    text = "".join(map(chr, range(1, 0x800))) + "今🙂"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_chat_is_trained_on_as_the_chat_template_writes_it(tmp_path):
    from tokenizers import Tokenizer

    folder = hf_folder("target", tmp_path)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    chat = next(chat for chat in own_dialogues() if len(chat.turns) == 4)
    served = load_chat_format(folder, {})
    messages = [{"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(chat.turns)]
    ids = chat_ids(chat, tokenizer)
    # Three turns, and the mark that asks for the fourth.
    asked = served.tokenizer.encode(served.render(messages[:3]))
    assert asked == ids[: len(asked)]
    assert ids[len(asked) :] == [*served.tokenizer.encode(chat.turns[3]), EOS_ID]
    assert ids.count(EOS_ID) == 2
    assert ids[-1] == EOS_ID


def test_what_is_held_out_is_never_drawn(corpus):
    tokenizer = train_tokenizer([*corpus.code, *corpus.prose])
    seen, unseen = (encode_corpus(corpus, tokenizer, held_out=held_out) for held_out in (False, True))
    for kind in ("code", "manual", "prose"):
        whole = sum(len(tokenizer.encode(text).ids) + 2 for text in getattr(corpus, kind))
        assert len(seen.streams[kind]) + len(unseen.streams[kind]) == whole
    rows = [tuple(ids) for chats in seen.chats.values() for ids in chats]
    held = [tuple(ids) for chats in unseen.chats.values() for ids in chats]
    assert len(held) == len(corpus.chats) // HELD_OUT
    assert not set(rows) & set(held)


@pytest.mark.parametrize(("count", "length"), [(4, 256), (1, 2048), (1, 8191)])
def test_rows_have_the_length_asked_for_and_are_the_same_for_a_seed(count, length, encoded):
    drawn, again = (Drawer(encoded, MIXTURE, seed=5).rows(count, length) for _ in range(2))
    assert drawn.shape == (count, length + 1)
    np.testing.assert_array_equal(drawn, again)
    assert drawn.min() >= 0
    assert drawn.max() < SIZE
    assert not np.array_equal(drawn, Drawer(encoded, MIXTURE, seed=6).rows(count, length))


def test_a_long_chat_shows_its_text_within_one_turn_and_answers_it(encoded):
    drawer = Drawer(encoded, Mixture(code=1, manual=0, prose=0, chat=0, chats={"code": 1}), seed=1)
    rows = [drawer.rows(1, 2048)[0] for _ in range(20)]
    chats = [row for row in rows if row[1] == USER_ID]
    assert 4 <= len(chats) <= 16, "long rows are chats half the time"
    for row in chats:
        first_mark = next(n for n, i in enumerate(row[2:], 2) if i in (BOS_ID, EOS_ID, USER_ID, ASSISTANT_ID))
        assert row[0] == BOS_ID
        assert row[first_mark] == ASSISTANT_ID
        assert first_mark > 2048 // 4
        assert EOS_ID in row[first_mark:]


def test_the_library_gives_chats_of_every_kind_and_the_same_ones_for_a_seed():
    first, again = read_corpus(3), read_corpus(3)
    assert first == again
    for kind in ("code", "manual", "prose", "dialogue"):
        assert sum(chat.kind == kind for chat in first.chats) > 100
    assert all(len(chat.turns) % 2 == 0 and all(chat.turns) for chat in first.chats)
    assert not [s for s in SPECIALS for text in (*first.code, *first.manual, *first.prose) if s in text]


def test_a_dialogue_keeps_its_turns_its_blank_lines_and_its_indentation():
    text = "Q: One?\nA: Two.\n\nThree.\nQ: Four?\nA:     five\n\nQ: Six?\nA: Seven.\n"
    turns = [chat.turns for chat in read_dialogues(text)]
    assert turns == [("One?", "Two.\n\nThree.", "Four?", "    five"), ("Six?", "Seven.")]


@pytest.mark.parametrize("text", ["Q: One\nQ: Two\nA: Three\n", "A: Two\n", "Q: One\n", "One\n"])
def test_a_dialogue_out_of_turn_is_refused(text):
    with pytest.raises(ValueError, match=text.splitlines()[0]):
        read_dialogues(text)


def test_the_card_that_ships_is_the_one_that_the_recipe_writes():
    card = (toy_folder() / "MODEL_CARD.md").read_text("utf-8")
    at = 0
    for fixed in re.split(r"\{\w+\}", TEMPLATE):
        assert fixed in card[at:]
        at += card[at:].index(fixed) + len(fixed)
    assert at == len(card)


def test_no_own_text_stands_twice():
    texts = [*own_prose(), *(chat.turns[0] for chat in own_dialogues())]
    assert len(texts) == len(set(texts))
    assert all(a != b for a, b in itertools.pairwise(texts))


def test_the_card_shows_every_fact_it_is_given():
    facts = ModelFacts("target", "3 x 128", 1234567, 7654321, "ab" * 32, 1500, 98765, dict.fromkeys(KINDS, 3.14159))
    corpus = CorpusFacts({"code": 111222, "manual": 3333, "prose": 4444}, {"code": 10, "dialogue": 7})
    card = render_card([facts], corpus, Made({"Python": "3.11.7", "torch": "2.13.0"}, cpu_s=301.4))
    for shown in ("3 x 128", "1,234,567", "7,654,321", "ab" * 32, "1,500", "98,765", "3.14", "111,222", "7 dialogues"):
        assert shown in card
    assert "- 10 short chats" in card
    assert "Python 3.11.7, torch 2.13.0; one thread, 301 s" in card


def test_the_plan_trains_on_long_rows_and_ends_at_the_least_learning_rate():
    for stage in (*TARGET_STAGES, *DRAFT_STAGES):
        lengths = list(row_lengths(stage))
        assert len(lengths) == stage.steps
        assert lengths.count((1, 2048)) == (len(range(0, stage.steps, stage.every_2k)) if stage.every_2k else 0)
        rates = [learning_rate_at(stage, step) for step in range(stage.steps)]
        assert max(rates) <= stage.learning_rate
        assert rates[0] < stage.learning_rate or not stage.warmup_steps
    for stages in (TARGET_STAGES, DRAFT_STAGES):
        assert sum(length == POSITIONS - 1 for stage in stages for _, length in row_lengths(stage)) >= 4
        assert learning_rate_at(stages[-1], stages[-1].steps - 1) < stages[-1].learning_rate / 20

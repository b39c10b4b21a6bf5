import json
import re

import pytest

from bench.answer import Answer
from bench.engines.base import Sampling
from bench.engines.registry import ENGINES
from bench.errors import BenchError
from bench.prompts import ChatFormat, Composer, load_chat_format, write_prompts
from bench.simulator.vocabulary import CHAT_TEMPLATE, END, decode, encode, encode_chat
from bench.split import Conversation


class ByteTokenizer:
    """The simulator's vocabulary, with one merged token: 300 is "ab" where the encoder meets it."""

    def encode(self, text: str) -> list[int]:
        ids, out = encode(text), []
        for token in ids:
            if out and out[-1] == ord("a") and token == ord("b"):
                out[-1] = 300
            else:
                out.append(token)
        return out

    def decode(self, ids):
        return decode([part for token in ids for part in ((97, 98) if token == 300 else (token,))])


CHAT = ChatFormat(ByteTokenizer(), CHAT_TEMPLATE)


def composer(engine="vllm", chat=CHAT, **kwargs):
    return Composer(ENGINES[engine], "m", Sampling(), chat, **kwargs)


def test_ids_of_a_shipped_tokenizer_are_those_of_its_vocabulary(tokenizer):
    chat = load_chat_format(tokenizer, {})
    text = "Żółw — naïve\n\tcafé <|user|>?"
    assert chat.tokenizer.encode(text) == encode(text)
    assert chat.tokenizer.decode(encode("Żółw<|end|>")) == "Żółw"
    assert chat.first_ids("hi") == encode_chat([{"role": "user", "content": "hi"}])


def test_a_later_turn_keeps_the_very_tokens_that_were_answered():
    talk = Conversation("q", ("say ab", "again"))
    first = composer().first(talk)
    # The model answered "a" and "b" as two tokens, which the tokenizer would have merged.
    answer = Answer(text="ab", token_ids=(97, 98, END), chunk_ids=True, finish_reason="stop")
    second = composer().following(talk, 1, first, answer)
    assert second.ids[: len(first.ids)] == first.ids
    assert second.ids[len(first.ids) :] == (97, 98, *encode("<|end|><|user|>again<|end|><|assistant|>"))
    assert [dict(m) for m in second.messages] == [
        {"role": "user", "content": "say ab"},
        {"role": "assistant", "content": "ab"},
        {"role": "user", "content": "again"},
    ]


def test_an_answer_that_was_cut_by_its_budget_keeps_its_last_token():
    talk = Conversation("q", ("x", "y"))
    first = composer().first(talk)
    answer = Answer(text="cd", token_ids=(99, 100), chunk_ids=True, finish_reason="length")
    ids = composer().following(talk, 1, first, answer).ids
    assert ids[len(first.ids) : len(first.ids) + 3] == (99, 100, END)


def test_text_engines_get_the_answer_as_it_was_whitespace_and_all():
    talk = Conversation("q", ("x", "y"))
    speaker = composer("openai", chat=None)
    prompt = speaker.following(talk, 1, speaker.first(talk), Answer(text="  North \n", finish_reason="stop"))
    body = json.loads(speaker.body(prompt, "q"))
    assert body["messages"][1] == {"role": "assistant", "content": "  North \n"}
    assert len(body["messages"]) == 3


def test_a_template_that_rewrites_the_past_has_it_encoded_anew():
    # As reasoning models' templates do: what the assistant said earlier is shown without its mark.
    template = (
        "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}{% if messages|length == 1 %}!{% endif %}"
    )
    chat = ChatFormat(ByteTokenizer(), template)
    last = chat.first_ids("x")
    ids = chat.next_ids(last, [{"role": "user", "content": "x"}], [120], "y")
    assert decode(ids) == "u:x;a:x;u:y;"
    assert decode(last) == "u:x;!"


def test_two_bos_tokens_are_refused():
    class Adding(ByteTokenizer):
        def encode(self, text):
            return [256, *super().encode(text)]

    with pytest.raises(BenchError, match="token 256 twice"):
        ChatFormat(Adding(), CHAT_TEMPLATE).first_ids("x")


def test_settings_of_the_template_reach_it():
    chat = ChatFormat(
        ByteTokenizer(), "{{ 'think' if enable_thinking else 'answer' }}", kwargs={"enable_thinking": True}
    )
    assert decode(chat.first_ids("x")) == "think"


def test_a_template_that_hides_the_answer_is_refused():
    chat = ChatFormat(ByteTokenizer(), "{{ messages[-1].content }}")
    with pytest.raises(BenchError, match="does not show"):
        chat.next_ids([120], [{"role": "user", "content": "x"}], [1], "y")


def test_a_folder_without_what_is_needed_is_named(tmp_path):
    with pytest.raises(BenchError, match=r"no tokenizer\.json"):
        load_chat_format(tmp_path, {})
    with pytest.raises(BenchError, match=r"engine\.tokenizer"):
        composer(chat=None).first(Conversation("q", ("x",)))


def test_prompts_lie_in_one_file_of_ids(tmp_path):
    import numpy as np

    prompts = [composer().first(Conversation(str(n), (text,))) for n, text in enumerate(("a", "bcd"))]
    digest = write_prompts(tmp_path, prompts)
    ids, offsets = np.fromfile(tmp_path / "prompts.u32", np.uint32), np.load(tmp_path / "prompts.offsets.npy")
    for n, prompt in enumerate(prompts):
        assert tuple(ids[offsets[n] : offsets[n + 1]].tolist()) == prompt.ids
    assert digest == write_prompts(tmp_path, prompts)
    assert digest != write_prompts(tmp_path, prompts[::-1])


def test_each_conversation_has_a_salt_of_its_own():
    speaker = composer(salt="run1")
    prompt = speaker.first(Conversation("q", ("x",)))
    keys = ("q-0", "r-0", "q-1", "org/name@v1\\0-0", "x" * 300)
    salts = [json.loads(speaker.body(prompt, key))["cache_salt"] for key in keys]
    assert len(set(salts)) == len(keys)
    # vLLM refuses a salt of more than 128 characters, or one with an @ or a slash in it.
    assert all(re.fullmatch(r"[0-9a-f]{32}", salt) for salt in salts)
    other = json.loads(composer(salt="run2").body(prompt, "q-0"))["cache_salt"]
    assert other not in salts, "another run shares no cache with this one"
    assert "cache_salt" not in json.loads(composer("sglang", salt="run1").body(prompt, "q"))

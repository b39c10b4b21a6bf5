"""The toy pair: what ships is whole, small and described; every tool reads it alike."""

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import BenchError
from bench.prompts import load_chat_format
from bench.toy import files
from bench.toy.corpus import own_dialogues, own_prose, read_dialogues
from bench.toy.files import WEIGHTS, gguf_file, hf_folder, random_draft, toy_folder
from bench.toy.vocabulary import ASSISTANT_ID, BOS_ID, EOS_ID, POSITIONS, SIZE, USER_ID
from bench.toy.weights import read_weights, weights_bytes
from sources.errors import Refusal
from tests.bench.reference_llama import Llama

TEXTS = {
    "code": "def area(self, width: int) -> float:\n    return self.height * width  # mm\n\n\tx = {'a': [1, 2]}\n",
    "prose": "It wasn't late; they'd walked 12 miles, and she'll be there — before the 3rd bell.\n\n  Then…",
    "cjk": "今天天气很好。これは本です。안녕하세요, 세계!",
    "emoji": "🙂👩‍👩‍👧‍👦 ok 🇩🇪 é e\u0301 ﬁ",
    "specials": "<s><|user|>Hi there<|assistant|>Hello!</s>",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toy")


_SERVER = """
import sys
from pathlib import Path
from bench.embedded.options import EmbeddedOptions
from bench.embedded.server import start
server, url = start(EmbeddedOptions(Path(sys.argv[1]), port=0))
print(url, flush=True)
sys.stdin.read()
"""
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(scope="module")
def ask(cache: Path) -> Iterator[Callable[[str, dict[str, Any]], dict[str, Any]]]:
    """llama.cpp with the target, in a process of its own, which ends with its standard input."""
    command = [sys.executable, "-c", _SERVER, str(gguf_file("target", cache))]
    with subprocess.Popen(
        command, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), "llama.cpp did not start"

        def post(route: str, body: dict[str, Any]) -> dict[str, Any]:
            request = urllib.request.Request(url + route, json.dumps(body).encode())
            request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=60) as reply:
                value: dict[str, Any] = json.loads(reply.read())
                return value

        yield post


def test_both_models_together_weigh_between_one_and_two_megabytes():
    sizes = [(toy_folder() / model / WEIGHTS).stat().st_size for model in ("target", "draft")]
    assert 1_000_000 <= sum(sizes) <= 2_000_000
    assert sizes[1] < sizes[0] / 3, "the drafter is the small one"


@pytest.mark.parametrize("model", ["target", "draft"])
def test_the_config_says_what_the_weights_are(model):
    config = json.loads((toy_folder() / model / "config.json").read_text())
    weights = read_weights(toy_folder() / model / WEIGHTS)
    assert weights["model.embed_tokens.weight"].shape == (SIZE, config["hidden_size"])
    assert len({name.split(".")[2] for name in weights if ".layers." in name}) == config["num_hidden_layers"]
    assert config["max_position_embeddings"] == POSITIONS
    assert (config["vocab_size"], config["bos_token_id"], config["eos_token_id"]) == (SIZE, BOS_ID, EOS_ID)
    assert config["dtype"] == "float32", "stored as float16, but meant to be computed in float32"


@pytest.mark.parametrize("model", ["target", "draft"])
def test_the_card_and_the_page_name_the_weights_that_ship(model):
    digest = hashlib.sha256((toy_folder() / model / WEIGHTS).read_bytes()).hexdigest()
    assert digest == files.weights_sha256(model)
    assert digest in (toy_folder() / "MODEL_CARD.md").read_text("utf-8")
    assert digest in (Path(__file__).parents[2] / "docs" / "toy.md").read_text("utf-8")


def test_the_card_counts_the_parameters_and_bytes_of_the_files():
    card = (toy_folder() / "MODEL_CARD.md").read_text("utf-8")
    for model in ("target", "draft"):
        path = toy_folder() / model / WEIGHTS
        parameters = sum(w.size for w in read_weights(path).values())
        row = next(line for line in card.splitlines() if line.startswith(f"| {model} |"))
        assert f"{parameters:,}" in row
        assert f"{path.stat().st_size:,}" in row


@pytest.mark.parametrize("model", ["target", "draft", "random_draft"])
def test_a_hugging_face_folder_is_complete(model, cache):
    folder = hf_folder(model, cache)
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"
    }  # fmt: skip
    chat = load_chat_format(folder, {})
    ids = chat.first_ids("Hi")
    assert (ids[0], ids[1], ids[-1]) == (BOS_ID, USER_ID, ASSISTANT_ID)
    assert all(0 <= i < SIZE for i in ids)


def test_a_later_turn_keeps_the_ids_that_were_answered(cache):
    chat = load_chat_format(hf_folder("target", cache), {})
    first = chat.first_ids("Hi")
    answer = [300, 301, 302]
    ids = chat.next_ids(first, [{"role": "user", "content": "Hi"}], answer, "And?")
    assert ids[: len(first) + 4] == [*first, *answer, EOS_ID]
    assert ids[len(first) + 4] == USER_ID


def test_any_text_comes_back_whole(cache):
    tokenizer = load_chat_format(hf_folder("target", cache), {}).tokenizer
    for text in (*TEXTS.values(), bytes(range(256)).decode("latin-1")):
        if "<s>" not in text:
            assert tokenizer.decode(tokenizer.encode(text)) == text


def test_what_is_made_is_made_once_and_nothing_else_is_left(cache, monkeypatch):
    first = gguf_file("draft", cache)
    stamp = first.stat().st_mtime_ns
    monkeypatch.setattr("bench.toy.llama_gguf.write_gguf", lambda *_: pytest.fail("converted twice"))
    assert gguf_file("draft", cache) == first
    assert first.stat().st_mtime_ns == stamp
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


def test_a_conversion_that_dies_leaves_no_file(tmp_path, monkeypatch):
    def dies(folder: Path, path: Path) -> None:
        path.write_bytes(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.toy.llama_gguf.write_gguf", dies)
    with pytest.raises(KeyboardInterrupt):
        gguf_file("draft", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [hf_folder("draft", tmp_path).name]


def test_processes_that_convert_at_once_get_one_whole_file(tmp_path):
    program = (
        "import sys; from pathlib import Path; from bench.toy.files import gguf_file; "
        "print(gguf_file('draft', Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    both = [subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate(timeout=60)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(printed) == 1
    assert Path(printed.pop()).read_bytes()[:4] == b"GGUF"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="give a cache folder that can be written"):
        hf_folder("draft", tmp_path / "file")


def test_without_gguf_the_refusal_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(BenchError, match=r"speedbench\[llamacpp\]"):
        gguf_file("draft", tmp_path)


def test_the_random_drafter_has_the_drafters_shape_and_is_the_same_every_time(tmp_path):
    mine, again = random_draft(tmp_path / "a"), random_draft(tmp_path / "b")
    real = read_weights(toy_folder() / "draft" / WEIGHTS)
    random = read_weights(mine / WEIGHTS)
    assert {n: w.shape for n, w in random.items()} == {n: w.shape for n, w in real.items()}
    assert (mine / WEIGHTS).read_bytes() == (again / WEIGHTS).read_bytes()
    assert not np.array_equal(random["model.embed_tokens.weight"], real["model.embed_tokens.weight"])


def test_weights_keep_their_float16_values_and_bytes(tmp_path):
    rng = np.random.default_rng(3)
    tensors = {"b": rng.normal(size=(3, 4)).astype(np.float32), "a": rng.normal(size=5).astype(np.float32)}
    (tmp_path / "w").write_bytes(weights_bytes(tensors))
    back = read_weights(tmp_path / "w")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(back[name], tensor.astype(np.float16).astype(np.float32))
    assert weights_bytes(back) == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize("raw", [b"", b"\x08", b"\xff\xff\xff\xff\xff\xff\xff\xff{}", b'\x02\0\0\0\0\0\0\0{"'])
def test_a_broken_weights_file_is_refused_by_name(raw, tmp_path):
    (tmp_path / "w").write_bytes(raw)
    with pytest.raises(BenchError, match="not a safetensors file"):
        read_weights(tmp_path / "w")


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_llama_cpp_and_tokenizers_give_the_same_ids(kind, ask, cache):
    mine = load_chat_format(hf_folder("target", cache), {}).tokenizer.encode(TEXTS[kind])
    theirs = ask("/tokenize", {"content": TEXTS[kind], "add_special": False, "parse_special": True})["tokens"]
    assert theirs == mine


PROMPTS = (
    "Write a Python function that reads a file.", "What is a river?", "Translate into German: Good morning.",
    "Summarize: The key was lost and the meeting began late.", "What is 7 + 5?", "Write a poem about winter.",
    "You are a pirate. Greet me.", "Explain step by step how to change a tyre.", "import os\nimport sys\n",
    "class Stack:\n    def push(self, item):\n", "The harbour woke before the sun did.", "今天天气很好。",
    "List four fruits.", "Why is the sky blue?", "Implement `close` in Python.", "Compare tea and coffee.",
)  # fmt: skip


def test_llama_cpp_says_what_the_definition_says(ask, cache):
    """At least 14 of 16: where two logits lie within a rounding error, the two may part."""
    folder = hf_folder("target", cache)
    chat, model = load_chat_format(folder, {}), Llama(folder)
    alike = []
    for prompt in PROMPTS:
        ids = chat.first_ids(prompt)
        body = {"prompt": ids, "n_predict": 32, "temperature": 0.0, "return_tokens": True, "cache_prompt": False}
        answer = ask("/completion", body)["tokens"]
        assert len(answer) > 1
        alike.append(model.says(ids, answer))
    assert sum(alike) >= 14, [prompt for prompt, same in zip(PROMPTS, alike, strict=True) if not same]


def test_llama_cpp_reads_the_chat_template_out_of_the_gguf(ask, cache):
    chat = load_chat_format(hf_folder("target", cache), {})
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "X"},
    ]
    assert ask("/apply-template", {"messages": messages})["prompt"] == chat.render(messages)


def test_the_drafter_agrees_with_the_target_far_more_often_than_a_random_one(cache):
    target, draft, random = (Llama(hf_folder(m, cache)) for m in ("target", "draft", "random_draft"))  # type: ignore[arg-type]
    chat = load_chat_format(hf_folder("target", cache), {})
    ids = chat.tokenizer.encode(Path(files.__file__).read_text("utf-8"))[:400]
    chosen = target.logits(ids).argmax(-1)
    agreed, by_chance = ((model.logits(ids).argmax(-1) == chosen).mean() for model in (draft, random))
    assert agreed > 0.4
    assert by_chance < 0.1


def test_the_own_dialogues_and_texts_are_what_the_card_says():
    prose, chats = own_prose(), own_dialogues()
    card = (toy_folder() / "MODEL_CARD.md").read_text("utf-8")
    assert f"{sum(map(len, prose)):,} characters of prose" in card
    assert f"{len(chats)} dialogues" in card
    assert not re.search(r"<\||</?s>", "".join(prose)), "no text spells a special token"


def test_a_dialogue_out_of_turn_is_refused():
    with pytest.raises(ValueError, match="Q: One"):
        read_dialogues("Q: One\nQ: Two\nA: Three\n")

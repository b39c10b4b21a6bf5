"""The gap of two tokens where greedy outputs part, asked of a real server that is not there for speed."""

import json
import socket

import pytest

from bench.config import DataConfig, LoadConfig, SamplingConfig
from bench.finished import read_measured
from bench.lossless.near_ties import ROUTES, TOP, ask_gaps
from bench.lossless.paired_runs import served
from bench.recipes.shipped import find_recipe, recipe_config
from bench.results import RunFolder
from bench.runner import run


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def difference(request, position: int, plain: int, speculative: int) -> dict:
    trace = request.trace
    place = {"conversation_id": trace.conversation_id, "repeat": trace.repeat, "turn": 0, "position": position}
    return place | {"plain": plain, "speculative": speculative}


VOCABULARY = 512


@pytest.mark.slow
def test_the_plain_server_tells_how_close_two_tokens_were(tmp_path):
    rows = tmp_path / "rows.jsonl"
    texts = ("def area(width, height):\n    return", "for line in lines:\n    ", "Tell me about a mill.")
    rows.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts), "utf-8")
    config = recipe_config(
        find_recipe("toy-llamacpp-plain"),
        url_port=free_port(),
        data=DataConfig(format="jsonl", path=str(rows)),
        load=LoadConfig(concurrency=1, warmup_requests=0),
        sampling=SamplingConfig(max_tokens=12),
    )
    with served(config, tmp_path / "server.log") as there:
        run(there, tmp_path / "run", quiet)
        folder = RunFolder(tmp_path / "run")
        _, requests = read_measured(folder)
        assert len(folder.prompts()) == len(texts)
        ids = [m.answer.token_ids for m in requests]
        places = [
            difference(requests[0], 5, ids[0][5], ids[0][5]),
            difference(requests[1], 5, ids[1][5], -7),
            difference(requests[2], 12, None, ids[2][3]),
        ]
        gaps = ask_gaps(there, places, requests, folder.prompts())
        # The greedy token is the likeliest: of its rivals that are told, none has a gap below zero.
        rivals = [difference(requests[0], 5, ids[0][5], token) | {"repeat": token} for token in range(VOCABULARY)]
        told = [gap for gap in ask_gaps(there, rivals, requests, folder.prompts()).values() if gap is not None]
    names = [(m.trace.conversation_id, 0) for m in requests]
    assert gaps == {names[0]: 0.0, names[1]: None, names[2]: None}
    assert len(told) == TOP
    assert all(gap >= 0 for gap in told)


def test_answers_of_the_engines_are_read():
    vllm = {"choices": [{"logprobs": {"top_logprobs": [{"token_id:17": -0.25, "token_id:4": -1.5}]}}]}
    llamacpp = {"completion_probabilities": [{"top_logprobs": [{"id": 9, "token": "x", "logprob": -0.125}]}]}
    assert ROUTES["vllm"].read(vllm) == {17: -0.25, 4: -1.5}
    assert ROUTES["llamacpp"].read(llamacpp) == {9: -0.125}
    assert ROUTES["vllm"].payload("m", (1, 2))["prompt"] == [1, 2]

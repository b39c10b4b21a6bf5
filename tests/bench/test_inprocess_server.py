"""The server of the in-process engines, around an engine that needs no model."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from bench.engines.base import parse_answer
from bench.engines.registry import ENGINES
from bench.evidence import normal_form
from bench.inprocess.protocol import Finish, Request, RequestError, Step
from bench.inprocess.server import InProcessServer
from bench.trace import Reads


class Canned:
    """Tells two verify steps of each prompt; the prompt's first id says what else happens."""

    def __init__(self):
        self.log = []
        self.running = 0
        self.gate = threading.Event()
        self.reached = threading.Event()
        self.gone = threading.Event()
        self.counts = 3

    def info(self):
        return {"engine": "canned"}

    def experts(self):
        return {"layers": [[self.counts]]}

    def reset_experts(self):
        self.counts = 0

    def generate(self, request: Request, client) -> Finish:
        assert not self.running
        self.running += 1
        self.log.append(request)
        try:
            return self._generate(request, client)
        finally:
            self.running -= 1

    def _generate(self, request, client):
        kind = request.ids[0]
        if kind == 8:
            raise RequestError("too long")
        if kind == 9:
            raise RuntimeError("no memory")
        client.send(Step((1,), "prefill", time.perf_counter_ns(), verify_ns=5))
        if kind == 7:
            raise RuntimeError("half way")
        if kind == 6:
            self.reached.set()
            self.gate.wait(30)
            try:
                while True:
                    client.send(Step((2,), "plain", time.perf_counter_ns(), 0, 0))
            finally:
                self.gone.set()
        client.send(Step((2, 3), "verify", time.perf_counter_ns(), 3, 1, 11, 22))
        client.send(Step((4,), "plain", time.perf_counter_ns(), 0, 0, 33, 44))
        return Finish("length", len(request.ids), 4, 5, 99, 3, "abc")


@pytest.fixture
def served():
    engine = Canned()
    server = InProcessServer(engine, 0)
    thread = threading.Thread(target=server.answer_forever, daemon=True)
    thread.start()
    yield engine, server
    engine.gate.set()
    server.stop()
    thread.join(30)
    assert not thread.is_alive()


def body(kind=5, **values):
    return json.dumps({"ids": [kind, 1, 2], "max_tokens": 3, **values}).encode()


def post(server, data, path="/generate"):
    with urllib.request.urlopen(server.url + path, data, timeout=30) as response:
        return Reads.of([(time.perf_counter_ns() + 10**9, response.read())])


def test_a_stream_is_read_by_our_dialect(served):
    answer = parse_answer(ENGINES["inprocess"], post(served[1], body()), 200)
    assert not answer.error
    assert (answer.token_ids, answer.text, answer.finish_reason) == ((1, 2, 3, 4), "abc", "length")
    assert answer.extras == {"untrimmed_tokens": 5, "wall_ns": 99, "draft_ns": [11], "verify_ns": [22]}
    form = normal_form(answer)
    assert (form.steps, form.delivered, form.accepted, form.drafted, form.plain_steps) == (1, 2, 1, 3, 1)


def test_pages_and_the_request_as_it_was_sent(served):
    engine, server = served
    for path, value in {"/health": {"status": "ok"}, "/info": {"engine": "canned"}}.items():
        with urllib.request.urlopen(server.url + path, timeout=30) as page:
            assert json.loads(page.read()) == value
    post(server, body(temperature=0.5, top_p=0.9, seed=4, ignore_eos=True))
    assert engine.log == [Request((5, 1, 2), 3, 0.5, 0.9, 4, True)]
    post(server, b"", "/experts/reset")
    with urllib.request.urlopen(server.url + "/experts", timeout=30) as page:
        assert json.loads(page.read()) == {"layers": [[0]]}


@pytest.mark.parametrize(
    ("data", "status", "says"),
    [
        (b"{", 400, "not a request"),
        (b'{"max_tokens": 3}', 400, "ids"),
        (b'{"ids": []}', 400, "at least one"),
        (b'{"ids": [1, -2]}', 400, ">= 0"),
        (b'{"ids": [1.5]}', 400, "integers"),
        (b'{"ids": [1], "max_tokens": 0}', 400, "max_tokens >= 1"),
        (b'{"ids": [1], "top_p": 0}', 400, "top_p"),
        (body(8), 400, "too long"),
        (body(9), 500, "no memory"),
    ],
)
def test_what_cannot_be_answered_is_refused_and_the_next_request_is_served(served, data, status, says):
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(served[1], data)
    assert refused.value.code == status
    assert says in json.loads(refused.value.read())["error"]["message"]
    refused.value.close()
    assert not parse_answer(ENGINES["inprocess"], post(served[1], body()), 200).error


def test_an_unknown_page_names_those_there_are(served):
    for data in (None, b"{}"):
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(served[1].url + "/v1/completions", data, timeout=30)
        assert b"there " in refused.value.read()
        refused.value.close()


def test_a_failure_in_the_middle_is_an_error_event(served):
    answer = parse_answer(ENGINES["inprocess"], post(served[1], body(7)), 200)
    assert answer.error == "RuntimeError: half way"


def send_raw(server, data):
    connection = socket.create_connection(server.server_address, timeout=30)
    connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data))
    return connection


def test_requests_queue_and_a_client_that_goes_away_ends_its_generation(served):
    engine, server = served
    running = send_raw(server, body(6))
    assert engine.reached.wait(30)
    # One more waits and hangs up before its turn, one waits to be served.
    impatient = send_raw(server, body(4))
    found = []
    waiting = threading.Thread(target=lambda: found.append(post(server, body(5))))
    waiting.start()
    impatient.close()
    running.close()
    engine.gate.set()
    assert engine.gone.wait(30)
    waiting.join(30)
    assert not parse_answer(ENGINES["inprocess"], found[0], 200).error
    assert [request.ids[0] for request in engine.log] == [6, 5], "nothing is made for a client that left the queue"


def test_a_connection_serves_one_request_after_the_other(served):
    from http.client import HTTPConnection

    connection = HTTPConnection(*served[1].server_address, timeout=30)
    for _ in range(3):
        connection.request("POST", "/generate", body())
        assert b"[DONE]" in connection.getresponse().read()
    connection.close()
    assert len(served[0].log) == 3

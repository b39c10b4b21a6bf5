"""A loopback server that speaks OpenAI's /v1/embeddings, with its limits, and with faults on order."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

MAX_INPUTS = 2_048


def vector_of(text: str, dimensions: int) -> np.ndarray:
    """Return the vector that the server gives a text: of norm 2, so that a client that does not normalise is seen."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(dimensions)
    return (2 * vector / np.linalg.norm(vector)).astype("<f4")


class FakeOpenAI(ThreadingHTTPServer):
    """Serves until it is closed; `requests` are the input lists it has answered with vectors, in order of arrival."""

    daemon_threads = True

    def __init__(self, count_tokens: Callable[[str], int] = len) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.count_tokens = count_tokens
        self.answered: list[list[str]] = []
        self.received: list[dict[str, Any]] = []
        self.faults: list[int] = []  # status codes of the next requests
        self.refused_texts: set[str] = set()
        self.held_text = ""  # the request with this text is answered after another one
        self.one_answered = threading.Event()
        self.reverse = False
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def fault_of(self, inputs: list[str]) -> tuple[int, str]:
        """Return the status of a request, 200 for a good one, and what is wrong with it."""
        with self.lock:
            if self.faults:
                return self.faults.pop(0), "simulated"
        if not 0 < len(inputs) <= MAX_INPUTS:
            return 400, "'$.input' is invalid"
        lengths = [self.count_tokens(text) for text in inputs]
        if any(not text for text in inputs) or max(lengths) > 8_192 or sum(lengths) > 300_000:
            return 400, "'$.input' is invalid"
        if self.refused_texts & set(inputs):
            return 400, "content refused"
        return 200, ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeOpenAI

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        inputs = body["input"]
        with self.server.lock:
            self.server.received.append({**body, "key": self.headers.get("Authorization")})
        if self.server.held_text in inputs:
            self.server.one_answered.wait(20)
        status, message = self.server.fault_of(inputs)
        if status != 200:
            self._send(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})
            return
        data = [
            {
                "object": "embedding",
                "index": i,
                "embedding": base64.b64encode(vector_of(t, body["dimensions"])).decode(),
            }
            for i, t in enumerate(inputs)
        ]
        with self.server.lock:
            self.server.answered.append(inputs)
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        rows = data[::-1] if self.server.reverse else data
        self._send(200, {"object": "list", "data": rows, "model": body["model"], "usage": usage})
        self.server.one_answered.set()

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        payload = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(payload)

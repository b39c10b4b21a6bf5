"""A loopback HTTP server around one engine: requests queue, one is answered at a time. Standard library only."""

from __future__ import annotations

import json
import logging
import queue
import select
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.inprocess.protocol import (
    ClientGone,
    Engine,
    Finish,
    Request,
    RequestError,
    Step,
    finish_event,
    parse_request,
    step_event,
    told,
)

logger = logging.getLogger(__name__)


@dataclass
class Stream:
    """One connection that waits for an answer; the response begins with its first event."""

    request: Request
    handler: BaseHTTPRequestHandler
    begun: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def send(self, step: Step) -> None:
        """Write one step at once."""
        self._write(step_event(step))

    def check(self) -> None:
        """Raise ClientGone if the other end closed its side."""
        connection = self.handler.connection
        readable, _, _ = select.select([connection], [], [], 0)
        try:
            gone = bool(readable) and not connection.recv(1, socket.MSG_PEEK)
        except OSError:
            gone = True
        if gone:
            raise ClientGone

    def finish(self, finish: Finish) -> None:
        """Write the last event and end the response."""
        self._write(finish_event(finish), last=True)

    def fail(self, status: int, message: str) -> None:
        """Write an error: as the status if nothing was written yet, else as an event."""
        value = {"error": {"message": message, "code": status}}
        if self.begun:
            self._write(told(value, "error"), last=True)
        else:
            write_page(self.handler, value, status)

    def _write(self, data: bytes, *, last: bool = False) -> None:
        frame = b"%x\r\n%s\r\n%s" % (len(data), data, b"0\r\n\r\n" if last else b"")
        if not self.begun:
            frame = _HEAD + frame
            self.begun = True
        try:
            self.handler.wfile.write(frame)
        except OSError:
            raise ClientGone from None


_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def write_page(handler: BaseHTTPRequestHandler, value: dict[str, Any], status: int = 200) -> None:
    """Write a whole JSON body."""
    body = json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: InProcessServer

    def do_GET(self) -> None:
        pages = {"/health": lambda: {"status": "ok"}, "/info": self.server.engine.info, "/experts": self._experts}
        page = pages.get(self.path.partition("?")[0])
        value = page() if page else None
        if value is None:
            self._refuse(404, f"no page {self.path}; there are {', '.join(pages)} (/experts with --experts)")
        else:
            write_page(self, value)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/experts/reset":
            self.server.engine.reset_experts()
            write_page(self, {"status": "ok"})
        elif self.path == "/generate":
            self._generate(body)
        else:
            self._refuse(404, f"no route {self.path}; there is /generate")

    def _generate(self, body: bytes) -> None:
        try:
            stream = Stream(parse_request(body), self)
        except RequestError as error:
            self._refuse(400, str(error))
            return
        self.server.streams.put(stream)
        stream.ended.wait()

    def _experts(self) -> dict[str, Any] | None:
        return self.server.engine.experts()

    def _refuse(self, status: int, message: str) -> None:
        write_page(self, {"error": {"message": message, "code": status}}, status)

    def log_message(self, format: str, *args: object) -> None:
        logger.debug(format, *args)


class InProcessServer(ThreadingHTTPServer):
    """Threads that read requests; the answers are made in the thread that calls `answer_forever`, in order of arrival.

    One thread makes them all: each thread that enters PyTorch would bring a pool of threads of its own.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, engine: Engine, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.engine = engine
        self.streams: queue.SimpleQueue[Stream | None] = queue.SimpleQueue()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer_forever(self) -> None:
        """Listen, and answer one request after the other until `stop` is called."""
        listener = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        listener.start()
        try:
            while (stream := self.streams.get()) is not None:
                self._answer(stream)
        finally:
            self.shutdown()
            self.server_close()

    def stop(self) -> None:
        """End `answer_forever` once the requests before this call are answered."""
        self.streams.put(None)

    def _answer(self, stream: Stream) -> None:
        try:
            stream.check()
            stream.finish(self.engine.generate(stream.request, stream))
        except ClientGone:
            logger.info("a client went away; its generation was ended")
        except RequestError as error:
            self._fail(stream, 400, str(error))
        except Exception as error:  # a method of the user's may raise anything; the next request must be served
            logger.exception("a generation failed")
            self._fail(stream, 500, f"{type(error).__name__}: {error}")
        finally:
            stream.ended.set()

    def _fail(self, stream: Stream, status: int, message: str) -> None:
        with suppress(ClientGone, OSError):
            stream.fail(status, message)

"""A server that the runner starts and stops, and the small requests around a run: health, counters, facts."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from bench.config import ServeConfig
from bench.counters import Series, parse_snapshot
from bench.errors import EngineError

logger = logging.getLogger(__name__)

_TAIL_BYTES = 2000
_POLL_S = 0.25


def route_url(base: str, path: str) -> str:
    """Return the URL of a path on the server that `base` names."""
    parts = urlsplit(base)
    return urljoin(urlunsplit((parts.scheme, parts.netloc, "/", "", "")), path)


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def fetch(url: str, *, method: str = "GET", timeout_s: float = 10.0) -> str:
    """Return the body of a small request.

    Raises
    ------
    EngineError
        If the server cannot be reached or refuses.
    """
    request = urllib.request.Request(url, method=method, data=b"" if method == "POST" else None)
    try:
        with _opener(url).open(request, timeout=timeout_s) as response:
            body: bytes = response.read()
            return body.decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        error.close()
        raise EngineError(f"{url}: HTTP {error.code}") from None
    except (urllib.error.URLError, OSError) as error:
        raise EngineError(f"{url}: {getattr(error, 'reason', error)}; is the server running?") from None


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Return an opener that takes no proxy to this host itself, whatever the environment says."""
    here = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if here else []))


def read_counters(base: str, path: str) -> dict[Series, float] | None:
    """Return the samples of the metrics page; None where there is no such page."""
    if not path:
        return None
    try:
        return parse_snapshot(fetch(route_url(base, path)))
    except (EngineError, ValueError) as error:
        logger.info("no counters: %s", error)
        return None


def read_info(base: str, path: str) -> dict[str, Any] | None:
    """Return what the server says of itself; None where it says nothing."""
    if not path:
        return None
    try:
        value = json.loads(fetch(route_url(base, path)))
    except (EngineError, ValueError) as error:
        logger.info("no facts of the server: %s", error)
        return None
    return value if isinstance(value, dict) else {"value": value}


@contextmanager
def running_server(serve: ServeConfig | None, base: str, log: Path) -> Generator[None]:
    """Run the server that a configuration asks for, healthy inside the block and gone after it; None runs none.

    Raises
    ------
    EngineError
        If it ends or is not healthy in time; with the tail of its log.
    """
    if serve is None:
        yield
        return
    _refuse_taken(base)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.guard", *serve.command],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            env={**os.environ, **serve.env},
        )
        try:
            _await_health(process, serve, route_url(base, serve.health), log)
            yield
        finally:
            _stop(process, serve.shutdown_s)


def _refuse_taken(base: str) -> None:
    """Refuse a port on which something listens: it would answer in the place of the server that is started."""
    parts = urlsplit(base)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with suppress(OSError), socket.create_connection((parts.hostname or "", port), timeout=1.0):
        raise EngineError(f"{base}: something listens there already; end it, or give the server another port")


def _await_health(process: subprocess.Popen[bytes], serve: ServeConfig, url: str, log: Path) -> None:
    until = time.perf_counter() + serve.startup_s
    while time.perf_counter() < until:
        if process.poll() is not None:
            raise EngineError(
                f"the server ended with status {process.returncode} before it was healthy; {log}:\n{_tail(log)}"
            )
        with suppress(EngineError):
            fetch(url, timeout_s=2.0)
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
    raise EngineError(f"{url} was not healthy within {serve.startup_s:g} s; {log}:\n{_tail(log)}")


def _stop(process: subprocess.Popen[bytes], shutdown_s: float) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(shutdown_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    data = log.read_bytes()[-_TAIL_BYTES:]
    return data.decode("utf-8", "replace").strip()

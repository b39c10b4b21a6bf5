"""Requests with retries: waits as the server asks, names a failure in one line, and lends no secret to another host.

`requests` is here because tiktoken and datasets bring it. The Hub's own downloader is not used for data: it starts a
file anew after a kill, and does not retry a 503 on data.
"""

from __future__ import annotations

import email.utils
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from sources.errors import SourceError

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""Tries of one request that fails for a reason that may pass."""

CONNECTION_ATTEMPTS = 3
"""Tries where no connection comes about: without a network each source pays for them."""

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 300.0
TIMEOUT_S = (10.0, 60.0)
"""For a connection, and between two pieces of an answer."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


_SIGNS = {
    "NameResolutionError": "its name cannot be resolved",
    "refused": "it refuses connections",
    "ProxyError": "the proxy does not let us through",
    "CERTIFICATE": "its certificate is not trusted",
    "timed out": "it took too long",
}
# requests wraps urllib3 wraps the socket; only the text of the innermost says what happened.


class Unreachable(SourceError):
    """A host does not answer: no network, a wrong address, or too many failures in a row; `reason` says which."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host} cannot be reached: {reason}; try again later, or use --mirror DIR")
        self.reason = f"{host}: {reason}"


@dataclass(frozen=True)
class Bearer(AuthBase):
    """A token for one host. As `auth` and not as a header, so that it is dropped on a redirect to another host."""

    token: str

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token, where there is one."""
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request


def send(
    session: requests.Session,
    method: str,
    url: str,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    stream: bool = False,
) -> requests.Response:
    """Return the answer to a request, whatever its status, after retries of what may pass (408, 425, 429, 5xx).

    Raises
    ------
    Unreachable
        If the host cannot be reached, or still answers 429 or 5xx after the last try.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            response = session.request(
                method, url, auth=Bearer(token), headers=headers, stream=stream, timeout=TIMEOUT_S, allow_redirects=True
            )
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            wait_s, reason, last = backoff_s(attempt), reason_of(error), CONNECTION_ATTEMPTS
        except requests.RequestException as error:
            raise Unreachable(host_of(url), reason_of(error)) from error
        else:
            if response.status_code not in _PASSING:
                return response
            wait_s, reason, last = _asked_wait_s(response, attempt), f"it answers {response.status_code}", ATTEMPTS
            response.close()
        if wait_s > LONGEST_WAIT_S:
            raise Unreachable(host_of(url), f"{reason} and asks to wait {wait_s:.0f} s")
        if attempt >= last:
            raise Unreachable(host_of(url), reason)
        logger.info("%s: %s, trying again in %.1f s", host_of(url), reason, wait_s)
        time.sleep(wait_s)


def get_json(session: requests.Session, url: str, *, token: str = "") -> tuple[requests.Response, Any]:
    """Return the answer and, where it is a success, its JSON."""
    response = send(session, "GET", url, token=token)
    if not response.ok:
        return response, None
    try:
        return response, response.json()
    except requests.exceptions.JSONDecodeError as error:
        raise SourceError(f"{url}: answered with something that is not JSON; check the endpoint") from error


def backoff_s(attempt: int) -> float:
    """Return the wait after a failed try, in seconds: doubling, from the first."""
    return float(FIRST_WAIT_S * 2 ** (attempt - 1))


def host_of(url: str) -> str:
    """Return the host and port of a URL: what a message names."""
    return urlsplit(url).netloc


def _asked_wait_s(response: requests.Response, attempt: int) -> float:
    asked = response.headers.get("Retry-After", "")
    if asked.isdecimal():
        return float(asked)
    try:
        until = email.utils.parsedate_to_datetime(asked)
    except ValueError:
        return backoff_s(attempt)
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def reason_of(error: requests.RequestException) -> str:
    """Return in a few words why a request got no answer."""
    for sign, words in _SIGNS.items():
        if sign in str(error):
            return words
    return f"the connection broke ({type(error).__name__})"

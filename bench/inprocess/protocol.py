"""What an in-process engine is asked and what it tells, and how that is written on the wire. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

Kind = Literal["prefill", "verify", "plain"]


class RequestError(ValueError):
    """A request that this engine cannot answer; becomes HTTP 400 with its message."""


class SettingError(ValueError):
    """A command line that cannot be served: names the option and what to do."""


class ClientGone(Exception):
    """The client closed its connection; the generation ends."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt and how its answer is drawn.

    Attributes
    ----------
    ids
        Token ids of the prompt, at least one.
    temperature
        0 takes the most likely token.
    top_p
        Nucleus, in (0, 1]; 1 keeps all.
    """

    ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One forward of the target that delivered tokens.

    Attributes
    ----------
    ids
        Delivered tokens, after the cut at end of text or budget.
    kind
        "prefill" brought the first token and checked no draft, "verify" checked drafts, "plain" had none to check.
    at_ns
        CLOCK_MONOTONIC of this process when the step's tokens were known.
    drafted
        Tokens drafted along the path; None where untold (trees).
    matched
        Drafts that matched.
    draft_ns, verify_ns
        Time to draft, and of the target's forward (of a prefill: the prefill's); None where not measured.
    nodes
        Tokens of the draft tree that the target was fed; None for a chain.
    """

    ids: tuple[int, ...]
    kind: Kind
    at_ns: int
    drafted: int | None = None
    matched: int | None = None
    draft_ns: int | None = None
    verify_ns: int | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """How an answer ended.

    Attributes
    ----------
    untrimmed_tokens
        Tokens before the cut at end of text or budget; None where untold.
    wall_ns
        The whole generation.
    accept_lengths, new_tokens
        What a Spec-Bench method returned under these names.
    """

    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int
    untrimmed_tokens: int | None
    wall_ns: int
    draft_length: int | None = None
    text: str = ""
    accept_lengths: tuple[int, ...] | None = None
    new_tokens: int | None = None


class Client(Protocol):
    """Who asked."""

    def send(self, step: Step) -> None:
        """Tell one step; raises ClientGone if nobody listens."""
        ...

    def check(self) -> None:
        """Raise ClientGone if nobody listens."""
        ...


class Engine(Protocol):
    """An engine that answers one request at a time."""

    def info(self) -> dict[str, Any]:
        """Return versions, device and settings."""
        ...

    def generate(self, request: Request, client: Client) -> Finish:
        """Answer a request, telling each step as it is known."""
        ...

    def experts(self) -> dict[str, Any] | None:
        """Return how often each expert was chosen; None where nobody counts."""
        ...

    def reset_experts(self) -> None:
        """Count from zero."""
        ...


def parse_request(body: bytes) -> Request:
    """Return the request in a JSON body.

    Raises
    ------
    RequestError
        If it is not such a request: names the field.
    """
    try:
        values = json.loads(body)
        ids = tuple(values["ids"])
        request = Request(
            ids,
            int(values.get("max_tokens", 128)),
            float(values.get("temperature", 0.0)),
            float(values.get("top_p", 1.0)),
            int(values.get("seed", 0)),
            bool(values.get("ignore_eos", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(f"not a request: {type(error).__name__}: {error}") from None
    if not ids or not all(isinstance(token, int) and token >= 0 for token in ids):
        raise RequestError("ids: need at least one token id, all of them integers >= 0")
    if request.max_tokens < 1 or request.temperature < 0 or not 0 < request.top_p <= 1:
        raise RequestError("need max_tokens >= 1, temperature >= 0 and top_p in (0, 1]")
    return request


def told(values: Mapping[str, Any], name: str = "") -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(values, separators=(',', ':'))}\n\n".encode()


def step_event(step: Step) -> bytes:
    """Return the event of a step; fields that are not told are left out."""
    return told({key: value for key, value in asdict(step).items() if value is not None})


def finish_event(finish: Finish) -> bytes:
    """Return the last event and the end mark."""
    return told({key: value for key, value in asdict(finish).items() if value is not None}) + b"data: [DONE]\n\n"

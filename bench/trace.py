"""The raw readings of one request, from which every figure can be derived again."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any


@dataclass(frozen=True, slots=True)
class Reads:
    """What came over the wire: the body of the response and the clock at each read of it.

    Attributes
    ----------
    at_ns
        CLOCK_MONOTONIC at each read, ns, in the order of the reads.
    sizes
        Bytes of the body in each read, HTTP framing taken off.
    body
        All bytes, joined.
    """

    at_ns: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    body: bytes = b""

    def __post_init__(self) -> None:
        if len(self.at_ns) != len(self.sizes) or sum(self.sizes) != len(self.body):
            raise ValueError(
                f"reads must cover the body: {len(self.at_ns)} stamps, {len(self.sizes)} sizes that sum to "
                f"{sum(self.sizes)}, {len(self.body)} bytes"
            )

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        ends = accumulate(self.sizes)
        for at_ns, size, end in zip(self.at_ns, self.sizes, ends, strict=True):
            yield at_ns, self.body[end - size : end]

    @classmethod
    def of(cls, pieces: list[tuple[int, bytes]]) -> Reads:
        """Return the readings of pieces ``(ns, bytes)``; an empty piece is no reading."""
        kept = [(at_ns, piece) for at_ns, piece in pieces if piece]
        return cls(
            tuple(at_ns for at_ns, _ in kept),
            tuple(len(piece) for _, piece in kept),
            b"".join(piece for _, piece in kept),
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """One request as it was sent and read. A failed request is a trace too.

    Times are CLOCK_MONOTONIC, ns, of one host. `intended_ns` is when the schedule wanted the request sent,
    `dispatch_ns` when the client took it up, `sent_ns` when its last byte was handed to the kernel. `transport_error`
    is what the wire ran into; `usage`, `finish_reason` and `error` were read from the answer, for people: every figure
    is derived from the reads again.
    """

    conversation_id: str
    turn: int
    num_turns: int
    slices: Mapping[str, str]
    prompt_sha256: str
    prompt_tokens: int | None
    intended_ns: int
    dispatch_ns: int
    sent_ns: int
    end_ns: int
    reads: Reads
    status: int | None = None
    transport_error: str = ""
    error: str = ""
    repeat: int = 0
    attempt: int = 0
    warmup: bool = False
    usage: Mapping[str, int | None] = field(default_factory=dict)
    finish_reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON values; the body is zlib-compressed base64."""
        values = asdict(self)
        values["reads"] = {
            "at_ns": list(self.reads.at_ns),
            "sizes": list(self.reads.sizes),
            "body": base64.b64encode(zlib.compress(self.reads.body, 1)).decode(),
        }
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trace:
        """Return the trace that `to_json` wrote."""
        reads = values["reads"]
        body = zlib.decompress(base64.b64decode(reads["body"]))
        return cls(**{**values, "reads": Reads(tuple(reads["at_ns"]), tuple(reads["sizes"]), body)})

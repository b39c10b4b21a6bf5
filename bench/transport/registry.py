"""The transports by name."""

from __future__ import annotations

from bench.transport.base import Target, Transport


def make_transport(name: str, target: Target) -> Transport:
    """Return the transport `lean` or `aiohttp`; the library of the other is not imported.

    Raises
    ------
    ValueError
        If there is no such transport, or it cannot reach the target.
    """
    if name == "lean":
        from bench.transport.lean import LeanTransport

        return LeanTransport(target)
    if name == "aiohttp":
        from bench.transport.pooled import AiohttpTransport

        return AiohttpTransport(target)
    raise ValueError(f"transport must be lean or aiohttp, got {name!r}")

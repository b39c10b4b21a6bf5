"""Reads of many sockets, each stamped with the time at which its bytes were in the kernel.

Linux tells with a read when the last of its segments arrived (SO_TIMESTAMPNS). A process that comes late to a read then
still stamps it rightly, so reads of many streams may be made in batches: a wake for every chunk would cost as much as
the chunk. Where the kernel does not tell, the clock is read right behind the read.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

LAST_CHUNK = b"0\r\n\r\n"
READ_BYTES = 1 << 16
READS_AT_ONCE = 128
"""So many reads, some two milliseconds' worth, keep the loop from anything else."""

MANY_STREAMS = 256
PERIOD_S = 0.005
"""Of so many sockets, if the kernel stamps, those that are ready are looked for so often; else at once."""

LAG_SAMPLE_S = 0.02

_SO_TIMESTAMPNS = 35  # Linux; `socket` does not name it
_TIMESPEC = struct.Struct("@qq")
_CONTROL_BYTES = 64
_UNDISTURBED_NS = 5_000


class Receiver(Protocol):
    """One socket's end of the reads.

    Attributes
    ----------
    at_ns, parts
        Stamp, on `time.perf_counter_ns`, and bytes of each read are put here.
    deferred
        Whether reads need no look, unless they are short or end like the last chunk of a body.
    """

    socket: socket.socket
    at_ns: array[int]
    parts: list[bytes]
    deferred: bool

    @property
    def receive(self) -> Callable[[int, int], tuple[bytes, list[tuple[int, int, bytes]], int, Any]]:
        """The socket's `recvmsg`."""
        ...

    def look(self) -> None:
        """Look at what was read; an empty read is the end of the other side."""
        ...

    def failed(self, error: OSError) -> None:
        """Take what went wrong."""
        ...


class _LagSamples:
    """Keeps, of each `LAG_SAMPLE_S` with reads, the longest time from an arrival until now."""

    def __init__(self, read_lag_ns: array[int]) -> None:
        self._read_lag_ns = read_lag_ns
        self._sampled_ns = 0

    def add(self, at_ns: int) -> None:
        """Take an arrival that is in hand now."""
        now_ns = time.perf_counter_ns()
        if now_ns - self._sampled_ns > LAG_SAMPLE_S * 1e9:
            self._sampled_ns = now_ns
            self._read_lag_ns.append(now_ns - at_ns)
        else:
            self._read_lag_ns[-1] = max(self._read_lag_ns[-1], now_ns - at_ns)


class Arrivals:
    """Watches sockets for the running loop, and hands each read with its stamp to the socket's receiver.

    Parameters
    ----------
    read_lag_ns
        Takes, of each `LAG_SAMPLE_S` with reads, the longest time from the arrival of a batch's last bytes until they
        were in hand, ns; nothing where the kernel does not tell arrivals.
    """

    def __init__(self, read_lag_ns: array[int]) -> None:
        self._samples = _LagSamples(read_lag_ns)
        self._loop = asyncio.get_running_loop()
        self._receivers: dict[int, Receiver] = {}
        self._poll = select.epoll() if sys.platform == "linux" else None
        self._next: asyncio.Handle | None = None
        if self._poll is not None:
            self._loop.add_reader(self._poll.fileno(), self._ready)

    def add(self, receiver: Receiver) -> None:
        """Watch a connected socket, which must not block."""
        fd = receiver.socket.fileno()
        self._receivers[fd] = receiver
        if self._poll is None:
            self._loop.add_reader(fd, self._read, [(fd, 0)])
            return
        if sys.maxsize > 2**32:  # the option's number and the stamp's layout are those of 64 bits
            with suppress(OSError):  # a sandbox may know no stamps
                receiver.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._poll.register(fd, select.EPOLLIN)

    def remove(self, receiver: Receiver) -> None:
        """Watch a socket no longer; it is still open."""
        fd = receiver.socket.fileno()
        if self._receivers.pop(fd, None) is None:
            return
        if self._poll is None:
            self._loop.remove_reader(fd)
        else:
            self._poll.unregister(fd)

    def close(self) -> None:
        """Watch nothing any more."""
        for receiver in list(self._receivers.values()):
            self.remove(receiver)
        if self._next is not None:
            self._next.cancel()
        if self._poll is not None:
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()

    def _ready(self) -> None:
        """Read what is ready; of many sockets, and if it may be late, look for more after the period."""
        assert self._poll is not None
        told = self._read(self._poll.poll(0, READS_AT_ONCE))
        if told and len(self._receivers) >= MANY_STREAMS:
            # Once, and not between two looks: to watch a poll of thousands takes the kernel a look at each of them.
            self._loop.remove_reader(self._poll.fileno())
            self._next = self._loop.call_later(PERIOD_S, self._look)

    def _look(self) -> None:
        """Read what is ready, and look again after the period, or at once if there was more."""
        assert self._poll is not None
        events = self._poll.poll(0, READS_AT_ONCE)
        self._read(events)
        if len(events) == READS_AT_ONCE:
            self._next = self._loop.call_soon(self._look)
        elif len(self._receivers) >= MANY_STREAMS:
            self._next = self._loop.call_later(PERIOD_S, self._look)
        else:
            self._next = None
            self._loop.add_reader(self._poll.fileno(), self._ready)

    def _read(self, events: list[tuple[int, int]]) -> bool:
        """Read from sockets; return whether the kernel told an arrival."""
        receivers, unpack = self._receivers, _TIMESPEC.unpack
        clock, at_ns = time.perf_counter_ns, 0
        offset_ns = _day_offset_ns()
        for fd, _ in events:
            receiver = receivers[fd]
            try:
                data, control, _, _ = receiver.receive(READ_BYTES, _CONTROL_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                receiver.failed(error)
                continue
            if control:
                seconds, rest_ns = unpack(control[0][2])
                at_ns = seconds * 1_000_000_000 + rest_ns + offset_ns
                receiver.at_ns.append(at_ns)
            else:
                receiver.at_ns.append(clock())
            receiver.parts.append(data)
            if not receiver.deferred or len(data) < len(LAST_CHUNK) or data.endswith(LAST_CHUNK):
                receiver.look()
        if at_ns:
            self._samples.add(at_ns)
        return at_ns > 0


def _day_offset_ns() -> int:
    """Return `time.perf_counter_ns` less the clock of the day, by which the kernel stamps and which may be set."""
    # Two readings close about a third tell the offset to half the time between them, unless the core was lost there.
    doubt_ns, offset_ns = _doubt_and_offset_ns()
    if doubt_ns > _UNDISTURBED_NS:
        _, offset_ns = min((doubt_ns, offset_ns), _doubt_and_offset_ns(), _doubt_and_offset_ns())
    return offset_ns


def _doubt_and_offset_ns() -> tuple[int, int]:
    before_ns = time.perf_counter_ns()
    day_ns = time.time_ns()
    after_ns = time.perf_counter_ns()
    return after_ns - before_ns, (before_ns + after_ns) // 2 - day_ns

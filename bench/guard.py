"""Runs a server and ends it with the runner: `python -m bench.guard COMMAND...`, held by its standard input.

The runner keeps the other end of the pipe. Whatever becomes of it, the pipe closes and the server's whole process
group is ended, so that a runner that was killed leaves no orphan on a GPU. The guard itself shares the runner's group,
and with it the signals of a terminal, of `timeout` or of a CI job that is cancelled: these end the server too.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

GRACE_S = 20.0
_PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    """Run the command until it ends or standard input closes; return its exit status."""
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_parent(),  # noqa: PLW1509 -- the guard has no thread yet
    )
    threading.Thread(target=_end_with_stdin, args=(process,), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: threading.Thread(target=_end, args=(process,), daemon=True).start())
    status = process.wait()
    _signal(process.pid, signal.SIGKILL)  # children that outlived their parent
    return status


def _die_with_parent() -> Callable[[], object] | None:
    """Return what makes Linux kill the server if this guard is killed, as the kernel does where memory runs out.

    Elsewhere None. Its children are not reached: an engine ends its own when their pipes close.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_stdin(process: subprocess.Popen[bytes]) -> None:
    # The descriptor itself: a buffered reader would hold its lock while this process exits.
    while os.read(0, 1):
        pass
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process.pid, signal.SIGTERM)
    until = time.perf_counter() + GRACE_S
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(until - time.perf_counter(), 0.0))
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))

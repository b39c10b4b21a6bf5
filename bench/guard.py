"""Runs a server and ends it with the runner: `python -m bench.guard COMMAND...`, held by its standard input.

The runner keeps the other end of the pipe. Whatever becomes of it, the pipe closes and the server's whole process
group is ended, so that a runner that was killed leaves no orphan on a GPU. The guard itself shares the runner's group,
and with it the signals of a terminal, of `timeout` or of a CI job that is cancelled: these end the server too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

GRACE_S = 20.0


def main(command: list[str]) -> int:
    """Run the command until it ends or standard input closes; return its exit status."""
    process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_with_stdin, args=(process,), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: threading.Thread(target=_end, args=(process,), daemon=True).start())
    status = process.wait()
    _signal(process.pid, signal.SIGKILL)  # children that outlived their parent
    return status


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

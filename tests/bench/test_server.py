import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.config import ServeConfig
from bench.errors import EngineError
from bench.server import fetch, read_counters, read_info, running_server
from bench.simulator.server import Simulation

SERVE = """
import http.server, os, sys, subprocess
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
open(sys.argv[2], "w").write(f"{os.getpid()} {child.pid}")
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    until = time.monotonic() + 30
    while time.monotonic() < until and any(map(alive, pids)):
        os.sched_yield()
    return not any(map(alive, pids))


def test_a_server_lives_inside_the_block_and_nothing_of_it_after(tmp_path):
    port, pids = free_port(), tmp_path / "pids"
    serve = ServeConfig(command=(sys.executable, "-c", SERVE, str(port), str(pids)), startup_s=60)
    with running_server(serve, f"http://127.0.0.1:{port}", tmp_path / "log"):
        assert fetch(f"http://127.0.0.1:{port}/x") == "ok"
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(map(alive, started))
    assert gone(started)


@pytest.mark.parametrize("end", ["killed", "terminated with its group", "hung up on with its group"])
def test_a_runner_that_is_ended_leaves_no_orphan(end, tmp_path):
    port, pids = free_port(), tmp_path / "pids"
    code = (
        "import sys\nfrom pathlib import Path\nfrom bench.config import ServeConfig\n"
        "from bench.server import running_server\n"
        "serve = ServeConfig(command=tuple(sys.argv[2:]), startup_s=60)\n"
        "with running_server(serve, sys.argv[1], Path('/dev/null')):\n"
        "    print('up', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", SERVE, str(port), str(pids)]
    arguments = [sys.executable, "-c", code, f"http://127.0.0.1:{port}", *command]
    runner = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"up\n"
    started = [int(pid) for pid in pids.read_text().split()]
    if end == "killed":
        runner.kill()
    else:
        # As `timeout` does, a cancelled CI job, or a terminal that closes.
        os.killpg(runner.pid, signal.SIGTERM if end.startswith("term") else signal.SIGHUP)
    runner.communicate()
    assert gone(started)


def test_a_server_that_fails_shows_the_tail_of_its_log(tmp_path):
    serve = ServeConfig(command=(sys.executable, "-c", "print('no such model'); raise SystemExit(3)"))
    server = running_server(serve, "http://127.0.0.1:9", tmp_path / "log")
    with pytest.raises(EngineError, match=r"(?s)status 3.*no such model"):
        server.__enter__()


def test_a_server_that_is_never_healthy_is_given_up(tmp_path):
    serve = ServeConfig(command=(sys.executable, "-c", "import signal; signal.pause()"), startup_s=0.5)
    server = running_server(serve, "http://127.0.0.1:9", tmp_path / "log")
    with pytest.raises(EngineError, match=r"not healthy within 0\.5 s"):
        server.__enter__()


def test_pages_of_a_server_are_read_or_absent(served, process):
    with served(Simulation("vllm", process)) as simulator:
        counters = read_counters(simulator.url + "/v1", "/metrics")
        assert counters is not None
        assert any(name.startswith("vllm:spec_decode") for name, _ in counters)
        assert read_info(simulator.url, "/version") == {"version": "simulated", "dialect": "vllm"}
    assert read_counters("http://127.0.0.1:9", "/metrics") is None
    assert read_info("http://127.0.0.1:9", "") is None
    with pytest.raises(EngineError, match="is the server running"):
        fetch("http://127.0.0.1:9/metrics")

import os
import signal
import socket
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_a_guard_that_is_killed_takes_the_server_with_it(tmp_path):
    pids = tmp_path / "pids"
    command = [sys.executable, "-c", SERVE, str(free_port()), str(pids)]
    guard = subprocess.Popen([sys.executable, "-m", "bench.guard", *command], stdin=subprocess.PIPE)
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert guard.poll() is None
    server, child = map(int, pids.read_text().split())
    guard.kill()
    guard.communicate()
    try:
        assert gone([server])
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_port_on_which_another_server_answers_is_refused(tmp_path):
    serve = ServeConfig(command=(sys.executable, "-c", "print('started')"))
    log = tmp_path / "server.log"
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"{url}: something listens there"), running_server(serve, url, log):
            raise AssertionError("the other server was taken for ours")
    assert not log.exists()


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

"""Whole runs against the simulator, whose acceptance is known exactly."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from bench import runner
from bench.acceptance import pooled
from bench.client.drive import INTERRUPTED, Driver
from bench.engines.registry import ENGINES
from bench.errors import BenchError
from bench.finished import read_measured
from bench.measured import measure
from bench.results import RunFolder, latest_attempts
from bench.runner import run
from bench.self_audit import SelfAudit
from bench.simulator.process import Process, simulate_answer
from bench.simulator.server import Simulation
from bench.simulator.vocabulary import decode, encode_chat
from bench.split import load_split
from bench.tables import marks, overall_rows


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


def truth(config, process: Process):
    """The acceptance of every request, from the process itself, conversations replayed."""
    forms = {}
    for row in load_split(config.data).conversations:
        messages = []
        for turn, text in enumerate(row.turns):
            messages.append({"role": "user", "content": text})
            answer = simulate_answer(process, encode_chat(messages), config.sampling.max_tokens)
            forms[row.question_id, turn] = answer.acceptance(process.draft_length)
            messages.append({"role": "assistant", "content": decode(answer.ids)})
    return forms


DIALECTS = {
    "vllm": "vllm",
    "vllm-generate": "vllm",
    "vllm-chat": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "llamacpp": "llamacpp",
    "inprocess": "inprocess",
}


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_tells_the_truth_of_every_request(name, served, configured, process, tmp_path):
    with served(Simulation(DIALECTS[name], process, keep_alive=True, split=True)) as simulator:
        config = configured(simulator.url, name)
        summary = run(config, tmp_path / "run", quiet)
        _, measured = read_measured(RunFolder(tmp_path / "run"))
    expected = truth(config, process)
    assert {(m.trace.conversation_id, m.trace.turn) for m in measured} == set(expected)
    for m in measured:
        true, found = expected[m.trace.conversation_id, m.trace.turn], m.acceptance
        assert found is not None
        assert (found.steps, found.delivered, found.histogram) == (true.steps, true.delivered, true.histogram)
        if found.accepted is not None:
            assert (found.accepted, found.drafted) == (true.accepted, true.drafted)
    whole = pooled(expected.values())
    figures = summary["overall"]["figures"]
    assert figures["acceptance_length"]["pooled"] == whole.acceptance_length()
    assert summary["overall"]["positions"]["acceptance_rates"] == list(whole.acceptance_rates())
    tells = ENGINES[name].tells
    assert (figures["acceptance_rate"]["pooled"] is None) == (tells.per_request == "")
    assert summary["evidence"]["coverage"] == 1.0
    assert summary["overall"]["counts"]["complete"] == 30


def test_a_dialect_without_counters_tells_none_and_still_tells_the_time(served, configured, process, tmp_path):
    with served(Simulation("openai", process)) as simulator:
        summary = run(configured(simulator.url, "openai"), tmp_path / "run", quiet)
    figures = summary["overall"]["figures"]
    assert figures["acceptance_length"]["pooled"] is None
    assert summary["overall"]["positions"] is None
    assert summary["run"]["engine_acceptance_length"]["value"] is None
    assert summary["evidence"] == {"source": None, "coverage": None, "without_counters": 45}
    assert figures["ttft_s"]["n"] == 45
    assert summary["run"]["output_tps"]["value"] > 0


def test_counters_of_ranks_are_summed_and_stand_in_their_own_column(served, configured, process, tmp_path):
    with served(Simulation("vllm", process, ranks=3)) as simulator:
        config = configured(simulator.url)
        summary = run(config, tmp_path / "run", quiet)
    answers = []
    for row in load_split(config.data).conversations:
        messages = []
        for text in row.turns:
            messages.append({"role": "user", "content": text})
            answers.append(simulate_answer(process, encode_chat(messages), 1024))
            messages.append({"role": "assistant", "content": decode(answers[-1].ids)})
    steps = [step for answer in answers for step in answer.verify_steps]
    engine = 1 + sum(step.matched for step in steps) / len(steps)
    assert summary["run"]["engine_acceptance_length"]["value"] == pytest.approx(engine)
    assert summary["overall"]["figures"]["acceptance_length"]["pooled"] < engine


def test_a_rank_that_restarts_shuts_a_gate_and_gives_no_engine_figure(served, configured, process, tmp_path):
    with served(Simulation("vllm", process, ranks=2, restart_after=60)) as simulator:
        run(configured(simulator.url), tmp_path / "before", quiet)
        summary = run(configured(simulator.url), tmp_path / "run", quiet)
    assert "restart" in {gate["name"] for gate in summary["gates"]}
    assert summary["run"]["engine_acceptance_length"]["value"] is None
    assert not summary["published"]


def test_merged_and_plain_steps_are_seen_through_by_counters(served, configured, process, tmp_path):
    lumpy = replace(process, plain_share=0.3, merged_share=0.0, adaptive=True)
    with served(Simulation("vllm", lumpy)) as simulator:
        config = configured(simulator.url)
        run(config, tmp_path / "run", quiet)
        _, measured = read_measured(RunFolder(tmp_path / "run"))
    expected = truth(config, lumpy)
    for m in measured:
        true = expected[m.trace.conversation_id, m.trace.turn]
        assert m.acceptance is not None
        assert m.acceptance.plain_steps == true.plain_steps
        assert m.acceptance.drafted_acceptance_rates() == true.drafted_acceptance_rates()


def test_steps_merged_by_the_engine_do_not_change_what_counters_tell(served, configured, process, tmp_path):
    merged = replace(process, merged_share=0.4)
    with served(Simulation("vllm", merged)) as simulator:
        config = configured(simulator.url)
        summary = run(config, tmp_path / "run", quiet)
    whole = pooled(truth(config, merged).values())
    assert summary["overall"]["figures"]["acceptance_length"]["pooled"] == whole.acceptance_length()


def test_a_conversation_is_sent_turn_by_turn_with_the_exact_answers(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        config = configured(simulator.url)
        summary = run(config, tmp_path / "run", quiet)
        log = [entry["prompt_ids"] for entry in simulator.server.log]
    _, measured = read_measured(RunFolder(tmp_path / "run"))
    turns = {m.trace.turn: m for m in measured if m.trace.conversation_id == "math-0"}
    assert sorted(turns) == [0, 1, 2]
    first, second = turns[0], turns[1]
    assert second.trace.sent_ns > first.trace.end_ns, "a turn waits for the one before"
    messages = [{"role": "user", "content": "Tell me of math, part 0."}]
    messages += [{"role": "assistant", "content": first.answer.text}, {"role": "user", "content": "And then?"}]
    assert tuple(encode_chat(messages)) in log
    assert "<|end|>" not in first.answer.text
    # Input is what the server saw of each turn; an answer counts as output once, as input of the next turn once.
    usage = [turns[t].answer.usage for t in (0, 1, 2)]
    assert [u.prompt_tokens for u in usage] == [turns[t].trace.prompt_tokens for t in (0, 1, 2)]
    assert usage[1].prompt_tokens > usage[0].prompt_tokens + len(first.answer.token_ids) - 1
    assert summary["overall"]["counts"]["input_tokens"] == sum(m.answer.usage.prompt_tokens for m in measured)


def test_a_failed_turn_ends_its_conversation(served, configured, process, tmp_path):
    faulty = replace(process, failed_share=0.1, broken_share=0.1, cut_share=0.1)
    with served(Simulation("vllm", faulty)) as simulator:
        summary = run(configured(simulator.url), tmp_path / "run", quiet)
        sent = len(simulator.server.log)
    counts = summary["overall"]["counts"]
    assert counts["failed"] > 0
    assert counts["succeeded"] + counts["failed"] == counts["requests"]
    assert counts["complete"] < counts["conversations"] == 30
    assert any("HTTP 500" in error for error in counts["errors"])
    assert any("simulated break" in error for error in counts["errors"])
    assert any("closed" in error for error in counts["errors"])
    assert not summary["published"]
    assert "failures" in {gate["name"] for gate in summary["gates"]}
    assert sent <= 45 + 1


def test_an_engine_that_fails_ends_the_run_with_a_reason(served, configured, process, tmp_path):
    with served(Simulation("vllm", process, fail_after=8)) as simulator:
        limits = {"max_consecutive_failures": 5}
        summary = run(configured(simulator.url, limits=limits), tmp_path / "run", quiet)
    gates = {gate["name"]: gate["detail"] for gate in summary["gates"]}
    assert "5 requests in a row failed" in gates["stopped"]
    assert summary["overall"]["counts"]["requests"] < 30


def test_a_warm_cache_in_a_cold_run_shuts_a_gate(served, configured, process, tmp_path):
    with served(Simulation("vllm", process, warm_cache=True)) as simulator:
        salted = run(configured(simulator.url), tmp_path / "salted", quiet)
        warm = run(configured(simulator.url, load={"cache": "warm"}), tmp_path / "warm", quiet)
    assert "warm_cache" not in {gate["name"] for gate in salted["gates"]}, "the salt keeps the cache out"
    assert "warm_cache" not in {gate["name"] for gate in warm["gates"]}, "a warm run may hit"
    with served(Simulation("sglang", process, warm_cache=True)) as simulator:
        cold = run(configured(simulator.url, "sglang"), tmp_path / "cold", quiet)
    assert "warm_cache" in {gate["name"] for gate in cold["gates"]}


def test_both_transports_read_the_same(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        lean = run(configured(simulator.url), tmp_path / "lean", quiet)
        pooled_ = run(
            configured(simulator.url, client={"transport": "aiohttp", "workers": 2}), tmp_path / "aiohttp", quiet
        )
    for name in ("acceptance_length", "tokens_per_step", "acceptance_rate"):
        assert lean["overall"]["figures"][name] == pooled_["overall"]["figures"][name]
    assert lean["overall"]["counts"] == pooled_["overall"]["counts"]


def test_an_open_loop_sends_on_schedule_whatever_the_server_does(served, configured, process, tmp_path):
    load = {"mode": "poisson", "rate_per_s": 60.0, "seed": 3}
    with served(Simulation("vllm", process, prefill_s=0.3)) as simulator:
        run(configured(simulator.url, load=load, data={"first_turn_only": True}), tmp_path / "run", quiet)
    _, measured = read_measured(RunFolder(tmp_path / "run"))
    from bench.schedule import poisson_offsets

    intended = sorted(m.trace.intended_ns for m in measured)
    gaps = [(b - a) * 1e-9 for a, b in itertools.pairwise(intended)]
    offsets = poisson_offsets(30, 60.0, 3)
    assert gaps == pytest.approx(list(offsets[1:] - offsets[:-1]), abs=1e-6)
    assert all(m.trace.dispatch_ns >= m.trace.intended_ns for m in measured)
    overlapping = [m for m in measured if m.trace.sent_ns < min(n.trace.end_ns for n in measured)]
    assert len(overlapping) > 8, "the first answer takes 0.3 s, so many were sent before it"


def test_resume_sends_only_what_is_missing_and_keeps_the_figures(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        config = configured(simulator.url)
        whole = run(config, tmp_path / "whole", quiet)
        run(config, tmp_path / "cut", quiet)
        traces = (tmp_path / "cut" / "traces.jsonl").read_bytes().splitlines(keepends=True)
        (tmp_path / "cut" / "traces.jsonl").write_bytes(b"".join(traces[:20]) + traces[20][:50])
        before = len(simulator.server.log)
        resumed = run(config, tmp_path / "cut", quiet)
        sent = len(simulator.server.log) - before
    assert sent < len(traces)
    assert resumed["overall"]["figures"]["acceptance_length"] == whole["overall"]["figures"]["acceptance_length"]
    assert resumed["overall"]["counts"] == whole["overall"]["counts"]
    with pytest.raises(BenchError, match="another configuration"):
        run(configured("http://127.0.0.1:9", sampling={"max_tokens": 7}), tmp_path / "cut", quiet)


def config_file(path, url, rows, tokenizer):
    path.write_text(
        f"""
        [engine]
        dialect = "vllm"
        url = "{url}"
        draft_length = 3
        tokenizer = "{tokenizer}"
        [data]
        format = "jsonl"
        path = "{rows}"
        [load]
        concurrency = 4
        warmup_requests = 0
        [client]
        workers = 1
        """,
        "utf-8",
    )
    return path


def test_a_run_that_was_killed_resumes_to_the_same_figures(served, configured, process, rows, tokenizer, tmp_path):
    with served(Simulation("vllm", process, step_s=0.01)) as simulator:
        config = config_file(tmp_path / "c.toml", simulator.url, rows, tokenizer)
        out = tmp_path / "killed"
        command = [sys.executable, "-m", "speedbench", "bench", "run", str(config), "--out", str(out), "--json"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        traces = out / "traces.jsonl"
        until = time.monotonic() + 60
        while time.monotonic() < until and (not traces.exists() or traces.read_bytes().count(b"\n") < 12):
            assert child.poll() is None, "the run ended before it could be killed"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        there = traces.read_bytes().count(b"\n")
        assert 12 <= there < 45
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        resumed = json.loads(again.stdout)
        whole = run(configured(simulator.url, load={"concurrency": 4}), tmp_path / "whole", quiet)
    assert resumed["overall"]["counts"] == whole["overall"]["counts"]
    for name in ("acceptance_length", "tokens_per_step", "acceptance_rate", "rejected_drafts_per_token"):
        assert resumed["overall"]["figures"][name] == whole["overall"]["figures"][name]
    assert resumed["overall"]["positions"] == whole["overall"]["positions"]


def test_figures_can_be_derived_again_from_the_traces_alone(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        config = configured(simulator.url, load={"warmup_requests": 3})
        run(config, tmp_path / "run", quiet)
    traces = list(RunFolder(tmp_path / "run").traces())
    assert sum(trace.warmup for trace in traces) == 3
    kept = [trace for trace in latest_attempts(iter(traces)) if not trace.warmup]
    assert len(kept) == 45
    assert all(measure(trace, ENGINES["vllm"]).acceptance is not None for trace in kept)
    assert all(trace.usage["completion_tokens"] and trace.finish_reason == "stop" for trace in kept)
    assert all(trace.intended_ns <= trace.dispatch_ns <= trace.sent_ns <= trace.end_ns for trace in kept)


def test_an_interrupt_stops_cleanly_with_what_there_is(served, process, rows, tokenizer, tmp_path):
    with served(Simulation("vllm", process, step_s=0.02)) as simulator:
        config = config_file(tmp_path / "c.toml", simulator.url, rows, tokenizer)
        out = tmp_path / "stopped"
        command = [sys.executable, "-m", "speedbench", "bench", "run", str(config), "--out", str(out)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        traces = out / "traces.jsonl"
        until = time.monotonic() + 60
        while time.monotonic() < until and (not traces.exists() or traces.read_bytes().count(b"\n") < 6):
            assert child.poll() is None, "the run ended before it could be interrupted"
        child.send_signal(signal.SIGINT)
        _, said = child.communicate()
    assert child.returncode == 1
    assert "stopped (interrupted)" in said
    assert "Traceback" not in said
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert 6 <= summary["overall"]["counts"]["requests"] < 45
    assert not summary["published"]


def test_an_interrupt_in_the_warm_up_is_told_as_one(served, configured, process, tmp_path, monkeypatch):
    class Interrupted(Driver):
        def closed(self, slots: int) -> None:
            self.stopped = INTERRUPTED

    monkeypatch.setattr(runner, "Driver", Interrupted)
    with served(Simulation("vllm", process)) as simulator:
        config = configured(simulator.url, "vllm", load={"warmup_requests": 2})
        summary = runner.run(config, tmp_path / "run", lambda *_: None)
    # The very words by which a sweep and the demo know that they are to end too.
    assert {"name": "stopped", "detail": INTERRUPTED} in summary["gates"]


def test_reasoning_and_answer_have_acceptance_lengths_of_their_own(served, configured, process, tmp_path):
    thinking = replace(process, reasoning_share=0.5)
    with served(Simulation("vllm", thinking)) as simulator:
        config = configured(simulator.url, "vllm-chat", data={"first_turn_only": True})
        summary = run(config, tmp_path / "run", quiet)
    figures = summary["overall"]["figures"]
    kinds = [figures[f"acceptance_length_{kind}"]["pooled"] for kind in ("reasoning", "answer")]
    whole = figures["acceptance_length"]["pooled"]
    assert min(kinds) <= whole <= max(kinds)


def test_a_gate_that_is_allowed_to_be_shut_is_named_on_every_table_and_holds_nothing_back(
    served, configured, process, tmp_path, monkeypatch
):
    late = SelfAudit(0.1, 0.2, None, 0.1, 0.2, None, None, (0.9,), None, 0, 45, ("dispatch lag p99 0.2 is over 0.005",))
    monkeypatch.setattr("bench.finished.audit_client", lambda *_: late)
    with served(Simulation("vllm", process)) as simulator:
        held = run(configured(simulator.url), tmp_path / "held", quiet)
        shown = run(configured(simulator.url, limits={"allow": ["client"]}), tmp_path / "shown", quiet)
    assert (held["published"], shown["published"]) == (False, True)
    assert [gate["name"] for gate in held["gates"]] == [gate["name"] for gate in shown["allowed_gates"]] == ["client"]
    assert marks(shown) == ("CLIENT GATE SHUT",)
    assert "CLIENT GATE SHUT" in overall_rows(shown)[0][0]

"""llama.cpp's own server with the toy pair, started and measured by our runner: what must hold of a real engine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.acceptance import pooled
from bench.config import BenchConfig, ClientConfig, DataConfig, LimitsConfig, LoadConfig, SamplingConfig
from bench.embedded.gguf_tokenizer import tokenizer_files
from bench.embedded.options import EmbeddedOptions
from bench.errors import ConfigError, EngineError
from bench.evidence import engine_totals
from bench.finished import read_measured
from bench.probe import probe_server
from bench.prompts import load_chat_format
from bench.recipes.shipped import find_recipe, recipe_config
from bench.results import RunFolder
from bench.runner import run
from bench.server import fetch, free_port
from bench.toy.files import gguf_file, hf_folder
from bench.toy.llama_gguf import write_gguf
from sources.cache_root import cache_root

GAMMA = 3
STEPS = 5
"""Few enough that no answer ends: past its end the drafter proposes the end, for `ignore_eos` binds the target only."""
TURNS = (
    ("def area(width, height):\n    return", "And the perimeter?"),
    ("Tell me about a mill that grinds only at night.", "Who hears it?", "And then?"),
    ("for line in lines:\n    key, value = line.split('=')\n    for line in lines:\n    key, value = ",),
    ("The harbour lay under fog, and the ferryman",),
    ("one two three four one two three four one two three four one two",),
    ("import os\nimport re\nimport sys\n", "Sort them."),
)


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


def toy_config(mode: str, rows: Path, *, max_tokens: int = 1 + STEPS * (GAMMA + 1), **load: int) -> BenchConfig:
    """The shipped recipe of a mode; `self` and `random` put another drafter in front of the target."""
    drafter = {"self": "target", "random": "random_draft"}.get(mode)
    paths = {"toy_draft_gguf": str(gguf_file(drafter, cache_root()))} if drafter else {}
    recipe = find_recipe(f"toy-llamacpp-{'draft' if drafter else mode}")
    config = recipe_config(
        recipe.model_copy(update={"batch_size": load.get("concurrency", 1)}),
        url_port=free_port(),
        data=DataConfig(format="jsonl", path=str(rows)),
        load=LoadConfig(warmup_requests=0, **load),
        sampling=SamplingConfig(max_tokens=max_tokens, ignore_eos=True),
        paths=paths,
    )
    return config.model_copy(update={"client": ClientConfig(workers=1), "limits": LimitsConfig(allow=("client",))})


def jsonl(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    turns = [{"question_id": f"q{n}", "category": "toy", "turns": list(turns)} for n, turns in enumerate(TURNS)]
    return jsonl(tmp_path_factory.mktemp("embedded") / "rows.jsonl", turns)


@pytest.fixture(scope="module")
def measured(rows, tmp_path_factory):
    """Summary and requests of a mode; each mode is run once."""
    done = {}

    def of(mode: str):
        if mode not in done:
            folder = tmp_path_factory.mktemp(mode)
            summary = run(toy_config(mode, rows), folder, quiet)
            requests = read_measured(RunFolder(folder))[1]
            done[mode] = summary, {(m.trace.conversation_id, m.trace.turn): m for m in requests}
        return done[mode]

    return of


def outputs(requests: dict) -> dict:
    return {key: m.answer.token_ids for key, m in requests.items()}


@pytest.mark.parametrize("mode", ["draft", "ngram", "self", "random"])
def test_greedy_outputs_are_those_without_drafts_in_every_turn(mode, measured):
    plain = outputs(measured("plain")[1])
    assert len(plain) == sum(map(len, TURNS))
    assert outputs(measured(mode)[1]) == plain


def test_a_target_that_drafts_for_itself_delivers_gamma_plus_one_in_every_step(measured):
    summary, requests = measured("self")
    for m in requests.values():
        assert m.acceptance.histogram == (0,) * GAMMA + (STEPS,)
        assert (m.acceptance.steps, m.acceptance.plain_steps, m.acceptance.drafted) == (STEPS, 0, STEPS * GAMMA)
    assert summary["overall"]["headline"]["acceptance_length"]["value"] == GAMMA + 1
    assert summary["overall"]["positions"]["acceptance_rates"] == [1.0] * GAMMA
    assert summary["run"]["engine_acceptance_length"]["value"] == GAMMA + 1


def test_a_drafter_that_knows_nothing_is_hardly_ever_right_and_the_trained_one_is(measured):
    lengths = [measured(m)[0]["overall"]["figures"]["acceptance_length"]["pooled"] for m in ("random", "draft", "self")]
    assert 1.0 <= lengths[0] < 1.3 < 1.6 < lengths[1] < lengths[2]


def test_ngrams_draft_where_the_text_repeats_and_plain_steps_are_counted_apart(measured):
    summary, requests = measured("ngram")
    form = pooled(m.acceptance for m in requests.values())
    assert form.steps > 0 < form.accepted
    assert form.plain_steps > 0
    decoded = sum(len(m.answer.token_ids) - 1 for m in requests.values())
    assert form.delivered + form.plain_steps == decoded
    per_step = summary["overall"]["figures"]["tokens_per_step"]["pooled"]
    assert per_step == pytest.approx(decoded / (form.steps + form.plain_steps))
    assert per_step < summary["overall"]["figures"]["acceptance_length"]["pooled"]


@pytest.mark.parametrize("mode", ["draft", "ngram", "self", "random"])
def test_the_servers_counters_are_the_sums_over_the_requests(mode, measured):
    summary, requests = measured(mode)
    totals = [engine_totals(m.answer) for m in requests.values()]
    told = [total for total in totals if total is not None]
    counters = summary["server_counters"]
    assert counters["drafts"] == sum(total.steps for total in told)
    assert counters["draft_tokens"] == sum(total.drafted for total in told)
    assert counters["accepted"] == sum(total.matched for total in told)
    assert summary["evidence"] == {"source": "per_step", "coverage": 1.0, "without_counters": 0}


def test_without_drafts_there_is_no_acceptance_and_no_evidence_of_any(measured):
    summary, requests = measured("plain")
    assert summary["evidence"]["source"] is None
    assert all(m.acceptance is None for m in requests.values())
    assert summary["server_counters"]["drafts"] in (None, 0)


def test_every_answer_has_its_budget_and_every_prompt_arrives_whole_and_uncached(measured):
    for mode in ("plain", "draft", "ngram"):
        for m in measured(mode)[1].values():
            assert len(m.answer.token_ids) == m.answer.usage.completion_tokens == 1 + STEPS * (GAMMA + 1)
            assert m.answer.usage.prompt_tokens == m.trace.prompt_tokens
            assert not m.answer.usage.cached_tokens
            assert sum(chunk.num_tokens for chunk in m.answer.chunks) == len(m.answer.token_ids)


def test_a_later_turn_holds_what_was_sent_and_answered_before(measured):
    requests = measured("draft")[1]
    for (conversation, turn), m in requests.items():
        if turn:
            before = requests[conversation, turn - 1]
            assert m.trace.prompt_tokens > before.trace.prompt_tokens + len(before.answer.token_ids)


def test_a_run_may_be_longer_than_the_server_keeps_a_connection(tmp_path):
    # It ends one after a hundred requests, at times while the next one is under way.
    many = jsonl(tmp_path / "rows.jsonl", [{"question_id": str(n), "prompt": f"Count {n}."} for n in range(220)])
    summary = run(toy_config("plain", many, max_tokens=2), tmp_path / "run", quiet)
    assert summary["overall"]["counts"]["failed"] == 0
    assert summary["overall"]["counts"]["succeeded"] == 220


def test_streams_at_once_are_counted_apart(rows, tmp_path):
    summary = run(toy_config("draft", rows, concurrency=3), tmp_path / "run", quiet)
    requests = read_measured(RunFolder(tmp_path / "run"))[1]
    assert summary["overall"]["counts"]["complete"] == len(TURNS)
    totals = [engine_totals(m.answer) for m in requests]
    assert summary["server_counters"]["drafts"] == sum(total.steps for total in totals)
    for m in requests:
        assert m.acceptance.delivered + m.acceptance.plain_steps + 1 == len(m.answer.token_ids)


def servers(port: int) -> list[int]:
    """Processes whose command line names the port of an embedded server."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"bench.embedded" in words and str(port).encode() in words:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_server(sent, tmp_path):
    endless = [{"question_id": str(n), "prompt": f"Go on with {n}."} for n in range(60)]
    config = toy_config("draft", jsonl(tmp_path / "rows.jsonl", endless), max_tokens=150)
    (tmp_path / "config.json").write_text(config.model_dump_json(), "utf-8")
    code = (
        "import sys\nfrom pathlib import Path\nfrom bench.config import BenchConfig\nfrom bench.runner import run\n"
        "def told(ended, *_):\n    if ended == 1: print('one', flush=True)\n"
        "if __name__ == '__main__':\n"
        "    run(BenchConfig.model_validate_json(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), told)\n"
    )
    script = tmp_path / "runs.py"
    script.write_text(code, "utf-8")
    port = int(config.engine.url.rpartition(":")[2])
    command = [sys.executable, str(script), str(tmp_path / "config.json"), str(tmp_path / "run")]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"one\n"
    assert servers(port)
    runner.send_signal(sent)
    runner.communicate()
    until = time.monotonic() + 30
    while servers(port) and time.monotonic() < until:
        os.sched_yield()
    assert not servers(port)


def refused(*arguments: str) -> str:
    """What the server says as it ends; in a process of its own, as llama.cpp keeps threads."""
    command = [sys.executable, "-m", "bench.embedded", "--port", "0", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1, ended.stderr
    (said,) = [line for line in ended.stderr.splitlines() if "bench.embedded: " in line]
    return said


def test_what_cannot_be_served_is_refused_in_one_line(tmp_path):
    target = str(gguf_file("target", cache_root()))
    no_gguf = tmp_path / "no.gguf"
    no_gguf.write_text("not a model", "utf-8")
    assert "absent.gguf: no such file" in refused("--model", str(tmp_path / "absent.gguf"))
    assert "does not start" in refused("--model", str(no_gguf))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        assert f"on port {port}" in refused("--model", target, "--port", port)


def test_a_drafter_of_another_vocabulary_is_refused_where_llamacpp_would_leave_it_out(tmp_path):
    folder = shutil.copytree(hf_folder("draft", cache_root()), tmp_path / "draft")
    values = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = values["model"]["vocab"]
    first, second = (next(t for t, n in vocabulary.items() if n == number) for number in (300, 301))
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (folder / "tokenizer.json").write_text(json.dumps(values), "utf-8")
    write_gguf(folder, tmp_path / "draft.gguf")
    target = str(gguf_file("target", cache_root()))
    assert "does not draft with it" in refused("--model", target, "--draft", str(tmp_path / "draft.gguf"))


@pytest.fixture(scope="module")
def from_gguf(tmp_path_factory):
    """The toy's chat format, read back out of its GGUF."""
    folder = tmp_path_factory.mktemp("tokenizer")
    for name, text in tokenizer_files(gguf_file("target", cache_root())).items():
        (folder / name).write_text(text, "utf-8")
    return load_chat_format(folder, {})


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_the_tokenizer_in_a_gguf_is_the_one_that_it_was_made_from(from_gguf, text):
    shipped = load_chat_format(hf_folder("target", cache_root()), {})
    assert from_gguf.tokenizer.encode(text) == shipped.tokenizer.encode(text)
    assert from_gguf.tokenizer.decode(shipped.tokenizer.encode(text)) == text


def test_the_chat_of_a_gguf_is_the_models_own(from_gguf):
    shipped = load_chat_format(hf_folder("target", cache_root()), {})
    assert from_gguf.first_ids("Say 42 in words.") == shipped.first_ids("Say 42 in words.")
    assert from_gguf.specials["eos_token"] == shipped.specials["eos_token"]


def test_a_tokenizer_of_another_kind_is_refused_by_name(tmp_path):
    import gguf

    path = tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(EngineError, match=r"\(llama, default\) is none of gpt2 with gpt-2 or smollm"):
        tokenizer_files(path)
    path.write_text("no gguf", "utf-8")
    with pytest.raises(EngineError, match="not a GGUF"):
        tokenizer_files(path)


def test_options_refuse_what_they_cannot_mean(tmp_path):
    model = tmp_path / "a.gguf"
    model.touch()
    with pytest.raises(ConfigError, match=r"--draft .*b\.gguf: no such file"):
        EmbeddedOptions(model, 0, draft=tmp_path / "b.gguf")
    with pytest.raises(ConfigError, match="exclude each other"):
        EmbeddedOptions(model, 0, draft=model, ngram=3)
    with pytest.raises(ConfigError, match="give --draft"):
        EmbeddedOptions(model, 0, ngram=3, probabilistic=True)


def test_a_probe_starts_the_server_that_the_file_names_and_ends_it(tmp_path):
    config = toy_config("draft", jsonl(tmp_path / "rows.jsonl", [{"turns": ["Tell me about a mill."]}]))
    probed = probe_server(config)
    assert probed["told"]["acceptance_source"] == "per_step"
    assert probed["told"]["server_counters"]
    with pytest.raises(EngineError, match="is the server running"):
        fetch(config.engine.url)

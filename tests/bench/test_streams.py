"""Each dialect's stream, written by hand, must read the same wherever the bytes are cut."""

import json

import pytest

from bench.engines.base import Ask, Sampling, encode, parse_answer
from bench.engines.registry import ENGINES
from bench.evidence import normal_form
from bench.sse import parse_events
from bench.trace import Reads, Trace

IDS = [11, 21, 22, 23, 31, 41, 42]
TEXT = ["S", "é", "n", "d", "!", " o", "k"]
STEPS = [[0], [1, 2, 3], [4], [5, 6]]
"""Prefill, then steps that matched 2, 0 and 3 of 3 drafts; the last was cut after two tokens."""
USAGE = {"prompt_tokens": 4, "completion_tokens": 7, "total_tokens": 11}


def sse(*values: object, end: str = "\n\n") -> bytes:
    return "".join(
        v if isinstance(v, str) else f"data: {json.dumps(v, ensure_ascii=False)}{end}" for v in values
    ).encode()


def pieces(step: list[int]) -> tuple[list[int], str]:
    return [IDS[i] for i in step], "".join(TEXT[i] for i in step)


def vllm(*, chat: bool = False) -> bytes:
    events: list[object] = [": warming up\n\n"]
    if chat:
        role = {"role": "assistant", "content": ""}
        events.append({"choices": [{"index": 0, "delta": role, "finish_reason": None}], "prompt_token_ids": [1, 2]})
    for n, step in enumerate(STEPS):
        ids, text = pieces(step)
        delta = {"reasoning": text} if n < 2 else {"content": text}
        body = {"delta": delta} if chat else {"text": text}
        finish = "length" if n == 3 else None
        events.append({"choices": [{"index": 0, **body, "token_ids": ids, "finish_reason": finish}]})
    spec = {
        "acceptance_histogram": [1, 0, 1, 1],
        "num_spec_steps": 3,
        "num_accepted_draft_tokens": 5,
        "num_draft_tokens": 9,
        "num_spec_tokens": 3,
        "per_step_accepted": [2, 0, 3],
        "per_step_drafted": [3, 3, 3],
    }
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 0}}
    events.append({"choices": [], "usage": usage, "metrics": {"speculative_decoding": spec}})
    return sse(*events, "data: [DONE]\n\n")


def sglang(*, cumulative: bool) -> bytes:
    events, done, said = [], [], ""
    for n, step in enumerate(STEPS):
        ids, text = pieces(step)
        done, said = done + ids, said + text
        meta: dict[str, object] = {"prompt_tokens": 4, "completion_tokens": len(done), "cached_tokens": 0}
        meta["finish_reason"] = None
        if n == 3:
            meta["finish_reason"] = {"type": "length", "length": 7}
            meta |= {"spec_verify_ct": 3, "spec_num_correct_drafts": 5, "spec_num_proposed_drafts": 9}
            meta |= {"spec_correct_drafts_histogram": [1, 0, 1, 1], "spec_accept_length": 7 / 3}
        events.append(
            {"text": said if cumulative else text, "output_ids": list(done) if cumulative else ids, "meta_info": meta}
        )
    return sse(*events, "data: [DONE]\n\n")


def trtllm() -> bytes:
    events: list[object] = []
    total = 0
    for n, step in enumerate(STEPS):
        ids, _ = pieces(step)
        total += len(ids)
        choice = {"index": 0, "text": "", "token_ids": ids, "finish_reason": "length" if n == 3 else None}
        events.append({"choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": total}})
    metrics = 'event: trtllm.perf_metrics\ndata: {"kv": 1}\n\n'
    return sse(*events, {"choices": [], "usage": USAGE}, "data: [DONE]\n\n", metrics)


def llamacpp() -> bytes:
    # One event a token; the running counters tell the step. The last step drafted only what was left of the budget.
    running = [None, (3, 2), (3, 2), (3, 2), (6, 2), (8, 3), (8, 3)]
    events: list[object] = []
    for n, (token, text) in enumerate(zip(IDS, TEXT, strict=True)):
        timings: dict[str, object] = {"cache_n": 0, "prompt_n": 4, "predicted_n": n + 1}
        if running[n]:
            timings |= {"draft_n": running[n][0], "draft_n_accepted": running[n][1]}
        events.append({"content": text, "tokens": [token], "stop": False, "timings": timings})
    last = {"content": "", "tokens": [], "stop": True, "stop_type": "limit", "tokens_evaluated": 4}
    timings = {"cache_n": 0, "predicted_n": 7, "draft_n": 8, "draft_n_accepted": 3}
    return sse(*events, {**last, "tokens_predicted": 7, "timings": timings})


def inprocess() -> bytes:
    counts = [{"kind": "prefill"}, *({"kind": "verify", "drafted": 3, "matched": m, "draft_ns": 5} for m in (2, 0, 3))]
    events: list[object] = []
    for n, (step, more) in enumerate(zip(STEPS, counts, strict=True)):
        events.append({"ids": pieces(step)[0], **more, "at_ns": 100 + n, "verify_ns": 7})
    finish = {"finish_reason": "length", "prompt_tokens": 4, "completion_tokens": 7, "untrimmed_tokens": 9}
    return sse(*events, {**finish, "wall_ns": 50, "draft_length": 3, "text": "".join(TEXT)}, "data: [DONE]\n\n")


def openai() -> bytes:
    role = {"choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]}
    events: list[object] = [role]
    events += [{"choices": [{"delta": {"content": pieces(step)[1]}, "finish_reason": None}]} for step in STEPS]
    events.append({"choices": [{"delta": {}, "finish_reason": "length"}]})
    return sse(*events, {"choices": [], "usage": USAGE}, "data: [DONE]\n\n", end="\r\n\r\n")


STREAMS = {
    "vllm": vllm(),
    "vllm-generate": vllm(),
    "vllm-chat": vllm(chat=True),
    "sglang": sglang(cumulative=False),
    "trtllm": trtllm(),
    "llamacpp": llamacpp(),
    "inprocess": inprocess(),
    "openai": openai(),
}


def read(name: str, *parts: bytes):
    return parse_answer(ENGINES[name], Reads.of([(1000 + i, part) for i, part in enumerate(parts)]), 200)


def without_stamps(answer):
    return (
        [(c.num_tokens, c.kind) for c in answer.chunks],
        (answer.text, answer.reasoning_text, answer.token_ids, answer.usage, answer.finish_reason),
        (answer.spec, answer.error, dict(answer.extras), normal_form(answer)),
    )


@pytest.mark.parametrize("name", ENGINES)
def test_a_stream_cut_at_every_byte_reads_the_same(name):
    body = STREAMS[name]
    whole = without_stamps(read(name, body))
    assert not whole[2][1]
    for at in range(1, len(body)):
        assert without_stamps(read(name, body[:at], body[at:])) == whole, at
    assert without_stamps(read(name, *[body[i : i + 1] for i in range(len(body))])) == whole


@pytest.mark.parametrize("name", ENGINES)
def test_what_a_dialect_says_is_read(name):
    answer = read(name, STREAMS[name])
    assert answer.usage.completion_tokens == 7
    assert answer.usage.prompt_tokens == 4
    assert answer.finish_reason == "length"
    if name not in ("trtllm", "vllm-chat"):
        assert answer.text == "Sénd! ok"
    if name != "openai":
        assert answer.token_ids == tuple(IDS)
        assert [c.num_tokens for c in answer.chunks] == [1, 3, 1, 2]
        a = normal_form(answer)
        assert a is not None
        assert a.histogram is not None
        assert a.histogram[:3] == (1, 1, 1)
        assert a.acceptance_length() == 2.0
    else:
        assert normal_form(answer) is None, "chunks of text are no evidence"


def test_the_three_kinds_of_counters_agree_and_name_themselves():
    forms = {name: normal_form(read(name, STREAMS[name])) for name in ("vllm", "sglang", "llamacpp", "trtllm")}
    assert {name: form.source for name, form in forms.items()} == {
        "vllm": "per_step",
        "sglang": "totals",
        "llamacpp": "per_step",
        "trtllm": "chunks",
    }
    assert forms["vllm"].accepted == forms["sglang"].accepted == 4  # the cut step's two tokens were both drafts
    assert forms["vllm"].drafted == 9
    assert forms["llamacpp"].drafted == 8
    assert forms["trtllm"].accepted is None


def test_a_cumulative_sglang_stream_is_the_incremental_one():
    assert without_stamps(read("sglang", sglang(cumulative=True))) == without_stamps(read("sglang", STREAMS["sglang"]))


def test_reasoning_is_told_from_the_answer():
    answer = read("vllm-chat", STREAMS["vllm-chat"])
    assert (answer.reasoning_text, answer.text) == ("Sénd", "! ok")
    assert [c.kind for c in answer.chunks] == ["reasoning", "reasoning", "answer", "answer"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty stream"),
        (sse({"error": {"message": "out of memory", "code": 500}}, "data: [DONE]\n\n"), "out of memory"),
        (b'event: error\ndata: {"message": "lost"}\n\n', "lost"),
        (b'{"error": "no such model"}', "no such model"),
        (b"data: {oops}\n\n", "unreadable"),
        (sse({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}), "no tokens"),
        (STREAMS["vllm"][: len(STREAMS["vllm"]) // 3], "no finish reason"),
    ],
)
def test_a_failure_at_http_200_is_a_failure(body, says):
    assert says in read("vllm", body).error


def test_a_bad_status_tells_what_the_server_said():
    answer = parse_answer(ENGINES["vllm"], Reads.of([(1, b'{"error": {"message": "model not found"}}')]), 404)
    assert answer.error == "HTTP 404: model not found"


def test_events_are_stamped_by_the_read_that_completed_them():
    reads = Reads.of([(5, b"data: 1"), (7, b"\n\ndata: 2\n"), (9, b"\ndata: 3\n\ndata: 4\r"), (11, b"\n\r\n")])
    assert [(e.at_ns, e.read, e.data) for e in parse_events(reads)] == [
        (7, 1, b"1"),
        (7, 1, b"2"),
        (9, 2, b"3"),
        (9, 2, b"4"),
    ]


def test_steps_of_llamacpp_are_stamped_when_their_last_token_came():
    body = STREAMS["llamacpp"]
    ends = [i + 2 for i in range(len(body)) if body[i : i + 2] == b"\n\n"]
    parts = [body[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    assert [c.at_ns for c in read("llamacpp", *parts).chunks] == [1000, 1003, 1004, 1006]


def test_a_trace_survives_its_json():
    reads = Reads.of([(1, b"\xff\x00"), (2, b"abc")])
    trace = Trace("q", 0, 1, {"category": "qa"}, "ab", 3, 1, 2, 3, 4, reads, 200, usage={"prompt_tokens": 3})
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
    assert list(reads) == [(1, b"\xff\x00"), (2, b"abc")]
    with pytest.raises(ValueError, match="cover the body"):
        Reads((1,), (2,), b"abc")


@pytest.mark.parametrize("name", ENGINES)
def test_every_request_states_its_sampling_and_streams(name):
    engine = ENGINES[name]
    ask = Ask("m", Sampling(max_tokens=9, temperature=0.5), (1, 2), ({"role": "user", "content": "hi"},))
    body = json.loads(encode(engine.payload(ask)))
    assert body["stream"] is True
    assert "0.5" in json.dumps(body)
    assert "9" in json.dumps(body)
    assert ("messages" in body) == (engine.takes == "messages")


def test_steps_of_an_engine_in_process_are_stamped_by_itself_and_told_whole():
    answer = read("inprocess", STREAMS["inprocess"])
    assert [c.at_ns for c in answer.chunks] == [100, 101, 102, 103]
    assert answer.spec.per_step == ((3, 2), (3, 0), (3, 3))
    assert answer.extras == {"untrimmed_tokens": 9, "wall_ns": 50, "draft_ns": [5] * 3, "verify_ns": [7] * 3}
    form = normal_form(answer)
    assert (form.accepted, form.drafted, form.plain_steps) == (4, 9, 0)


def test_a_step_that_is_stamped_after_it_arrived_is_refused():
    parts = Reads.of([(99, STREAMS["inprocess"])])
    assert "run the engine on this host" in parse_answer(ENGINES["inprocess"], parts, 200).error


def test_a_request_for_which_llamacpp_drafted_nothing_had_plain_steps_only():
    events = [
        {"content": text, "tokens": [token], "stop": False, "timings": {"predicted_n": n + 1}}
        for n, (token, text) in enumerate(zip(IDS, TEXT, strict=True))
    ]
    last = {"content": "", "tokens": [], "stop": True, "stop_type": "limit", "timings": {"predicted_n": 7}}
    answer = read("llamacpp", sse(*events, last))
    form = normal_form(answer, draft_length=3)
    assert (form.source, form.steps, form.plain_steps, form.drafted) == ("per_step", 0, 6, 0)
    assert form.acceptance_length() is None
    assert form.tokens_per_step() == 1.0
    assert normal_form(answer, draft_length=0) is None, "a server without speculation has no acceptance"


@pytest.mark.parametrize("name", ["vllm", "vllm-generate", "vllm-chat", "llamacpp"])
def test_what_cuts_or_bends_the_distribution_is_turned_off_in_every_request(name):
    # vLLM takes what a request leaves out from the model's generation_config.json, llama.cpp from defaults of its own.
    payload = ENGINES[name].payload(Ask("m", Sampling(temperature=1.0), (1, 2), ({"role": "user", "content": "x"},)))
    stated = payload.get("sampling_params", payload)
    assert (stated["top_k"], stated["min_p"], stated["temperature"], stated["top_p"]) == (0, 0.0, 1.0, 1.0)
    if name.startswith("vllm"):
        assert stated["repetition_penalty"] == 1.0


def test_tokens_that_llamacpp_holds_back_until_their_character_is_whole_are_counted_and_not_guessed():
    # Three tokens make the one character of the second event, and only the last of them is told.
    events = [
        {"content": "a", "tokens": [5], "stop": False, "timings": {"predicted_n": 1}},
        {"content": "京", "tokens": [9], "stop": False, "timings": {"predicted_n": 4}},
    ]
    timings = {"predicted_n": 5, "draft_n": 6, "draft_n_accepted": 2}
    last = {"content": "", "tokens": [], "stop": True, "stop_type": "limit", "tokens_predicted": 5, "timings": timings}
    answer = read("llamacpp", sse(*events, last))
    assert (answer.token_ids, answer.num_tokens, answer.text) == (None, 5, "a京")
    assert [chunk.num_tokens for chunk in answer.chunks] == [1, 3]
    assert normal_form(answer, draft_length=3) is None, "the steps of tokens that were not told are not known"

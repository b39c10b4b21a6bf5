"""Parts of the in-process engines that need no model: recorder, timer, options, figures of the GPU check."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.inprocess.check_figures import cell_figures, difference, verdict_of
from bench.inprocess.commands import main, make_parser, parse_pairs
from bench.inprocess.device import ForwardTimer, num_fed
from bench.inprocess.protocol import Finish, RequestError, SettingError, Step
from bench.inprocess.specbench import find_function, read_result, target_modules
from bench.inprocess.steps import StepRecorder, WatchedGenerator, num_matched

FOLDER = Path(__file__).parents[2] / "bench" / "inprocess"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_nothing_but_the_standard_library_is_imported_before_a_model_is_loaded(path):
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
    foreign = {n for n in names if n.partition(".")[0] not in sys.stdlib_module_names and "bench.inprocess" not in n}
    assert not foreign


def test_it_imports_nothing_else_of_ours():
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench"):
                assert node.module.startswith("bench.inprocess."), (path.name, node.module)


class Clock:
    """10 ns pass with each reading."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 10
        return self.now


class Kept:
    def __init__(self):
        self.steps = []

    def send(self, step):
        self.steps.append(step)


class Scores:
    """Target scores of shape (1, n, vocabulary) by the tokens that they favour."""

    def __init__(self, tokens):
        self.tokens, self.shape = tokens, (1, len(tokens), 99)

    def __getitem__(self, _):
        return self

    def argmax(self, dim):
        assert dim == -1
        return np.array(self.tokens)


class Drafts:
    """A candidate generator that drafts what it was told to."""

    def __init__(self, drafts):
        self.drafts, self.updates = drafts, []

    def get_candidates(self, input_ids, **_):
        return np.concatenate([input_ids, [self.drafts.pop(0)]], axis=1), "logits"

    def update_candidate_strategy(self, input_ids, scores, num_matches):
        self.updates.append(num_matches)


def recorded(drafts, steps, *, greedy=True):
    """Play what the library does: `steps` are (tokens delivered, tokens that the target favours)."""
    kept, clock = Kept(), Clock()
    timer = ForwardTimer(clock, [])
    recorder = StepRecorder(kept, clock, timer, speculates=True)
    generator = Drafts(list(drafts))
    watched = WatchedGenerator(generator, recorder, greedy=greedy)
    ids = np.array([[4, 5]])
    recorder.put(ids)
    for tokens, favoured in steps:
        candidates, _ = watched.get_candidates(ids)
        assert candidates.shape[1] - ids.shape[1] == len(favoured) - 1
        recorder.put(np.array(tokens))
        ids = np.concatenate([ids, [tokens]], axis=1)
        watched.update_candidate_strategy(ids, Scores(favoured), len(tokens) - 1)
    return kept.steps, recorder, generator


def test_the_first_forward_is_a_plain_prefill_and_each_step_after_it_is_told():
    steps, recorder, generator = recorded(
        [[7, 8, 9], [1], []], [([6], [6]), ([7, 8, 2], [7, 8, 2, 0]), ([1, 3], [1, 3]), ([5], [5])]
    )
    assert [(s.ids, s.kind, s.drafted, s.matched) for s in steps] == [
        ((6,), "prefill", None, None),
        ((7, 8, 2), "verify", 3, 2),
        ((1, 3), "verify", 1, 1),
        ((5,), "plain", 0, 0),
    ]
    assert [s.draft_ns for s in steps] == [None, 10, 10, 10]
    assert recorder.overshoot == 0
    assert generator.updates == [2, 1], "the library hears of the steps that had a draft"


def test_a_target_that_drafts_for_itself_is_not_verifying_while_it_does():
    target, kept = Module(), Kept()

    class Itself(Drafts):
        def get_candidates(self, input_ids, **_):
            target(input_ids)
            return super().get_candidates(input_ids)

    with ForwardTimer(Clock(), [target]) as timer:
        recorder = StepRecorder(kept, timer._clock, timer, speculates=True)
        watched = WatchedGenerator(Itself([[7]]), recorder, greedy=True)
        recorder.put(IDS)
        for tokens in ([6], [7, 8]):
            watched.get_candidates(IDS)
            target(IDS)
            recorder.put(np.array(tokens))
    assert [step.verify_ns for step in kept.steps] == [10, 10]


@pytest.mark.parametrize(
    ("delivered", "favoured", "greedy", "overshoot"),
    [
        ([7, 8], [7, 8, 9, 3], True, 2),  # cut after two drafts; the third matched too, and a token came with it
        ([7, 8], [7, 8, 1, 3], True, 1),
        ([7, 8, 9], [7, 8, 9, 3], True, 1),
        ([7, 1], [7, 1, 0, 0], True, 0),  # the last is the target's own: nothing was cut
        ([7, 8], [7, 8, 9, 3], False, None),  # sampled: what was drawn beyond the cut is not shown
        ([7, 1], [7, 1, 0, 0], False, 0),
    ],
)
def test_what_a_cut_step_verified_beyond_the_cut(delivered, favoured, greedy, overshoot):
    steps, recorder, _ = recorded([[7, 8, 9]], [([6], [6]), (delivered, favoured)], greedy=greedy)
    assert recorder.overshoot == overshoot
    assert steps[1].matched == num_matched(delivered, [7, 8, 9])


def test_without_a_watched_generator_drafts_are_untold():
    kept, clock = Kept(), Clock()
    recorder = StepRecorder(kept, clock, ForwardTimer(clock, []), speculates=True)
    for tokens in ([4, 5], [6, 7], [8]):
        recorder.put(np.array(tokens))
    assert [(s.kind, s.drafted, s.matched) for s in kept.steps] == [("verify", None, 1), ("verify", None, 0)]


class Named:
    def __init__(self, **parts):
        vars(self).update(parts)


class Module:
    """As a PyTorch module takes hooks."""

    def __init__(self, inside=()):
        self.inside, self.before, self.after = inside, [], []

    def _add(self, hooks, hook):
        hooks.append(hook)
        return Named(remove=lambda: hooks.remove(hook))

    def register_forward_pre_hook(self, hook, with_kwargs):
        assert with_kwargs
        return self._add(self.before, hook)

    def register_forward_hook(self, hook):
        return self._add(self.after, hook)

    def __call__(self, *args, **kwargs):
        for hook in self.before:
            hook(self, args, kwargs)
        for module in self.inside:
            module(*args, **kwargs)
        for hook in self.after:
            hook(self, args, None)


IDS = np.zeros((1, 5))


def test_a_forward_inside_another_is_part_of_it_and_the_inner_one_alone_is_one_too():
    inner = Module()
    outer = Module([inner])
    with ForwardTimer(Clock(), [outer, inner]) as timer:
        outer(input_ids=IDS)
        inner(IDS[:, :2])
        assert [(f.start_ns, f.end_ns, f.fed) for f in timer.forwards] == [(10, 20, 5), (30, 40, 2)]
        timer.paused = True
        outer(IDS)
        timer.paused = False
        assert timer.take_ns() == 20
        assert timer.take_ns() is None
    outer(IDS)
    assert (timer.forwards, outer.before, inner.after) == ([], [], [])


def test_a_forward_may_begin_with_one_module_and_end_with_another():
    first, last, told = Module(), Module(), []
    with ForwardTimer(Clock(), [first], [last], on_start=lambda: told.append(1)) as timer:
        for _ in range(2):
            first(IDS)
            last(IDS)
        first(IDS)  # a forward that broke off
        first(IDS)
        last(IDS)
    assert [f.end_ns - f.start_ns for f in timer.forwards] == [10, 10, 10]
    assert len(told) == 4


def test_what_a_forward_was_fed_is_the_second_axis():
    assert (
        num_fed((IDS,), {}) == num_fed((), {"input_ids": IDS}) == num_fed((), {"inputs_embeds": IDS[:, :, None]}) == 5
    )
    assert num_fed((), {}) == 0


def test_the_target_is_found_inside_the_wrappers_of_methods():
    decoder = Module()
    causal = Module()
    causal.lm_head, causal.model = object(), decoder
    assert target_modules(causal, "") == ([causal, decoder], None)
    assert target_modules(Named(base_model=causal), "") == ([causal, decoder], None)
    assert target_modules(Named(lm=causal), "") == ([causal, decoder], None)
    decoder.lm_head = None
    # transformers' own models have a `base_model` too: their decoder, which has no head
    plain = Module()
    plain.lm_head, plain.model, plain.base_model = object(), decoder, Module()
    assert target_modules(plain, "") == ([plain, decoder], None)
    wrapped = Named(inner=Named(layers=[decoder, causal]))
    assert target_modules(wrapped, "inner.layers.0:inner.layers.1") == ([decoder], [causal])
    with pytest.raises(SettingError, match=r"--target: Named has no inner\.head"):
        target_modules(wrapped, "inner.head")
    with pytest.raises(SettingError, match="--target"):
        target_modules(Named(), "")


def test_a_methods_result_is_read_and_what_follows_is_ignored():
    found = read_result((np.array([[1, 2, 3, 4]]), 2, 1, [2], 0.5), 2)
    assert (found.tokens, found.new_tokens, found.lengths) == ([3, 4], 2, [2])
    assert read_result([[[1, 2, 3]], 1, 1, np.array([1])], 2).tokens == [3]
    with pytest.raises(RequestError, match="returned 3 values; needed are"):
        read_result((np.array([[1]]), 1, 1), 0)


def test_functions_are_found_by_name():
    assert find_function("json:loads", "--method")("3") == 3
    for name, says in {"json": "module:name", "json:nothing": "nothing", "nowhere_x:f": "nowhere_x"}.items():
        with pytest.raises(SettingError, match=says):
            find_function(name, "--method")
    with pytest.raises(SettingError, match="no function"):
        find_function("math:pi", "--method")


def test_pairs_are_literals_or_text():
    assert parse_pairs(["a=3", "b=[1, 2]", "c=x=y", "d="], "--arg") == {"a": 3, "b": [1, 2], "c": "x=y", "d": ""}
    with pytest.raises(SettingError, match="--arg: need NAME=VALUE, got 'a-b=1'"):
        parse_pairs(["a-b=1"], "--arg")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "one of --model and --random-init"),
        (["--model", "x", "--random-init", "y"], "one of --model and --random-init"),
        (["--model", "x", "--draft", "y", "--ngram", "3"], "at most one"),
        (["--model", "x", "--draft", "y", "--draft-length", "0"], ">= 1"),
    ],
)
def test_a_command_line_that_is_unclear_is_refused_in_one_line(arguments, says, caplog):
    assert main(["transformers", "--port", "1", *arguments]) == 1
    assert says in caplog.text
    assert "Traceback" not in caplog.text


def test_options_have_the_names_that_recipes_use():
    options = make_parser().parse_args(
        ["transformers", "--port", "3", "--model", "m", "--draft", "d", "--draft-length", "4"]
    )
    assert (options.port, options.model, options.draft, options.draft_length, options.ngram) == (3, "m", "d", 4, 0)


def step(kind, count, at_ns, draft_ns=None):
    return Step(tuple(range(count)), kind, at_ns, None, None, draft_ns, 2_000_000)


def test_figures_of_a_cell_worked_by_hand():
    told = [
        step("prefill", 1, 0),
        step("verify", 3, 10_000_000, 6_000_000),
        step("verify", 1, 14_000_000, 1_000_000),
        step("plain", 1, 20_000_000, 3_000_000),
    ]
    figures = cell_figures([(told, Finish("length", 9, 6, 6, 1))])
    assert (figures["tokens"], figures["verify_steps"], figures["plain_steps"]) == (5, 2, 1)
    assert figures["acceptance_length"] == 2.0
    assert figures["first_draft_ms"] == pytest.approx(6.0)
    assert figures["draft_ms"] == pytest.approx(2.0)
    assert figures["step_ms"] == pytest.approx(5.0)
    assert figures["user_tps"] == pytest.approx(250.0)
    assert cell_figures([(told[:1], Finish("length", 9, 1, 1, 1))])["step_ms"] is None


def test_where_two_answers_part():
    assert difference([1, 2], [1, 2]) is None
    assert difference([1, 2, 3], [1, 9, 3]) == 1
    assert difference([1, 2], [1, 2, 3]) == 2


@pytest.mark.parametrize(
    ("gaps", "in_float32", "verdict"),
    [
        ([], True, "equal"),
        ([0.01], True, "equal but for near ties"),
        ([0.01, 0.5], True, "differs"),
        ([], False, "differs"),
    ],
)
def test_the_verdict_tells_near_ties_from_differences(gaps, in_float32, verdict):
    parted = [{"equal": False, "at_token": 3, "logit_gap": gap, "logit_scale": 1.0} for gap in gaps]
    cells = [{"against_plain": [{"equal": True}, *parted]}, {"mode": "plain"}]
    controls = {"greedy_equals_plain": {"draft": True, "ngram": in_float32}}
    found = verdict_of({"cells": cells, "float32_controls": controls})
    assert (found["verdict"], found["answers"], found["equal"]) == (verdict, 1 + len(gaps), 1)


def test_no_answer_is_no_verdict():
    controls = {"greedy_equals_plain": {"draft": True}}
    assert verdict_of({"cells": [{"mode": "plain"}], "float32_controls": controls})["verdict"] == "not shown"

"""Watches one generation of the transformers library: every step, what was drafted, and how long each part took."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.inprocess.device import ForwardTimer
from bench.inprocess.protocol import Client, Step


class StepRecorder:
    """A streamer that turns what the library hands out into steps.

    The library calls `put` with the prompt, then once for each forward of the target. With a watched candidate
    generator it is known what was drafted; without one a step's drafts are untold, and the library checks the first
    drafts in the very forward that reads the prompt.

    Attributes
    ----------
    overshoot
        Tokens that the last step verified beyond the end of text or the budget; None where the library does not
        show it.
    """

    def __init__(self, client: Client, clock: Callable[[], int], timer: ForwardTimer, *, speculates: bool) -> None:
        self.ids: list[int] = []
        self.overshoot: int | None = 0
        self.prefilled = False
        self.watched = False
        self._client, self._clock, self._timer, self._speculates = client, clock, timer, speculates
        self._prompt_seen = self._candidates_seen = False
        self._candidates: list[int] = []
        self._delivered: list[int] = []
        self._draft_ns: int | None = None

    def put(self, value: Any) -> None:
        """Take the prompt, or the tokens of one step."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        ids = value.flatten().tolist()
        at_ns, verify_ns = self._clock(), self._timer.take_ns()
        step = self._step(ids, at_ns, verify_ns)
        self.prefilled, self._delivered, self._draft_ns = True, ids, None
        self.ids += ids
        self._client.send(step)

    def end(self) -> None:
        """Do nothing; the library calls it after the last step."""

    def _step(self, ids: list[int], at_ns: int, verify_ns: int | None) -> Step:
        delivered = tuple(ids)
        if self._speculates and not self.watched:
            return Step(delivered, "verify", at_ns, None, len(ids) - 1, None, verify_ns)
        if not self.prefilled:
            return Step(delivered, "prefill", at_ns, verify_ns=verify_ns)
        drafted = len(self._candidates)
        if not drafted:
            return Step(delivered, "plain", at_ns, 0, 0, self._draft_ns, verify_ns)
        return Step(delivered, "verify", at_ns, drafted, num_matched(ids, self._candidates), self._draft_ns, verify_ns)

    def draft(self, generator: Any, input_ids: Any, settings: dict[str, Any]) -> Any:
        """Return the candidates of the next step; the first has none, and so is a plain prefill."""
        self.watched = True
        if not self.prefilled:
            return input_ids, None
        if not self._candidates_seen:
            self._candidates_seen = True
            _take_up(generator, input_ids)
        self._timer.paused = True  # a target that drafts for itself is not verifying while it does
        start_ns = self._clock()
        result = generator.get_candidates(input_ids, **settings)
        self._draft_ns = self._clock() - start_ns
        self._timer.paused = False
        self._candidates = result[0][0, input_ids.shape[1] :].tolist()
        return result

    def verified(self, scores: Any, *, greedy: bool) -> None:
        """Take the target's scores of a step, shape ``(1, drafted + 1, vocabulary)``, for what went beyond the cut."""
        delivered = len(self._delivered)
        if num_matched(self._delivered, self._candidates) < delivered:
            self.overshoot = 0  # the last token is the target's own: nothing was cut off
        elif not greedy:
            self.overshoot = None
        else:
            own = scores[0].argmax(dim=-1).tolist()
            self.overshoot = num_matched(own, self._candidates) + 1 - delivered


def _take_up(generator: Any, input_ids: Any) -> None:
    """Let a draft model that was set up for the prompt begin one token later, after the plain prefill."""
    settings = getattr(generator, "assistant_kwargs", None)
    if settings is None:
        return
    import torch

    ids = input_ids.to(generator.assistant_model.device)
    settings["attention_mask"] = torch.ones_like(ids)
    if settings.get("position_ids") is not None:
        settings["position_ids"] = torch.arange(ids.shape[1], device=ids.device)[None]


def num_matched(ids: list[int], drafts: list[int]) -> int:
    """Return how many leading drafts are the tokens that were delivered.

    A token that replaces a rejected draft never equals it: the distribution that it is drawn from has none of it.
    """
    count = 0
    for token, draft in zip(ids, drafts, strict=False):
        if token != draft:
            break
        count += 1
    return count


class WatchedGenerator:
    """A candidate generator of the library under the eyes of a recorder."""

    def __init__(self, generator: Any, recorder: StepRecorder, *, greedy: bool) -> None:
        self._generator, self._recorder, self._greedy = generator, recorder, greedy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def get_candidates(self, input_ids: Any, **settings: Any) -> Any:
        """Return candidates as the library's generator does."""
        return self._recorder.draft(self._generator, input_ids, settings)

    def update_candidate_strategy(self, input_ids: Any, scores: Any, num_matches: int) -> None:
        """Tell the generator of a step that had a draft."""
        if scores.shape[1] > 1:
            self._recorder.verified(scores, greedy=self._greedy)
            self._generator.update_candidate_strategy(input_ids, scores, num_matches)

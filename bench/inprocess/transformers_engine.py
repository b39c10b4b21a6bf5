"""The transformers library as an engine: plain, with a draft model, or with drafts looked up in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from bench.inprocess.device import ForwardTimer, describe_device, make_clock
from bench.inprocess.experts import ExpertCounts
from bench.inprocess.models import end_ids, num_parameters, positions
from bench.inprocess.protocol import Client, Finish, Request, RequestError, SettingError
from bench.inprocess.steps import StepRecorder, WatchedGenerator

Mode = Literal["plain", "draft", "ngram"]


@dataclass(frozen=True, slots=True)
class Speculation:
    """How tokens are drafted.

    Attributes
    ----------
    draft_length
        Tokens drafted a step; 0 without speculation.
    ngram_size
        Longest n-gram that is looked up.
    """

    draft_model: Any = None
    draft_length: int = 0
    ngram_size: int = 3

    @property
    def mode(self) -> Mode:
        """By what tokens are drafted."""
        if not self.draft_length:
            return "plain"
        return "ngram" if self.draft_model is None else "draft"


class TransformersEngine:
    """Answers one request at a time by the library's own `generate`, batch 1, without a prefix cache.

    Sampling defaults in a model's folder are not used: each request states its own. The first token comes from a
    plain prefill, as other engines make it.

    Parameters
    ----------
    target
        Causal model of the library, on its device.
    tokenizer
        For the text of an answer; None: no text is told.
    count_experts
        Whether the choices of a mixture-of-experts model's routers are counted.
    name
        Of the model, for `/info`.
    """

    def __init__(
        self,
        target: Any,
        speculation: Speculation | None = None,
        *,
        tokenizer: Any = None,
        count_experts: bool = False,
        name: str = "",
    ) -> None:
        self.target, self.speculation = target, speculation or Speculation()
        self.device = str(target.device)
        self.clock = make_clock(self.device)
        self._tokenizer, self._name = tokenizer, name
        self._experts = ExpertCounts(target) if count_experts else None
        self._ends, self._positions = end_ids(target), positions(target)
        self._pad = _pad_id(target, self._ends)
        self._prepare_models()

    def info(self) -> dict[str, Any]:
        """Return versions, device and settings."""
        drafter = self.speculation.draft_model
        return {
            "engine": "transformers",
            **describe_device(self.device),
            "dtype": str(self.target.dtype).removeprefix("torch."),
            "model": self._name,
            "mode": self.speculation.mode,
            "draft_length": self.speculation.draft_length,
            "parameters": num_parameters(self.target),
            "draft_parameters": None if drafter is None else num_parameters(drafter),
            "drafts_told": hasattr(self.target, _MAKER) or self.speculation.mode == "plain",
        }

    def experts(self) -> dict[str, Any] | None:
        """Return how often each expert was chosen; None unless they are counted."""
        return None if self._experts is None else self._experts.to_json()

    def reset_experts(self) -> None:
        """Count from zero."""
        if self._experts is not None:
            self._experts.reset()

    def generate(self, request: Request, client: Client) -> Finish:
        """Answer a request, telling each step as it is known.

        Raises
        ------
        RequestError
            If the prompt and the budget do not fit the model's positions.
        """
        import torch

        self._refuse_long(request)
        mode = self.speculation.mode
        torch.manual_seed(request.seed)  # the library draws from PyTorch's one global generator
        ids = torch.tensor([request.ids], device=self.target.device)
        with self._watched(request, client) as recorder:
            start_ns = self.clock()
            self.target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=self._settings(request),
                streamer=recorder,
                **({"assistant_model": self.speculation.draft_model} if mode == "draft" else {}),
            )
            wall_ns = self.clock() - start_ns
        return self._finish(request, recorder, wall_ns)

    @contextmanager
    def _watched(self, request: Request, client: Client) -> Generator[StepRecorder]:
        """Give the recorder of one generation, with the target's forwards and candidate generator under it."""
        target = self.target
        timer = ForwardTimer(self.clock, [target], on_start=lambda: self._tell_phase(recorder))
        recorder = StepRecorder(client, self.clock, timer, speculates=self.speculation.mode != "plain")
        make: Callable[..., Any] | None = getattr(target, _MAKER, None)
        with timer:
            if make is None:  # a release of the library without this place: drafts stay untold
                yield recorder
                return
            setattr(target, _MAKER, _watched_maker(make, recorder, greedy=request.temperature == 0))
            try:
                yield recorder
            finally:
                delattr(target, _MAKER)

    def _finish(self, request: Request, recorder: StepRecorder, wall_ns: int) -> Finish:
        ids = recorder.ids
        ended = not request.ignore_eos and ids[-1] in self._ends
        text = self._tokenizer.decode(ids, skip_special_tokens=True) if self._tokenizer is not None else ""
        overshoot = recorder.overshoot if recorder.watched or self.speculation.mode == "plain" else None
        return Finish(
            "stop" if ended else "length",
            len(request.ids),
            len(ids),
            None if overshoot is None else len(ids) + overshoot,
            wall_ns,
            self.speculation.draft_length,
            text,
        )

    def _refuse_long(self, request: Request) -> None:
        total = len(request.ids) + request.max_tokens
        if self._positions is not None and total > self._positions:
            raise RequestError(
                f"{len(request.ids)} prompt tokens and max_tokens {request.max_tokens} exceed the model's "
                f"{self._positions} positions"
            )

    def _settings(self, request: Request) -> Any:
        from transformers import GenerationConfig

        settings: dict[str, Any] = {
            "max_new_tokens": request.max_tokens,
            "do_sample": request.temperature > 0,
            "pad_token_id": self._pad,
            "eos_token_id": None if request.ignore_eos or not self._ends else list(self._ends),
        }
        if request.temperature > 0:
            # The library would keep only the 50 likeliest tokens unless told otherwise.
            settings |= {"temperature": request.temperature, "top_p": request.top_p, "top_k": 0}
        if self.speculation.mode == "ngram":
            settings["prompt_lookup_num_tokens"] = self.speculation.draft_length
            settings["max_matching_ngram_size"] = self.speculation.ngram_size
        return GenerationConfig(**settings)

    def _prepare_models(self) -> None:
        """Take the sampling defaults of the folders away, and let the drafter draft the same length at every step."""
        from transformers import GenerationConfig

        self.target.generation_config = GenerationConfig(pad_token_id=self._pad)
        drafter = self.speculation.draft_model
        if drafter is None:
            return
        if drafter.config.vocab_size != self.target.config.vocab_size:
            raise SettingError(
                f"--draft: its vocabulary of {drafter.config.vocab_size} is not the target's "
                f"{self.target.config.vocab_size}; take a drafter of the same tokenizer"
            )
        drafter.generation_config = GenerationConfig(
            pad_token_id=self._pad,
            num_assistant_tokens=self.speculation.draft_length,
            num_assistant_tokens_schedule="constant",
            assistant_confidence_threshold=0.0,
        )

    def _tell_phase(self, recorder: StepRecorder) -> None:
        if self._experts is not None:
            self._experts.in_prefill = not recorder.prefilled


_MAKER = "_get_candidate_generator"
"""The library's own method that makes a candidate generator, tried with transformers 5.19."""


def _watched_maker(make: Callable[..., Any], recorder: StepRecorder, *, greedy: bool) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> WatchedGenerator:
        return WatchedGenerator(make(*args, **kwargs), recorder, greedy=greedy)

    return made


def _pad_id(model: Any, ends: tuple[int, ...]) -> int:
    for config in (getattr(model, "generation_config", None), model.config):
        pad = getattr(config, "pad_token_id", None)
        if pad is not None:
            return int(pad)
    return ends[0] if ends else 0

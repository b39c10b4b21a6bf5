"""Runs a method of a Spec-Bench checkout: its forward function, as `evaluation/inference_*.py` define it.

A forward function takes the tokenizer's encoding (older ones the ids alone), model, tokenizer, the budget and what
else it names, and returns all ids with the prompt, the number of new tokens, the number of steps, and an accept length
for each step; what follows these is ignored.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.inprocess.alignment import align, trimmed
from bench.inprocess.device import ForwardTimer, describe_device, make_clock
from bench.inprocess.models import end_ids, load_model
from bench.inprocess.protocol import Client, Finish, Request, RequestError, SettingError

_BUDGET_NAMES = ("max_new_tokens", "max_new_token")
_SAMPLING_NAMES = ("temperature", "do_sample", "top_p")


@dataclass(frozen=True, slots=True)
class Method:
    """A method as the command line names it.

    Attributes
    ----------
    checkout
        Folder of the checkout, put first on the import path.
    method
        ``module:function`` of the forward function.
    loader
        ``module:function`` that takes the model's name and `load_args`, and returns model, tokenizer and, if it
        likes, a mapping of further arguments of the forward function; "": a causal model of transformers.
    args, load_args
        Further arguments; a value ``@module:name`` is imported.
    target
        Path of the target's module below the model; ``start:end`` where a method calls no module of the whole target.
    is_chain
        Whether it drafts one path.
    """

    checkout: str
    method: str
    model: str
    loader: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    load_args: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    is_chain: bool = False


class SpecBenchEngine:
    """Answers one request at a time by a method of a Spec-Bench checkout.

    The method returns once it is done, so the steps are told then; each carries the clock at which its forward ended.
    """

    def __init__(self, method: Method, dtype: str, device: str) -> None:
        self.method, self.device = method, device
        if not Path(method.checkout).is_dir():
            raise SettingError(f"--checkout: no folder {method.checkout}")
        sys.path.insert(0, str(Path(method.checkout).resolve()))
        self._forward = find_function(method.method, "--method")
        self._model, self._tokenizer, found = self._load(dtype)
        self._args = {**found, **{name: _imported(value) for name, value in method.args.items()}}
        self._names = tuple(inspect.signature(self._forward).parameters)
        self._ends = _end_ids(self._tokenizer, self._model)
        self._clock = make_clock(device)
        self._client: Client | None = None
        starts, ends = target_modules(self._model, method.target)
        self._timer = ForwardTimer(self._clock, starts, ends, on_start=self._check)

    def info(self) -> dict[str, Any]:
        """Return versions, device and settings."""
        return {
            "engine": "specbench",
            **describe_device(self.device),
            "model": self.method.model,
            "method": self.method.method,
            "args": {name: repr(value)[:200] for name, value in self.method.args.items()},
            "is_chain": self.method.is_chain,
        }

    def experts(self) -> dict[str, Any] | None:
        """Return None: nobody counts experts here."""
        return None

    def reset_experts(self) -> None:
        """Do nothing."""

    def generate(self, request: Request, client: Client) -> Finish:
        """Answer a request, telling all steps at the end.

        Raises
        ------
        RequestError
            If the method cannot sample as asked, or its numbers do not fit its forwards.
        """
        import torch

        arguments = self._arguments(request)
        self._client = client
        torch.manual_seed(request.seed)  # as Spec-Bench does ahead of each question
        with torch.inference_mode(), self._timer:
            inputs = self._inputs(request)
            start_ns = self._clock()
            returned = self._forward(inputs, self._model, self._tokenizer, **arguments)
            wall_ns = self._clock() - start_ns
        result = read_result(returned, len(request.ids))
        steps = align(
            result.tokens,
            result.lengths,
            self._timer.forwards,
            prompt_tokens=len(request.ids),
            start_ns=start_ns,
            is_chain=self.method.is_chain,
        )
        kept, reason = trimmed(steps, self._ends, request.max_tokens)
        for step in kept:
            client.send(step)
        ids = [token for step in kept for token in step.ids]
        return Finish(
            reason,
            len(request.ids),
            len(ids),
            len(result.tokens),
            wall_ns,
            text=self._tokenizer.decode(ids, skip_special_tokens=True),
            accept_lengths=tuple(result.lengths),
            new_tokens=result.new_tokens,
        )

    def _check(self) -> None:
        if self._client is not None:
            self._client.check()

    def _load(self, dtype: str) -> tuple[Any, Any, Mapping[str, Any]]:
        method = self.method
        if method.loader:
            loader = find_function(method.loader, "--loader")
            parts = loader(method.model, **{name: _imported(value) for name, value in method.load_args.items()})
            if not isinstance(parts, (tuple, list)) or len(parts) not in (2, 3):
                raise SettingError("--loader: must return model and tokenizer, and further arguments if it likes")
            return parts[0], parts[1], (parts[2] if len(parts) == 3 else {})
        from transformers import AutoTokenizer

        return load_model(method.model, dtype, self.device), AutoTokenizer.from_pretrained(method.model), {}

    def _inputs(self, request: Request) -> Any:
        import torch
        from transformers import BatchEncoding

        ids = torch.tensor([request.ids], device=self.device)
        if self._names[0] == "input_ids":
            return ids
        return BatchEncoding({"input_ids": ids, "attention_mask": torch.ones_like(ids)})

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Return what the forward function takes by name: budget, the sampling that it knows, and what was given."""
        if request.ignore_eos:
            raise RequestError("ignore_eos: a method of Spec-Bench ends at the tokenizer's own end of text; send False")
        asked: dict[str, Any] = {"temperature": request.temperature, "do_sample": request.temperature > 0}
        if request.temperature > 0:
            asked["top_p"] = request.top_p
        arguments = {name: value for name, value in asked.items() if name in self._names} | self._args
        if float(arguments.get("temperature", 0.0)) != request.temperature:
            raise RequestError(
                f"temperature {request.temperature:g}: {self.method.method} runs at "
                f"{float(arguments.get('temperature', 0.0)):g}; ask for that"
            )
        if request.temperature > 0 and request.top_p < 1 and float(arguments.get("top_p", 1.0)) != request.top_p:
            raise RequestError(f"top_p {request.top_p:g}: {self.method.method} does not take it; ask for 1")
        for name in _BUDGET_NAMES:
            if name in self._names:
                arguments[name] = request.max_tokens
        return arguments


@dataclass(frozen=True, slots=True)
class Result:
    """What a forward function returned: new tokens by id, its own count of them, and accept lengths."""

    tokens: list[int]
    new_tokens: int
    lengths: list[int]


def read_result(returned: Any, prompt_tokens: int) -> Result:
    """Return the parts of a forward function's result.

    Raises
    ------
    RequestError
        If there are no accept lengths.
    """
    if not isinstance(returned, (tuple, list)) or len(returned) < 4:
        count = len(returned) if isinstance(returned, (tuple, list)) else 1
        raise RequestError(
            f"the method returned {count} values; needed are output ids, new tokens, steps and accept lengths"
        )
    output_ids, new_tokens, _, lengths = returned[:4]
    ids = output_ids.tolist() if hasattr(output_ids, "tolist") else list(output_ids)
    row = ids[0] if ids and isinstance(ids[0], list) else ids
    return Result([int(i) for i in row[prompt_tokens:]], int(new_tokens), [int(length) for length in lengths])


def find_function(name: str, option: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names.

    Raises
    ------
    SettingError
        If there is none: names the option.
    """
    value = _attribute(name, option)
    if not callable(value):
        raise SettingError(f"{option}: {name} is no function")
    found: Callable[..., Any] = value
    return found


def _attribute(name: str, option: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise SettingError(f"{option}: need module:name, got {name!r}")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingError(f"{option}: {name}: {error}") from None


def _imported(value: Any) -> Any:
    return _attribute(value[1:], f"value {value}") if isinstance(value, str) and value.startswith("@") else value


def _end_ids(tokenizer: Any, model: Any) -> tuple[int, ...]:
    token = getattr(tokenizer, "eos_token_id", None)
    if token is not None:
        return (int(token),)
    return end_ids(model) if hasattr(model, "config") else ()


def target_modules(model: Any, path: str) -> tuple[list[Any], list[Any] | None]:
    """Return the modules whose call begins, and those whose return ends a forward of the target.

    Without a path it is the causal model: the model itself, or what it wraps under `base_model` or `lm`; and the
    decoder inside it, which many methods call without its head.

    Raises
    ------
    SettingError
        If there is no such module.
    """
    start, _, end = path.partition(":")
    if path:
        starts = [_submodule(model, start)]
        return starts, ([_submodule(model, end)] if end else None)
    wrapped = [getattr(model, name, None) for name in ("base_model", "lm")]
    base = next((module for module in wrapped if module is not None and hasattr(module, "lm_head")), model)
    found: Sequence[Any] = [base, getattr(base, "model", None)]
    modules = [module for module in found if hasattr(module, "register_forward_hook")]
    if not modules:
        raise SettingError(f"{type(model).__name__} is no PyTorch module; name the target inside it with --target")
    return modules, None


def _submodule(model: Any, path: str) -> Any:
    module = model
    for name in path.split("."):
        module = module[int(name)] if name.isdigit() else getattr(module, name, None)
        if module is None:
            raise SettingError(f"--target: {type(model).__name__} has no {path}")
    return module

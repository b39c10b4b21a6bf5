"""Clock readings that wait for the device, and the time a module takes in its forward."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def make_clock(device: str) -> Callable[[], int]:
    """Return a reading of CLOCK_MONOTONIC, ns, taken once a CUDA device has done all that was asked of it."""
    if not device.startswith("cuda"):
        return time.perf_counter_ns
    import torch

    def read_ns() -> int:
        torch.cuda.synchronize()
        return time.perf_counter_ns()

    return read_ns


def default_device() -> str:
    """Return "cuda" where there is one, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def describe_device(device: str) -> dict[str, Any]:
    """Return the versions of Python, PyTorch and transformers, and the device by name."""
    import torch
    import transformers

    facts = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": device,
        "num_threads": torch.get_num_threads(),
    }
    if device.startswith("cuda"):
        facts["gpu"] = torch.cuda.get_device_name()
        facts["cuda"] = torch.version.cuda
    return facts


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward of the target: when it ran, and how many tokens it was fed."""

    start_ns: int
    end_ns: int
    fed: int


class ForwardTimer:
    """Keeps the forwards of some modules of one model inside a block; a forward inside another is part of it.

    Parameters
    ----------
    clock
        As `make_clock` gives it.
    starts, ends
        Modules whose call begins, and whose return ends a forward. The same modules, unless a method calls neither
        the model nor its decoder as a module: then the embedding begins it and the last norm ends it.
    on_start
        Called before each forward.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        starts: list[Any],
        ends: list[Any] | None = None,
        on_start: Callable[[], None] | None = None,
    ) -> None:
        self.forwards: list[Forward] = []
        self.paused = False
        self._clock, self._on_start = clock, on_start
        self._starts, self._ends = starts, ends
        self._hooks: list[Any] = []
        self._depth, self._start_ns, self._fed = 0, 0, 0

    def __enter__(self) -> ForwardTimer:
        self.forwards, self._depth, self.paused = [], 0, False
        ends = self._starts if self._ends is None else self._ends
        self._hooks = [module.register_forward_pre_hook(self._before, with_kwargs=True) for module in self._starts]
        self._hooks += [module.register_forward_hook(self._after) for module in ends]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def take_ns(self) -> int | None:
        """Return the time of the forwards since the last call; None if there was none."""
        if not self.forwards:
            return None
        total_ns = sum(forward.end_ns - forward.start_ns for forward in self.forwards)
        self.forwards = []
        return total_ns

    def _before(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.paused:
            return
        self._depth = self._depth + 1 if self._ends is None else 1
        if self._depth > 1:
            return
        if self._on_start is not None:
            self._on_start()
        self._fed = num_fed(args, kwargs)
        self._start_ns = self._clock()

    def _after(self, _module: Any, _args: tuple[Any, ...], _output: Any) -> None:
        if self.paused or not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            self.forwards.append(Forward(self._start_ns, self._clock(), self._fed))


def num_fed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the tokens in the inputs of a forward: the second axis of its ids or embeddings, 0 if it has neither."""
    inputs = [kwargs.get("input_ids"), kwargs.get("inputs_embeds"), *args[:1]]
    for value in inputs:
        if value is not None and hasattr(value, "shape") and len(value.shape) >= 2:
            return int(value.shape[1])
    return 0

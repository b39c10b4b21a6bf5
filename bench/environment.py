"""Where a run took place: host, packages, GPUs and their energy. Reads, never changes."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

PACKAGES = ("speedbench", "aiohttp", "httptools", "numpy", "orjson", "scipy", "tokenizers", "uvloop")


def describe_host() -> dict[str, Any]:
    """Return the facts of this host that a figure can depend on; what cannot be found is None."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "gpus": gpus(),
        "packages": {name: _version(name) for name in PACKAGES},
        # One pair of readings anchors the monotonic clock of the traces to the calendar.
        "clock": {"monotonic_ns": time.perf_counter_ns(), "unix_ns": time.time_ns()},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            return next((line.partition(":")[2].strip() for line in stream if line.startswith("model name")), None)
    except OSError:
        return None


def gpus() -> list[dict[str, str]] | None:
    """Return name, driver and memory of each GPU of this host; None where there is no driver to ask."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    fields = ("name", "driver_version", "memory.total")
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    if answer.returncode:
        return None
    rows = [line.split(", ") for line in answer.stdout.splitlines() if line]
    return [dict(zip(fields, row, strict=False)) for row in rows]


@dataclass(frozen=True, slots=True)
class EnergyMeter:
    """The running energy counters of this host's GPUs, through NVML where its Python binding is installed."""

    library: Any
    handles: tuple[Any, ...]

    @classmethod
    def open(cls) -> EnergyMeter | None:
        """Return a meter; None without NVML, or where a GPU has no counter."""
        try:
            library = import_module("pynvml")
        except ImportError:
            return None
        try:
            library.nvmlInit()
            handles = tuple(library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount()))
            meter = cls(library, handles)
            meter.read_j()
        except library.NVMLError:
            return None
        return meter if handles else None

    def read_j(self) -> float:
        """Return the energy that all GPUs used since the driver was loaded, J."""
        return sum(float(self.library.nvmlDeviceGetTotalEnergyConsumption(h)) for h in self.handles) / 1000.0

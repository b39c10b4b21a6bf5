"""Weights in a `model.safetensors`: float16 on disk, float32 in memory. Reads and writes files."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import BenchError

_DTYPES: dict[str, np.dtype[np.floating]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
_LENGTH = struct.Struct("<Q")


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a safetensors file by name, as float32.

    Raises
    ------
    BenchError
        If the file is not whole, or holds anything but float16 and float32.
    """
    raw = path.read_bytes()
    try:
        (length,) = _LENGTH.unpack_from(raw)
        if length > len(raw):
            raise ValueError("cut off")
        header = json.loads(raw[_LENGTH.size : _LENGTH.size + length])
        body = memoryview(raw)[_LENGTH.size + length :]
        return {name: _tensor(body, entry) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise BenchError(f"{path}: not a safetensors file of float16 or float32 ({error}); install again") from None


def _tensor(body: memoryview, entry: Mapping[str, Any]) -> NDArray[np.float32]:
    start, end = entry["data_offsets"]
    return np.frombuffer(body[start:end], _DTYPES[entry["dtype"]]).reshape(entry["shape"]).astype(np.float32)


def weights_bytes(tensors: Mapping[str, NDArray[np.floating]]) -> bytes:
    """Return a safetensors file of the tensors as float16, in the order of their names: the same bytes every time."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts, at = [], 0
    for name in sorted(tensors):
        part = np.ascontiguousarray(tensors[name], "<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return _LENGTH.pack(len(head)) + head + b"".join(parts)

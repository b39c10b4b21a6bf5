"""Numpy arrays as Arrow arrays, without loading pandas, which `pyarrow.array` and `ChunkedArray.to_numpy` do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_TYPES = {"int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}


def arrow_numbers(values: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array over the same memory."""
    flat = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_TYPES[flat.dtype.name], len(flat), [None, pa.py_buffer(flat)])

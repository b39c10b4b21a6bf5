"""What numba lacks for functions of pointers that ask nothing of it when they run: unaligned words, blocks of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""No exception for a division, and no memory of numba's own: code that is complete without numba."""

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_BLOCK = ir.VectorType(_BYTE, 64)
_DATA: Any = types.CPointer(types.uint8)  # type: ignore[no-untyped-call]


def _constant(byte: int) -> Any:
    return ir.Constant(_BLOCK, [byte] * 64)


def _load_block(builder: Any, pointer: Any, at: Any) -> Any:
    place = builder.gep(pointer, [at])
    return builder.load(builder.bitcast(place, _BLOCK.as_pointer()), align=1)


def _type_load_word(_context: Any, _data: Any, _at: Any) -> Any:
    """Load eight bytes, the first lowest, from any address."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        return builder.load(builder.bitcast(place, _WORD.as_pointer()), align=1)

    return types.uint64(_DATA, types.int64), generate


def _type_word_bits(_context: Any, _data: Any, _at: Any) -> Any:
    """Return a word with a bit for each of 64 bytes: set for ASCII letters and digits."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        block = _load_block(builder, *args)
        lower = builder.or_(block, _constant(0x20))
        letter = builder.icmp_unsigned("<", builder.sub(lower, _constant(97)), _constant(26))
        digit = builder.icmp_unsigned("<", builder.sub(block, _constant(48)), _constant(10))
        return builder.bitcast(builder.or_(letter, digit), _WORD)

    return types.uint64(_DATA, types.int64), generate


def _type_high_bits(_context: Any, _data: Any, _at: Any) -> Any:
    """Return a word with a bit for each of 64 bytes: set beyond ASCII."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        block = _load_block(builder, *args)
        return builder.bitcast(builder.icmp_signed("<", block, _constant(0)), _WORD)

    return types.uint64(_DATA, types.int64), generate


def _type_prefetch(_context: Any, data: Any, _at: Any) -> Any:
    """Ask for an entry of an array without waiting for it; return 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), flag, flag, flag])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0"
        )
        place = builder.bitcast(builder.gep(args[0], [args[1]]), _BYTE.as_pointer())
        builder.call(function, [place, flag(0), flag(3), flag(1)])  # for reading, into all caches, data
        return ir.Constant(_WORD, 0)

    return types.int64(data, types.int64), generate


def _type_trailing_zeros(_context: Any, _word: Any) -> Any:
    """Count the zero bits below the lowest one of a word that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


load_word: Any = intrinsic(_type_load_word)
word_bits: Any = intrinsic(_type_word_bits)
high_bits: Any = intrinsic(_type_high_bits)
prefetch: Any = intrinsic(_type_prefetch)
trailing_zeros: Any = intrinsic(_type_trailing_zeros)


def compiled(function: Function) -> Function:
    """Mark a function of pointers and numbers for numba."""
    made: Function = numba.njit(nogil=True, **OPTIONS)(function)
    return made

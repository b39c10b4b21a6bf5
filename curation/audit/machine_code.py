"""The compiled kernel as machine code: made once by numba, from then on loaded without it.

Importing numba and asking it for a cached function takes most of a second; llvmlite alone loads the same code in a
twentieth of one.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite  # type: ignore[import-untyped]
import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

from curation.audit.errors import AuditError
from curation.kernels.audit_fold import unicode_version
from sources.cache_root import cache_root
from sources.disk import atomic

if TYPE_CHECKING:
    from collections.abc import Callable

_KERNELS = Path(__file__).parents[1] / "kernels"
_SOURCES = (
    "audit_fast",
    "audit_fast_entry",
    "audit_fast_filter",
    "audit_fast_search",
    "audit_fold",
    "audit_hash",
    "audit_shingles",
    "pointers",
)
_P, _I, _U, _D = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
_ARGUMENTS = {
    "find_shared": (
        *(_P, _I, _P, _P, _I, _I, *[_P] * 4, _P, _U, *(_P, _U, _P, _U, _P) * 2),
        *(*[_P] * 8, _D, _I, *[_P] * 7, _I, *[_P] * 8),
    ),
}
"""Functions of the code, and the C types of their arguments; each returns a 64-bit integer."""


@dataclass(frozen=True)
class MachineCode:
    """The function of `curation.kernels.audit_fast_entry`, loaded; `engine` owns its memory."""

    find_shared: Callable[..., int]
    engine: Any


def is_compiled() -> bool:
    """Tell whether the machine code for this processor is in the cache."""
    return _path().is_file()


@lru_cache(maxsize=1)
def load_machine_code() -> MachineCode:
    """Load the compiled kernel, compiling it first if this machine has not done so yet (some seconds).

    Raises
    ------
    AuditError
        If numba, which is needed to compile, is not installed.
    """
    path = _path()
    if not path.is_file():
        code = _compile()
        with atomic(path) as scratch:
            scratch.write_bytes(code)
    code = path.read_bytes()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    functions = {
        name: ctypes.CFUNCTYPE(_I, *arguments)(engine.get_function_address(name))
        for name, arguments in _ARGUMENTS.items()
    }
    return MachineCode(**functions, engine=engine)


def kept_characters(make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return a table of `audit_fold`, kept beside the code: making it takes up to a tenth of a second."""
    source = (_KERNELS / "audit_fold.py").read_bytes() + unicode_version().encode()
    path = cache_root() / "audit" / f"{make.__name__}-{hashlib.sha256(source).hexdigest()[:32]}.npy"
    if not path.is_file():
        with atomic(path) as scratch, scratch.open("wb") as stream:
            np.save(stream, make())
    table: NDArray[Any] = np.load(path)
    return table


@lru_cache(maxsize=1)
def _path() -> Path:
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update((_KERNELS / f"{name}.py").read_bytes())
    parts = (llvmlite.__version__, metadata.version("numba"), _processor(), binding.get_process_triple())
    digest.update("\x1f".join(parts).encode())
    return cache_root() / "audit" / f"kernel-{digest.hexdigest()[:32]}.o"


def _processor() -> str:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def _machine() -> Any:
    _processor()
    target = binding.Target.from_default_triple()
    # As numba sets it up: code that is loaded where it is needed, for the processor at hand.
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


def _compile() -> bytes:
    """Return an object file that holds the functions and asks nothing of numba or Python."""
    try:
        import numba
    except ImportError:
        raise AuditError("--kernel numba: numba is not installed; install the extra [fast]") from None
    from curation.kernels import audit_fast_entry as entry
    from curation.kernels.pointers import OPTIONS

    machine = _machine()
    whole = binding.parse_assembly("")
    for name in _ARGUMENTS:
        function = numba.cfunc(entry.SIGNATURES[name], **OPTIONS)(getattr(entry, name))
        part = binding.parse_assembly(function.inspect_llvm())
        part.get_function(function.native_name).name = name
        # All else is inlined or dropped, with it what numba would do for a function that raises: none of these can.
        for other in part.functions:
            if not other.is_declaration and other.name != name:
                other.linkage = "internal"
        passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
        passes.getModulePassManager().run(part, passes)
        whole.link_in(part)
    foreign = [f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if foreign:
        raise AuditError(f"--kernel numba: this numba leaves {foreign[0]} in compiled code; use --kernel numpy")
    code: bytes = machine.emit_object(whole)
    return code

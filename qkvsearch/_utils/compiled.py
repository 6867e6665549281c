"""Functions compiled by numba. They release Python's lock (GIL): threads run in parallel."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _ignoring_the_current_folder() -> Iterator[None]:
    """Import numba so that it takes nothing from the current folder.

    It reads `.numba_config.yaml` there, if it can import yaml, and unpickles code from the cache
    folder that this file names. An empty or relative XDG_CACHE_HOME, which the XDG specification
    says to ignore, would be such a cache folder too.
    """
    if not os.path.isabs(os.environ.get("XDG_CACHE_HOME", os.path.abspath(os.sep))):
        del os.environ["XDG_CACHE_HOME"]
    warnings.filterwarnings("ignore", "A Numba config file is found")  # that it cannot read
    loaded = sys.modules.pop("yaml", None)
    sys.modules["yaml"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["yaml"]
        if loaded is not None:
            sys.modules["yaml"] = loaded


with _ignoring_the_current_folder():
    from llvmlite import ir
    from numba import njit, types
    from numba.core import cgutils
    from numba.extending import intrinsic

# All of fastmath, except that NaNs are kept.
KEEPS_NANS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for arrays of finite numbers."""
    return _compiled(function, True)


def compiled_for_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for arrays that may contain NaNs, which stay NaNs."""
    return _compiled(function, KEEPS_NANS)


def _compiled(function: Callable[..., Any], fastmath: Any) -> Callable[..., Any]:
    """Compile a function, cached on disk for the next process if possible."""
    # error_model: divides as NumPy does, for a check of every divisor would prevent vectorization.
    # forceinline: otherwise code compiled just now and the same code from the cache differ in the
    # last bits of their results.
    options = {"nogil": True, "fastmath": fastmath, "error_model": "numpy", "forceinline": True}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # Install and home folder are read-only, as in a container: no cache.
        return njit(**options)(function)


def _prefetch(_typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Prefetch array[row, column] into the processor's cache; for compiled functions only.

    It changes no result. It saves time where rows are read in an irregular order, which the
    processor cannot predict.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array_type, *index_types = signature.args
        indices = [
            context.cast(builder, value, index_type, types.intp)
            for value, index_type in zip(values[1:], index_types, strict=True)
        ]
        struct = context.make_array(array_type)(context, builder, values[0])
        address = cgutils.get_item_pointer(context, builder, array_type, struct, indices)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        # For reading (0), kept in all caches (3), data (1): the flags of LLVM's language reference.
        builder.call(instruction, [builder.bitcast(address, byte), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


prefetch: Any = intrinsic(_prefetch)

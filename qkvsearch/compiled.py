"""Functions compiled by numba, which leave the interpreter's lock to other threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# All of fastmath but what lets a NaN pass for a number.
KEEPS_NANS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in machine code, for arrays whose numbers are all finite."""
    return _compiled(function, True)


def compiled_for_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in machine code, for arrays that may hold NaNs, which stay NaNs."""
    return _compiled(function, KEEPS_NANS)


def _compiled(function: Callable[..., Any], fastmath: Any) -> Callable[..., Any]:
    """Kept on disk for the next process where a place allows it. Divides as NumPy does: a check of
    every divisor would keep a loop from taking several at once.
    """
    options = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # A read-only install and home, as in a container: compile every time.
        return njit(**options)(function)


def _prefetch(_typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask memory for array[row, column] before it is needed; to compiled functions only.

    Changes nothing, and what a processor can do with it is up to the processor. It pays where rows
    are met in no order, which a processor cannot foresee.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, *given = signature.args
        place = [
            context.cast(builder, value, whole, types.intp)
            for value, whole in zip(values[1:], given, strict=True)
        ]
        of = context.make_array(kind)(context, builder, values[0])
        address = cgutils.get_item_pointer(context, builder, kind, of, place)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        asked = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        # To read, to be kept in every cache, as data: the flags of LLVM's language reference.
        builder.call(asked, [builder.bitcast(address, byte), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


prefetch: Any = intrinsic(_prefetch)

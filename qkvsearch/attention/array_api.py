"""Arrays of any library that follows the Array API standard, and the dtypes to compute in.

NumPy follows it by itself; for the others array-api-compat is imported when one turns up.
"""

from types import ModuleType
from typing import Any

import numpy as np

# Whatever array the caller brings: a numpy.ndarray, a torch.Tensor, an array of another library.
Array = Any


def as_arrays(*inputs: Any) -> tuple[ModuleType, list[Array]]:
    """Return the array library of the inputs, and the inputs as its arrays; lists are NumPy's.

    Raises TypeError for arrays of several libraries.

    >>> xp, (x, y) = as_arrays([1.0, 2.0], np.ones(3))
    >>> float(xp.sum(x + 1)), y.shape
    (5.0, (3,))
    """
    arrays = [x if _is_array(x) else np.asarray(x) for x in inputs]
    libraries = set(map(library_of, arrays))
    if len(libraries) > 1:
        raise TypeError(
            f"arrays of one library at a time, got {' and '.join(sorted(libraries))}: convert "
            "them to one of these first"
        )
    return namespace(*arrays), arrays


def namespace(*arrays: Array) -> ModuleType:
    """Return the functions of the arrays' library, under their standard names."""
    if all(isinstance(x, np.ndarray | np.generic) for x in arrays):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(*arrays)


def is_numpy(x: Array) -> bool:
    """Return whether x is NumPy's, so that attention may use blocks and threads."""
    return isinstance(x, np.ndarray)


def beside(x: Array, other: Any) -> Array:
    """Return `other` as an array of x's library, on x's device.

    An array of the library stays itself, with its gradient: PyTorch before 2.13 would detach a
    tensor from its graph in `asarray`, and even one that the caller keeps.
    """
    if is_numpy(x):
        return np.asarray(other)
    import array_api_compat

    device = array_api_compat.device(x)
    if library_of(other) == library_of(x):
        on_device = array_api_compat.device(other) == device
        return other if on_device else array_api_compat.to_device(other, device)
    return namespace(x).asarray(other, device=device)


def library_of(x: Any) -> str:
    """Return the name of an array's library."""
    return "numpy" if is_numpy(x) else type(x).__module__.split(".")[0]


def _is_array(x: Any) -> bool:
    # np.matrix and its like compute differently under the same names; a file stays one.
    if is_numpy(x):
        return type(x) in (np.ndarray, np.memmap)
    if isinstance(x, list | tuple | float | int):
        return False
    import array_api_compat

    return array_api_compat.is_array_api_obj(x)


def answer_dtype(xp: ModuleType, *arrays: Array) -> Any:
    """Return the dtype of the result: that of all arrays, float64 if there are whole numbers.

    Raises TypeError for arrays of anything but real numbers.
    """
    dtypes = {x.dtype for x in arrays}
    for dtype in dtypes:
        if _kind(xp, dtype) == "other":
            raise TypeError(f"attention takes real numbers, got {dtype}")
    floats = [dtype for dtype in dtypes if _kind(xp, dtype) == "float"]
    return xp.result_type(*floats, *([xp.float64] if len(floats) < len(dtypes) else []))


def working_dtype(xp: ModuleType, dtype: Any) -> Any:
    """Return at least float32: half precision would lose the sum of a long row."""
    return xp.result_type(dtype, xp.float32)


def cast(x: Array, dtype: Any) -> Array:
    """Return x in a dtype; x itself if it has that dtype."""
    return x if x.dtype == dtype else namespace(x).astype(x, dtype)


def _kind(xp: ModuleType, dtype: Any) -> str:
    """ "whole", "float" or "other"; bfloat16 and its like reach NumPy by way of ml_dtypes, under
    no kind of the standard, but as floats that longdouble can hold."""
    if isinstance(dtype, np.dtype):
        real = "float" if np.can_cast(dtype, np.longdouble) else "other"
        return "whole" if dtype.kind in "biu" else real
    if xp.isdtype(dtype, ("bool", "integral")):
        return "whole"
    return "float" if xp.isdtype(dtype, "real floating") else "other"

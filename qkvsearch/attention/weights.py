"""Scores to weights, how much each key counts: by softmax, by ReLU, or unchanged. A row holds one
query's scores; a score of −∞ is a hidden key, and its weight is exactly 0."""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.array_api import (
    Array,
    answer_dtype,
    as_arrays,
    cast,
    namespace,
    working_dtype,
)


@np.errstate(all="ignore")
def softmax(
    scores: npt.ArrayLike, temperature: float = 1.0, axis: int = -1, empty_rows: str = "zero"
) -> Array:
    """Compute weights from 0 to 1 that sum to 1 in each row; a score of −∞ gets exactly 0.

    Any shape, rows along `axis` -> the same shape, in float32 or better. The nearer temperature
    is to 0, the nearer the largest score's weight is to 1. A row of only −∞ becomes 0 ("zero"), 1/S
    ("uniform"), NaN ("nan") or a ValueError ("raise"). Raises ValueError, too, where temperature
    is not positive and finite.
    Vaswani et al. 2017, section 3.2.1; temperature: Hinton et al. 2015, section 2.

    >>> softmax([[2.0, 2.0, -np.inf], [-np.inf, -np.inf, -np.inf]])
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    if not isinstance(temperature, Real):
        raise TypeError(f"temperature must be a number, got {type(temperature).__name__}")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    xp, (rows,) = as_arrays(scores)
    rows = cast(rows, working_dtype(xp, answer_dtype(xp, rows)))
    if not -rows.ndim <= axis < rows.ndim:
        raise ValueError(f"there is no axis {axis} in scores of shape {tuple(rows.shape)}")
    if rows.shape[axis] == 0:  # the largest of no scores does not exist
        return _fill(rows, xp.all(rows == -math.inf, axis=axis, keepdims=True), empty_rows, axis)
    peak = xp.max(rows, axis=axis, keepdims=True)
    empty = peak == -math.inf
    # No exponent is above 0, so nothing overflows, however large the scores or low the temperature.
    divisor = max(float(temperature), float(xp.finfo(rows.dtype).smallest_normal))
    weights = xp.exp((rows - xp.where(empty, xp.zeros_like(peak), peak)) / divisor)
    return _share(weights, empty, empty_rows, axis)


def relu(scores: Array, empty_rows: str = "zero") -> Array:
    """Divide max(0, s) by its row's sum; a row without a positive score counts as empty.

    scores (..., L, S) -> weights (..., L, S); `empty_rows` as for `softmax`.

    >>> relu(np.array([3.0, -2.0, 1.0, -np.inf]))
    array([0.75, 0.  , 0.25, 0.  ])
    """
    xp = namespace(scores)
    # A NaN is not ≤ 0 either: it stays, and shows in the result.
    positive = xp.where(scores <= 0, xp.zeros_like(scores), scores)
    empty = xp.all(scores <= 0, axis=-1, keepdims=True)
    return _share(positive, empty, empty_rows)


def unnormalized(scores: Array, empty_rows: str = "zero") -> Array:
    """Return the scores themselves, and 0 where they are hidden.

    scores (..., L, S) -> weights (..., L, S); `empty_rows` as for `softmax`.

    >>> unnormalized(np.array([3.0, -2.0, -np.inf]))
    array([ 3., -2.,  0.])
    """
    xp = namespace(scores)
    hidden = scores == -math.inf
    empty = xp.all(hidden, axis=-1, keepdims=True)
    return _fill(xp.where(hidden, xp.zeros_like(scores), scores), empty, empty_rows)


NORMALIZERS: Mapping[str, Callable[..., Array]] = {
    "softmax": softmax,
    "relu": relu,
    "none": unnormalized,
}


def _refuse(n_keys: int) -> float:
    raise ValueError(
        f"a query has nothing to attend to among its {n_keys} keys; "
        'empty_rows="zero", "uniform" or "nan" gives it weights'
    )


# The weight of each key, for a query that may attend to none of them.
EMPTY_ROWS: Mapping[str, Callable[[int], float]] = {
    "zero": lambda n_keys: 0.0,
    "uniform": lambda n_keys: 1 / max(n_keys, 1),
    "nan": lambda n_keys: math.nan,
    "raise": _refuse,
}


def mix(weights: Array, value: Array) -> Array:
    """Compute weights @ value with 0 · ∞ = 0 · NaN = 0: a value with weight 0 adds nothing.

    weights (..., L, S), value (..., S, dv) -> (..., L, dv).

    >>> mix(np.array([[0.5, 0.5, 0.0]]), np.array([[1.0], [3.0], [np.nan]]))
    array([[2.]])
    """
    xp = namespace(weights)
    output = weights @ value
    if xp.isfinite(xp.sum(output)):
        return output
    broken = ~xp.isfinite(value)
    output = weights @ xp.where(broken, xp.zeros_like(value), value)
    for j in range(value.shape[-2]):
        if xp.any(broken[..., j, :]):
            weight, row = weights[..., :, j, None], value[..., j, None, :]
            # 0 as a factor and not as a product, whose gradient would be 0 · ∞ all the same.
            taken = (weight != 0) & broken[..., j, None, :]
            output = output + weight * xp.where(taken, row, xp.zeros_like(row))
    return output


def _share(values: Array, empty: Array, empty_rows: str, axis: int = -1) -> Array:
    """Divide each value by the sum of its row."""
    xp = namespace(values)
    total = xp.sum(values, axis=axis, keepdims=True)
    return _fill(values / xp.where(empty, xp.ones_like(total), total), empty, empty_rows, axis)


def _fill(weights: Array, empty: Array, empty_rows: str, axis: int = -1) -> Array:
    """Fill rows that have nothing to attend to with the weights that `empty_rows` names."""
    xp = namespace(weights)
    fill = named("empty_rows", empty_rows, EMPTY_ROWS)
    if not xp.any(empty):
        return weights
    return xp.where(empty, xp.full_like(weights, fill(weights.shape[axis])), weights)


def named(argument: str, name: str, choices: Mapping[str, Any]) -> Any:
    """Return the choice of that name. Raise ValueError that lists all choices."""
    if name not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, got {name!r}")
    return choices[name]

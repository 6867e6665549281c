"""Masks for attention, boolean, True = this query may attend to this key, and hiding by them.

A mask broadcasts to the scores' shape (..., L, S), L queries by S keys: one row (S,) serves every
query, and a batch of rows (n, S) becomes (n, 1, S), or (n, 1, 1, S) where there are heads. Join
masks by `&`.
"""

import math

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.array_api import Array, as_arrays, beside, cast, namespace

Mask = npt.NDArray[np.bool_]


def padding_mask(lengths: npt.ArrayLike, size: int | None = None) -> Mask:
    """Hide the padding that fills sentences of unequal length up to one size.

    lengths (n,), in tokens -> bool (n, size); without a size, that of the longest sentence.
    Raises TypeError where lengths are not whole numbers, ValueError where one is negative or
    above size.   Vaswani et al. 2017, section 3.2.3, for hiding by −∞.

    >>> padding_mask([3, 1], size=4).astype(int)
    array([[1, 1, 1, 0],
           [1, 0, 0, 0]])
    """
    tokens = whole_numbers("lengths", lengths)
    if size is None:
        size = int(tokens.max(initial=0))
    if tokens.size and not 0 <= tokens.min() <= tokens.max() <= size:
        raise ValueError(
            f"lengths must lie between 0 and size={size}, got {tokens.min()} to {tokens.max()}"
        )
    return np.arange(size) < tokens[..., None]


def look_ahead_mask(L: int, S: int | None = None, offset: int = 0) -> Mask:
    """Hide what comes later: key j is visible to query i where j ≤ i + offset.

    L queries, S keys (L unless given) -> bool (L, S). `offset` is how many keys come before the
    first query: S − L where the queries are the last of the keys.
    Vaswani et al. 2017, section 3.2.3.

    >>> look_ahead_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    return window_mask(L, L if S is None else S, left=None, right=0, offset=offset)


def window_mask(
    L: int, S: int, left: int | None = None, right: int | None = None, offset: int = 0
) -> Mask:
    """Hide what is far away: key j is visible to query i where p − left ≤ j ≤ p + right.

    p = i + offset is the query's place among the keys; None leaves a side unlimited.
    L queries, S keys, sides counted in tokens -> bool (L, S). Raises ValueError where a side is
    negative.   Beltagy et al. 2020 (Longformer), section 3.1.

    >>> window_mask(4, 4, left=1, right=0).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    starts, stops = window_span(L, S, left, right, offset)
    keys = np.arange(S)
    if right is None:
        return keys >= starts[:, None]
    if left is None:
        return keys < stops[:, None]
    return (keys >= starts[:, None]) & (keys < stops[:, None])


def window_span(
    L: int, S: int, left: int | None, right: int | None, offset: int
) -> tuple[Array, Array]:
    """Return the window as spans of keys: each query's first key, and one past its last.

    As for `window_mask` -> two arrays (L,) of int64, 0 ≤ start ≤ stop ≤ S.

    >>> window_span(4, 4, left=1, right=0, offset=0)
    (array([0, 0, 1, 2]), array([1, 2, 3, 4]))
    """
    for name, length in (("L", L), ("S", S)):
        if not isinstance(length, int | np.integer):
            raise TypeError(f"{name} must be a whole number of tokens, got {length!r}")
        if length < 0:
            raise ValueError(f"{name} must be 0 or more tokens, got {length}")
    check_window(left, right, offset)
    starts = np.zeros(L, np.int64)
    stops = np.full(L, S, np.int64)
    # Clipped as Python integers, which do not overflow: offsets may be larger than int64.
    if left is not None:
        starts = np.clip(np.arange(L) + min(max(offset - left, -L), S), 0, S)
    if right is not None:
        stops = np.clip(np.arange(L) + min(max(offset + right + 1, -L), S), 0, S)
    return starts, np.maximum(starts, stops)


def exclusion_mask(size: int, excluded: npt.ArrayLike) -> Mask:
    """Hide chosen keys from every query: the items a user has seen, say.

    size = number of keys S, excluded = their positions, any shape -> bool (S,). Raises TypeError
    where a position is not a whole number, ValueError where it lies outside 0 … size − 1.

    >>> exclusion_mask(5, [1, 3])
    array([ True, False,  True, False,  True])
    """
    positions = whole_numbers("excluded", excluded)
    outside = positions[(positions < 0) | (positions >= size)]
    if outside.size:
        raise ValueError(f"excluded must lie between 0 and size - 1 = {size - 1}, got {outside[0]}")
    visible = np.ones(size, dtype=bool)
    visible[positions] = False
    return visible


def keep_from_ignore(mask: npt.ArrayLike) -> Mask:
    """Turn a mask where True = ignore (torch.nn.MultiheadAttention's) into one where True = keep.

    Any shape, bool -> the same shape, bool. Raises TypeError where the mask is not boolean.

    >>> keep_from_ignore([False, False, True])
    array([ True,  True, False])
    """
    ignored = np.asarray(mask)
    if ignored.dtype != bool:
        raise TypeError(f"an ignore mask must be boolean, True = ignore, got {ignored.dtype}")
    return ~ignored


# --- hiding by a mask, a bias or a window ---


def hide(scores: npt.ArrayLike, mask: npt.ArrayLike | None) -> Array:
    """Replace scores by −∞ where the mask is False, whatever they were; None hides nothing.

    scores (..., L, S), mask bool, broadcast to them, True = may attend -> (..., L, S).
    Raises TypeError where the mask is not boolean.   Vaswani et al. 2017, section 3.2.3.

    >>> hide([1.0, 2.0, np.nan], [True, False, False])
    array([  1., -inf, -inf])
    """
    xp, (rows,) = as_arrays(scores)
    if mask is None:
        return rows
    return xp.where(as_mask(beside(rows, mask)), rows, -math.inf)


def as_mask(visible: Array) -> Array:
    """Return a mask. Raise TypeError that says what to do with other numbers."""
    if visible.dtype != namespace(visible).bool:
        raise TypeError(
            f"mask must be boolean, True = may attend, got {visible.dtype}: floats to add to the "
            "scores go to `bias`, 0/1 numbers become a mask by .astype(bool), and a mask where "
            "True = ignore by masks.keep_from_ignore()"
        )
    return visible


def add(scores: Array, bias: Array | None) -> Array:
    """Add the bias; where it is −∞ it hides the key, even one whose score is +∞ or NaN.

    scores (..., L, S), bias broadcast to them -> (..., L, S).

    >>> add(np.array([1.0, np.nan]), np.array([0.5, -np.inf]))
    array([ 1.5, -inf])
    """
    if bias is None:
        return scores
    bias = cast(bias, scores.dtype)
    return hide(scores + bias, bias != -math.inf)


def hide_far(scores: Array, left: int | None, right: int | None, offset: int) -> Array:
    """Hide keys beyond a side of each query; the first query stands at key number `offset`.

    scores (..., L, S), sides as for `window_mask` -> (..., L, S).

    >>> hide_far(np.zeros((2, 3)), left=None, right=0, offset=1)
    array([[  0.,   0., -inf],
           [  0.,   0.,   0.]])
    """
    n_queries, n_keys = scores.shape[-2:]
    check_window(left, right, offset)
    sees_first = left is None or offset + n_queries - 1 - left <= 0
    sees_last = right is None or offset + right >= n_keys - 1
    if sees_first and sees_last:
        return scores
    return hide(scores, window_mask(n_queries, n_keys, left, right, offset))


def check_window(left: int | None, right: int | None, offset: int) -> None:
    """Raise TypeError for what is no whole number, ValueError where a side is negative."""
    for name, number in (("left", left), ("right", right), ("offset", offset)):
        if number is not None and not isinstance(number, int | np.integer):
            raise TypeError(f"the window's {name} must be a whole number, got {number!r}")
    for name, side in (("left", left), ("right", right)):
        if side is not None and side < 0:
            raise ValueError(
                f"the window's {name} side must be 0 or more, got {side}; None is unlimited"
            )


def whole_numbers(name: str, numbers: npt.ArrayLike) -> npt.NDArray[np.integer]:
    """Return an array of integers, also for an empty list. Raise TypeError for other numbers."""
    array = np.asarray(numbers)
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be whole numbers, got {array.dtype}")
    return array

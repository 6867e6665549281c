"""The options of attention, checked: the score, what is hidden, how scores become weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qkvsearch.attention.arguments import named
from qkvsearch.attention.arrays import Array
from qkvsearch.attention.masks import add, check_window, hide, hide_far
from qkvsearch.attention.scores import SCORES, Score, cap, check_widths, dot_score
from qkvsearch.attention.weights import EMPTY_ROWS, NORMALIZERS

ALL = slice(0, None)


@dataclass(frozen=True, eq=False)
class AttentionOptions:
    """The options of `attention`; its docstring explains each of them.

    Methods work on all tokens or on a block: slices `rows` of the queries and `keys` of the keys.
    Where `out` is given (NumPy only), the result is written to it, which saves memory.
    """

    mask: Array | None = None
    bias: Array | None = None
    is_causal: bool = False
    causal_offset: int = 0
    scale: float | None = None
    softcap: float = 0.0
    window: tuple[int | None, int | None] | None = None
    score: str | Score = "dot"
    normalize: str = "softmax"
    empty_rows: str = "zero"

    def __post_init__(self) -> None:
        named("empty_rows", self.empty_rows, EMPTY_ROWS)
        named("normalize", self.normalize, NORMALIZERS)
        if not callable(self.score):
            named("score", self.score, SCORES)
        pair = isinstance(self.window, Sequence) and len(self.window) == 2
        if self.window is not None and not pair:
            raise ValueError(f"window must be a pair (left, right), got {self.window!r}")
        check_window(*self.sides, self.causal_offset)

    def check_widths(self, query: Array, key: Array) -> None:
        """Raise ValueError where this score cannot compare such vectors."""
        if not callable(self.score):
            check_widths(query, key)

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """How many keys a query may attend to at its left and right; None is without limit."""
        left, right = self.window or (None, None)
        if self.is_causal:
            right = 0 if right is None else min(right, 0)
        return left, right

    def scores(self, query: Array, key: Array, out: Array | None = None) -> Array:
        """How well each key answers each query, times the scale: (..., L, S)."""
        if self.score == "dot":
            return dot_score(query, key, self.scale, out)
        score = self.score if callable(self.score) else SCORES[self.score]
        scores = score(query, key, self.scale)
        if out is None:
            return scores
        out[...] = scores
        return out

    def capped(self, scores: Array, out: Array | None = None) -> Array:
        """Scores kept within ±softcap."""
        return cap(scores, self.softcap, out)

    def visible(
        self,
        scores: Array,
        rows: slice = ALL,
        keys: slice = ALL,
        out: Array | None = None,
    ) -> Array:
        """Scores with the bias added, and −∞ where a query may not attend to a key."""
        if self.bias is not None:
            scores = add(scores, block_of(self.bias, rows, keys), out)
        if self.mask is not None:
            scores = hide(scores, block_of(self.mask, rows, keys), out)
        offset = self.causal_offset + rows.start - keys.start
        return hide_far(scores, *self.sides, offset, out)

    @property
    def weights(self) -> Callable[..., Array]:
        """The normalizer: scores to weights."""
        return NORMALIZERS[self.normalize]


def block_of(x: Array, rows: slice, keys: slice) -> Array:
    """A mask's or bias's part for a block; an axis of length 1, which serves all, stays."""
    if x.shape[-1:] not in ((), (1,)):
        x = x[..., keys]
    if x.ndim > 1 and x.shape[-2] != 1:
        x = x[..., rows, :]
    return x

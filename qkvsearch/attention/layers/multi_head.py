"""Multi-head attention: several small attentions side by side, between two linear layers."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.functional import attention
from qkvsearch.attention.layers.basic import Linear
from qkvsearch.attention.layers.initializers import Array, Rng
from qkvsearch.attention.scores import AdditiveScore


@dataclass(eq=False)
class MultiHeadAttention:
    """Attention in several heads at once, each with its own projections of query, key and value.

    query, key, value, output: Linear; a key with fewer outputs than the query has fewer heads,
    each shared by n_heads / n_key_heads query heads. score: as for `attention`.
    Vaswani et al. 2017, section 3.2.2; shared key heads: Ainslie et al. 2023, section 2.2.

    >>> layer = MultiHeadAttention.create(8, n_heads=2, rng=0)
    >>> output, weights = layer(np.ones((3, 5, 8)), is_causal=True, return_weights=True)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 2, 5, 5))
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    n_heads: int
    score: str | AdditiveScore = "dot"

    def __post_init__(self) -> None:
        d_query, *widths = (len(part.weight) for part in (self.query, self.key, self.value))
        if self.n_heads < 1 or d_query % self.n_heads or not self._heads_fit(*widths):
            raise ValueError(
                f"a query, key and value of widths {(d_query, *widths)} do not divide into "
                f"{self.n_heads} heads"
            )

    def _heads_fit(self, d_key: int, d_value: int) -> bool:
        """Each key head is as wide as a query head and serves a whole number of them."""
        n = self.n_key_heads
        d_head = len(self.query.weight) // self.n_heads
        return n > 0 and d_key == n * d_head and self.n_heads % n == 0 and d_value % n == 0

    @property
    def n_key_heads(self) -> int:
        """How many heads key and value have.

        >>> MultiHeadAttention.create(8, n_heads=4, rng=0, n_key_heads=2).n_key_heads
        2
        """
        return len(self.key.weight) * self.n_heads // len(self.query.weight)

    @classmethod
    def create(
        cls,
        d_model: int,
        n_heads: int,
        rng: Rng,
        *,
        n_key_heads: int | None = None,
        score: str | AdditiveScore = "dot",
        **linear: Any,
    ) -> MultiHeadAttention:
        """Random projections; `linear` (initializer, bias, dtype) goes to `Linear.create`.

        The weights of an `AdditiveScore` are copied, so that no two layers share them.
        """
        rng = np.random.default_rng(rng)
        d_key = d_model if n_key_heads is None else d_model * n_key_heads // max(n_heads, 1)
        return cls(
            query=Linear.create(d_model, d_model, rng, **linear),
            key=Linear.create(d_model, d_key, rng, **linear),
            value=Linear.create(d_model, d_key, rng, **linear),
            output=Linear.create(d_model, d_model, rng, **linear),
            n_heads=n_heads,
            score=deepcopy(score),
        )

    def __call__(
        self, x: Array, memory: Array | None = None, *, return_weights: bool = False, **options: Any
    ) -> Any:
        """x (..., L, d), and for cross-attention memory (..., S, d) -> (..., L, d).

        With `return_weights`, (output, weights (..., n_heads, L, S)). The options and errors are
        those of `attention` (mask, bias, is_causal, window, ...). mask and bias broadcast to
        (..., L, S) for all heads; one with an axis more than x does to (..., n_heads, L, S).

        So a mask of two axes is one matrix (L, S) for all texts. A row for each text, such as a
        `padding_mask` (n, S), goes in as mask[:, None, :]: as it is, it would be taken for that
        matrix, and where n = L nobody could tell.

        >>> layer, x = MultiHeadAttention.create(8, n_heads=2, rng=0), np.ones((2, 3, 8))
        >>> kept = np.array([[True, True, False], [True, True, True]])
        >>> layer(x, mask=kept[:, None, :], return_weights=True)[1][:, 0, 0].round(2)
        array([[0.5 , 0.5 , 0.  ],
               [0.33, 0.33, 0.33]])
        """
        heads = self.heads(x, x if memory is None else memory)
        mixed = attention(
            *heads, return_weights=return_weights, **self.attention_options(heads, **options)
        )
        if not return_weights:
            return self.output(join_heads(mixed))
        return self.output(join_heads(mixed[0])), mixed[1]

    def heads(self, x: Array, memory: Array) -> tuple[Array, Array, Array]:
        """Query heads of x (..., n_heads, L, d_head), key and value heads of the memory.

        >>> layer = MultiHeadAttention.create(8, n_heads=4, rng=0, n_key_heads=2)
        >>> [head.shape for head in layer.heads(np.ones((5, 8)), np.ones((7, 8)))]
        [(4, 5, 2), (2, 7, 2), (2, 7, 2)]
        """
        return (
            split_heads(self.query(x), self.n_heads),
            split_heads(self.key(memory), self.n_key_heads),
            split_heads(self.value(memory), self.n_key_heads),
        )

    def attention_options(self, heads: tuple[Array, ...], **options: Any) -> dict[str, Any]:
        """The options of `attention`: this layer's score; mask and bias with an axis for heads."""
        n_axes = max(head.ndim for head in heads)
        for name in ("mask", "bias"):
            options[name] = over_heads(options.get(name), n_axes)
        return {"score": self.score, **options}


def split_heads(x: Array, n_heads: int) -> Array:
    """(..., L, n_heads · d_head) -> (..., n_heads, L, d_head), not copied.

    >>> split_heads(np.ones((7, 5, 8)), n_heads=2).shape
    (7, 2, 5, 4)
    """
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-3, -2)


def join_heads(x: Array) -> Array:
    """(..., n_heads, L, d_head) -> (..., L, n_heads · d_head).

    >>> join_heads(np.ones((7, 2, 5, 4))).shape
    (7, 5, 8)
    """
    x = x.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def over_heads(mask: npt.ArrayLike | None, n_axes: int) -> Array | None:
    """A mask or bias for scores of n_axes axes: (n, L, S) becomes (n, 1, L, S), for every head.

    One of n_axes axes has its heads already; one row or one matrix serves every head as it is.

    >>> over_heads(np.ones((7, 1, 5), dtype=bool), n_axes=4).shape
    (7, 1, 1, 5)
    """
    found = None if mask is None else np.asarray(mask)
    return found[..., None, :, :] if found is not None and 2 < found.ndim < n_axes else found

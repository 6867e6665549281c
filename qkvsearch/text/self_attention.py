"""Self-attention over a text's tokens: each attends to the others and is mixed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.attention import attention, look_ahead_mask
from qkvsearch.errors import QkvError
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.text_encoder import PADDING

if TYPE_CHECKING:
    import pandas as pd

MASKS = ("none", "padding", "causal")
# Term vectors are compared by their angle alone, so that a frequent word does not win by its
# length. Doubled, the cosine leaves an unrelated word 1/e² of a word's attention to itself: enough
# to be seen in a short text.
COSINE_SCALE = 2.0


@dataclass(frozen=True)
class AttentionMap:
    """tokens (n); weights (n, n), row = the token that attends, column = what it attends to;
    outputs (n, d), the mixed vectors; mask bool (n, n), True = may attend; left_out, words of the
    text that the encoder has no vector for. layer and head of a transformer, from 0: both None
    where the attention is parameter-free, head None where it is the mean over the layer's heads.
    """

    tokens: list[str]
    weights: np.ndarray
    outputs: np.ndarray
    mask: np.ndarray
    left_out: list[str]
    layer: int | None = None
    head: int | None = None

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary a pair of tokens; positions count from 0. It says which layer and head,
        where the map is of a layer.
        """
        where = {} if self.layer is None else {"layer": self.layer, "head": self.head}
        return [
            {
                "query_position": i,
                "query": query,
                "key_position": j,
                "key": key,
                "weight": float(self.weights[i, j]),
                "visible": bool(self.mask[i, j]),
                **where,
            }
            for i, query in enumerate(self.tokens)
            for j, key in enumerate(self.tokens)
        ]

    def to_frame(self) -> pd.DataFrame:
        """The weights as a table, tokens on both sides."""
        import pandas as pd

        return pd.DataFrame(self.weights, index=self.tokens, columns=self.tokens)


def self_attend(
    tokens: LabelledVectors, mask: str = "none", left_out: Sequence[str] = ()
) -> AttentionMap:
    """softmax(2 · cos(X, X) + mask) · X: queries, keys and values are the tokens themselves.

    `mask`: "none", "padding" (nothing attends to `<PAD>`), "causal" (nothing attends to what comes
    later). Raises `QkvError` for another.

    >>> text = LabelledVectors(["a", "b"], np.eye(2))
    >>> self_attend(text, "causal").weights.round(3)
    array([[1.   , 0.   ],
           [0.119, 0.881]])
    """
    keep = mask_of(tokens.labels, mask)
    vectors = tokens.vectors
    outputs, weights = attention(
        vectors, vectors, vectors,
        mask=keep, score="cosine", scale=COSINE_SCALE, return_weights=True,
    )  # fmt: skip
    return AttentionMap(list(tokens.labels), weights, outputs, keep, list(left_out))


def mask_of(labels: Sequence[str], mask: str) -> np.ndarray:
    """bool (n, n), True = may attend, of one of `MASKS` for these tokens. Raises `QkvError` for
    another.

    >>> mask_of(["a", "<PAD>"], "padding")
    array([[ True, False],
           [ True, False]])
    """
    if mask not in MASKS:
        raise QkvError(f"no mask {mask!r}; there are {', '.join(MASKS)}")
    if mask == "causal":
        return look_ahead_mask(len(labels))
    keep = np.ones((len(labels), len(labels)), dtype=bool)
    if mask == "padding":
        keep &= np.array([label != PADDING for label in labels], dtype=bool)
    return keep

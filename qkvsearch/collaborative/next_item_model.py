"""What a fitted `NextItem` needs to answer: item embeddings and an encoder, in NumPy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from qkvsearch.attention.layers import Embedding, Encoder, LearnedPositions, load, state
from qkvsearch.attention.layers.contributions import contributions
from qkvsearch.attention.layers.packed import Chunk, encode_one, encode_packed

# How much wider the feed-forward layers are than the embeddings.
WIDENING = 4


@dataclass(frozen=True, eq=False)
class NextItemModel:
    """A history that attends to itself under the look-ahead mask; its last state is the query.

    items: the keys, and what a history is read as, (n_items, d); zeros for a cold item.
    positions: how many items came before, (n_positions, d). encoder: layers normed first, ReLU.
    Kang and McAuley 2018, "Self-attentive sequential recommendation", section III.

    >>> model = NextItemModel.create(20, 8, n_layers=2, n_heads=2, n_positions=10, rng=0)
    >>> query = model.fold_in([3, 1, 4])
    >>> scores = model.items.weight @ query
    >>> parts = model.contributions([3, 1, 4], [0, 7])
    >>> parts.shape, np.allclose(parts.sum(axis=1), scores[[0, 7]], atol=1e-5)
    ((2, 4), True)
    """

    items: Embedding
    positions: LearnedPositions
    encoder: Encoder

    @classmethod
    def create(
        cls,
        n_items: int,
        n_components: int,
        n_layers: int,
        n_heads: int,
        n_positions: int,
        rng: np.random.Generator | int,
    ) -> Self:
        """Random weights, float32."""
        rng, d = np.random.default_rng(rng), n_components
        items = Embedding.create(n_items, d, rng)
        positions = LearnedPositions.create(n_positions, d, rng)
        encoder = Encoder.create(n_layers, d, n_heads, WIDENING * d, rng, norm_first=True)
        return cls(items, positions, encoder)

    @cached_property
    def known(self) -> np.ndarray:
        """bool (n_items,): not cold: someone had interacted with them; only they have a score."""
        return np.asarray(self.items.weight.any(axis=1))

    def states(self, history: np.ndarray) -> np.ndarray:
        """The state (m, d) after each item of a history (h,), row numbers from the oldest on.

        Of the items that are not cold only the last n_positions count, so m may be less than h. No
        state knows of later items.
        """
        read = self._read(history)
        return encode_one(self.encoder, self._inputs(read), is_causal=True)

    def fold_in(self, history: np.ndarray) -> np.ndarray:
        """The embedding (d,) of someone with this history (h,): its last state, what comes next.

        A history of nothing, or of nothing known, gives zeros.
        """
        states = self.states(history)
        d: int = self.items.weight.shape[1]
        return states[-1] if len(states) else np.zeros(d, np.float32)

    def fold_in_many(self, histories: Sequence[np.ndarray]) -> np.ndarray:
        """`fold_in` of many histories together, (n, d)."""
        read = [self._read(history) for history in histories]
        embeddings = np.zeros((len(read), self.items.weight.shape[1]), np.float32)

        def embed(chunk: Chunk) -> np.ndarray:
            rows = np.concatenate([read[i] for i in chunk.members])
            return self._inputs(rows, chunk.places)

        def take(chunk: Chunk, x: np.ndarray) -> None:
            embeddings[chunk.members] = [states[-1] for _, states in chunk.each(x)]

        lengths = np.array([len(rows) for rows in read], dtype=np.int64)
        # Not compiled: answering does without numba, which takes seconds to import.
        encode_packed(self.encoder, lengths, embed, take, is_causal=True, compiled=False)
        return embeddings

    def history_vectors(self, history: np.ndarray) -> np.ndarray:
        """What each item of a history (h,) adds to its embedding, then a constant: (h + 1, d).

        The rows add up to `fold_in`, as `layers.contributions` says: at held attention weights,
        norms and gates. An item brings its embedding and that of its position; the constant is
        what the biases add. Items that do not count have zeros.
        """
        history = np.asarray(history, dtype=np.intp)
        vectors = np.zeros((len(history) + 1, self.items.weight.shape[1]), np.float32)
        counting = self._counting(history)
        if len(counting):
            x, last = self._inputs(history[counting]), slice(-1, None)
            shares = contributions(self.encoder, x, last, is_causal=True)[0]
            vectors[counting], vectors[-1] = shares[:-1], shares[-1]
        return vectors

    def contributions(self, history: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """What each item of a history (h,) adds to the scores of items (n,): (n, h + 1).

        The last column is the constant; a row adds up to the item's score.
        """
        keys = self.items.weight[np.asarray(positions, dtype=np.intp)]
        return np.asarray(keys @ self.history_vectors(history).T)

    def _counting(self, history: np.ndarray) -> np.ndarray:
        """The places in a history of the items that count: the last ones known."""
        return np.flatnonzero(self.known[history])[-len(self.positions.weight) :]

    def _read(self, history: np.ndarray) -> np.ndarray:
        rows = np.asarray(history, dtype=np.intp)
        return rows[self._counting(rows)]

    def _inputs(self, rows: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
        """Embeddings at the size of a state, √d (Vaswani et al. 2017, section 3.4), and that of
        where each stands in its history, by default one after the other."""
        return self.positions(self.items(rows) * math.sqrt(self.items.weight.shape[1]), places)

    @property
    def n_heads(self) -> int:
        """How many heads each layer has."""
        return self.encoder.layers[0].attention.n_heads

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        """The arrays and the numbers to store; `from_state` is the way back.

        All of the encoder's weights are one array, in the order of `layers.state`.
        """
        arrays = {
            "item_embeddings": self.items.weight,
            "positions": self.positions.weight,
            "encoder": np.concatenate([weight.ravel() for weight in state(self.encoder).values()]),
        }
        return arrays, {"n_layers": len(self.encoder.layers), "n_heads": self.n_heads}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], numbers: dict[str, int]) -> Self:
        items, positions = Embedding(arrays["item_embeddings"]), arrays["positions"]
        layout = cls.create(1, items.weight.shape[1], **numbers, n_positions=1, rng=0).encoder
        weights = state(layout)
        ends = np.cumsum([weight.size for weight in weights.values()])
        pieces = np.split(arrays["encoder"], ends[:-1])
        shaped = {
            name: piece.reshape(weight.shape)
            for (name, weight), piece in zip(weights.items(), pieces, strict=True)
        }
        return cls(items, LearnedPositions(positions), load(layout, shaped))

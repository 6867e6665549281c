"""The part of a fitted `NextItem` that answers: item embeddings and an encoder, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.attention.layers import Embedding, Encoder, LearnedPositions, load, state
from qkvsearch.attention.layers.contributions import contributions
from qkvsearch.attention.layers.fast_encoder import Chunk, encode_one, encode_packed

# The width of the feed-forward layers, relative to that of the embeddings.
WIDENING = 4


@dataclass(frozen=True, eq=False)
class NextItemModel:
    """A model in which a history attends to itself; its last state is the query.

    items: the keys, and the inputs of a history, (n_items, d); zeros for a cold item. positions:
    (n_positions, d). encoder: layers with the norm first, ReLU and the look-ahead mask.
    Kang and McAuley 2018, "Self-attentive sequential recommendation", section III.

    >>> model = NextItemModel.create(20, 8, n_layers=2, n_heads=2, n_positions=10, rng=0)
    >>> query = model.fold_in([3, 1, 4])
    >>> scores = model.items.weight @ query
    >>> parts = model.items.weight @ model.history_vectors([3, 1, 4]).T
    >>> parts.shape, np.allclose(parts.sum(axis=1), scores, atol=1e-5)
    ((20, 4), True)
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
        """Create random weights, float32."""
        rng, d = np.random.default_rng(rng), n_components
        items = Embedding.create(n_items, d, rng)
        positions = LearnedPositions.create(n_positions, d, rng)
        encoder = Encoder.create(n_layers, d, n_heads, WIDENING * d, rng, norm_first=True)
        return cls(items, positions, encoder)

    @cached_property
    def known(self) -> np.ndarray:
        """Whether each item had interactions, bool (n_items,); only these have a score."""
        return np.asarray(self.items.weight.any(axis=1))

    def states(self, history: np.ndarray) -> np.ndarray:
        """Return the state (m, d) after each item of a history (h,), row numbers, oldest first.

        Only the last n_positions of the items that are not cold count, so m may be less than h. No
        state depends on later items.
        """
        recent = self._recent(history)
        return encode_one(self.encoder, self._inputs(recent), is_causal=True)

    def fold_in(self, history: np.ndarray) -> np.ndarray:
        """Return the embedding (d,) of a user with this history (h,): its last state.

        An empty history, or one of cold items, gives zeros.
        """
        states = self.states(history)
        d: int = self.items.weight.shape[1]
        return states[-1] if len(states) else np.zeros(d, np.float32)

    def fold_in_many(self, histories: Sequence[np.ndarray]) -> np.ndarray:
        """Return `fold_in` of many histories, (n, d)."""
        recent = [self._recent(history) for history in histories]
        embeddings = np.zeros((len(recent), self.items.weight.shape[1]), np.float32)

        def embed(chunk: Chunk) -> np.ndarray:
            rows = np.concatenate([recent[i] for i in chunk.members])
            return self._inputs(rows, chunk.positions)

        def take(chunk: Chunk, x: np.ndarray) -> None:
            embeddings[chunk.members] = [states[-1] for _, states in chunk.sequences(x)]

        lengths = np.array([len(rows) for rows in recent], dtype=np.int64)
        # Not compiled: answering does without numba, which takes seconds to import.
        encode_packed(self.encoder, lengths, embed, take, is_causal=True, compiled=False)
        return embeddings

    def history_vectors(self, history: np.ndarray) -> np.ndarray:
        """Return what each item of a history (h,) adds to the embedding, and a constant.

        The rows (h + 1, d) add up to `fold_in`, with fixed attention weights, norms and gates: see
        `layers.contributions`. An item adds its embedding and that of its position; the constant is
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

    def _counting(self, history: np.ndarray) -> np.ndarray:
        """Return the indices of the items that count: the last ones that are not cold."""
        return np.flatnonzero(self.known[history])[-len(self.positions.weight) :]

    def _recent(self, history: np.ndarray) -> np.ndarray:
        rows = np.asarray(history, dtype=np.intp)
        return rows[self._counting(rows)]

    def _inputs(self, rows: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
        """Add embeddings times √d (Vaswani et al. 2017, section 3.4) and those of the positions, by
        default 0, 1, …"""
        return self.positions(self.items(rows) * math.sqrt(self.items.weight.shape[1]), positions)

    @property
    def n_heads(self) -> int:
        """The number of heads of each layer."""
        return self.encoder.layers[0].attention.n_heads

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        """Return the arrays and the numbers to store, for `from_state`.

        All weights of the encoder are one array, in the order of `layers.state`.
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

"""Weighted pooling of a text's token vectors, after self-attention: a layer, and its encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.attention.layers.basic import Embedding, Linear
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.layers.multi_head import MultiHeadAttention
from qkvsearch.labelled import NEGLIGIBLE, LabelledVectors
from qkvsearch.texts.self_attention import COSINE_SCALE
from qkvsearch.texts.token_encoder import TokenEncoder


@dataclass(eq=False)
class Pooling:
    """A text's vector: the vectors of its terms, each plus what attention makes of it, weighted,
    added up, at length 1.

    tokens: `Embedding` (n_terms, d). log_weights: (n_terms,), logarithms, so that training keeps
    weights positive. attention: None leaves the vectors as they are; its output is added to them
    (He et al. 2016, section 3.1), so that an output of zeros does the same.
    """

    tokens: Embedding
    log_weights: Array
    attention: MultiHeadAttention | None = None

    def __call__(self, rows: Array, shares: Array) -> Array:
        """Terms' row numbers (n, L) and how much each counts (n, L), 0 for padding -> (n, d)."""
        x = self.tokens(rows)
        weights = shares * np.exp(self.log_weights[rows])
        totals = (weights[..., None] * in_context(self.attention, x, shares > 0)).sum(axis=-2)
        lengths = np.linalg.norm(totals, axis=-1, keepdims=True)
        return totals / np.where(lengths > 0, lengths, 1)


@dataclass(frozen=True)
class ContextualEncoder:
    """A `TokenEncoder` whose terms look at one another before they are added up.

    tokens: the vectors that attention starts from and the terms' weights. attention: its output is
    added to the vectors. Each vector that comes of a term keeps the term's word as its label.

    >>> from qkvsearch.texts.vocabulary import Vocabulary
    >>> tokens = TokenEncoder(Vocabulary.of(["cat", "dog"]), np.eye(2), np.ones(2))
    >>> encoder = ContextualEncoder(tokens, identity_attention(2))
    >>> encoder.encode("cats, a dog").vectors.round(2)
    array([[0.66, 0.04],
           [0.04, 0.66]], dtype=float32)
    """

    tokens: TokenEncoder
    attention: MultiHeadAttention

    def encode(self, text: str) -> LabelledVectors:
        """One labelled vector for each known word, adding up to length 1; none for none."""
        vectors = self.tokens.vectors
        # A text's distinct terms in the order of their first occurrence, as TokenEncoder has them.
        labels: dict[str, str] = {}
        terms = []
        for token in self.tokens.analyzer.meaningful_tokens(text):
            labels.setdefault(token.term, token.text)
            terms.append(token.term)
        rows = self.tokens.vocabulary.rows(labels)
        counts = np.array([terms.count(term) for term in labels], dtype=np.float32)
        known = rows >= 0
        if not known.any():
            return LabelledVectors([], vectors[:0])
        rows, counts = rows[known], counts[known]
        shares = self.tokens.weights[rows] * (1 + np.log(counts))
        pieces = in_context(self.attention, vectors[rows]) * shares[:, None]
        length = np.linalg.norm(pieces.sum(axis=0))
        if length <= NEGLIGIBLE * np.linalg.norm(shares):
            return LabelledVectors([], vectors[:0])
        words = [word for word, here in zip(labels.values(), known, strict=True) if here]
        return LabelledVectors(words, (pieces / length).astype(np.float32))

    def encode_many(self, texts: Sequence[str]) -> np.ndarray:
        """What `encode` makes of each text, added up: float32 (n, d), zeros for unknown words."""
        totals = [self.encode(text).total for text in texts]
        return np.array(totals, dtype=np.float32).reshape(-1, self.tokens.vectors.shape[1])

    def sequence(self, text: str) -> LabelledVectors:
        """One vector for each known word in reading order, repeats included, without context."""
        return self.tokens.sequence(text)

    def unknown(self, text: str) -> list[str]:
        """The words of a text that `sequence` leaves out: stop words, numbers, unknown terms."""
        return self.tokens.unknown(text)


def in_context(
    attention: MultiHeadAttention | None, vectors: Array, kept: Array | None = None
) -> Array:
    """Vectors (..., L, d), each plus what it sees of those that `kept` (..., L) leaves visible."""
    if attention is None:
        return vectors
    return vectors + attention(vectors, **attention_options(kept))


def attention_options(kept: Array | None) -> dict[str, Any]:
    """The scale of `attend`'s cosines, and a padding mask for all queries of a text."""
    return {"scale": COSINE_SCALE, "mask": None if kept is None else kept[..., None, :]}


def identity_attention(d: int, output: float = 1.0) -> MultiHeadAttention:
    """One head that compares and mixes the vectors as they are, by cosine; its result times
    `output`. With 0 it adds nothing until it is trained.

    >>> identity_attention(2)(np.eye(2)).round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]])
    """
    query, key, value, last = (Linear(np.eye(d, dtype=np.float32)) for _ in range(4))
    last.weight *= np.float32(output)
    return MultiHeadAttention(query, key, value, last, n_heads=1, score="cosine")

"""A text encoder with one vector and one weight for each term, the same in any text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.text.analysis import Analyzer, Token, resolve_code, with_topics
from qkvsearch.text.labelled import NEGLIGIBLE, WRITTEN_PADDING, LabelledVectors
from qkvsearch.text.text_encoder import NONE_CUT, EncodedQuery, EncodedTexts, TableEncoder
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class TokenEncoder(TableEncoder):
    """A `TextEncoder`: the weighted sum of a text's term vectors, scaled to length 1.

    vectors: float32 (n_terms, d). weights: float32 (n_terms,), the inverse document frequencies.
    analyzer: splits texts into terms. A term that occurs n times counts 1 + ln n times
    (Manning, Raghavan and Schütze 2008, 6.4.1).

    >>> encoder = TokenEncoder(Vocabulary.of(["cat", "dog"]), np.eye(2), np.ones(2))
    >>> encoder.encode("a dog, a cat").total.round(3)
    array([0.707, 0.707], dtype=float32)
    """

    vocabulary: Vocabulary
    vectors: np.ndarray
    weights: np.ndarray
    analyzer: Analyzer = field(default_factory=Analyzer)

    kind: ClassVar[str] = "corpus"
    is_pretrained: ClassVar[bool] = False

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the terms, vectors and weights."""
        terms = self.vocabulary.terms
        return {"terms": terms, "vectors": self.vectors, "weights": self.weights}

    def encode(self, text: str) -> LabelledVectors:
        """Return the parts of `read` alone, which takes half the time."""
        tokens = self.meaningful_tokens(text)
        return self._parts(tokens, self._rows(tokens))

    def read(self, text: str) -> EncodedQuery:
        """Return one labelled vector for each known word, which add up to length 1, and the vectors
        of all known words in reading order, without those that are zero.
        """
        tokens = self.meaningful_tokens(text)
        all_rows = self._rows(tokens)
        rows = self._nonzero(all_rows)
        words = [token.text for token, row in zip(tokens, rows.tolist(), strict=True) if row >= 0]
        read = LabelledVectors(words, self.vectors[rows[rows >= 0]])
        return EncodedQuery(self._parts(tokens, all_rows), read)

    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Encode all texts in one batch: see `TextEncoder`."""
        from qkvsearch.text.analyzed import AnalyzedTexts

        counts = AnalyzedTexts.of(texts, self.analyzer).counts_in(self.vocabulary)
        tokens = [np.zeros(0, np.int32)] * len(texts)
        if longest:
            tokens = [self._known_rows(text)[:longest] for text in texts]
        yield EncodedTexts(self._embeddings(counts), NONE_CUT), tokens

    def _embeddings(self, counts: csr_matrix) -> np.ndarray:
        """Return embeddings, float32 (n, d), of term counts, which are changed in place."""
        counts.data = (1 + np.log(counts.data)) * self.weights[counts.indices]
        embeddings = np.asarray(counts @ self.vectors, dtype=np.float32)
        norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
        # As in `encode`: outside the catalog's main directions, only rounding errors are left.
        shares = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)))
        return embeddings / np.where(norms > NEGLIGIBLE * shares, norms, np.float32(np.inf))

    def _known(self, text: str) -> LabelledVectors:
        """Return the unweighted vectors of all known words in reading order, with repetitions."""
        tokens = self.meaningful_tokens(text)
        rows = self.vocabulary.rows(token.term for token in tokens)
        labels = [token.text for token, row in zip(tokens, rows, strict=True) if row >= 0]
        return LabelledVectors(labels, self.vectors[rows[rows >= 0]])

    def unread(self, text: str) -> list[str]:
        """Return the words that `sequence` leaves out: stop words, numbers, unknown terms."""
        encoded = set(self.sequence(text).labels)
        words = self.analyzer.tokens(WRITTEN_PADDING.sub(" ", text))
        return [
            word for word in dict.fromkeys(token.text for token in words) if word not in encoded
        ]

    def meaningful_tokens(self, text: str) -> list[Token]:
        """Return the analyzer's tokens, with code words without a vector as their bare words."""
        tokens = self.analyzer.meaningful_tokens(text)
        if not any(token.subtokens for token in tokens):
            return tokens
        resolved = resolve_code(tokens, lambda term: self.vocabulary.row(term) >= 0)
        return with_topics(resolved)

    def _rows(self, tokens: Sequence[Token]) -> list[int]:
        """Return the row of each token's term, −1 for unknown ones."""
        return [self.vocabulary.row(token.term) for token in tokens]

    def _nonzero(self, rows: Sequence[int]) -> np.ndarray:
        """Return the rows as int64, with −1 for those whose vector is zero."""
        result = np.array(rows, dtype=np.int64)
        has_vector = result >= 0
        has_vector[has_vector] = self.vectors[result[has_vector]].any(axis=1)
        return np.where(has_vector, result, -1)

    def _known_rows(self, text: str) -> np.ndarray:
        """Return the rows of the text's tokens with a nonzero vector, int32."""
        rows = self._nonzero(self._rows(self.meaningful_tokens(text)))
        return rows[rows >= 0].astype(np.int32)

    def _parts(self, tokens: Sequence[Token], rows: Sequence[int]) -> LabelledVectors:
        """Return one labelled vector for each distinct term. rows: from `_rows`."""
        labels: dict[int, str] = {}
        counts: dict[int, int] = {}
        for token, row in zip(tokens, rows, strict=True):
            if row >= 0:
                labels.setdefault(row, token.text)
                counts[row] = counts.get(row, 0) + 1
        distinct = np.array(list(labels), np.int64)
        frequencies = np.array(list(counts.values()), np.float32)
        shares = self.weights[distinct] * (1 + np.log(frequencies))
        vectors = self.vectors[distinct] * shares[:, None]
        total = vectors.sum(axis=0)
        length = math.sqrt(total @ total)
        # A term outside the catalog's main directions has a zero vector.
        if length <= NEGLIGIBLE * math.sqrt(shares @ shares):
            return LabelledVectors([], vectors[:0])
        vectors = (vectors / np.float32(length)).astype(np.float32, copy=False)
        return LabelledVectors(list(labels.values()), vectors)

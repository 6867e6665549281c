"""Encoders learned from the catalog's texts by a truncated SVD: LSA (of tf-idf), and PPMI.

PPMI, positive pointwise mutual information, is of which words stand together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.language.languages import ENGLISH
from qkvsearch.text.learned.directions import cooccurrence_encoder, latent_semantic_encoder
from qkvsearch.text.token_encoder import TokenEncoder


class LearnedEncoder(TransformerMixin, BaseEstimator):
    """An estimator that fits `encoder_` and `embeddings_`, the vectors of the texts given."""

    encoder_: TokenEncoder
    embeddings_: np.ndarray
    fit: Any

    def transform(self, texts: Iterable[str]) -> np.ndarray:
        """Embeddings (n, d); a text of unknown words is all zeros."""
        check_is_fitted(self)
        return self.encoder_.encode_many(list(texts))

    def fit_transform(self, texts: Any, y: Any = None) -> np.ndarray:
        """`embeddings_`, one row an item."""
        self.fit(texts)
        return self.embeddings_


@dataclass(eq=False, repr=False)
class CorpusEncoder(LearnedEncoder):
    """Term vectors from a truncated SVD of the catalog's tf-idf matrix (Deerwester et al. 1990).

    `language`: as in `Analyzer`.
    Fitted: `encoder_` (a `TokenEncoder`), `embeddings_` (n_texts, d) float32, rows of length 1.

    >>> encoder = CorpusEncoder(n_components=2, random_state=0)
    >>> encoder.fit_transform(["deep sea", "sea water", "red car", "fast car"]).shape
    (4, 2)
    """

    n_components: int = 128
    random_state: int | None = 0
    language: str = ENGLISH

    def fit(self, texts: Iterable[str], y: Any = None) -> CorpusEncoder:
        read = AnalyzedTexts.of(texts, Analyzer(self.language))
        self.encoder_, _ = latent_semantic_encoder(read, self.n_components, self.random_state)
        self.embeddings_ = self.encoder_.encode_many(read)
        return self

    def transform(self, texts: Iterable[str]) -> np.ndarray:
        """Embeddings (n, d); a text of unknown words is all zeros."""
        check_is_fitted(self)
        return np.array([self.encoder_.encode(text).total for text in texts], dtype=np.float32)


@dataclass(eq=False, repr=False)
class CooccurrenceEncoder(LearnedEncoder):
    """Term vectors from an SVD of the positive pointwise mutual information between terms, which
    is how much more often two stand in one text than if they were independent.

    A text counts 1/n for each pair of its n terms, so that long ones do not decide alone; context
    frequencies are smoothed by the power .75 (Levy, Goldberg & Dagan 2015, sections 2.1 and 3.1).
    `language`: as in `Analyzer`.
    Fitted: `encoder_`, a `TokenEncoder` whose weights are the roots of the inverse document
    frequencies; `embeddings_` (n_texts, d) float32, rows of length 1.

    >>> encoder = CooccurrenceEncoder(n_components=2, random_state=0)
    >>> encoder.fit_transform(["deep sea", "sea water", "red car", "fast car"]).shape
    (4, 2)
    """

    n_components: int = 128
    smoothing: float = 0.75
    random_state: int | None = 0
    language: str = ENGLISH

    def fit(self, texts: Iterable[str], y: Any = None) -> CooccurrenceEncoder:
        read = AnalyzedTexts.of(texts, Analyzer(self.language))
        self.encoder_, _ = cooccurrence_encoder(
            read, self.n_components, self.random_state, smoothing=self.smoothing
        )
        self.embeddings_ = self.encoder_.encode_many(read)
        return self

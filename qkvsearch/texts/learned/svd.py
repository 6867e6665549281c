"""Encoders learned from the catalog's texts by a truncated SVD: LSA (of tf-idf), and PPMI.

PPMI, positive pointwise mutual information, is of which words stand together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from qkvsearch.labelled import NEGLIGIBLE
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.languages import ENGLISH
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.texts.vocabulary import count_terms
from qkvsearch.threads import one_blas_thread


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
        analyzer = Analyzer(self.language)
        vocabulary, counts = count_terms(texts, analyzer.terms)
        weighting = TfidfTransformer(sublinear_tf=True)
        tf_idf = weighting.fit_transform(counts)
        n_components = min(self.n_components, *tf_idf.shape)
        # One BLAS thread: the bits must not depend on how many there are, and more are slower here.
        with one_blas_thread():
            _, strengths, directions = randomized_svd(
                tf_idf, n_components, n_iter=5, random_state=self.random_state
            )
        # Equal texts leave directions that none of them has, which are arbitrary.
        directions[strengths <= NEGLIGIBLE * strengths[0]] = 0
        vectors = np.ascontiguousarray(directions.T, dtype=np.float32)
        embeddings = tf_idf @ vectors
        embeddings[np.linalg.norm(embeddings, axis=1) < NEGLIGIBLE] = 0
        self.embeddings_ = normalize(embeddings).astype(np.float32)
        idf = weighting.idf_.astype(np.float32)
        self.encoder_ = TokenEncoder(vocabulary, vectors, idf, analyzer)
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
        texts = list(texts)
        analyzer = Analyzer(self.language)
        vocabulary, counts = count_terms(texts, analyzer.terms)
        n_texts, n_terms = counts.shape
        information = _positive_information(counts, self.smoothing)
        n_components = min(self.n_components, n_terms)
        # One BLAS thread: the bits must not depend on how many there are.
        with one_blas_thread():
            directions, strengths, _ = randomized_svd(
                information, n_components, n_iter=4, random_state=self.random_state
            )
        document_frequency = np.bincount(counts.indices, minlength=n_terms)
        idf = np.log((1 + n_texts) / (1 + document_frequency)) + 1
        vectors = normalize(directions * strengths).astype(np.float32)
        weights = np.sqrt(idf).astype(np.float32)
        self.encoder_ = TokenEncoder(vocabulary, vectors, weights, analyzer)
        self.embeddings_ = self.encoder_.encode_many(texts)
        return self


def _positive_information(counts: csr_matrix, smoothing: float) -> csr_matrix:
    """max(0, ln p(t, c) / (p(t) p(c))) for every pair of terms that some text has, (n_terms,)²."""
    present = counts.copy()
    present.data[:] = 1
    n_terms_of = np.maximum(np.asarray(present.sum(axis=1)).ravel(), 1)
    shared = diags(1 / np.sqrt(n_terms_of)) @ present
    pairs = (shared.T @ shared).tocoo()
    total = max(pairs.sum(), 1e-9)
    frequency = np.asarray(pairs.sum(axis=1)).ravel()
    context = frequency**smoothing
    context /= max(context.sum(), 1e-9)
    expected = frequency[pairs.row] / total * context[pairs.col]
    information = np.log(np.maximum(pairs.data / total / np.maximum(expected, 1e-30), 1e-9))
    kept = information > 0
    data = information[kept].astype(np.float32)
    return csr_matrix((data, (pairs.row[kept], pairs.col[kept])), shape=pairs.shape)

"""An encoder learned from the catalog's own texts: latent semantic analysis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from qkvsearch.labelled import NEGLIGIBLE
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.texts.vocabulary import count_terms
from qkvsearch.threads import one_blas_thread


@dataclass(eq=False, repr=False)
class CorpusEncoder(TransformerMixin, BaseEstimator):
    """Term vectors from a truncated SVD of the catalog's tf-idf matrix (Deerwester et al. 1990).

    Fitted: `encoder_` (a `TokenEncoder`), `embeddings_` (n_texts, d) float32, rows of length 1.

    >>> encoder = CorpusEncoder(n_components=2, random_state=0)
    >>> encoder.fit_transform(["deep sea", "sea water", "red car", "fast car"]).shape
    (4, 2)
    """

    n_components: int = 128
    random_state: int | None = 0

    def fit(self, texts: Iterable[str], y: Any = None) -> CorpusEncoder:
        vocabulary, counts = count_terms(texts, Analyzer().terms)
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
        self.encoder_ = TokenEncoder(vocabulary, vectors, weighting.idf_.astype(np.float32))
        return self

    def transform(self, texts: Iterable[str]) -> np.ndarray:
        """Embeddings (n, d); a text of unknown words is all zeros."""
        check_is_fitted(self)
        return np.array([self.encoder_.encode(text).total for text in texts], dtype=np.float32)

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> np.ndarray:
        return self.fit(texts).embeddings_

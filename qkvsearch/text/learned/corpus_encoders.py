"""Encoders learned from a catalog, as scikit-learn estimators: LSA, PPMI, contrastive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.validation import check_texts, check_whole, is_finite, require
from qkvsearch.errors import DataError
from qkvsearch.imports import leaving_no_trace
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.languages import ENGLISH, named
from qkvsearch.text.learned.contrastive import ContrastiveLearning
from qkvsearch.text.learned.svd import cooccurrence_encoder, latent_semantic_encoder
from qkvsearch.text.text_encoder import item_keys
from qkvsearch.text.token_encoder import TokenEncoder

with leaving_no_trace("sklearn.base", "sklearn.utils.validation"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted


class LearnedEncoder(TransformerMixin, BaseEstimator):
    """An estimator that fits `encoder_`, and `embeddings_`, the vectors of the texts."""

    encoder_: TokenEncoder
    embeddings_: np.ndarray
    fit: Any

    def transform(self, texts: Iterable[str]) -> np.ndarray:
        """Encode texts: float32 (n, d), zeros for a text without a known word.

        Raises `DataError` for a single text, and for a value that is no text.
        """
        check_is_fitted(self)
        return self.encoder_.encode_many(check_texts("texts", texts))

    def fit_transform(self, texts: Any, y: Any = None) -> np.ndarray:
        """Fit, and return `embeddings_`."""
        self.fit(texts)
        return self.embeddings_


@dataclass(eq=False, repr=False)
class CorpusEncoder(LearnedEncoder):
    """Term vectors from a truncated SVD of the catalog's tf-idf matrix (Deerwester et al. 1990).

    `language`: of the texts, by its ISO code or Snowball's name; "none" for no stems.
    Fitted: `encoder_` (a `TokenEncoder`), `embeddings_` (n_texts, d) float32, rows of length 1.

    >>> encoder = CorpusEncoder(n_components=2, random_state=0)
    >>> encoder.fit_transform(["deep sea", "sea water", "red car", "fast car"]).shape
    (4, 2)
    """

    n_components: int = 128
    random_state: Any = 0
    language: str = ENGLISH

    def fit(self, texts: Iterable[str], y: Any = None) -> CorpusEncoder:
        """Learn from texts. Raises `DataError` for a single text, for none, for a value that is no
        text, and for invalid parameters.
        """
        check_whole("n_components", self.n_components)
        read = AnalyzedTexts.of(_texts_to_learn_from(texts), Analyzer(named(self.language)))
        self.encoder_ = latent_semantic_encoder(read, self.n_components, self.random_state)
        self.embeddings_ = self.encoder_.encode_many(read)
        return self


@dataclass(eq=False, repr=False)
class CooccurrenceEncoder(LearnedEncoder):
    """Term vectors from an SVD of the positive pointwise mutual information between terms: how much
    more often two occur in one text than if they were independent.

    A text counts 1/n for each pair of its n terms, so that long texts do not decide alone; context
    frequencies are smoothed by the power .75 (Levy, Goldberg & Dagan 2015, sections 2.1 and 3.1).
    If texts have more than 2²⁸ pairs of terms, only the 16,384 most frequent terms get vectors.
    `language`: of the texts, by its ISO code or Snowball's name; "none" for no stems.
    Fitted: `encoder_`, a `TokenEncoder` whose weights are the roots of the inverse document
    frequencies; `embeddings_` (n_texts, d) float32, rows of length 1.

    >>> encoder = CooccurrenceEncoder(n_components=2, random_state=0)
    >>> encoder.fit_transform(["deep sea", "sea water", "red car", "fast car"]).shape
    (4, 2)
    """

    n_components: int = 128
    smoothing: float = 0.75
    random_state: Any = 0
    language: str = ENGLISH

    def fit(self, texts: Iterable[str], y: Any = None) -> CooccurrenceEncoder:
        """Learn from texts. Raises `DataError` for a single text, for none, for a value that is no
        text, and for invalid parameters.
        """
        check_whole("n_components", self.n_components)
        is_power = is_finite(self.smoothing) and self.smoothing >= 0
        require(is_power, "smoothing", self.smoothing, "a finite number, 0 or above")
        read = AnalyzedTexts.of(_texts_to_learn_from(texts), Analyzer(named(self.language)))
        self.encoder_ = cooccurrence_encoder(
            read, self.n_components, self.random_state, smoothing=self.smoothing
        )
        self.embeddings_ = self.encoder_.encode_many(read)
        return self


TextColumns = Sequence[Sequence[str]]


@dataclass(eq=False, repr=False)
class ContrastiveEncoder(ContrastiveLearning, LearnedEncoder):
    """Term vectors and weights trained to recognize which texts belong to one item.

    Training starts from those of `init`, "ppmi" or "lsa". A batch contains the texts of two columns
    for each of its items, without a random share `dropout` of their words. In the softmax over the
    batch's cosines / `temperature`, each text should find its partner (InfoNCE; van den Oord et al.
    2018, section 2.3). A single text is split into two halves. Attention between the words before
    they are added up does not help: docs/ablation.md.

    The number of epochs, at most `epochs`, is the one after which a share `held_out` of the items
    is found best, each by one of its columns among the others. If none is better than the start, or
    there are too few items, the encoder is that of `init`. With `held_out=0`, all `epochs` are
    trained. From a larger catalog, a random sample of `max_items` is trained on. `language`: of the
    texts, by its ISO code or Snowball's name; "none" for no stems.

    Fitted: `encoder_`, a `TokenEncoder`; `embeddings_` (n_items, d) float32, rows of length 1;
    `n_epochs_`, the chosen number; `reciprocal_ranks_` (epochs tried + 1,), the mean of the
    held-out items, first that of the start. The same seed gives the same bits for any number of
    threads.

    >>> titles, tags = ["deep sea", "fast car"] * 60, ["ocean water", "road engine"] * 60
    >>> model = ContrastiveEncoder(n_components=2).fit([titles, tags])
    >>> sea, ocean, road = model.transform(["sea", "ocean", "road"])
    >>> bool(sea @ ocean > 0.9 > sea @ road)
    True
    """

    def fit(self, fields: TextColumns | Sequence[str], y: Any = None) -> ContrastiveEncoder:
        """Learn from columns of texts, each with one text for each item, or from a single column.

        Raises `DataError` for columns of different lengths, for a value that is no text, where
        there are no texts, and for invalid parameters.
        """
        columns = as_columns(fields)
        self.learn(AnalyzedTexts.of_columns(columns, Analyzer(named(self.language))))
        self.embeddings_ = item_keys(self.encoder_.encode_many, columns)
        return self


def as_columns(fields: TextColumns | Sequence[str]) -> list[Sequence[str]]:
    """Return columns of equal length. Raises `DataError`."""
    is_one_value = isinstance(fields, str | bytes | Mapping) or not hasattr(fields, "__iter__")
    if is_one_value or getattr(fields, "ndim", 1) != 1:
        require(False, "fields", fields, "a list of texts, or a list of such columns")
    given: list[Any] = list(fields)
    # A missing text among texts is an error of the texts.
    are_columns = bool(given) and not any(isinstance(each, str) for each in given)
    if not are_columns:
        return [_texts_to_learn_from(given)]
    columns: list[Sequence[str]] = [check_texts("fields", column) for column in given]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise DataError(f"every column must have one text an item, got lengths {lengths}")
    _texts_to_learn_from(columns[0])
    return columns


def _texts_to_learn_from(texts: Any) -> Sequence[str]:
    """Return texts as a sequence. Raises `DataError` for none, and for what is no text."""
    read = texts if isinstance(texts, AnalyzedTexts) else check_texts("texts", texts)
    if not len(read):
        raise DataError("there is nothing to learn from: there are no texts")
    return read

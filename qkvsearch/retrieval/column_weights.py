"""The weights of text columns in a dense head's keys, by the lengths of texts and by queries.

An item's key is the sum of its columns' embeddings. Each has length 1 whatever the text's length:
with equal weights a title would count as much as the whole description. The prior weights depend on
the lengths of texts; queries, made of the catalog or judged, refine them for each head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import NEGLIGIBLE

# A text of four times the words counts about twice as much: by `column_weights.py` among the
# benchmarks. Shorter texts than a sentence count like one, and longer texts than a transformer
# reads count no more.
POWER, MIN_LENGTH, MAX_LENGTH = 0.5, 16, 256
# What a column with the same text in every row counts, as a share of others.
CONSTANT = 0.01
# The prior weights count like this many queries: 100 judged queries move them halfway.
PRIOR_QUERIES = 100

Columns = Sequence[Sequence[str]]


def length_weights(fields: Columns, analyzer: Analyzer | None = None) -> np.ndarray:
    """Return weights (n_columns,) that add up to 1, by the square root of the mean number of words
    in a column's texts, empty ones aside. Columns of short texts have equal weights. A column with
    the same text in every row tells no items apart and has hardly any.

    fields: the text columns, each with one text for each item.

    >>> titles, bodies = ["sea", "fish"], ["the sea is deep " * 36, "fish swim in the sea " * 30]
    >>> length_weights([titles, bodies]).round(2), length_weights([titles, ["a", "a"]]).round(2)
    (array([0.25, 0.75]), array([0.99, 0.01]))
    """
    lengths, apart = np.zeros(len(fields)), np.ones(len(fields))
    for i, column in enumerate(AnalyzedTexts.of_columns(fields, analyzer or Analyzer())):
        has_text = np.array([bool(text.strip()) for text in column], bool)
        lengths[i] = column.n_tokens[has_text].mean() if has_text.any() else 0
        apart[i] = CONSTANT if len(set(column)) == 1 else 1
    shares = apart * np.clip(lengths, MIN_LENGTH, MAX_LENGTH) ** POWER
    return np.asarray(shares / shares.sum())


class ColumnScores(NamedTuple):
    """The similarities of queries and the columns of items in one dense head.

    products: (columns, queries, items), the cosines of each query with each column of an item.
    grams: (items, columns, columns), those of an item's columns with each other. answers: (queries,
    items), each row adds up to 1 over the items that answer the query.
    """

    products: np.ndarray
    grams: np.ndarray
    answers: np.ndarray

    @classmethod
    def of(
        cls, queries: np.ndarray, columns: Sequence[np.ndarray], answers: np.ndarray
    ) -> ColumnScores:
        """Build from embeddings of queries (n, d) and items' columns (m, d), of length 1 or 0."""
        stacked = np.stack(columns)
        grams = np.einsum("cid,kid->ick", stacked, stacked, optimize=True)
        return cls(np.stack([queries @ column.T for column in columns]), grams, answers)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the cosines (queries, items) with keys that have these weights of columns."""
        return self._scores(weights)[0]

    def _scores(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the scores; the lengths of the sums (items,), infinite for 0; and the derivatives
        of the lengths by each weight, (columns, items).
        """
        weights = weights.astype(self.products.dtype)
        along = self.grams @ weights
        lengths = np.sqrt(np.maximum(along @ weights, 0))
        lengths = np.where(lengths > NEGLIGIBLE, lengths, np.inf).astype(self.products.dtype)
        return np.tensordot(weights, self.products, 1) / lengths, lengths, along.T / lengths

    def loss(self, weights: np.ndarray, scale: float) -> tuple[float, np.ndarray, float]:
        """Return −Σ ln softmax(scale · scores) of the answers, its slopes by weights and scale."""
        scores, lengths, changes = self._scores(weights)
        likely = softmax(scale * scores)
        value = -float((self.answers * np.log(likely + 1e-30)).sum())
        by_scores = likely - self.answers
        lost = (by_scores * scores).sum(axis=0) / lengths
        by_products = np.einsum("qi,cqi->c", by_scores / lengths, self.products, optimize=True)
        return value, scale * (by_products - changes @ lost), float((by_scores * scores).sum())


def likeliest(sets: Sequence[ColumnScores], start: np.ndarray) -> np.ndarray:
    """Return the weights (columns,) ≥ 0, adding up to 1, under which the answers are most likely,
    with any scale of the softmax: a conditional logit, as for heads in `head_weights`.

    start: positive weights to start from. Columns that no set tells anything about keep their
    share.
    """
    from scipy.optimize import minimize

    n_queries = sum(len(scores.answers) for scores in sets)

    def total_loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        *logits, log_scale = parameters
        weights, scale = softmax(np.array(logits)), float(np.exp(log_scale))
        value, gradient, by_scale = 0.0, np.zeros_like(weights), 0.0
        for scores in sets:
            loss, by_weights, by_scale_of_set = scores.loss(weights, scale)
            value += loss
            gradient = gradient + by_weights
            by_scale += by_scale_of_set
        by_logits = weights * (gradient - weights @ gradient)
        slopes = np.append(by_logits, scale * by_scale)
        return value / n_queries, slopes / n_queries

    begin = np.append(np.log(start), np.log(10.0))
    limits: Any = [(-7, 7)] * len(start) + [(0, 7)]
    best = minimize(total_loss, begin, jac=True, method="L-BFGS-B", bounds=limits).x
    return np.asarray(softmax(best[:-1]))

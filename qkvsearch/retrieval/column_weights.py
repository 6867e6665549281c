"""How much each text column should count in a dense head's keys, by lengths and by queries.

An item's key is the sum of its columns' embeddings, each of length 1, whatever the text's length:
equal weights would let a title of one sentence count as much as the whole description. The given
weights go by the lengths; queries, made of the catalog or judged, say more, for each head apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import NEGLIGIBLE

# A text of four times the words says about twice as much: by `column_weights.py` among the
# benchmarks. Below a sentence, and above what a transformer reads, the length tells nothing.
POWER, SHORTEST, LONGEST = 0.5, 16, 256
# The given weights count like this many queries: with 100 judged ones it is halfway.
PRIOR_QUERIES = 100

Columns = Sequence[Sequence[str]]


def length_weights(fields: Columns, analyzer: Analyzer | None = None) -> np.ndarray:
    """Weights (n_columns,) that add up to 1: a column's is by the root of how many words its texts
    have, in the mean of those that are not empty. Columns of short texts count alike.

    fields: the text columns, each with one text an item.

    >>> length_weights([["deep sea"] * 3, ["the sea is deep and dark " * 24] * 3]).round(3)
    array([0.25, 0.75])
    """
    lengths = np.zeros(len(fields))
    for i, column in enumerate(AnalyzedTexts.of_columns(fields, analyzer or Analyzer())):
        there = np.array([bool(text.strip()) for text in column], bool)
        lengths[i] = column.n_tokens[there].mean() if there.any() else 0
    shares = np.clip(lengths, SHORTEST, LONGEST) ** POWER
    return np.asarray(shares / shares.sum())


class ColumnScores(NamedTuple):
    """What queries and the columns of items have to do with each other, in one dense head.

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
        """queries (n, d) and, column after column, items (m, d): rows of length 1 or 0."""
        stacked = np.stack(columns)
        grams = np.einsum("cid,kid->ick", stacked, stacked, optimize=True)
        return cls(np.stack([queries @ column.T for column in columns]), grams, answers)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Cosines (queries, items) of the queries with the keys that columns of these weights
        (columns,) add up to."""
        return self._scores(weights)[0]

    def _scores(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scores; the lengths of the sums (items,), infinite where there is nothing; and how
        those change with each weight, (columns, items)."""
        weights = weights.astype(self.products.dtype)
        along = self.grams @ weights
        lengths = np.sqrt(np.maximum(along @ weights, 0))
        lengths = np.where(lengths > NEGLIGIBLE, lengths, np.inf).astype(self.products.dtype)
        return np.tensordot(weights, self.products, 1) / lengths, lengths, along.T / lengths

    def loss(self, weights: np.ndarray, scale: float) -> tuple[float, np.ndarray, float]:
        """−Σ ln softmax(scale · scores) of the answers; its gradient by the weights (columns,) and
        by the scale."""
        scores, lengths, changes = self._scores(weights)
        likely = softmax(scale * scores)
        value = -float((self.answers * np.log(likely + 1e-30)).sum())
        by_scores = likely - self.answers
        lost = (by_scores * scores).sum(axis=0) / lengths
        by_products = np.einsum("qi,cqi->c", by_scores / lengths, self.products, optimize=True)
        return value, scale * (by_products - changes @ lost), float((by_scores * scores).sum())


def likeliest(sets: Sequence[ColumnScores], start: np.ndarray) -> np.ndarray:
    """Weights (columns,) ≥ 0, adding up to 1, under which the answers are most likely, with the
    softmax's scale free: a conditional logit, as `head_weights` has it for heads.

    start: positive weights, where the search for the best begins. Columns of which no set tells
    anything keep their share.
    """
    from scipy.optimize import minimize

    n_queries = sum(len(one.answers) for one in sets)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        *logits, log_scale = parameters
        weights, scale = softmax(np.array(logits)), float(np.exp(log_scale))
        value, gradient, by_scale = 0.0, np.zeros_like(weights), 0.0
        for one in sets:
            found = one.loss(weights, scale)
            value, gradient, by_scale = (
                value + found[0], gradient + found[1], by_scale + found[2]
            )  # fmt: skip
        by_logits = weights * (gradient - weights @ gradient)
        slopes = np.append(by_logits, scale * by_scale)
        return value / n_queries, slopes / n_queries

    begin = np.append(np.log(start), np.log(10.0))
    limits: Any = [(-7, 7)] * len(start) + [(0, 7)]
    best = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=limits).x
    return np.asarray(softmax(best[:-1]))

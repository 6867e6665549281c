"""The weights of text columns in a dense head's keys, by the lengths of texts.

An item's key is the sum of its columns' embeddings. Each has length 1 whatever the text's length:
with equal weights a title would count as much as the whole description.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts

# A text of four times the words counts about twice as much: by `column_weights.py` among the
# benchmarks. Shorter texts than a sentence count like one, and longer texts than a transformer
# reads count no more.
POWER, MIN_LENGTH, MAX_LENGTH = 0.5, 16, 256
# What a column with the same text in every row counts, as a share of others.
CONSTANT = 0.01

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

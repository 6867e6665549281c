"""The parts of a score as a table: words of the query by words of the item, for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qkvsearch.retrieval import Components
from qkvsearch.terminal import shorten

# More words than these are added up to one; a title or a piece of a text is cut.
MOST_QUERY, MOST_KEYS, LONGEST = 12, 18, 60


def word_map(parts: Components) -> dict[str, Any]:
    """`values`, float64 (heads, query, keys), as lists, with the names along each axis; `constant`
    and `other` are what each head adds without a word of both. All together are the score.

    Words that differ in case alone are one. Of the query the words come in their order, of the item
    those that matter most. `cut` says how many words the last entry of an axis adds up, 0 where it
    is a word like the others.

    >>> from qkvsearch.retrieval import ScoreComponent
    >>> parts = [
    ...     ScoreComponent("lexical", "Rain", "rain", 2.0),
    ...     ScoreComponent("lexical", None, None, -0.5),
    ... ]
    >>> found = word_map(Components.of(parts))
    >>> found["query"], found["keys"], found["values"], found["constant"]
    (['Rain'], ['rain'], [[[2.0]]], [-0.5])
    """
    heads, query, keys = _Axis(), _Axis(), _Axis()
    # Of each source its head, and its word, −1 for none.
    head_of, word_of, is_constant = (np.zeros(len(parts.sources), np.int64) for _ in range(3))
    for row, (source, key) in enumerate(zip(parts.sources, parts.first_keys, strict=True)):
        has_words = source.query is not None and key is not None and source.head != "collaborative"
        head_of[row] = heads.place(source.head)
        word_of[row] = query.place(source.query) if has_words else -1
        is_constant[row] = source.query is None and key is None
    constant, other = (
        np.bincount(head_of, parts.sums * which, len(heads.labels)).tolist()
        for which in (is_constant, (word_of < 0) & ~is_constant.astype(bool))
    )
    in_table = word_of[parts.rows] >= 0
    rows, columns, values = (
        of_parts[in_table] for of_parts in (parts.rows, parts.columns, parts.values)
    )
    key_of = np.zeros(len(parts.keys), np.int64)
    for column in np.unique(columns).tolist():
        key_of[column] = keys.place(parts.keys[column])
    i, j = word_of[rows], key_of[columns]
    sizes = np.bincount(j, np.abs(values), len(keys.labels))
    words = query.largest(np.bincount(i, np.abs(values), len(query.labels)), MOST_QUERY)
    # The largest of the item first, the words of the query as they were typed.
    others = sorted(keys.largest(sizes, MOST_KEYS), key=lambda number: -sizes[number])
    n_cut = len(query.labels) - len(words), len(keys.labels) - len(others)
    shape = len(heads.labels), len(words) + bool(n_cut[0]), len(others) + bool(n_cut[1])
    places = _places(words, len(query.labels))[i], _places(others, len(keys.labels))[j]
    table = np.zeros(shape)
    np.add.at(table, (head_of[rows], *places), values)
    return {
        "heads": heads.labels,
        "query": [query.labels[number] for number in words],
        "keys": [keys.labels[number] for number in others],
        "cut": {"query": n_cut[0], "keys": n_cut[1]},
        "values": table.tolist(),
        "constant": constant,
        "other": other,
    }


class _Axis:
    """Labels in the order in which they are met."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._found: dict[str, int] = {}

    def place(self, label: Any) -> int:
        text = str(label)
        found = self._found.setdefault(text.casefold(), len(self.labels))
        if found == len(self.labels):
            self.labels.append(shorten(text, LONGEST))
        return found

    def largest(self, sizes: np.ndarray, most: int) -> list[int]:
        """Of the labels those of the largest sizes, in their order; all but what would be one."""
        if len(self.labels) <= most + 1:
            return list(range(len(self.labels)))
        return sorted(np.argsort(-sizes, kind="stable")[:most].tolist())


def _places(shown: Sequence[int], n: int) -> np.ndarray:
    """Where each of `n` labels stands among those that are shown; the others behind them."""
    places = np.full(n, len(shown))
    places[list(shown)] = np.arange(len(shown))
    return places

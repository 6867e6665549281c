"""The parts of a score as a table: words of the query by words of the item, for each head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from qkvsearch.retrieval.fusion import Part

# More words than these are added up to one; a title or a piece of a text is cut.
MOST_QUERY, MOST_KEYS, LONGEST = 12, 18, 60


def word_map(parts: Iterable[Part]) -> dict[str, Any]:
    """`values`, float64 (heads, query, keys), as lists, with the names along each axis; `constant`
    and `other` are what each head adds without a word of both. All together are the score.

    Words that differ in case alone are one. Of the query the words come in their order, of the item
    those that matter most. `cut` says how many words the last entry of an axis adds up, 0 where it
    is a word like the others.

    >>> found = word_map([Part("lexical", "Rain", "rain", 2.0), Part("lexical", None, None, -0.5)])
    >>> found["query"], found["keys"], found["values"], found["constant"]
    (['Rain'], ['rain'], [[[2.0]]], [-0.5])
    """
    heads, query, keys = _Axis(), _Axis(), _Axis()
    cells: dict[tuple[int, int, int], float] = {}
    beside: dict[tuple[int, bool], float] = {}
    for head, asked, key, value, _ in parts:
        place = heads.place(head)
        if asked is None or key is None or head == "collaborative":
            at = (place, asked is None and key is None)
            beside[at] = beside.get(at, 0.0) + value
        else:
            cell = (place, query.place(asked), keys.place(key))
            cells[cell] = cells.get(cell, 0.0) + value
    sizes = [np.zeros(len(query.labels)), np.zeros(len(keys.labels))]
    for (_, i, j), value in cells.items():
        sizes[0][i] += abs(value)
        sizes[1][j] += abs(value)
    rows, columns = query.largest(sizes[0], MOST_QUERY), keys.largest(sizes[1], MOST_KEYS)
    # The largest of the item first, the words of the query as they were typed.
    columns = sorted(columns, key=lambda j: -sizes[1][j])
    row_of, column_of = _places(rows, len(query.labels)), _places(columns, len(keys.labels))
    n_cut = [len(query.labels) - len(rows), len(keys.labels) - len(columns)]
    values = np.zeros(
        (len(heads.labels), len(rows) + bool(n_cut[0]), len(columns) + bool(n_cut[1]))
    )
    for (place, i, j), value in cells.items():
        values[place, row_of[i], column_of[j]] += value
    n_heads = range(len(heads.labels))
    return {
        "heads": heads.labels,
        "query": [query.labels[i] for i in rows],
        "keys": [keys.labels[j] for j in columns],
        "cut": {"query": n_cut[0], "keys": n_cut[1]},
        "values": values.tolist(),
        "constant": [beside.get((place, True), 0.0) for place in n_heads],
        "other": [beside.get((place, False), 0.0) for place in n_heads],
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
            self.labels.append(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
        return found

    def largest(self, sizes: np.ndarray, most: int) -> list[int]:
        """Of the labels those of the largest sizes, in their order; all but what would be one."""
        if len(self.labels) <= most + 1:
            return list(range(len(self.labels)))
        return sorted(np.argsort(-sizes, kind="stable")[:most].tolist())


def _places(shown: Sequence[int], n: int) -> list[int]:
    """Where each of `n` labels stands among those that are shown; the others behind them."""
    places = [len(shown)] * n
    for place, label in enumerate(shown):
        places[label] = place
    return places

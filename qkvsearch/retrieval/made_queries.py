"""Queries made of a catalog's own texts, of which it is known what answers them.

A passage is taken out of one column of some items and asked for; by what is left of those items, in
that column and in the others, they should be found. Short texts are not asked for: of a title
nothing would be left, and people ask by words that an item has, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts

# A fifth of the items, at most 500, are asked for, each by a passage of at most 25 words and half
# of a text of at least 16.
MOST_QUERIES, LONGEST_QUERY, SHORTEST_TEXT = 500, 25, 16
# Fewer say too little to be worth the time; so a catalog of under 500 items is not asked.
FEWEST_QUERIES = 100
# Where a field's words mostly stand in the other fields, too, asking for them tests memory alone.
MOST_OVERLAP = 0.6

Columns = Sequence[Sequence[str]]


class MadeQueries(NamedTuple):
    """texts: the queries. keys: what is left of the item that answers each, column after column.
    outside: the columns of all other items.
    """

    texts: list[str]
    keys: list[Sequence[str]]
    outside: list[AnalyzedTexts]


def made_queries(
    fields: Columns, rng: np.random.Generator, analyzer: Analyzer
) -> Iterator[MadeQueries]:
    """The queries of each column that can be asked for. fields: the text columns, each with one
    text an item.
    """
    for column in range(len(fields)):
        found = of_column(fields, column, rng, analyzer)
        if found is not None:
            yield found


def of_column(
    fields: Columns, column: int, rng: np.random.Generator, analyzer: Analyzer
) -> MadeQueries | None:
    """Queries for a sample of the items, each a passage of its text in this column; None where
    these are too few, or repeated by the other columns.
    """
    columns = AnalyzedTexts.of_columns(fields, analyzer)
    texts, n_items = columns[column], len(columns[column])
    n_wanted = min(MOST_QUERIES, n_items // 5)
    in_any_order = rng.permutation(n_items)
    is_long = texts.n_tokens[in_any_order] >= SHORTEST_TEXT
    sample = np.sort(in_any_order[is_long][:n_wanted])
    if len(sample) < max(n_wanted, FEWEST_QUERIES):
        return None
    queries, rest = zip(*(passage(texts[i], rng, analyzer) for i in sample), strict=True)
    keys: list[Sequence[str]] = [each.take(sample) for each in columns]
    others = [each for j, each in enumerate(keys) if j != column]
    if overlap(queries, others, analyzer) >= MOST_OVERLAP:
        return None
    keys[column] = list(rest)
    outside = np.setdiff1d(np.arange(n_items), sample)
    return MadeQueries(list(queries), keys, [each.take(outside) for each in columns])


def passage(text: str, rng: np.random.Generator, analyzer: Analyzer) -> tuple[str, str]:
    """Words in a row, from anywhere in the text, as they are written there: half of them, at most
    25; and the text without them.
    """
    words = analyzer.token_spans(text)
    n = min(LONGEST_QUERY, len(words) // 2)
    first = rng.integers(len(words) - n + 1)
    start, end = words[first][0], words[first + n - 1][1]
    return text[start:end], text[:start] + text[end:]


def overlap(queries: Sequence[str], keys: Columns, analyzer: Analyzer) -> float:
    """The mean share of a query's terms that these columns of its own item have."""
    shares = []
    for i, query in enumerate(queries):
        terms = analyzer.terms(query)
        there = set(analyzer.key_terms(" ".join(texts[i] for texts in keys)))
        shares.append(sum(term in there for term in terms) / max(len(terms), 1))
    return float(np.mean(shares))

"""Which words of a query the titles of items have."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from qkvsearch.index import StoredModels
from qkvsearch.text.analysis import Token

# Titles that are read for a word: those of the items that it weighs most in. Of a query with more
# words none is looked for: no title has a third of them.
MOST_TITLES, MOST_TERMS = 200, 32


def title_terms(models: StoredModels, terms: Collection[str]) -> set[str]:
    """Those of the terms that the title of some item has; none of more than 32."""
    if len(terms) > MOST_TERMS:
        return set()
    return {term for term in terms if any(term in title for title in _titles_with(models, term))}


def titled_so(models: StoredModels, tokens: Sequence[Token]) -> bool:
    """Whether a title has just these words, but for a number, as in "Up (2009)", or begins with
    them, where they are several: "The Who, live".
    """
    wanted = [token.term for token in tokens]
    rarest = min(wanted, key=models.lexical_keys.n_with)
    return any(
        [term for term in title if not term.isdecimal()] == wanted
        or (len(wanted) > 1 and title[: len(wanted)] == wanted)
        for title in _titles_with(models, rarest)
    )


def _titles_with(models: StoredModels, term: str) -> list[list[str]]:
    """The terms of the titles of items that have a term, the best by BM25 first."""
    items, weights = models.lexical_keys.postings(term)
    if not len(items):
        return []
    best = items[np.argsort(-weights, kind="stable")[:MOST_TITLES]]
    analyzer = models.analyzer
    _, titles = models.snapshot.catalog.names(best)
    return [analyzer.key_terms(title) for title in titles]

"""Words of a title among words of items that are alike, as a sentence about an item has them.

People who describe an item use some words of its title, and more that belong to its topic. The
latter are taken from items that are alike, by words and by the static table (`alike.py`). So no
encoder that learned from the catalog chose them, but the table has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.alike import MIN_ITEMS, Alike
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, TITLE, QueriedCatalog
from qkvsearch.text.analysis import HAS_UNSPACED

# The share of a title's telling words that a query has. Chosen, as the number of other words, on
# TED's dev queries and on Cranfield.
SHARE = 0.7
# Beside them there are as many other words as the title has, but at most so many.
MAX_OTHERS = 4
# Words come from items that are among so many by each witness.
N_ALIKE = 10


class WordsAmongAlike(QueryKind):
    name = "words_among_alike"
    description = "words of a title among words of items that are alike"
    claim = "words of titles, among others of their topic, find their item"

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        if not source.titles or source.n_items < MIN_ITEMS:
            return
        alike = Alike(source)
        for item, texts in source.shuffled_texts(rng, source.text_columns):
            title = texts[source.text_columns.index(TITLE)]
            own = [word.text for word in source.telling_words(title)]
            # A text without spaces is not cut into words here.
            if len(own) < 2 or HAS_UNSPACED(title):
                continue
            answers = source.titled(title)
            if item not in answers or len(answers) > MAX_ANSWERS:
                continue
            text = "\n".join(texts)
            others = _other_words(source, text, alike.to(item, text, N_ALIKE))
            n_own, n_others = round(SHARE * len(own)), min(len(own), MAX_OTHERS)
            if len(others) < n_others:
                continue
            words = [*rng.permutation(own)[:n_own], *rng.permutation(others)[:n_others]]
            yield MadeQuery(self.name, " ".join(rng.permutation(words)), item, answers)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset([HEADS]) if source.table is not None else frozenset()


def _other_words(source: QueriedCatalog, text: str, alike: tuple[int, ...]) -> list[str]:
    """Return the words of some items that a text has in no form, in order."""
    own = {token.term for token in source.analyzer.query_tokens(text)}
    words = {
        token.text
        for row in source.texts(alike, source.text_columns)
        for token in source.telling_words("\n".join(row))
        if token.term not in own and token.text.isalpha() and not HAS_UNSPACED(token.text)
    }
    return sorted(words)

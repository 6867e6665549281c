"""A title with one word mistyped, as fingers do it."""

from __future__ import annotations

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import SPELLING
from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind
from qkvsearch.text.analysis import HAS_CJK

# Shorter words are mostly typed right, and a search does not correct them. A Chinese character
# is as much as a syllable.
SHORTEST, SHORTEST_CJK = 4, 3


class TitleTypo(TitleKind):
    name = "title_typo"
    description = "a title with a typo"
    claim = "titles with a typo find their item"

    def changed(self, title: str, source: Source, rng: np.random.Generator) -> Changed | None:
        words = title.split()
        places = [place for place, word in enumerate(words) if _can_be_mistyped(word)]
        if not places:
            return None
        place = places[rng.integers(len(places))]
        words[place] = mistyped(words[place], rng)
        return Changed(" ".join(words), title)

    def carries(self, source: Source) -> frozenset[str]:
        return frozenset([SPELLING])


def _can_be_mistyped(word: str) -> bool:
    shortest = SHORTEST_CJK if HAS_CJK(word) else SHORTEST
    return word.isalpha() and len(word) >= shortest


def mistyped(word: str, rng: np.random.Generator) -> str:
    """Return a word with two letters swapped, or one dropped or doubled; never the first one.

    >>> mistyped("jacket", np.random.default_rng(3))
    'jackket'
    """
    place = int(rng.integers(1, len(word) - 1))
    before, letter, behind = word[:place], word[place], word[place + 1 :]
    error = rng.integers(3)
    if error == 0:
        return before + behind[:1] + letter + behind[1:]
    if error == 1:
        return before + behind
    return before + letter + letter + behind

"""The first half of a title, as typed by somebody who remembers how it begins."""

from __future__ import annotations

import re

import numpy as np

from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import SIGNS, Changed, TitleKind
from qkvsearch.text.analysis import HAS_CJK

# A half of a shorter title could be any item's. Three Chinese characters are about two words.
MIN_WORDS, MIN_CHARACTERS, MIN_BEGINNING = 4, 6, 3
# Signs between the parts of a Chinese title, and characters that nobody stops behind.
CUT, PARTICLES = re.compile("[：:—–\\-\\s（(]"), "的之与和在是了の"
# A beginning with fewer words that tell something could be any item's.
MIN_TELLING = 2


class TitleBeginning(TitleKind):
    name = "title_beginning"
    description = "the first half of a title"
    claim = "beginnings of titles find their item"

    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        words = title.split()
        if len(words) >= MIN_WORDS:
            beginning = _first_words(words, source)
        elif HAS_CJK(title) and len(title) >= MIN_CHARACTERS:
            beginning = _first_characters(title, source)
        else:
            return None
        return Changed(beginning, beginning) if beginning else None

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset()


def _first_words(words: list[str], source: QueriedCatalog) -> str:
    """Return half of the words of a title, or more until they tell something; "" for none."""
    n_typed = len(words) // 2
    while len(source.telling_words(" ".join(words[:n_typed]))) < MIN_TELLING:
        n_typed += 1
        if n_typed == len(words):
            return ""
    # Nobody stops behind an article.
    while source.is_stop_word(words[n_typed - 1]):
        n_typed -= 1
    return " ".join(words[:n_typed])


def _first_characters(title: str, source: QueriedCatalog) -> str:
    """Return about half of a title in Chinese or Japanese, which have no spaces between words;
    "" for none.

    That is what stands before a colon or a dash. In a title without, the cut is beside the middle
    where the catalog has the two characters around it less often in a row: they are hardly one
    word then.
    """
    before_sign = CUT.split(title, maxsplit=1)[0].strip()
    if MIN_BEGINNING <= len(before_sign) < len(title):
        return before_sign
    keys = source.build.models.lexical_keys
    middle = len(title) // 2
    cuts = (middle, middle + 1)
    cut = min(cuts, key=lambda place: keys.n_with(title[place - 1 : place + 1]))
    beginning = title[:cut].strip().rstrip(SIGNS + PARTICLES)
    return beginning if len(beginning) >= MIN_BEGINNING else ""

"""The first half of a title, as typed by somebody who remembers how it begins."""

from __future__ import annotations

import numpy as np

from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind
from qkvsearch.text.analysis import HAS_CJK

# A half of a shorter title could be any item's.
MIN_WORDS, MIN_CHARACTERS = 4, 4


class TitleBeginning(TitleKind):
    name = "title_beginning"
    description = "the first half of a title"
    claim = "beginnings of titles find their item"

    def changed(self, title: str, source: Source, rng: np.random.Generator) -> Changed | None:
        words = title.split()
        if len(words) >= MIN_WORDS:
            beginning = " ".join(words[: len(words) // 2])
        elif HAS_CJK(title) and len(title) >= MIN_CHARACTERS:
            # Chinese and Japanese have no spaces between words.
            beginning = title[: len(title) // 2].strip()
        else:
            return None
        return Changed(beginning, beginning)

    def carries(self, source: Source) -> frozenset[str]:
        return frozenset()

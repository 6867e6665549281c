"""What the kinds share that change the words of a title, which people type in small letters and
without its signs.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, QueriedCatalog

# The signs around words. Those of a name, such as C++, C# or .NET, belong to the word. Quotation
# marks and a minus would be operators of the search.
SIGNS = "\"'“”„‟‘’«»‹›()[]{}<>（）《》「」『』【】,;:!?…|*^~-–—·•，；：！？、。＂－＊＾"
# Inside a word, these would ask for a column and for a weight. A time, such as 12:30, stays.
OPERATORS, TIME = re.compile("[:：^＾]"), re.compile(r"\d+(?:[:：]\d+)+")


class Changed(NamedTuple):
    """A changed title, and the words that an item's title has if it answers the query."""

    query: str
    meant: str


class TitleKind(QueryKind):
    """A kind that changes titles. Every item whose title has the words that are meant is right."""

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        for item, title in source.shuffled_titles(rng):
            typed = as_typed(title)
            changed = self.changed(typed, source, rng)
            if changed is None or changed.query == typed:
                continue
            answers = source.titled(changed.meant)
            # The item itself is not among them where only stop words are left of its title.
            if item not in answers or len(answers) > MAX_ANSWERS:
                continue
            # A typo may make the title of another item.
            if not source.is_another_title(changed.query, answers):
                yield MadeQuery(self.name, changed.query, item, answers)

    @abstractmethod
    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        """Return a title as it may be typed; None where it allows no change.

        title: as `as_typed` returns it.
        """


def as_typed(text: str) -> str:
    """Return a text in small letters, without the signs around its words, and without operators.

    >>> as_typed('Can we all "have it all"? — Part -1 (C++)')
    'can we all have it all part 1 c++'
    >>> as_typed("title:Red tent^2 at 12:30")
    'title red tent 2 at 12:30'
    """
    words: list[str] = []
    for word in text.lower().split():
        bare = word.strip(SIGNS)
        parts = [bare] if TIME.fullmatch(bare) else OPERATORS.split(bare)
        words += (part.strip(SIGNS) for part in parts)
    return " ".join(word for word in words if any(map(str.isalnum, word)))

"""What the kinds share that change the words of a title."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, Source


class Changed(NamedTuple):
    """A changed title, and the words that an item's title has if it answers the query."""

    query: str
    meant: str


class TitleKind(QueryKind):
    """A kind that changes titles. Every item whose title has the words that are meant is right."""

    def make(self, source: Source, rng: np.random.Generator) -> Iterator[MadeQuery]:
        for item, title in source.shuffled_titles(rng):
            changed = self.changed(title, source, rng)
            if changed is None or changed.query == title:
                continue
            answers = source.titled(changed.meant)
            # The item itself is not among them where only stop words are left of its title.
            if item in answers and len(answers) <= MAX_ANSWERS:
                yield MadeQuery(self.name, changed.query, item, answers)

    @abstractmethod
    def changed(self, title: str, source: Source, rng: np.random.Generator) -> Changed | None:
        """Return a title as it may be typed; None where it allows no change."""

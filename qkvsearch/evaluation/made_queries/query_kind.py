"""What a kind of made queries is. Each kind is a file of this package, and listed in `kinds.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from qkvsearch.evaluation.made_queries.source import QueriedCatalog

# What a kind of queries can compare: weights of heads and columns and encoders; corrections of
# misspelled words; what is found by a column; synonyms and families of words.
HEADS, SPELLING, COLUMNS, SYNONYMS = "heads", "spelling", "columns", "synonyms"


class MadeQuery(NamedTuple):
    """A query with the item that answers it.

    >>> MadeQuery("title_beginning", "the red", 3).answers
    (3,)
    """

    # The name of its kind.
    kind: str
    text: str
    # The row of the item.
    item: int
    # The rows of all items that answer it equally well, in order; empty for the item alone.
    equal: tuple[int, ...] = ()
    # The row of the item that it was made of, where that is not looked for: it would always be
    # first. A ranking is read without it.
    made_of: int | None = None

    @property
    def answers(self) -> tuple[int, ...]:
        """The rows of all items that answer it, in order."""
        return self.equal or (self.item,)


class QueryKind(ABC):
    """A way to make queries of a catalog."""

    # Its name in reports, and what it does, for people.
    name: ClassVar[str]
    description: ClassVar[str]
    # What its queries do in the first sentence of a report: "8 of 10 <claim> first."
    claim: ClassVar[str]
    # Whether a query is made of the item that it looks for, not of one that is like it.
    looks_for_one_item: ClassVar[bool] = True

    @abstractmethod
    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        """Yield queries about different items in random order; none where the catalog allows none.

        The caller takes as many as it needs.
        """

    @abstractmethod
    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        """Return what the queries can compare in a catalog like this one.

        "heads" only where the mean over such kinds ordered settings as people's judgements do
        (`made_queries.py` among the benchmarks). Longer texts than 50 words on average are as
        Cranfield's, shorter ones as TED's. Both are English. Items that are alike by words alone
        flatter words, so without the table of meanings (`QueriedCatalog.table`) they compare no
        heads.
        """

    def carries_heads(self, source: QueriedCatalog) -> bool:
        """Return whether weights of heads and columns may be compared by these queries."""
        return HEADS in self.carries(source)

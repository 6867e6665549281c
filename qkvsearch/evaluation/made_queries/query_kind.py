"""What a kind of made queries is. Each kind is a file of this package, and listed in `kinds.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.text.analysis import Analyzer


class MadeQuery(NamedTuple):
    """A query with the item that answers it."""

    # The name of its kind.
    kind: str
    text: str
    # The row of the item.
    item: int


@dataclass(frozen=True)
class Source:
    """A catalog of which queries are made."""

    build: LoadedBuild

    @property
    def n_items(self) -> int:
        return self.build.n_items

    @property
    def analyzer(self) -> Analyzer:
        return self.build.models.analyzer

    @cached_property
    def titles(self) -> list[str]:
        """The title of each item."""
        return self.build.catalog.names(np.arange(self.n_items))[1]


class QueryKind(ABC):
    """A way to make queries of a catalog."""

    # Its name in reports, and what it does, for people.
    name: ClassVar[str]
    description: ClassVar[str]

    @abstractmethod
    def make(self, source: Source, rng: np.random.Generator) -> Iterator[MadeQuery]:
        """Yield queries about different items in random order; none where the catalog allows none.

        The caller takes as many as it needs.
        """

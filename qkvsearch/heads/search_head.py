"""What a head of search is: how it scores a text, when it takes part, and how it is shown.

A new head is a `TextHead` in a file of its own, and an entry of `search_heads.HEADS`. Search,
`Engine.head`, reasons and the page read that list.

A build learns the weights of the lexical head and of dense heads, and calibrates their scores with
texts that it cannot answer. A head of another kind overrides `is_in` and `weight`. It ranks as all
others do. Only calibrated heads tell whether the catalog answers a query, and grade the hits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qkvsearch.heads.common_subjects import CommonSubjects
from qkvsearch.heads.item_texts import ItemTexts
from qkvsearch.heads.lookup import Lookup
from qkvsearch.heads.passages import Units
from qkvsearch.heads.query_vectors import QueryVectors
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.scores.approximate import ApproximateQuery
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import StoredCatalog

# A colour on a light and on a dark ground.
Colours = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """What a head is asked: one query to one build."""

    query: Lookup
    # The embeddings of the query.
    vectors: QueryVectors
    models: StoredModels
    catalog: StoredCatalog
    # The texts of the items, for the reasons of a score.
    item_texts: ItemTexts
    # bool (n_items,), the items that may be hits; None for all.
    mask: np.ndarray | None = None
    # The items and passages to be scored in place of items; None for items.
    units: Units | None = None
    # What scores of the main head are compared with; None for a query of which the catalog has
    # words, and where that head does not score exactly.
    subjects: CommonSubjects | None = None

    @property
    def is_in_other_letters(self) -> bool:
        """Whether the query is compared so, and in other letters than the catalog's."""
        subjects = self.subjects
        return subjects is not None and subjects.is_in_other_letters(self.query.words)


def by_language(**titles: str) -> Mapping[str, str]:
    """Return titles by the code of their language."""
    return titles


class SearchHead:
    """One of the addends of a search's scores: its name, how it is shown, when it takes part."""

    # What requests and answers call it.
    name: str
    # What the page calls it, by language. Those without a title are encoders,
    # which pages show together as "Meaning", and "Meaning (name)" once they are opened.
    titles = by_language()
    # Its colour on the page.
    colours: Colours = ("#8a4a3a", "#d99a88")
    # What a line of reasons says that it compares.
    reason: str
    # Whether it ranks items where a request names it alone.
    ranks_alone: bool = True
    # Whether its parts without query and key differ between items, and so are no common constant.
    is_of_item: bool = False

    def is_in(self, models: StoredModels, has_user: bool) -> bool:
        """Return whether a request may name it. has_user: whether the search is for a user."""
        return False

    def is_default(self, models: StoredModels) -> bool:
        """Return whether it takes part where a request names no heads."""
        return True


class TextHead(SearchHead, ABC):
    """A head that finds items by the text of a query.

    A head whose weight a build does not learn overrides `is_in` and `weight`.
    """

    def is_in(self, models: StoredModels, has_user: bool) -> bool:
        """Return whether a request may name it: by default, whether the build has its weight."""
        return self.name in models.head_weights

    def is_default(self, models: StoredModels) -> bool:
        return self.weight(models) > 0

    def weight(self, models: StoredModels) -> float:
        """Return its weight beside other heads: by default the one that the build learned, or that
        `tune search` found.
        """
        return models.search_weights[self.name]

    def certainty(self, query: Lookup) -> float:
        """Return by how much an unfinished query lowers the weight, a factor from 0 to 1."""
        return 1.0

    @abstractmethod
    def scores(self, asked: Asked) -> Scores | ApproximateQuery | None:
        """Return the scores of all items, or of all `asked.units`; None where it knows nothing of
        the query.
        """

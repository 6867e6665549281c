"""How often a search has the right item first, by how many users of the log met the item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.evaluation.groups import BySystem, groups_of, n_groups
from qkvsearch.evaluation.metrics import wilson


class FirstByPopularity(NamedTuple):
    """Queries for items that similar numbers of users met."""

    # The fewest and the most users of an item.
    low: int
    high: int
    queries: int
    # The share of the queries whose item is first, by system, and the 95% interval of ours.
    first: BySystem
    interval: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "users": [self.low, self.high],
            "queries": self.queries,
            "first": self.first,
            "interval": list(self.interval),
        }


def first_by_popularity(
    popularity: np.ndarray, is_first: Mapping[str, np.ndarray]
) -> list[FirstByPopularity]:
    """Return groups of about as many queries each, those for items that the fewest users met first.

    popularity: the number of users of each query's item, (n_queries,). is_first: bool (n_queries,)
    by system, ours first.

    >>> popularity = np.repeat([1, 5, 9], 10)
    >>> groups = first_by_popularity(popularity, {"qkvsearch": popularity > 1})
    >>> [(group.low, group.first["qkvsearch"]) for group in groups]
    [(1, 0.0), (5, 1.0), (9, 1.0)]
    """
    if not len(popularity):
        return []
    groups = groups_of(popularity, np.ones(len(popularity)), n_groups(len(popularity)))
    figures = []
    for number in range(int(groups.max()) + 1):
        is_member = groups == number
        n = int(is_member.sum())
        n_first = {system: int(values[is_member].sum()) for system, values in is_first.items()}
        ours = next(iter(n_first.values()))
        group = FirstByPopularity(
            low=int(popularity[is_member].min()),
            high=int(popularity[is_member].max()),
            queries=n,
            first={system: count / n for system, count in n_first.items()},
            interval=wilson(ours, n),
        )
        figures.append(group)
    return figures

"""Recommendations by the length of the user's history and by the popularity of the items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.evaluation.groups import HistoryGroup, PopularityGroup, groups_of, n_groups
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.metrics import interval, resampled_means


class RecommendGroups:
    """Collects the rankings of each system for the same users, the first system being ours."""

    def __init__(self, held_out: HeldOutUsers, k: int, random_state: int) -> None:
        self.k, self.random_state = k, random_state
        n_users, self.n_items = held_out.seen.shape
        self.lengths = held_out.seen.getnnz(axis=1)
        self.history_groups = groups_of(self.lengths, np.ones(n_users), n_groups(n_users))

        self.popularity = np.bincount(held_out.train.indices, minlength=self.n_items)
        users = [np.full(len(items), user) for user, items in enumerate(held_out.relevant)]
        items = [np.array([*items], dtype=np.int64) for items in held_out.relevant]
        self.relevant_users, self.relevant_items = np.concatenate(users), np.concatenate(items)
        self.item_groups = _popularity_groups(self.popularity, n_groups(len(self.relevant_items)))
        self.n_item_groups = int(self.item_groups.max()) + 1

        # By system: the quality for each user, (n,); held-out interactions that are found, by user
        # and group of items; and recommendations by group.
        self.quality: dict[str, np.ndarray] = {}
        self.found: dict[str, np.ndarray] = {}
        self.recommended: dict[str, np.ndarray] = {}

    def add(self, system: str, rankings: Sequence[Sequence[int]], quality: np.ndarray) -> None:
        """Add a system's rankings, one for each user, and the quality of each."""
        users = np.repeat(np.arange(len(rankings)), [len(ranked) for ranked in rankings])
        items = np.array([item for ranked in rankings for item in ranked], dtype=np.int64)
        is_relevant = np.isin(
            users * self.n_items + items, self.relevant_users * self.n_items + self.relevant_items
        )
        self.quality[system] = quality
        self.found[system] = self._by_user_and_group(users[is_relevant], items[is_relevant])
        self.recommended[system] = np.bincount(
            self.item_groups[items], minlength=self.n_item_groups
        )

    def by_history(self) -> list[HistoryGroup]:
        """Return groups of users, those with the shortest histories first."""
        groups = []
        for number in range(int(self.history_groups.max()) + 1):
            users = self.history_groups == number
            quality = {system: values[users] for system, values in self.quality.items()}
            ours = next(iter(quality.values()))
            samples = resampled_means(ours[:, None], random_state=self.random_state)
            group = HistoryGroup(
                low=int(self.lengths[users].min()),
                high=int(self.lengths[users].max()),
                users=int(users.sum()),
                metric=f"ndcg@{self.k}",
                values={system: float(values.mean()) for system, values in quality.items()},
                interval=interval(samples),
            )
            groups.append(group)
        return groups

    def by_popularity(self) -> list[PopularityGroup]:
        """Return groups of items, those that the fewest users met first."""
        held_out = self._by_user_and_group(self.relevant_users, self.relevant_items)
        return [self._popularity_group(number, held_out) for number in range(self.n_item_groups)]

    def _popularity_group(self, number: int, held_out: np.ndarray) -> PopularityGroup:
        is_member = self.item_groups == number
        counts = self.popularity[is_member]
        relevant = held_out[:, number]
        users = relevant > 0
        values: dict[str, float] = {}
        interval_of_ours = None
        if users.any():
            found = {system: table[users, number] for system, table in self.found.items()}
            n_relevant = relevant.sum()
            values = {system: float(each.sum() / n_relevant) for system, each in found.items()}
            ours = next(iter(found.values()))
            samples = resampled_means(
                ours[:, None], relevant[users], random_state=self.random_state
            )
            interval_of_ours = interval(samples)
        return PopularityGroup(
            low=int(counts.min()),
            high=int(counts.max()),
            items=len(counts),
            interactions=float(counts.sum() / self.popularity.sum()),
            held_out=int(relevant.sum()),
            metric=f"found@{self.k}",
            values=values,
            interval=interval_of_ours,
            recommended={
                system: float(each[number] / max(1, each.sum()))
                for system, each in self.recommended.items()
            },
        )

    def _by_user_and_group(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Count pairs of user and item by the user and the item's group, (n_users, n_groups)."""
        cells = users * self.n_item_groups + self.item_groups[items]
        n_users = len(self.lengths)
        counts = np.bincount(cells, minlength=n_users * self.n_item_groups)
        return counts.reshape(n_users, self.n_item_groups)


def _popularity_groups(popularity: np.ndarray, n_groups: int) -> np.ndarray:
    """Split items into groups with about equal shares of the interactions, (n_items,).

    Items without interactions are a group of their own, the first.
    """
    is_cold = popularity == 0
    groups = np.zeros(len(popularity), dtype=np.int64)
    groups[~is_cold] = groups_of(popularity[~is_cold], popularity[~is_cold], n_groups)
    if is_cold.any():
        groups[~is_cold] += 1
    return groups

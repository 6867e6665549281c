"""Why an item is recommended: what each item of the history adds to its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch.models.recommend_heads import HEADS
from qkvsearch.models.user_history import History
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.reasons import BECAUSE, KINDS, TOGETHER_WITH, KindsOfItems, Reason
from qkvsearch.scores.components import OTHERS, Components, ScoreComponent
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_types import type_named

# A longer text describes an item; it is not the name of a kind.
MAX_KIND_LENGTH = 40


def holds_by_removal(history: History, parts: Components) -> bool:
    """Return whether the score without an item of the history is lower by what the item adds. It is
    by neighbours alone; with other parts a removal also changes what the other items add.
    """
    if history.is_recent:
        return False
    heads = {source.head for source in parts.sources}
    exact = {name for name, head in HEADS.items() if head.holds_by_removal}
    return bool(heads) and heads <= exact


# --- `because` of each hit ---


def with_reasons(
    ranking: Ranking,
    history: History,
    catalog: StoredCatalog,
    because: int | None = None,
) -> Ranking:
    """Return the ranking with `because` in each hit: what each item of the history adds to the
    score, and whether it is lower by that without the item (`by_removal`); and, without an id, what
    damping, diversity and a constant add.

    because: how many items of the history are listed, those that add most, with the others as one
    entry; all for None.
    """
    ids, titles = catalog.names(history.positions)
    title_of = dict(zip(ids, titles, strict=True))
    reasons = []
    for index in range(len(ranking)):
        pause()
        parts = ranking.parts(index)
        entries = _Entries(title_of, holds_by_removal(history, parts))
        by_item = parts.by_query()
        if because is None:
            reasons.append([entries.of(part) for part in by_item.ordered()])
        else:
            reasons.append(entries.largest(by_item, because))
    return ranking.annotated(because=reasons)


class _Entries:
    """The entries of a hit's `because`. title_of: the titles of the history's items, by id."""

    def __init__(self, title_of: dict[Any, str], by_removal: bool) -> None:
        self.title_of, self.by_removal = title_of, by_removal

    def of(self, part: ScoreComponent) -> dict[str, Any]:
        """Return the entry of an item of the history, or of what belongs to no item."""
        title = self.title_of.get(part.query, part.head)
        entry = {"id": part.query, "title": title, "contribution": part.value}
        if part.query is not None:
            entry["by_removal"] = self.by_removal
        return entry

    def largest(self, parts: Components, n: int) -> list[dict[str, Any]]:
        """Return the entries of the `n` items that add most and of all that belongs to no item,
        then one entry for the other items.
        """
        is_item = np.array([source.query is not None for source in parts.sources], dtype=bool)
        largest, n_others, value_of_others = parts.only(is_item).largest(n)
        listed = [*largest, *parts.only(~is_item)]
        entries = [self.of(part) for part in sorted(listed, key=lambda part: -abs(part.value))]
        if n_others:
            others = {"id": None, "title": OTHERS, "contribution": value_of_others}
            entries.append({**others, "items": n_others})
        return entries


# --- reasons in words ---


class HistoryReasons:
    """A `Reasoning` by groups of the history's items that share a kind, such as a genre, if
    possible with the recommended item too.
    """

    def __init__(self, history: History, catalog: StoredCatalog) -> None:
        self.history, self.catalog, self.positions = history, catalog, history.positions

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        """The index of each item in the history, by id."""
        ids, _ = self.catalog.names(self.positions)
        return {id_: number for number, id_ in enumerate(ids)}

    @cached_property
    def _kinds(self) -> KindsOfItems:
        _, titles = self.catalog.names(self.positions)
        return KindsOfItems(titles, item_kinds(self.catalog, self.positions))

    def __call__(self, position: int, parts: Components, score: float) -> list[Reason]:
        """Return the reasons for the score of the item in this row, from the parts of the score."""
        # The item of the history that each source is; −1 for what belongs to none.
        numbers = [self._numbers.get(source.query, -1) for source in parts.sources]
        number_of = np.array(numbers, dtype=np.int64)
        is_item = number_of >= 0
        values = np.bincount(number_of[is_item], parts.sums[is_item], len(self.positions))
        which = np.zeros(len(self.positions), dtype=bool)
        which[number_of[is_item]] = True
        (kinds,) = item_kinds(self.catalog, [position])
        link = BECAUSE if holds_by_removal(self.history, parts) else TOGETHER_WITH
        of_items = self._kinds.reasons(values, which, kinds, link)
        of_no_item = [
            Reason(KINDS[parts.sources[row].head], float(parts.sums[row]))
            for row in np.flatnonzero(~is_item).tolist()
        ]
        return [*of_items, *of_no_item]


def item_kinds(catalog: StoredCatalog, positions: Sequence[int] | np.ndarray) -> list[list[str]]:
    """Return the kinds of each item: entries of its lists and its short texts, except id and title,
    such as its genres and its channel.
    """
    columns = [
        column
        for column in catalog.catalog_columns
        if type_named(column.type).is_text and column.stored not in ("id", "title")
    ]
    kinds_of_items = []
    for row in catalog.cells(positions, [column.stored for column in columns]):
        texts: list[str] = []
        for column, cell in zip(columns, row, strict=True):
            if cell is not None:
                texts += type_named(column.type).entries(cell)
        kinds = [text for text in texts if 0 < len(text) <= MAX_KIND_LENGTH]
        kinds_of_items.append(list(dict.fromkeys(kinds)))
    return kinds_of_items

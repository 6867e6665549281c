"""The candidates of a question: which items may be ranked, and items by the names given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.query_lock import released
from qkvsearch.attention.masks import exclusion_mask
from qkvsearch.errors import Count, QkvError, UnknownIdError
from qkvsearch.rank.ranking import Ranking
from qkvsearch.store.catalog.title_keys import split_prefix
from qkvsearch.tables.ids import Id, Ids, id_text

if TYPE_CHECKING:
    from qkvsearch.store import StoredCatalog
    from qkvsearch.where import Where


def candidates(
    catalog: StoredCatalog,
    n_items: int,
    where: Where | None = None,
    excluded: Any = (),
    only: Sequence[int] | None = None,
) -> np.ndarray:
    """Return a bool mask (n_items,), True where an item may be ranked: the condition holds, and the
    item is not among the rows `excluded` and is among the rows `only`. Raises `QkvError` for a
    condition that cannot be used.
    """
    mask = exclusion_mask(n_items, excluded) if len(excluded) else np.ones(n_items, dtype=bool)
    if only is not None:
        mask &= ~exclusion_mask(n_items, only)
    if where is None:
        return mask
    with released():  # what a condition compares may take seconds
        return mask & catalog.conditions.mask(where)


def listed_positions(
    catalog: StoredCatalog, only: Sequence[Id] | None
) -> tuple[list[int] | None, list[str]]:
    """Return the row numbers of items by id or `title:…`, None for None, and notes on names that
    are skipped as unknown and on ids that are titles as well. Raises `QkvError` where all are
    unknown.
    """
    if only is None:
        return None, []
    ids = catalog.ids("items")
    rows = {name: _listed(catalog, ids, name) for name in dict.fromkeys(only)}
    unknown = [id_text(name) for name in only if rows[name] < 0]
    if len(unknown) == len(only):
        example = f", such as {unknown[0]!r}" if unknown else ""
        raise QkvError(f"`only`: none of its {len(only):,} ids{example} is in the catalog")
    notes = []
    if unknown:
        n = Count(len(unknown))
        notes.append(
            f"`only`: {n} of {len(only):,} ids, such as {unknown[0]!r}, {n:is|are} not in the "
            f"catalog and {n:was|were} skipped."
        )
    if twice := catalog.titles.also_titles({id_text(name): row for name, row in rows.items()}):
        n = Count(len(twice))
        notes.append(
            f"`only`: {n} of its ids, such as {twice[0]!r}, "
            f"{n:is the title of another item|are titles of other items} as well, and "
            f"{n:was read as an id|were read as ids}; title:{twice[0]} names the other."
        )
    return [row for row in rows.values() if row >= 0], notes


def _listed(catalog: StoredCatalog, ids: Ids, name: Any) -> int:
    """Return the row number of an item, −1 for one that is not in the catalog."""
    has_prefix = bool(split_prefix(id_text(name))[0])
    if name in ids or not has_prefix:
        return ids.find(name)
    try:
        return catalog.titles.item_position(name)
    except UnknownIdError:
        return -1


def with_where_note(ranking: Ranking, where: Where | None, mask: np.ndarray) -> Ranking:
    """Replace the notes by one where no item is left.

    mask: what the condition, and all that is asked for beside it, left, bool (n_items,).
    """
    if where is None or mask.any():
        return ranking
    return replace(ranking, notes=["No hits: the condition leaves no item to rank."])


def groups_of(catalog: StoredCatalog, distinct: str | None) -> np.ndarray | None:
    """Return `ColumnValues.groups` of a column: the group of each item, of which only the best is
    listed. None without a column. Raises `QkvError` for an unknown one.
    """
    if distinct is None:
        return None
    column = catalog.catalog_columns.find(distinct, "distinct")
    return catalog.values.groups(column.stored)


def positions_of(catalog: StoredCatalog, items: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return the row numbers of items by id or title, and notes on ambiguous names. Raises
    `UnknownIdError`.
    """
    matches = [catalog.titles.find_item(item) for item in items]
    return [position for position, _ in matches], [note for _, note in matches if note]


def named_once(catalog: StoredCatalog, items: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return rows and notes as `positions_of` does, each row once, with a note on repetitions.
    Raises `QkvError` for none, and `UnknownIdError`.
    """
    all_positions, notes = positions_of(catalog, items)
    positions = list(dict.fromkeys(all_positions))
    if not positions:
        raise QkvError("`items`: name at least one item")
    again = [position for position in positions if all_positions.count(position) > 1]
    if again:
        ids, _ = catalog.names(again)
        named = ", ".join(map(id_text, ids))
        notes = [*notes, f"Named more than once, and counted once: {named}."]
    return positions, notes

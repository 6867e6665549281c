"""The candidates of a question: which items may be ranked, and items by the names given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.query_lock import released
from qkvsearch._utils.validation import check_id, check_names, check_text
from qkvsearch.attention.masks import exclusion_mask
from qkvsearch.errors import Count, QkvError, UnknownIdError
from qkvsearch.rank.options import check
from qkvsearch.rank.ranking import Names, Ranking, rank
from qkvsearch.scores.fusion import Scores
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
    """Return a bool mask (n_items,), True where an item may be ranked. excluded, only: row numbers.
    Raises `QkvError`.
    """
    mask = exclusion_mask(n_items, excluded) if len(excluded) else np.ones(n_items, dtype=bool)
    if only is not None:
        mask &= ~exclusion_mask(n_items, only)
    if where is None:
        return mask
    with released():  # what a condition compares may take seconds
        return mask & catalog.conditions.mask(where)


def listed_positions(
    catalog: StoredCatalog, only: Iterable[Id] | None
) -> tuple[list[int] | None, list[str]]:
    """Return the row numbers of items by id or `title:…`, None for None, and notes on names that
    are skipped as unknown and on ids that are titles as well. Raises `QkvError` where all are
    unknown.
    """
    if only is None:
        return None, []
    ids, names = catalog.ids("items"), id_list("only", only)
    rows = {name: _listed(catalog, ids, name) for name in dict.fromkeys(names)}
    unknown = [id_text(name) for name in names if rows[name] < 0]
    if len(unknown) == len(names):
        example = f", such as {unknown[0]!r}" if unknown else ""
        raise QkvError(f"`only`: none of its {len(names):,} ids{example} is in the catalog")
    notes = []
    if unknown:
        n = Count(len(unknown))
        notes.append(
            f"`only`: {n} of {len(names):,} ids, such as {unknown[0]!r}, {n:is|are} not in the "
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
    if name in ids or not split_prefix(id_text(name))[0]:
        return ids.find(name)
    try:
        return catalog.titles.item_position(name)
    except UnknownIdError:
        return -1


def ranked(
    head: Scores | None,
    names: Names,
    k: int,
    temperature: float | None,
    mask: np.ndarray,
    where: Where | None = None,
    offset: int = 0,
    groups: np.ndarray | None = None,
) -> Ranking:
    """Return the k best items of the mask after `offset`, with their ids and titles.

    where: the condition in the mask; a note says where it leaves no item. groups: as `rank` has
    them. Raises `QkvError`.
    """
    check(k=k, temperature=temperature)
    ranking = rank(
        head, names, k=k, offset=offset, temperature=temperature, mask=mask, groups=groups
    )
    if where is not None and not mask.any():
        return replace(ranking, notes=["No hits: `where` leaves no item to rank."])
    return ranking


def groups_of(catalog: StoredCatalog, distinct: str | None) -> np.ndarray | None:
    """Return `StoredCatalog.groups`; None without a column. Raises `QkvError` if unknown."""
    if distinct is None:
        return None
    column = catalog.catalog_columns.find(check_text("distinct", distinct), "distinct")
    return catalog.values.groups(column.stored)


def n_ranked(k: int, offset: int) -> int:
    """Return how many hits to rank so that k remain after `offset`."""
    return k + offset if k else 0


def positions_of(catalog: StoredCatalog, items: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return rows of items by id or title, and notes on ambiguity. Raises `UnknownIdError`."""
    matches = [catalog.titles.find_item(item) for item in items]
    return [position for position, _ in matches], [note for _, note in matches if note]


def named_once(catalog: StoredCatalog, items: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return `positions_of` without repetitions, and a note on them. Raises `QkvError` for none."""
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


def as_list(names: Id | Iterable[Id]) -> list[Any]:
    """Return the names as a list; one name alone is a list of one."""
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def head_names(heads: str | Iterable[str] | None) -> list[str] | None:
    """Return the names of heads: of one, of several, or of a text with commas between them."""
    if isinstance(heads, str):
        return [name.strip() for name in heads.split(",")]
    return None if heads is None else check_names("heads", heads)


def id_list(parameter: str, ids: Id | Iterable[Id]) -> list[Any]:
    """Return ids or titles as a list. Raises `DataError`, which names the parameter."""
    is_single = isinstance(ids, bytes | Mapping) or getattr(ids, "ndim", 1) == 0
    return [check_id(parameter, id_) for id_ in ([ids] if is_single else as_list(ids))]

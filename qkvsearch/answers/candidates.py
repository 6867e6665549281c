"""Which items may be ranked, by a condition, a list of ids and what is left out; and ranked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qkvsearch.answers.arguments import check
from qkvsearch.attention import exclusion_mask
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.errors import QkvError
from qkvsearch.retrieval import Head, Ranking, rank
from qkvsearch.retrieval.ranking import Names
from qkvsearch.workspace import Tables


def candidates(
    tables: Tables,
    n_items: int,
    where: str | None = None,
    excluded: Any = (),
    only: Iterable[Id] | None = None,
) -> np.ndarray:
    """bool (n_items,), True where an item may be ranked. Raises `QkvError`.

    excluded: row numbers; only: ids, of which unknown ones are ignored.
    """
    mask = exclusion_mask(n_items, excluded)
    if only is not None:
        allowed = _positions(tables.ids("items"), as_list(only))
        mask &= ~exclusion_mask(n_items, allowed)
    return mask if where is None else mask & tables.mask(where, n_items)


def ranked(
    head: Head | None, names: Names, k: int, temperature: float | None, mask: np.ndarray
) -> Ranking:
    """The k best that the mask leaves, each with its id and title. Raises `QkvError`."""
    check(k=k, temperature=temperature)
    return rank(head, names, k=k, temperature=temperature, mask=mask)


def as_list(given: Id | Iterable[Id]) -> list[Any]:
    """One name alone means itself, not its letters."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _positions(ids: Ids, wanted: list[Any]) -> np.ndarray:
    """Row numbers of those that are among `ids`. Raises `QkvError` where none is."""
    known = [id_ for id_ in wanted if id_ in ids]
    if not known:
        example = f", such as {id_text(wanted[0])!r}" if wanted else ""
        raise QkvError(f"`only`: none of its {len(wanted):,} ids{example} is in the catalogue")
    return ids.positions(known)

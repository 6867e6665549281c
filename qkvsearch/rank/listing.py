"""Listings of items, users and records, and the catalog's columns beside hits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.validation import check_names
from qkvsearch.errors import quantity
from qkvsearch.rank.questions import check_page
from qkvsearch.rank.ranking import Ranking, own_key
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import OWN_NAMES, StoredColumn
from qkvsearch.terminal import html_table, in_one_line

if TYPE_CHECKING:
    import pandas as pd


# The rows that a notebook displays.
DISPLAYED_ROWS = 20


@dataclass(frozen=True, repr=False)
class Listing(Sequence[dict[str, Any]]):
    """Rows of one kind: a page that begins at row `offset` of `total` rows."""

    rows: Sequence[dict[str, Any]]
    total: int
    # The columns, which are known even where there is no row.
    names: Sequence[str]
    offset: int = 0
    # What the reader should know about the rows.
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        rows = [f"  {row}" for row in self.rows[:DISPLAYED_ROWS]]
        return "\n".join(map(in_one_line, [self._counted(), *rows, *self.notes]))

    def _repr_html_(self) -> str:
        rows = [[row.get(name) for name in self.names] for row in self.rows[:DISPLAYED_ROWS]]
        return html_table(self._counted(), self.names, rows, self.notes)

    def _counted(self) -> str:
        n_displayed = min(len(self), DISPLAYED_ROWS)
        more = f", {n_displayed:,} of them shown" if n_displayed < len(self) else ""
        return f"Listing: {len(self):,} of {quantity(self.total, 'row')}{more}"

    def page(self, k: int | None, offset: int) -> Listing:
        """Return `k` of the rows from row `offset` on, all of them for None."""
        end = None if k is None else offset + k
        return replace(self, rows=self.rows[offset:end], offset=offset)

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row."""
        return list(self.rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame of the rows."""
        import pandas as pd

        return pd.DataFrame(self.to_records(), columns=list(self.names))


# A name between commas, which may be in double quotes and have commas in them.
BETWEEN_COMMAS = re.compile(r'(?:"(?:[^"]|"")*"|[^,])+')


def own_columns(
    catalog: StoredCatalog, fields: str | Iterable[str], parameter: str = "fields"
) -> list[StoredColumn]:
    """Return the columns with these names, each once, without `id` and `title` where these are the
    names of the columns with the ids and the titles, which every row has.

    fields: one name, several, or a text with commas between them; the owner's names or the
    catalog's. Raises `QkvError`, which names the parameter and near matches.
    """
    columns = catalog.catalog_columns
    names: list[str] = []
    for text in check_names(parameter, fields):
        if columns.has(text):  # a name may have a comma in it
            names.append(text)
        else:
            names += BETWEEN_COMMAS.findall(text)
    unique = dict.fromkeys(columns.find(name, parameter) for name in names if name.strip())
    return [column for column in unique if not is_in_every_row(column)]


def is_in_every_row(column: StoredColumn) -> bool:
    """Return whether a row about an item has a column under its own name anyway."""
    return column.stored in OWN_NAMES and column.name == column.stored


def column_key(column: StoredColumn) -> str:
    """Return the key of a column where `id` and `title` are those of the item: the owner's name,
    or `items.title` where the owner has another column `title`.
    """
    if column.stored in OWN_NAMES:
        return column.stored
    is_like_own = column.name.rpartition(".")[2] in OWN_NAMES
    return own_key(column.name) if is_like_own else column.name


def with_fields(
    ranking: Ranking, catalog: StoredCatalog, columns: Sequence[StoredColumn]
) -> Ranking:
    """Return the ranking with the cells of these columns in each hit, None for an empty one."""
    if not columns:
        return ranking
    rows = catalog.cells(ranking.positions, [column.stored for column in columns])
    names = [column.name for column in columns]
    ranking = ranking.annotated(fields=[dict(zip(names, row, strict=True)) for row in rows])
    return replace(ranking, columns=names)


def item_rows(
    catalog: StoredCatalog, positions: np.ndarray, columns: Sequence[StoredColumn]
) -> Listing:
    """Return id, title and these columns of the items, in the order of `positions`."""
    names = ["id", "title", *(own_key(column.name) for column in columns)]
    cells = catalog.cells(positions, ["id", "title", *(column.stored for column in columns)])
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    return Listing(rows, len(rows), list(dict.fromkeys(names)))


def page_of(positions: np.ndarray, k: int | None, offset: int) -> np.ndarray:
    """Return `k` of the positions from index `offset` on, all of them for None."""
    check_page(k, offset)
    return positions[offset : None if k is None else offset + k]

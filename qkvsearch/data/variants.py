"""Combine the rows of a file that have the same id, such as the variants of a product."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from qkvsearch.data.columns.column_types import TypedColumn
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import quantity
from qkvsearch.terminal import shorten

# Texts of a column with longer ones are not listed: the first one counts.
MAX_LENGTH = 60
# Columns of the example in the report, and values of each.
SHOWN = 3


def combine(ids: pd.Series, columns: Mapping[str, TypedColumn], report: ReadReport) -> pd.DataFrame:
    """Combine rows in place, so that each column has one cell for each id, in the order of the
    first rows. Return the cells of the rows of items that have several of them, but titles and long
    texts, under the id.

    A cell is the first one of its item that is not empty. Where they differ, it is the smallest
    number, the earliest date, or the list of the short texts. Titles and long texts that differ are
    counted in `report`, which describes one combined item.
    """
    first = ids.drop_duplicates().index
    repeated = ids[ids.duplicated(keep=False)]
    report.merged += len(ids) - len(first)
    several: dict[str, pd.Series] = {}
    varying: dict[str, pd.Index] = {}
    for name, column in columns.items():
        if repeated.empty or name == "id":
            column.cells = column.cells.loc[first]
            continue
        single = column.cells.groupby(ids, sort=False).first()
        cells = column.cells.loc[repeated.index].dropna()
        owners = repeated[cells.index]
        n_different = cells.groupby(owners).nunique()
        differing = n_different.index[n_different > 1]
        if not len(differing):
            pass
        elif column.type not in ("text", "list"):
            single[differing] = cells.groupby(owners).min()[differing]
            several[name], varying[name] = column.cells, differing
        elif name != "title" and (column.type == "list" or cells.str.len().max() <= MAX_LENGTH):
            column.type = "list"
            listed = owners.isin(differing)
            single[differing] = cells[listed].groupby(owners[listed]).agg(_joined)[differing]
            several[name], varying[name] = column.cells, differing
        else:
            items = quantity(len(differing), "item")
            report.notes.append(f"{items} with several texts of {name}: the first one counts")
        column.cells = single.set_axis(first)
    if len(repeated):
        report.notes.append(_example(repeated, several))
    rows = repeated[repeated.isin({id_ for index in varying.values() for id_ in index})]
    return pd.DataFrame({name: several[name][rows.index] for name in varying}).set_axis(rows)


def _joined(cells: pd.Series) -> str:
    """Join the distinct texts, or entries of lists, of an item."""
    entries = (entry for cell in cells for entry in str(cell).split(LIST_SEPARATOR))
    return LIST_SEPARATOR.join(dict.fromkeys(entries))


def _example(repeated: pd.Series, several: Mapping[str, pd.Series]) -> str:
    """Describe how many rows were combined, and the first item of several rows."""
    id_ = repeated.iloc[0]
    rows = repeated.index[repeated == id_]
    values = (
        f"{name} {shorten(', '.join(dict.fromkeys(map(str, cells[rows].dropna()))))}"
        for name, cells in several.items()
    )
    example = "; ".join([value for value in values if "," in value][:SHOWN])
    return (
        f"{len(repeated):,} rows were combined into {quantity(repeated.nunique(), 'item')}, such "
        f"as {shorten(id_)} of {len(rows)} rows{f' ({example})' if example else ''}"
    )

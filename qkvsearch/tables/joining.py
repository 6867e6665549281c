"""Columns that another table adds to a catalog, by the ids of its items.

| items, by id and title | details, by id and pages | joined, by id, title and pages |
|------------------------|--------------------------|--------------------------------|
| 1, Vase                | 1, 120                   | 1, Vase, 120                   |
| 2, Bowl                | 3, 90                    | 2, Bowl, (empty)               |

An item without details stays, and details of no item are skipped and counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from qkvsearch.errors import Count, DataError, listed_names, quantity
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.columns import Columns, folded, named
from qkvsearch.tables.ids import id_texts, one_case
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import choose_catalog_columns
from qkvsearch.tables.table import Table
from qkvsearch.terminal import shorten

# A table that is joined, with the report on how it was read.
Details = tuple[Table, ReadReport]
# More than this share of a column has to be ids of items, where no name tells which has the ids.
MIN_SHARE = 0.5


def with_details(
    frame: pd.DataFrame,
    details: Sequence[Details],
    columns: Columns,
    report: ReadReport,
    log: Table | None = None,
) -> tuple[pd.DataFrame, Columns]:
    """Return the rows of a catalog with the columns of other tables, and `columns` with the column
    of the ids. log: the interactions with the items, if any.

    Raises `DataError` where the ids of a table are not found, or none is that of an item.
    """
    only_id = replace(columns, title=None, text=None)
    id_column = choose_catalog_columns(frame, only_id, ReadReport(report.file), log).id
    if id_column is None:
        raise DataError(
            f"{report.file}: its rows have no ids to join other tables by; name the column of ids "
            "with `id_column`"
        )
    ids = _ids(frame[id_column], columns)
    for table, of_details in details:
        others = [each for _, each in details if each is not of_details]
        without = "leave it out"
        if "#" in of_details.file:  # a sheet, which may be one of `book.xlsx#*`
            without = f"name the others:{_named('items', [report])}{_named('join', others)}"
        frame = _joined(frame, ids, id_column, table.frame(), columns, report, of_details, without)
    if choose_catalog_columns(frame, only_id, ReadReport(report.file), log).id != id_column:
        columns = replace(columns, id=id_column)  # another table has a likelier column
    return frame, columns


def _named(option: str, reports: Sequence[ReadReport]) -> str:
    """Return options that name tables, such as a sheet of a workbook."""
    files = [file for report in reports for file in report.files or [report]]
    return "".join(f" `{option}` {shlex.quote(file.file)}" for file in files)


def _joined(
    frame: pd.DataFrame,
    ids: pd.Series,
    id_column: str,
    details: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    of_details: ReadReport,
    without: str,
) -> pd.DataFrame:
    """Return the rows of a catalog with the columns of one other table. without: how to leave
    this one out.
    """
    of_details.require_rows()
    details = details[columns.not_ignored(details)]
    key = _key_column(details, id_column, set(ids), of_details.file, without)
    of_details.require_plain("id", key)
    keys = _ids(details[key], columns)
    if keys.duplicated().any() and (users := named("user", list(details.drop(columns=key)))):
        raise DataError(
            f"{of_details.file}: its column {users[0]!r} says who each row is of, and what is "
            "joined becomes text of the items that anybody finds, also after `forget`: take the "
            "column out of the file, or give the file as `interactions`"
        )
    is_known = keys.isin(set(ids)).to_numpy()
    if not is_known.any():
        raise DataError(
            f"{of_details.file}: none of the ids in its column {key!r}, such as "
            f"{shorten(str(keys.iloc[0]))!r}, is an id of {report.file} (column {id_column!r}, "
            f"such as {shorten(str(ids.iloc[0]))!r}): correct them, or {without}"
        )
    of_details.skip("without an id", keys.index[(keys == "").to_numpy()])
    of_details.skip("of no item", keys.index[~is_known & (keys != "").to_numpy()])
    keys, details = keys[is_known], details[is_known].drop(columns=key)
    n_items, n_with = ids.nunique(), Count(keys.nunique())
    of_details.merged += len(keys) - n_with
    of_details.notes.append(
        f"joined by {key} = {id_column}: {n_with} of {quantity(n_items, 'item')} {n_with:has|have} "
        "a row in it"
    )
    for name in details:
        cells = _one_each(details[name], keys, name, report, of_details)
        added = ids.map(cells).astype(details[name].dtype)
        if name in frame:
            added = _filled(frame[name], added, name, report, of_details)
        frame = frame.assign(**{name: added})
    for name in of_details.nested:
        if name in details:
            report.nested.setdefault(name, frame.index[0])
    report.lists |= of_details.lists & set(details)
    return frame


def _ids(column: pd.Series, columns: Columns) -> pd.Series:
    ids = id_texts(column)
    return one_case(ids) if columns.fold_ids else ids


def _key_column(
    details: pd.DataFrame, id_column: str, ids: set[str], file: str, without: str
) -> str:
    """Return the column of a table that has the ids of items: that of the same name, one with a
    usual name for ids, or else the one that has them. Raises `DataError`.
    """
    names = list(details)
    if id_column in names:
        return id_column
    same = [name for name in names if folded(name) == folded(id_column)]
    shares = {name: float(id_texts(details[name].dropna()).isin(ids).mean()) for name in names}
    usual = [name for name in [*same, *named("id", names), *named("item", names)] if shares[name]]
    if usual:
        return usual[0]
    fitting = [name for name in names if shares[name] > MIN_SHARE]
    if not fitting and same:
        return same[0]  # it is said that none of its ids is that of an item
    if not fitting:
        raise DataError(
            f"{file}: no column of it has the ids of the items (column {id_column!r} there): "
            f"rename the one that has them to {id_column!r}, or {without} "
            f"(columns: {listed_names(names)})"
        )
    return max(fitting, key=lambda name: shares[name])


def _one_each(
    cells: pd.Series, keys: pd.Series, name: str, report: ReadReport, of_details: ReadReport
) -> pd.Series:
    """Return the cell of each id. The different cells of an id with several rows become a list."""
    filled = cells.dropna()
    owners = keys[filled.index]
    first = filled.groupby(owners).first()
    n_different = filled.groupby(owners).nunique()
    differing = n_different.index[n_different > 1]
    if not len(differing):
        return first
    several = filled[owners.isin(differing)]
    first[differing] = several.groupby(keys[several.index]).agg(_listed)
    report.lists.add(name)
    items = quantity(len(differing), "item")
    of_details.notes.append(f"column {name}: {items} with several rows that differ have a list")
    return first


def _listed(cells: pd.Series) -> str:
    entries = (entry for cell in cells for entry in str(cell).split(LIST_SEPARATOR))
    return LIST_SEPARATOR.join(dict.fromkeys(entries))


def _filled(
    cells: pd.Series, added: pd.Series, name: str, report: ReadReport, of_details: ReadReport
) -> pd.Series:
    """Return the cells of a column that both tables have: the items' own, and others where those
    are empty.
    """
    n_filled = int((cells.isna() & added.notna()).sum())
    n_differ = int((cells.notna() & added.notna() & (cells != added)).sum())
    of_details.notes.append(
        f"column {name} is in {report.file} too, and its cells there stay: "
        f"{n_filled:,} empty ones filled, {n_differ:,} differ"
    )
    return cells.where(cells.notna(), added)

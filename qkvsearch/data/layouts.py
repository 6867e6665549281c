"""Logs in other layouts to rows of a user and an item: lists, matrices, and lists of objects."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.scratch import pieces_of
from qkvsearch.data.columns import Columns, check_column, folded, named
from qkvsearch.data.columns.facts import are_missing
from qkvsearch.data.files.encoded import EncodedTable, TableEncoder, encoded
from qkvsearch.data.files.frames import as_text
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

Rows = tuple[EncodedTable, ReadReport]
LINES = ("\x1f", ["line"])  # the delimiter and the names of a file that is read line by line
SAMPLE = 1_000  # cells of a column that are looked at


def layout_hint(table: EncodedTable, report: ReadReport) -> str:
    """Return the end of a message about a log without columns of users and items, or ""."""
    first, *others = table.columns
    cells = [first, *table.sample(first, SAMPLE)]
    is_line = not others and len({len(cell.split()) for cell in cells}) > 1
    if is_line or any("too many columns" in reason for reason in report.skipped):
        return ". These may be lines of a user and items: use `layout` lists"
    numbers = [pd.to_numeric(table.sample(name, SAMPLE), errors="coerce") for name in others]
    are_numbers = len(others) > 1 and all(column.notna().mean() > 0.5 for column in numbers)
    if are_numbers and not named("item", others):
        return ". This may be a matrix of users by items: use `layout` matrix"
    return ""


def in_rows(table: EncodedTable, report: ReadReport, columns: Columns) -> Rows:
    """Bring a table that is read as lists or as a matrix into rows of a user and an item."""
    if columns.layout == "lists":
        return _rows_of_lists(table, report, columns.delimiter)
    return _rows_of_matrix(table, report, columns)


def _rows_of_lists(table: EncodedTable, report: ReadReport, delimiter: str | None) -> Rows:
    """Read lines of a user and items, which blanks separate by default."""
    frame = table.frame().dropna(how="all")
    lines = frame.iloc[:, 0] if frame.shape[1] == 1 else frame.agg(lambda row: [*row.dropna()], 1)
    lines = lines.map(lambda line: line if isinstance(line, list) else line.split(delimiter))
    words = lines = lines[lines.map(bool)]  # not lines of blanks
    n_items = [len(line) - 1 for line in words]
    if not any(n_items):
        raise DataError(
            f"{report.file}: no line has a user and items; `delimiter` says what is between them"
        )
    report.note(n_items.count(0), "{n} lines have a user and no items")
    users = np.repeat(np.array([line[0] for line in words], object), n_items)
    items = [*chain.from_iterable(line[1:] for line in words)]
    index = np.repeat(lines.index, n_items)
    rows = pd.DataFrame({"user": users, "item": items}, index=index, dtype=object)
    report.notes.append(f"{len(words):,} lines of a user and items")
    report.read = len(rows)
    return encoded(rows), report


def _rows_of_matrix(table: EncodedTable, report: ReadReport, columns: Columns) -> Rows:
    """Read a matrix with a row for each user and a column for each item: likes if all cells are 1.
    An empty cell is nothing, and so is 0 unless it is on the declared scale.
    """
    frame = table.frame()
    ignore = {name.strip().casefold() for name in columns.ignore}
    frame = frame.drop(columns=(ignored := [name for name in frame if name.casefold() in ignore]))
    user = columns.user or frame.columns[0]
    users = frame.pop(user := check_column(user, list(frame), report.file, "`user_column`"))
    report.notes.append(f"a matrix of {len(users):,} users by {frame.shape[1]:,} items")
    rows = frame.melt(var_name="\0item", value_name="\0rating", ignore_index=False).dropna()
    rows.columns = pd.Index(["item", "rating"])
    rows = rows[~are_missing(rows["rating"])]
    numbers = pd.to_numeric(rows["rating"], errors="coerce")
    low, high = columns.rating_scale or (1.0, 1.0)
    zero = numbers.eq(0) & (not low <= 0 <= high)
    report.note(int(zero.sum()), "{n} cells of 0 mean that there was nothing")
    rows = rows[~zero].sort_index(kind="stable")
    if numbers[~zero].eq(1).all():
        del rows["rating"]
    rows.insert(0, user if columns.user else "user", users[rows.index])
    if ignore & {"item", "rating"}:
        rows = rows.rename(columns={"item": "itemid", "rating": "stars"})
    rows[ignored] = None  # `ignore` is checked against the names of columns
    report.read = len(rows)
    return encoded(rows), report


def rows_of_objects(table: EncodedTable, report: ReadReport) -> Rows:
    """Make a row of each object where a column has lists of items, as of Google Analytics."""
    names = [name for name in table.columns if folded(name) != "id"]  # it may be of an order
    if named("item", names):
        return table, report
    keys_of = {name: _item_keys(table.sample(name, SAMPLE)) for name in names}
    name = max(names, key=lambda name: (bool(keys_of[name]), "id" not in keys_of[name]), default="")
    keys = keys_of.get(name)
    if not keys or ("id" in keys and len(names) < len(table.columns)):
        return table, report
    encoder, n_before = TableEncoder(), len(table)
    for span in pieces_of(len(table)):
        frame = table.frame(rows=span)
        objects_of_row = [_objects(cell) or [{}] for cell in frame.pop(name)]
        frame = frame.loc[frame.index.repeat([*map(len, objects_of_row)])]
        others = pd.DataFrame([*chain.from_iterable(objects_of_row)], dtype=object)
        others = others.reindex(columns=keys).rename(columns={"id": "item_id"})
        others = as_text(others).set_axis(frame.index)
        encoder.add(others.combine_first(frame)[[*frame, *others.columns.difference([*frame])]])
    report.notes.append(f"a row for each of the objects in column {name}")
    report.read += encoder.n_rows - n_before
    report.nested.pop(name, None)
    return encoder.table(), report


def _item_keys(cells: Sequence[Any]) -> list[str]:
    """Return the keys of objects that are items: by a name, or else by an id in lists."""
    keys = [*dict.fromkeys(chain.from_iterable(chain.from_iterable(map(_objects, cells))))]
    others = [key for key in keys if key != "id"]
    if named("item", others):
        return others
    are_lists = any(cell.lstrip().startswith("[") or len(_objects(cell)) > 1 for cell in cells)
    return keys if "id" in keys and are_lists else []


def _objects(cell: Any) -> Sequence[dict[str, Any]]:
    """Return the objects in a cell, as JSON or as Python writes them."""
    objects: list[Any] = []
    text, at = cell if isinstance(cell, str) else "", 0
    if not text.lstrip().startswith(("{", "[{")):
        return objects
    try:
        while (at := text.find("{", at)) >= 0:
            entry, at = json.JSONDecoder().raw_decode(text, at)
            objects.append(entry)
    except (ValueError, RecursionError):
        try:
            entries = literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return []
        objects = [*entries] if isinstance(entries, list | tuple) else [entries]
    return [entry for entry in objects if isinstance(entry, dict)]

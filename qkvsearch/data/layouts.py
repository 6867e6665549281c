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
from qkvsearch.data.columns import Columns, check_column, named
from qkvsearch.data.columns.facts import are_missing
from qkvsearch.data.files.encoded import EncodedTable, TableEncoder, encoded
from qkvsearch.data.files.frames import as_text
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

Rows = tuple[EncodedTable, ReadReport]
# The delimiter and the names of a file that is read line by line.
LINES = ("\x1f", ["line"])
# Cells of a column that are looked at.
SAMPLE = 1_000


def layout_hint(table: EncodedTable, report: ReadReport) -> str:
    """Return the end of a message about a log without columns of users and items, or ""."""
    first, *others = table.columns
    cells = [first, *table.sample(first, SAMPLE)]
    is_line = not others and len({len(cell.split()) for cell in cells}) > 1
    if is_line or any("too many columns" in reason for reason in report.skipped):
        return ". These may be lines of a user and items: use `layout` lists"
    if named("item", others):
        return ""
    numbers = [pd.to_numeric(table.sample(name, SAMPLE), errors="coerce") for name in others]
    if len(others) > 1 and all(column.notna().mean() > 0.5 for column in numbers):
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
    words = [line if isinstance(line, list) else line.split(delimiter) for line in lines]
    n_items = [len(line) - 1 for line in words]
    if not any(n_items):
        raise DataError(
            f"{report.file}: no line has a user and items; `delimiter` says what is between them"
        )
    report.note(n_items.count(0), "{n} lines have a user and no items")
    rows = pd.DataFrame(
        {
            "user": np.repeat(np.array([line[0] for line in words], object), n_items),
            "item": [*chain.from_iterable(line[1:] for line in words)],
        },
        index=np.repeat(lines.index, n_items),
        dtype=object,
    )
    report.notes.append(f"{len(words):,} lines of a user and items")
    report.read = len(rows)
    return encoded(rows), report


def _rows_of_matrix(table: EncodedTable, report: ReadReport, columns: Columns) -> Rows:
    """Read a matrix with a row for each user and a column for each item.

    An empty cell is nothing, and so is 0 unless it is on the declared scale. If all others are 1,
    they are likes, otherwise ratings.
    """
    frame = table.frame()
    user = columns.user or frame.columns[0]
    user = check_column(user, list(frame), report.file, "`user_column`")
    users = frame.pop(user)
    report.notes.append(f"a matrix of {len(users):,} users by {frame.shape[1]:,} items")
    rows = frame.melt(var_name="item", value_name="rating", ignore_index=False).dropna()
    rows = rows[~are_missing(rows["rating"])]
    numbers = pd.to_numeric(rows["rating"], errors="coerce")
    low, high = columns.rating_scale or (1.0, 1.0)
    zero = numbers.eq(0) & (not low <= 0 <= high)
    report.note(int(zero.sum()), "{n} cells of 0 mean that there was nothing")
    rows = rows[~zero].sort_index(kind="stable")
    if numbers[~zero].eq(1).all():
        del rows["rating"]
    rows.insert(0, user if columns.user else "user", users[rows.index])
    report.read = len(rows)
    return encoded(rows), report


def rows_of_objects(table: EncodedTable, report: ReadReport) -> Rows:
    """Make a row of each object where a column has lists of items, such as `items` of Google
    Analytics; all other tables are returned as they are.
    """
    if named("item", list(table.columns)):
        return table, report
    for name in table.columns:
        objects = [*chain.from_iterable(map(_objects, table.sample(name, SAMPLE)))]
        keys = [*dict.fromkeys(chain.from_iterable(objects))]
        if named("item", keys) or "id" in keys:
            break
    else:
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


def _objects(cell: Any) -> Sequence[dict[str, Any]]:
    """Return the objects in a cell, as JSON or as Python writes them.

    >>> _objects('{"id": 1}|{"id": 2}'), _objects("[{'id': 3}]"), _objects("{7}")
    ([{'id': 1}, {'id': 2}], [{'id': 3}], [])
    """
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

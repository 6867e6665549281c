"""Logs in other layouts to rows of a user and an item: lists, matrices, and lists of objects."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.limits import CELL_BYTES, COLUMNS
from qkvsearch._utils.scratch import pieces_of
from qkvsearch.errors import DataError, listed_names, quantity
from qkvsearch.tables import frames
from qkvsearch.tables.column_facts import are_missing
from qkvsearch.tables.columns import Columns, check_column, folded, named
from qkvsearch.tables.columns.lists import MAX_PYTHON
from qkvsearch.tables.files.repeated_keys import (
    RowsOfRepeatedKeys,
    object_of_pairs,
    python_value,
    repeated_key,
)
from qkvsearch.tables.report import FILE_ROWS, TOO_MANY_COLUMNS, ReadReport
from qkvsearch.tables.table import Table, TableBuilder

ReadTable = tuple[Table, ReadReport]
LINES = ("\x1f", ["line"])  # the delimiter and the names of a file that is read line by line
DECODER = json.JSONDecoder(object_pairs_hook=object_of_pairs)
SAMPLE = 1_000  # cells of a column that are looked at


def layout_hint(table: Table, report: ReadReport) -> str:
    """Return the end of a message about a log without columns of users and items, or ""."""
    first, *others = table.columns
    cells = [first, *table.sample(first, SAMPLE)]
    is_line = not others and len({len(cell.split()) for cell in cells}) > 1
    if is_line or TOO_MANY_COLUMNS in report.skipped:
        return ". These may be lines of a user and items: use `layout` lists"
    numbers = [pd.to_numeric(table.sample(name, SAMPLE), errors="coerce") for name in others]
    are_numbers = len(others) > 1 and all(column.notna().mean() > 0.5 for column in numbers)
    if are_numbers and not named("item", others):
        return ". This may be a matrix of users by items: use `layout` matrix"
    return ""


def in_rows(table: Table, report: ReadReport, columns: Columns) -> ReadTable:
    """Bring a table that is read as lists or as a matrix into rows of a user and an item."""
    if columns.layout == "lists":
        return _rows_of_lists(table, report, columns.delimiter)
    return _rows_of_matrix(table, report, columns)


def _rows_of_lists(table: Table, report: ReadReport, delimiter: str | None) -> ReadTable:
    """Read lines of a user and items, which blanks separate by default."""
    encoder = TableBuilder()
    n_lines = n_alone = 0
    for numbers, lines in frames.batched(_lines(table, report, delimiter)):
        n_items = np.array([len(line) - 1 for line in lines], np.int64)
        users = np.repeat(np.array([line[0] for line in lines], object), n_items)
        items = [*chain.from_iterable(line[1:] for line in lines)]
        index = np.repeat(np.array(numbers, np.int64), n_items)
        encoder.add(pd.DataFrame({"user": users, "item": items}, index, dtype=object))
        n_lines += len(lines)
        n_alone += int((n_items == 0).sum())
    if not encoder.n_rows:
        raise DataError(
            f"{report.file}: no line has a user and items; `delimiter` says what is between them"
        )
    report.note(n_alone, "{n} {n:line has|lines have} a user and no items")
    report.notes.append(f"{quantity(n_lines, 'line')} of a user and items")
    report.read = encoder.n_rows
    return encoder.table(), report


def _lines(
    table: Table, report: ReadReport, delimiter: str | None
) -> Iterator[tuple[int, list[str], int]]:
    """Yield the number of each line that is not blank, its user and items, and their size. Raises
    `DataError` for another sign than blanks between them.
    """
    for span in pieces_of(len(table)):
        for number, *cells in table.frame(rows=span).itertuples(name=None):
            line = [cell for cell in cells if cell == cell]
            if line and len(cells) == 1:
                sign = re.search("[:,;|]", line[0])
                if sign and delimiter is None:
                    raise DataError(
                        f"{report.file}: row {report.where(number)} has a {sign[0]} beside blanks: "
                        "put blanks between the user and all items, or name the sign between them "
                        "with `delimiter` (' ' if the other one belongs to ids)"
                    )
                if delimiter is not None and len(delimiter) == 1:
                    line = next(csv.reader(line, delimiter=delimiter, skipinitialspace=True))
                else:
                    line = line[0].split(delimiter)
            elif line:  # of a format with lists in cells, such as JSON
                line = [line[0], *(item for cell in line[1:] for item in cell.split("|"))]
            if line and not (number % FILE_ROWS == 1 and _is_header(line, report)):
                yield number, line, frames.cells_size(line)


def _is_header(line: Sequence[str], report: ReadReport) -> bool:
    """Return whether a line names a user and items, and note that it is left out. Raises
    `DataError` where it names more: the file has rows.
    """
    names = [folded(name).rstrip("s0123456789") for name in line[1:]]
    items = set(named("item", names))
    if not named("user", line[:1]) or not items.intersection(names[:1]):
        return False
    if not items.issuperset(names):
        columns = listed_names(line)
        raise DataError(f"{report.file}: it has columns {columns}, and no lists: use `layout` rows")
    report.notes.append("the first line, which names a user and items, was left out")
    return True


def _rows_of_matrix(table: Table, report: ReadReport, columns: Columns) -> ReadTable:
    """Read a matrix with a row for each user and a column for each item: likes if all cells are 1.
    An empty cell is nothing, and so is 0 unless it is on the declared scale.
    """
    ignore = {name.strip().casefold() for name in columns.ignore}
    names = columns.not_ignored(table.columns)
    ignored = [name for name in table.columns if name not in names]
    if len(names) < 2:
        raise DataError(f"{report.file}: a matrix has a column of users and one for each item")
    user = check_column(columns.user or names[0], names, report.file, "`user_column`")
    size = f"{quantity(len(table), 'user')} by {quantity(len(names) - 1, 'item')}"
    report.notes.append(f"a matrix of {size}")
    item, value = ("itemid", "stars") if ignore & {"item", "rating"} else ("item", "rating")
    low, high = columns.rating_scale or (1.0, 1.0)
    encoder = TableBuilder()
    n_zero = 0
    are_likes = True
    for span in pieces_of(max(1, len(table)), frames.rows_at_once(len(names))):
        # As objects: each cell of a user has the same text, and not a copy.
        frame = table.frame(names, span)
        users = frame.pop(user).astype(object)
        frame.columns = frame.columns.astype(object)
        rows = frame.melt(var_name="\0item", value_name="\0rating", ignore_index=False).dropna()
        rows.columns = pd.Index([item, value])
        rows = rows[~are_missing(rows[value])]
        numbers = pd.to_numeric(rows[value], errors="coerce")
        zero = numbers.eq(0) & (not low <= 0 <= high)
        n_zero += int(zero.sum())
        are_likes = are_likes and bool(numbers[~zero].eq(1).all())
        rows = rows[~zero].sort_index(kind="stable")
        rows.insert(0, user if columns.user else "user", users[rows.index])
        rows[ignored] = np.nan  # `ignore` is checked against the names of columns
        encoder.add(rows)
    report.note(n_zero, "{n} {n:cell of 0 means|cells of 0 mean} that there was nothing")
    report.read = encoder.n_rows
    cells = encoder.table()
    if are_likes:
        del cells.columns[value]
    return cells, report


def rows_of_objects(table: Table, report: ReadReport) -> ReadTable:
    """Make a row of each object where a column has lists of items, as of Google Analytics."""
    names = [name for name in table.columns if folded(name) != "id"]  # it may be of an order
    if named("item", names):
        return table, report
    keys_of = {name: _item_keys(table.sample(name, SAMPLE)) for name in names}
    name = max(names, key=lambda name: (bool(keys_of[name]), "id" not in keys_of[name]), default="")
    keys = keys_of.get(name)
    if not keys or ("id" in keys and len(names) < len(table.columns)):
        return table, report
    width = len(table.columns) - 1 + len(keys)
    frames.check_width(width, report.file)
    encoder = TableBuilder()
    n_before = len(table)
    skipped = RowsOfRepeatedKeys(report)
    columns = {key: column for key, column in table.columns.items() if key != name}
    objects = (
        (row, entry, CELL_BYTES * width) for row, entry in _objects_of_rows(table, name, skipped)
    )
    for numbers, entries in frames.batched(objects):
        rows = np.array(numbers, np.int64)
        texts = {key: column.texts(rows) for key, column in columns.items()}
        frame = pd.DataFrame(texts, index=table.rows.of(rows), dtype=object)
        others = pd.DataFrame(entries, columns=keys, dtype=object)
        others = frames.as_text(others.rename(columns={"id": "item_id"})).set_axis(frame.index)
        encoder.add(others.combine_first(frame)[[*frame, *others.columns.difference([*frame])]])
    skipped.refuse_if_all(has_others=encoder.n_rows > 0)
    report.notes.append(f"a row for each of the objects in column {name}")
    report.read += encoder.n_rows + skipped.n_rows - n_before
    report.nested.pop(name, None)
    return encoder.table(), report


def _objects_of_rows(
    table: Table, name: str, skipped: RowsOfRepeatedKeys
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object in a column with its row, and an empty object for a row without one. Rows
    in which an object has a key twice are skipped.
    """
    for span in pieces_of(len(table)):
        for row, cell in enumerate(table.columns[name].texts(span), span.start):
            objects = _objects(cell)
            key = repeated_key([*objects])
            if key is not None:
                number = int(table.rows.of(np.array([row], np.int64))[0])
                skipped.add(number, key)
                continue
            for entry in objects or [{}]:
                yield row, entry


def _item_keys(cells: Sequence[Any]) -> list[str]:
    """Return the keys of objects that are items: by a name, or else by an id in lists."""
    keys = [*dict.fromkeys(chain.from_iterable(chain.from_iterable(map(_objects, cells))))]
    others = [key for key in keys if key != "id"]
    if named("item", others[: COLUMNS.value]):
        return others
    are_lists = any(cell.lstrip().startswith("[") or len(_objects(cell)) > 1 for cell in cells)
    return keys if "id" in keys and are_lists else []


def _objects(cell: Any) -> Sequence[dict[str, Any]]:
    """Return the objects in a cell, as JSON or as Python writes them."""
    if not isinstance(cell, str) or not cell.lstrip().startswith(("{", "[{")):
        return []
    text, at = cell, 0
    objects: list[Any] = []
    try:
        while (at := text.find("{", at)) >= 0:
            entry, at = DECODER.raw_decode(text, at)
            objects.append(entry)
    except (ValueError, RecursionError):
        if len(text) > MAX_PYTHON:
            return []
        try:
            entries = python_value(text)
        except ValueError:
            return []
        objects = [*entries] if isinstance(entries, list | tuple) else [entries]
    return [entry for entry in objects if isinstance(entry, dict)]

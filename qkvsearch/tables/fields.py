"""Fields of objects in cells to columns: `{"height": 3}` in the column `dimensions` becomes
`dimensions.height`.

A reader writes a cell that is an object, or a list of objects, as JSON. Each field becomes a
column, whose name is the path to it. A list of objects gives lists: `creator.full_name` has the
names of all creators, each once. Null is nothing.

| cell of `creator`                             | `creator.full_name` | `creator.born.year` |
|-----------------------------------------------|---------------------|---------------------|
| `{"full_name": "Ann", "born": {"year": 1890}}`| Ann                 | 1890                |
| `[{"full_name": "Ann"}, {"full_name": "Bo"}]` | Ann, Bo             |                     |
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.limits import COLUMNS, JSON_DEPTH
from qkvsearch.errors import DataError
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.frames import check_names, distinct, readable, without_separator
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import Column, Table, TextColumn

# An object with one key that begins so is a value with its type, as MongoDB exports them.
TYPED = "$"
# What is between the names of a path.
DOT = "."


class CellFields:
    """The fields of the distinct cells of a column.

    entries: for each path, the texts of each cell that has any, by the number of the cell. lists:
    the paths within a list of objects, whose columns are lists. separators: for each path and cell,
    how many entries of lists had the sign between entries.
    """

    def __init__(self, column: str, file: str) -> None:
        self.column = column
        self.file = file
        self.n_cells = 0
        self.entries: dict[str, dict[int, list[str]]] = {}
        self.lists: set[str] = set()
        self.separators: dict[str, Counter[int]] = defaultdict(Counter)
        # Paths of which a value is a list, of objects or of texts.
        self.nested: set[str] = set()
        # Whether a cell is an object, or a list of some.
        self.has_objects = False

    def add(self, cell: int, text: str) -> None:
        """Add the fields of a cell. A cell that is no JSON is a value by itself."""
        self.n_cells = max(self.n_cells, cell + 1)
        value = _parsed(text)
        if value is not None:
            self.has_objects = True
            self._add(cell, self.column, value, 0, in_list=False)
        else:
            self._append(cell, self.column, text, in_list=False)

    def _add(self, cell: int, path: str, value: Any, depth: int, *, in_list: bool) -> None:
        JSON_DEPTH.check(depth, f"{self.file}, column {self.column!r}")
        if isinstance(value, dict):
            if len(value) == 1 and next(iter(value)).startswith(TYPED):
                (only,) = value.values()
                self._add(cell, path, only, depth + 1, in_list=in_list)
                return
            for key, inner in value.items():
                self._add(cell, f"{path}{DOT}{key}", inner, depth + 1, in_list=in_list)
        elif isinstance(value, list):
            has_objects = any(isinstance(entry, dict) for entry in value)
            self.nested.add(path)
            for entry in value:
                if isinstance(entry, str) and LIST_SEPARATOR in entry:
                    self.separators[path][cell] += 1
                    entry = without_separator(entry)
                self._add(cell, path, entry, depth + 1, in_list=in_list or has_objects)
        elif not _is_nothing(value):
            self._append(cell, path, readable(value), in_list=in_list)

    def _append(self, cell: int, path: str, text: str, *, in_list: bool) -> None:
        if text == "":
            return
        if path not in self.entries:
            self.entries[path] = {}
            self._check_number()
        if in_list:
            self.lists.add(path)
            self.separators[path][cell] += LIST_SEPARATOR in text
            text = without_separator(text)
        self.entries[path].setdefault(cell, []).append(text)

    def _check_number(self) -> None:
        """Raise `DataError` for more fields than a table has columns."""
        if len(self.entries) > COLUMNS.value:
            raise DataError(
                f"{self.file}: the objects in column {self.column!r} have more than "
                f"{COLUMNS.value:,} different fields, and each is a column; leave it out with "
                "`ignore`, or write lists in place of them"
            )

    def n_separators(self, codes: np.ndarray) -> Iterator[tuple[str, int]]:
        """Yield for each path how many entries of the rows had the sign between entries."""
        n_rows = np.bincount(codes[codes >= 0], minlength=self.n_cells)
        for path, counts in self.separators.items():
            yield path, sum(int(n_rows[cell]) * count for cell, count in counts.items())

    def columns(self, codes: np.ndarray) -> Iterator[tuple[str, Column]]:
        """Yield a column for each path. codes: int32 (n,), which of the cells each row has."""
        for path, entries in self.entries.items():
            texts = np.full(self.n_cells + 1, None, dtype=object)  # the last one is that of no cell
            for cell, values in entries.items():
                once = dict.fromkeys(values) if path in self.lists else values
                texts[cell] = LIST_SEPARATOR.join(once)
            own, different = pd.factorize(texts)
            yield path, TextColumn(own.astype(np.int32)[codes], np.asarray(different, object))


def with_fields(
    table: Table, report: ReadReport, ignore: Sequence[str] = ()
) -> tuple[Table, ReadReport]:
    """Replace each column with objects by columns of their fields. ignore: columns that are left as
    they are, since nobody reads them. Raises `DataError` for too many columns.
    """
    left_out = {name.strip().casefold() for name in ignore}
    named: list[tuple[str, Column]] = []
    lists: dict[int, int] = {}  # columns with lists, by their place, and a row that has one
    declared: set[int] = set()  # those of lists of objects
    was_changed = False
    for name, column in table.columns.items():
        fields = None
        if name in report.nested and name.casefold() not in left_out:
            codes, texts = column.coded()
            fields = _fields_of(name, texts, report.file)
        if fields is None:
            if name in report.nested:
                lists[len(named)] = report.nested[name]
            named.append((name, column))
            continue
        was_changed = True
        for path, count in fields.n_separators(codes):
            report.note_separators(path, count)
        for path, values in fields.columns(codes):
            # A plain cell beside objects is no id: the objects have none in its column.
            is_beside_objects = path == name and len(fields.entries) > 1
            if path in fields.nested or is_beside_objects:
                lists[len(named)] = report.nested[name]
            if path in fields.lists:
                declared.add(len(named))
            named.append((path, values))
    if not was_changed:
        return table, report
    names = distinct(name for name, _ in named)
    check_names(names, report.file)
    columns = dict(zip(names, (column for _, column in named), strict=True))
    report.nested = {names[place]: row for place, row in lists.items()}
    report.lists = {names[place] for place in declared}
    return Table(columns, table.rows, len(table)), report


def _fields_of(name: str, texts: Sequence[str], file: str) -> CellFields | None:
    """Return the fields of the distinct cells of a column; None where no cell is an object."""
    if not any(text.startswith(("{", "[")) for text in texts):
        return None
    fields = CellFields(name, file)
    for cell, text in enumerate(texts):
        fields.add(cell, text)
    return fields if fields.has_objects else None


def _parsed(text: str) -> Any:
    """Return an object, or a list with objects, that a reader wrote as JSON; None for any other
    text.
    """
    is_list = text.startswith("[") and "{" in text
    if not is_list and not text.startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_nothing(value: Any) -> bool:
    return value is None or value != value

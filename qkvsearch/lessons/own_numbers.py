"""The reader's own matrices: read from files of numbers, and put in place of the lesson's."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkvsearch.attention.symbols import distinct
from qkvsearch.errors import DataError, quantity
from qkvsearch.lessons.parts import Given
from qkvsearch.lessons.quizzes import SEPARATORS
from qkvsearch.lessons.workbench import PROJECTED, Workbench

# At most this many tokens are shown: a trace of n tokens writes n³ terms.
MAX_TOKENS = 26
# Rows and columns of a matrix at most.
MAX_WIDTH = 64
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")


class NamedRows(NamedTuple):
    """A matrix (n, d), and what its rows are called (n,), None where they have no names."""

    names: list[str] | None
    array: np.ndarray


def read_matrix(path: Path) -> np.ndarray:
    """Read a matrix, float64: a row a line, separated by commas, semicolons, tabs or spaces.

    A first line of nothing but words is taken for headings. Raises `DataError`, with the file, line
    and column, for what is no number or no CSV, for lines of unequal length, and for a file that
    cannot be read or is larger than a lesson can show.
    """
    return _matrix(path, _rows(path), first_column=1)


def read_named_rows(path: Path) -> NamedRows:
    """Read a matrix whose rows may begin with a name, such as cat,1.8,0.2.

    Rows have names if the first one has. Raises `DataError` like `read_matrix`, and for a row
    without a name among others, and for a name that is no single word.
    """
    rows = _rows(path)
    if not _is_word(rows[0][1][0]):
        return NamedRows(None, _matrix(path, rows, first_column=1))
    for n, (name, *_) in rows:
        if not name or not _is_word(name):
            raise DataError(
                f"{path}, line {n}: the row has no name, but line {rows[0][0]} has "
                f"{rows[0][1][0]!r}; name every row or none"
            )
        if SEPARATORS.search(name):  # one is asked to name rows in a list
            raise DataError(
                f"{path}, line {n}: {name!r} has a space or a comma; name a row by one word"
            )
    numbers = [(n, entries[1:]) for n, entries in rows]
    if not numbers[0][1]:
        raise DataError(f"{path}, line {rows[0][0]}: {rows[0][1][0]!r} is not a number")
    names = list(distinct([entries[0] for _, entries in rows]))
    return NamedRows(names, _matrix(path, numbers, first_column=2))


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a file that are no headings, as line numbers with their entries."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise DataError(f"{path}: cannot read: {reason}") from None
    rows = [(n, _entries(path, n, line)) for n, line in enumerate(lines, 1) if line.strip()]
    if not rows or not any(_is_number(entry) for _, entries in rows for entry in entries):
        raise DataError(f"{path}: there are no numbers in it")
    if all(_is_word(entry) for entry in rows[0][1]):
        (n, headings), *rows = rows
        _refuse_row_for_heading(path, n, headings, rows[0])
    return rows


def _refuse_row_for_heading(
    path: Path, n: int, headings: list[str], first: tuple[int, list[str]]
) -> None:
    """Raise `DataError` where a line of words is no heading of the row after it.

    A heading has an entry for each column; names of rows may go without one.
    """
    first_line, entries = first
    is_named = _is_word(entries[0])
    written = ";".join(headings)
    if len(headings) not in (len(entries), len(entries) - is_named):
        raise DataError(
            f"{path}, line {n}: {written!r} has no numbers, and is no heading: it "
            f"has {len(headings)} of the {len(entries)} entries of line {first_line}"
        )


def _matrix(path: Path, rows: list[tuple[int, list[str]]], first_column: int) -> np.ndarray:
    """Return the entries as numbers. first_column: where they begin in their lines."""
    width = len(rows[0][1])
    for n, entries in rows:
        if len(entries) != width:
            numbers = quantity(len(entries), "number")
            raise DataError(
                f"{path}, line {n}: {numbers}, but line {rows[0][0]} has {width}; "
                "give every row as many"
            )
        for place, entry in enumerate(entries, start=first_column):
            if not _is_number(entry):
                raise DataError(f"{path}, line {n}, column {place}: {entry!r} is not a number")
    if len(rows) > MAX_WIDTH or width > MAX_WIDTH:
        raise DataError(
            f"{path}: {len(rows)} × {width} numbers are more than a lesson shows, which is "
            f"{MAX_WIDTH} × {MAX_WIDTH}"
        )
    return np.array([[float(entry) for entry in entries] for _, entries in rows])


def with_own(bench: Workbench, own: Given) -> Workbench:
    """Return the workbench with the reader's inputs, weights and mask where they are given.

    Raises `DataError` where matrices do not fit one another.
    """
    given = {name: getattr(own, name) for name in PROJECTED}
    matrices = dict(bench.matrices)
    for name, array in given.items():
        if array is not None:
            matrices[name] = array
    x, w_query, w_key = (matrices[name] for name in PROJECTED[:3])
    if len(x) > MAX_TOKENS:
        raise DataError(f"`inputs`: {len(x)} rows are more than the {MAX_TOKENS} that are shown")
    for name in PROJECTED[1:]:
        weight = matrices[name]
        if len(weight) == x.shape[1]:
            continue
        columns = quantity(x.shape[1], "column")
        if given[name] is None:  # the lesson's own, which nobody gave
            raise DataError(
                f"`inputs`: {columns}, but the lesson's weight matrices have "
                f"{len(weight)} rows, one for each column of its inputs; give inputs of "
                f"{len(weight)} columns, or weights of your own, too, `w_query`, `w_key` and "
                "`w_value`"
            )
        raise DataError(
            f"`{name}`: {quantity(len(weight), 'row')}, but the inputs have {columns}; a "
            "weight matrix needs a row for each of them"
        )
    if w_query.shape[1] != w_key.shape[1]:
        columns = quantity(w_query.shape[1], "column")
        raise DataError(
            f"`w_query` has {columns} and `w_key` {w_key.shape[1]}: a query and a "
            "key are multiplied number by number, so both need as many"
        )
    if len(x) == 1 and own.mask in ("padding", "both"):
        raise DataError(
            f"`mask` {own.mask} hides the last input, and there is no other: give `inputs` two "
            "rows or more"
        )
    labels: Sequence[str] = bench.rows
    if own.names is not None:
        labels = own.names
    elif len(x) != len(bench.rows):
        labels = "abcdefghijklmnopqrstuvwxyz"[: len(x)]
    return replace(
        bench, matrices=matrices, rows=labels, columns=labels, mask=own.mask or bench.mask
    )


def _entries(path: Path, n: int, line: str) -> list[str]:
    mark = next((mark for mark in ";,\t" if mark in line), None)
    try:
        entries = next(csv.reader([line], delimiter=mark)) if mark else line.split()
    except csv.Error as error:
        raise DataError(f"{path}, line {n}: cannot read: {error}") from None
    if mark == ";":  # as spreadsheets part what has decimal commas
        entries = [DECIMAL_COMMA.sub(".", entry) for entry in entries]
    return [entry.strip() for entry in entries]


def _is_word(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return True
    return False


def _is_number(entry: str) -> bool:
    """Return whether it is a finite number; Python reads 1_0 as 10, a person does not."""
    return not _is_word(entry) and "_" not in entry and bool(np.isfinite(float(entry)))


def refuse(given: Given, lesson: str, *taken: str) -> None:
    """Raise `DataError` where the reader brought what this lesson has no use for.

    taken: names of the fields of `Given` that it can use. Names come with the inputs.
    """
    for name, value in vars(given).items():
        if value is not None and name not in (*taken, "names"):
            there = ", ".join(f"`{use}`" for use in taken) or "nothing of your own"
            raise DataError(f"`{name}` has no place in the lesson {lesson}, which takes {there}")

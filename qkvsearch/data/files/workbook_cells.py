"""What the XML of a sheet says about its rows and cells, and openpyxl ignores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import IO

from qkvsearch.errors import DataError
from qkvsearch.terminal import shorten

CHUNK = 1 << 20
# A cell with a formula that no spreadsheet program has computed: the text "" is a value.
UNCOMPUTED = re.compile(
    rb'<c\b(?![^<>]*\bt="str")[^<>]*>\s*<f\b(?:[^<>]*/>|[^<>]*>[^<]*</f>)\s*'
    rb"(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
)
# The beginning of a row or of a cell, and the reference in it.
BEGIN = re.compile(rb"<(?:\w+:)?(row|c)(?=[\s/>])([^<>]*)>")
REFERENCE = re.compile(rb"(?<![\w:])r\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
CELL = re.compile(r"([A-Z]{1,3})([1-9][0-9]*)")
ROW = re.compile(r"[1-9][0-9]*")
# The columns of a sheet: XFD is the last.
MAX_COLUMNS = 16_384


def pieces(part: IO[bytes], end: bytes) -> Iterator[bytes]:
    """Yield the XML in pieces that end before an `end`, so that no element is cut."""
    rest = b""
    while chunk := part.read(CHUNK):
        buffer = rest + chunk
        cut = buffer.rfind(end)
        if cut <= 0:
            rest = buffer
            continue
        yield buffer[:cut]
        rest = buffer[cut:]
    yield rest


def count_uncomputed(part: IO[bytes]) -> int:
    """Count the formulas of a sheet that have no stored value."""
    return sum(len(UNCOMPUTED.findall(piece)) for piece in pieces(part, b"<c "))


def check_references(part: IO[bytes], label: str) -> None:
    """Raise `DataError` where rows or cells are not numbered in ascending order from 1: openpyxl
    would leave some of them out without a word.
    """
    references = (
        (kind, reference(attributes))
        for piece in pieces(part, b"<")
        for kind, attributes in BEGIN.findall(piece)
    )
    _check(references, label)


def reference(attributes: bytes) -> str | None:
    """Return the attribute `r` of an element; None where there is none."""
    found = REFERENCE.search(attributes)
    if found is None:
        return None
    return (found[1] if found[1] is not None else found[2]).decode("utf-8", "replace").strip()


def _check(references: Iterable[tuple[bytes, str | None]], label: str) -> None:
    row, column, has_number = 0, 0, False
    for kind, text in references:
        if kind == b"row":
            has_number = text is not None
            row, column = _row_after(row, text, label), 0
        elif text is None:
            column += 1
        else:
            previous, column = column, _column(text, row if has_number else None, label)
            if column <= previous:
                raise _damaged(label, f"cell {text} comes after one further to the right, or twice")


def _row_after(previous: int, text: str | None, label: str) -> int:
    """Return the number of a row, which is greater than that of the row before."""
    if text is None:
        return previous + 1
    if not ROW.fullmatch(text):
        raise _damaged(label, f"a row has the number {shorten(text)!r}")
    if int(text) <= previous:
        raise _damaged(label, f"row {int(text):,} comes after row {previous:,}")
    return int(text)


def _column(text: str, row: int | None, label: str) -> int:
    """Return the column of a cell, from 1, which is in this row if it is known."""
    found = CELL.fullmatch(text)
    column = 0
    for letter in found[1] if found else "":
        column = 26 * column + ord(letter) - ord("A") + 1
    if found is None or column > MAX_COLUMNS:
        raise _damaged(label, f"a cell has the reference {shorten(text)!r}")
    if row is not None and int(found[2]) != row:
        raise _damaged(label, f"cell {text} is in row {row:,}")
    return column


def _damaged(label: str, what: str) -> DataError:
    advice = "open and save the file in a spreadsheet program, or save the sheet as CSV"
    return DataError(f"{label}: not a spreadsheet, or damaged: {what}; {advice}")

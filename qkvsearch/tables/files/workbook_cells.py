"""Check the XML of a sheet for what openpyxl would lose or misread without an error.

openpyxl leaves out rows that are not in ascending order, takes the first of several values of a
cell, and reads the shared text −1 as the last one. The check reads the XML with the parser that
openpyxl uses, so that both see the same rows in every encoding.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import IO
from xml.parsers import expat

from qkvsearch.errors import DataError
from qkvsearch.terminal import shorten

CHUNK = 1 << 20
# The names of the elements that openpyxl reads. The parser puts a blank behind the namespace.
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main "
ROW, CELL, EXTENSIONS = f"{_MAIN}row", f"{_MAIN}c", f"{_MAIN}extLst"
VALUE, FORMULA, INLINE = f"{_MAIN}v", f"{_MAIN}f", f"{_MAIN}is"
SHARED, RUN, TEXT = f"{_MAIN}si", f"{_MAIN}r", f"{_MAIN}t"
MERGED = f"{_MAIN}mergeCell"
# Elements of these have no text of their own, and those of the others no elements in them.
OF_TEXTS = frozenset((SHARED, INLINE, RUN))
WITHOUT_TEXT = OF_TEXTS | {ROW, CELL}
ONLY_TEXT = frozenset((VALUE, TEXT))
# What the value of a cell of each type looks like; None for any text.
TYPES = {
    "n": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    "b": re.compile(r"[01]"),
    "s": re.compile(r"[0-9]+"),
    "str": None,
    "inlineStr": None,
    "e": None,
    "d": None,
}
CELL_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9][0-9]*)")
ROW_NUMBER = re.compile(r"[1-9][0-9]*")
# A shorter number is finite.
MIN_INFINITE = len("1e309")
# The columns of a sheet: XFD is the last.
MAX_COLUMNS = 16_384


@lru_cache(maxsize=1 << 10)
def _column_number(letters: str) -> int:
    """Return the number of a column, from 1.

    >>> _column_number("A"), _column_number("AB")
    (1, 28)
    """
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - ord("A") + 1
    return column


class SheetCheck:
    """A check of the XML of one sheet, or of the texts that cells share, in constant memory. It
    raises `DataError`.

    n_texts: how many texts the cells of the workbook share. n_uncomputed: how many formulas have no
    stored value. No spreadsheet program has computed them. merged: the ranges of cells that are
    merged, such as A1:A3.
    """

    def __init__(self, label: str, n_texts: int = 0) -> None:
        self.label = label
        self.n_texts = n_texts
        self.n_uncomputed = 0
        self.merged: list[str] = []
        self.n_shared = 0  # shared texts so far, in a part of such texts
        self.open: list[str] = [""]  # the elements around the current place, the root first
        self.in_row = False
        self.row, self.row_is_numbered = 0, False
        self.column = 0
        # The current cell: its type and reference, its elements, and the pieces of its value.
        self.type = "n"
        self.reference: str | None = None
        self.parts: list[str] = []
        self.pieces: list[str] = []
        # Whether the text that is written in the cell has begun, and that of its last run.
        self.has_text = self.run_has_text = False

    def read(self, part: IO[bytes]) -> None:
        """Check the whole XML. Raises `DataError`, and `ExpatError` for what is not XML."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        while chunk := part.read(CHUNK):
            parser.Parse(chunk)
        parser.Parse(b"", True)

    # --- events of the parser ---

    def _doctype(self, *_: object) -> None:
        raise self._damaged("it has a document type, which may define entities")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1]
        self.open.append(tag)
        if tag == CELL:
            if parent != ROW:
                raise self._damaged("a cell is outside the rows")
            self._start_cell(attributes)
        elif tag == ROW:
            if self.in_row:
                raise self._damaged("a row is within another row")
            self._start_row(attributes)
        elif parent == CELL:
            self.parts.append(tag)
            if tag == INLINE:
                self.has_text = False
        elif parent == ROW and tag != EXTENSIONS:
            raise self._damaged(f"row {self.row:,} has something that is not a cell")
        elif parent in OF_TEXTS:
            self._start_text(tag, parent)
        elif tag == MERGED:
            self.merged.append(attributes.get("ref", ""))
        elif tag == SHARED:
            self.n_shared += 1
            self.has_text = False
        elif parent in ONLY_TEXT:
            raise self._damaged_cell("has an element within its text")

    def _end(self, tag: str) -> None:
        self.open.pop()
        if tag == CELL:
            self._check_cell()
        elif tag == ROW:
            self.in_row = False

    def _characters(self, text: str) -> None:
        parent = self.open[-1]
        if parent == VALUE:
            self.pieces.append(text)
        elif parent in WITHOUT_TEXT and text.strip():
            if parent == ROW:
                raise self._damaged(f"row {self.row:,} has text outside its cells")
            raise self._damaged_cell("has text outside its value")

    # --- rows ---

    def _start_row(self, attributes: dict[str, str]) -> None:
        self.in_row, self.column = True, 0
        number = attributes.get("r")
        self.row_is_numbered = number is not None
        if number is None:
            self.row += 1
            return
        number = number.strip()
        if not ROW_NUMBER.fullmatch(number):
            raise self._damaged(f"a row has the number {shorten(number)!r}")
        if int(number) <= self.row:
            raise self._damaged(f"row {int(number):,} comes after row {self.row:,}")
        self.row = int(number)

    # --- cells ---

    def _start_cell(self, attributes: dict[str, str]) -> None:
        self.type = attributes.get("t", "n")
        self.parts, self.pieces = [], []
        self.reference = attributes.get("r")
        if self.reference is None:
            self.column += 1
            return
        column = self._column(self.reference)
        if column <= self.column:
            raise self._damaged(
                f"cell {self.reference} comes after one further to the right, or twice"
            )
        self.column = column

    def _column(self, reference: str) -> int:
        """Return the column of a cell, from 1. The cell is in the current row."""
        found = CELL_REFERENCE.fullmatch(reference)
        column = _column_number(found[1]) if found else 0
        if found is None or column > MAX_COLUMNS:
            raise self._damaged(f"a cell has the reference {shorten(reference)!r}")
        if self.row_is_numbered and int(found[2]) != self.row:
            raise self._damaged(f"cell {reference} is in row {self.row:,}")
        return column

    def _start_text(self, tag: str, parent: str) -> None:
        """Begin a piece of the text of a cell: a plain text comes first, then runs with one each.

        openpyxl takes the last plain text, and the last one of a run.
        """
        if tag == RUN:
            self.has_text, self.run_has_text = True, False
        elif tag == TEXT and parent == RUN:
            if self.run_has_text:
                raise self._damaged_cell("has two texts in one run")
            self.run_has_text = True
        elif tag == TEXT:
            if self.has_text:
                raise self._damaged_cell("has two texts")
            self.has_text = True

    def _check_cell(self) -> None:
        """Check a whole cell: openpyxl takes the first value, and decides by the type."""
        kind, parts, value = self.type, self.parts, "".join(self.pieces).strip()
        if kind not in TYPES:
            raise self._damaged_cell(f"has the unknown type {shorten(kind)!r}")
        if len(parts) > 1 and max(parts.count(VALUE), parts.count(INLINE)) > 1:
            raise self._damaged_cell("has two values")
        has_inline = INLINE in parts
        if FORMULA in parts and not self.pieces and not has_inline and kind != "str":
            self.n_uncomputed += 1
        if value and kind == "inlineStr":
            raise self._damaged_cell("has a value beside its text, or in place of it")
        if has_inline and self.has_text and kind != "inlineStr":
            raise self._damaged_cell(f"has a text, and its type is {kind!r}")
        form = TYPES[kind]
        if value and form is not None and not form.fullmatch(value):
            raise self._damaged_cell(f"has the value {shorten(value)!r}, and its type is {kind!r}")
        if value and kind == "s" and int(value) >= self.n_texts:
            raise self._damaged_cell(
                f"has the shared text {shorten(value)}, counted from 0, and there are "
                f"{self.n_texts:,}"
            )
        if kind == "n" and len(value) >= MIN_INFINITE and math.isinf(float(value)):
            raise self._damaged_cell(f"has the number {shorten(value)}, which is too large")

    def _damaged_cell(self, what: str) -> DataError:
        if self.n_shared:
            return self._damaged(f"shared text {self.n_shared:,} {what}")
        if self.reference is None:
            return self._damaged(f"a cell of row {self.row:,} {what}")
        return self._damaged(f"cell {self.reference} {what}")

    def _damaged(self, what: str) -> DataError:
        advice = "open and save the file in a spreadsheet program, or save the sheet as CSV"
        return DataError(f"{self.label}: not a spreadsheet, or damaged: {what}; {advice}")

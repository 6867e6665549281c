"""Sheets of a spreadsheet (.xlsx) to a frame."""

from __future__ import annotations

import warnings
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch.data.files.frames import (
    check_width,
    has_number,
    header_row,
    note_above,
    picked,
    table_of,
)
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need


def read_workbook(label: str, path: Path, sheet: str) -> tuple[pd.DataFrame, ReadReport]:
    """The sheet of that name, or the only one that has rows. Raises `DataError`."""
    openpyxl = need("openpyxl", "xlsx", f"{label}: reading a spreadsheet", error=DataError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a sheet has beside its cells
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            with closing(book):
                sheets = {each.title: _rows(each) for each in _wanted(book, sheet, label)}
    except DataError:
        raise
    except Exception as error:  # a damaged file fails wherever the library first notices
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None
    full = {name: rows for name, rows in sheets.items() if rows}
    if not full:
        raise DataError(f"{label}: no cell has anything in it")
    name = picked("", list(full), "sheet", label)
    rows = full[name]
    n_filled = [_n_filled(row) for _, row in rows]
    n_above = header_row([max(n_filled)] * len(rows), n_filled)
    if has_number(rows[n_above][1]):
        n_above = 0
    above = " ".join(str(cell) for _, row in rows[:n_above] for cell in row if cell)
    rows = rows[n_above:]
    header, width = rows[0][1], n_filled[n_above]
    check_width(width, label)
    cells = [[*row[:width], *[None] * (width - len(row))] for _, row in rows[1:]]
    shown = f"{Path(label.partition('#')[0]).name}#{name}"
    frame, report = table_of(cells, header[:width], label, shown)
    too_long = [number for number, row in rows[1:] if any(c is not None for c in row[width:])]
    frame = frame.set_axis([number for number, _ in rows[1:]])
    report.skip("with too many columns", too_long)
    note_above(report, n_above, above)
    return frame.drop(index=too_long), report


def _wanted(book: Any, sheet: str, label: str) -> list[Any]:
    if not sheet:
        return list(book.worksheets)
    wanted = picked(sheet, [each.title for each in book.worksheets], "sheet", label)
    return [each for each in book.worksheets if each.title == wanted]


def _rows(sheet: Any) -> list[tuple[int, list[Any]]]:
    """The rows that have a cell, with their numbers in the sheet."""
    sheet.reset_dimensions()  # which some programs write wrong
    return [
        (number, [_plain(cell) for cell in row])
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1)
        if any(cell is not None and cell != "" for cell in row)
    ]


def _plain(cell: Any) -> Any:
    """A day, which a spreadsheet keeps as its midnight, as a day."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    return None if cell == "" else cell


def _n_filled(row: list[Any]) -> int:
    """Return the number of cells, without empty ones at the end."""
    return max(place for place, cell in enumerate(row, 1) if cell is not None)

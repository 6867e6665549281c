"""Values of cells of a sheet as a spreadsheet shows them, where openpyxl returns others."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from datetime import timedelta
from decimal import Decimal
from typing import Any

# A character that XML cannot have, or that a program wrote by its number: _x000D_.
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
SURROGATE = re.compile(r"[\ud800-\udfff]")
# What a number format shows as it is, and its conditions and colours: "%", \\%, [Red].
LITERALS = re.compile(r'"[^"]*"|[\\_*].|\[[^\]]*\]')
# Formats of cells are numbered: 0% and 0.00% of all workbooks, and from 164 on those of one.
USUAL_PERCENT = frozenset((9, 10))
FIRST_OWN_FORMAT = 164
LAST_ROW = re.compile(r"([0-9]+)$")


def unescaped(text: str) -> str:
    """Return a text with characters instead of their numbers.

    >>> unescaped("_x0041_b_x000D_"), unescaped("_x005F_x0041_")
    ('Ab\\r', '_x0041_')
    """
    if "_x" not in text:
        return text
    characters = ESCAPED.sub(lambda number: chr(int(number[1], 16)), text)
    if SURROGATE.search(characters) is None:
        return characters
    # The two halves of a character have a number each.
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def in_hours(length: timedelta) -> str:
    """Return a length of time as spreadsheets show it.

    >>> in_hours(timedelta(days=1, hours=6)), in_hours(timedelta(minutes=-90))
    ('30:00:00', '-1:30:00')
    """
    seconds = round(abs(length).total_seconds())
    sign = "-" if length < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def is_percent(number_format: str) -> bool:
    """Return whether a format shows a number times 100, with a percent sign.

    >>> is_percent("0.0%"), is_percent('0.0"%"'), is_percent("[Red]0%;0%")
    (True, False, True)
    """
    positive, *_ = LITERALS.sub("", number_format).split(";")
    return "%" in positive


def percent_styles(workbook: Any) -> Set[int]:
    """Return the numbers of the styles of a workbook of openpyxl that show percentages."""
    own = workbook._number_formats
    percent = set()
    for number, style in enumerate(workbook._cell_styles):
        n_own = style.numFmtId - FIRST_OWN_FORMAT
        is_own = 0 <= n_own < len(own)
        if style.numFmtId in USUAL_PERCENT or (is_own and is_percent(own[n_own])):
            percent.add(number)
    return percent


def with_percent(cell: Any, styles: Set[int]) -> Any:
    """Return the value of a cell of openpyxl, and a percentage as text: 0.1 as "10%", as a CSV file
    has it. styles: those of percentages.
    """
    value = cell.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or cell._style_id not in styles:
        return value
    # In decimals, since 0.07 * 100 is 7.000000000000001.
    return f"{(Decimal(repr(value)) * 100).normalize():f}%"


def merged_below(ranges: Sequence[str], header: int) -> list[str]:
    """Return the ranges of merged cells that reach below the row of the header.

    >>> merged_below(["A1:D1", "B3:B5"], header=2)
    ['B3:B5']
    """
    below = []
    for merged in ranges:
        last = LAST_ROW.search(merged)
        if last is not None and int(last[1]) > header:
            below.append(merged)
    return below

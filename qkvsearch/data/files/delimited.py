"""Text with a delimiter between the cells to a frame: CSV, TSV and the like."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qkvsearch.data.files.frames import check_width, distinct, note_above, rows_above
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

DELIMITERS = ",\t;|"
# How much of a file, in characters, tells its delimiter.
SAMPLE = 100_000
NOTHING = "not a table: no line has anything in it"


def read_delimited(
    label: str,
    name: str,
    text: io.TextIOBase,
    delimiter: str | None,
    names: Sequence[str] | None,
) -> tuple[pd.DataFrame, ReadReport]:
    """`label` and `name` are what errors and the report call the file. Raises `DataError`."""
    above = [] if names else _lines_above(text, [delimiter] if delimiter else DELIMITERS)
    if above:
        text = io.StringIO(text.read()[sum(map(len, above)) :], newline="")
    if delimiter is None:
        delimiter = _guess_delimiter(text)
    quoted = names is None and not (delimiter == "\t" and _quotes_are_text(text))
    # pandas accepts a first row of any length, so the header is read as a row. One column more
    # than the header has shows which rows are too long.
    width = len(names) if names else _header_width(label, text, delimiter)
    check_width(width, label)
    frame, too_long = parse_rows(label, text, delimiter, quoted, width)
    every_row = np.arange(1, len(frame) + len(too_long) + 1) + len(above)
    frame = frame.set_axis(np.delete(every_row, too_long - 1)).dropna(how="all")
    if names is None and frame.empty:
        raise DataError(f"{label}: {NOTHING}")
    if names is None:
        names, frame = distinct(frame.iloc[0, :width]), frame.iloc[1:]
    report = ReadReport(name, read=len(frame) + len(too_long))
    note_above(report, len(above), "".join(above))
    fits = frame[width].isna()
    report.skip("with too many columns", np.sort([*too_long + len(above), *frame.index[~fits]]))
    return frame[fits].drop(columns=width).set_axis(list(names), axis=1), report


@dataclass(frozen=True)
class TextBeginning:
    """What the beginning of a text tells: its columns, and how many lines come before the first
    row, `above` of them before the names.
    """

    names: list[str]
    delimiter: str
    n_lines: int
    above: list[str]

    def note(self, report: ReadReport) -> None:
        note_above(report, len(self.above), "".join(self.above))


def head_of(label: str, text: io.StringIO, delimiter: str | None) -> TextBeginning:
    """As `read_delimited` finds them. Raises `DataError`."""
    above = _lines_above(text, [delimiter] if delimiter else DELIMITERS)
    rest = io.StringIO(text.read()[sum(map(len, above)) :], newline="")
    delimiter = delimiter or _guess_delimiter(rest)
    width = _header_width(label, rest, delimiter)
    check_width(width, label)
    for number, line in enumerate(rest, len(above) + 1):
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        if "".join(cells).strip():
            frame, _ = parse_rows(label, io.StringIO(line, newline=""), delimiter, True, width)
            return TextBeginning(distinct(frame.iloc[0, :width]), delimiter, number, above)
    raise DataError(f"{label}: {NOTHING}")


def parse_rows(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of text with at most `width` cells and one more, blank ones too; and the places, from 1,
    of those that have more and are left out. Raises `DataError`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                text,
                sep=re.escape(delimiter) if len(delimiter) > 1 else delimiter,
                engine="python" if len(delimiter) > 1 else "c",
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                header=None,
                names=range(width + 1),
                index_col=False,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                skip_blank_lines=False,
                on_bad_lines="warn",
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise DataError(f"{label}: not a table: {_in_words(error)}".rstrip()) from None
    said = " ".join(str(warning.message) for warning in caught)
    return frame, np.array(re.findall(r"Skipping line (\d+)", said), dtype=np.int64)


def _in_words(error: Exception) -> str:
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if unclosed is None:
        return str(error)
    return (
        f"row {int(unclosed[1]) + 1}, the header counted, opens a quote that is never closed; "
        'close it, or write "" for a quote that belongs to the text'
    )


def _quotes_are_text(text: io.TextIOBase) -> bool:
    """True where tabs alone make every line a row, and a cell opens a quote that is not closed in
    its line: read as quotes, they would join lines.
    """
    rows = [line.rstrip("\r\n").split("\t") for line in text if line.strip()]
    text.seek(0)
    if len({len(row) for row in rows}) > 1:
        return False
    opened = (cell for row in rows for cell in row if cell.startswith('"'))
    return any(len(cell) == 1 or not cell.endswith('"') for cell in opened)


def _header_width(label: str, text: io.TextIOBase, delimiter: str) -> int:
    rows = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    try:
        width = next(len(row) for row in rows if len(row) > 1 or "".join(row).strip())
    except StopIteration:
        raise DataError(f"{label}: {NOTHING}") from None
    except csv.Error as error:
        raise DataError(
            f"{label}: not a table: the first line has to name the columns ({error})"
        ) from None
    text.seek(0)
    return width


def _lines_above(text: io.TextIOBase, delimiters: Sequence[str]) -> list[str]:
    """The first lines, where they stand above a table and are none of its rows."""
    sample = text.read(SAMPLE)
    text.seek(0)
    lines = sample.splitlines(keepends=True)
    if len(sample) == SAMPLE:
        del lines[-1]  # perhaps not whole
    for delimiter in delimiters:
        try:
            rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            continue
        first = rows_above(rows)
        if first and not any('"' in line for line in lines[:first]):  # a cell of several lines
            return lines[:first]
    return []


def _guess_delimiter(text: io.TextIOBase) -> str:
    """The one that splits the first lines into the most columns, and all into as many.

    Of two that do as well, the one after which there are fewer spaces: a comma in a sentence.
    """
    sample = text.read(SAMPLE)
    text.seek(0)
    lines = sample.splitlines(keepends=True)
    if len(sample) == SAMPLE and len(lines) > 1:
        del lines[-1]  # perhaps not whole

    def fit(delimiter: str) -> tuple[float, float]:
        rows = []
        try:
            for row in csv.reader(lines, delimiter=delimiter):
                rows.append(row)
        except csv.Error:
            pass  # a cell longer than the csv module reads
        rows = [row for row in rows if "".join(row).strip()]
        if not rows:
            return 0, 0
        width = len(rows[0])
        alike = sum(len(row) == width for row in rows) / len(rows)
        spaced = sum(cell.startswith(" ") for row in rows for cell in row[1:])
        return (width - 1) * alike, -spaced

    return max(DELIMITERS, key=fit)

"""Text with a delimiter between the cells to frames, piece by piece: CSV, TSV and the like."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch.data.files import scratch
from qkvsearch.data.files.frames import Piece, check_width, distinct, note_above, rows_above
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
) -> Iterator[Piece]:
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
    report = ReadReport(name)
    note_above(report, len(above), "".join(above))
    too_long = np.empty(0, np.int64)
    for frame, left_out in parse_rows(label, text, delimiter, quoted, width):
        frame = frame.set_axis(frame.index + len(above)).dropna(how="all")
        too_long = np.append(too_long, left_out + len(above))
        if names is None:
            if frame.empty:
                continue
            names, frame = distinct(frame.iloc[0, :width]), frame.iloc[1:]
        report.read += len(frame) + len(too_long)
        fits = frame[width].isna()
        report.skip("with too many columns", np.sort([*too_long, *frame.index[~fits]]))
        too_long = too_long[:0]
        yield frame[fits].drop(columns=width).set_axis(list(names), axis=1), report
    if names is None:
        raise DataError(f"{label}: {NOTHING}")


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
            alone = io.StringIO(line, newline="")
            frame, _ = next(parse_rows(label, alone, delimiter, True, width))
            return TextBeginning(distinct(frame.iloc[0, :width]), delimiter, number, above)
    raise DataError(f"{label}: {NOTHING}")


def parse_rows(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Pieces of a text: rows with at most `width` cells and one more, those without anything too,
    by their numbers from 1; and the numbers of those that are longer, which are left out. Raises
    `DataError`.
    """
    return _numbered(_parsed(label, text, delimiter, quoted, width))


def _parsed(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Some lines as rows, those without anything too, and the numbers of lines that are too long,
    which are left out; then the next ones.
    """
    pieces: Any = None
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            try:
                if pieces is None:
                    pieces = pd.read_csv(
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
                        chunksize=scratch.ROWS_AT_ONCE,
                    )
                frame = next(pieces, None)
            except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
                raise DataError(f"{label}: not a table: {_in_words(error)}".rstrip()) from None
        said = " ".join(str(warning.message) for warning in caught)
        too_long = np.array(re.findall(r"Skipping line (\d+)", said), dtype=np.int64)
        if frame is not None:
            yield frame, too_long
            continue
        if len(too_long):  # and nothing else was left
            yield pd.DataFrame(columns=range(width + 1), dtype=str), too_long
        return


def _numbered(
    pieces: Iterator[tuple[pd.DataFrame, np.ndarray]],
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """The same, the numbers of the lines as index, which count those that were left out."""
    done, left_out = 0, np.empty(0, np.int64)
    for frame, too_long in pieces:
        left_out = np.append(left_out[left_out > done], too_long)
        lines = np.arange(done + 1, done + 1 + len(frame) + len(left_out))
        lines = np.setdiff1d(lines, left_out)[: len(frame)]
        done = int(lines[-1]) if len(lines) else done
        yield frame.set_axis(lines), too_long


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
    try:
        if not any('"' in piece for piece in iter(lambda: text.read(SAMPLE), "")):
            return False
        text.seek(0)
        width, opened = None, False
        for line in text:
            if not line.strip():
                continue
            row = line.rstrip("\r\n").split("\t")
            if width not in (None, len(row)):
                return False
            width = len(row)
            opened |= any(
                cell.startswith('"') and (len(cell) == 1 or not cell.endswith('"')) for cell in row
            )
        return opened
    finally:
        text.seek(0)


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

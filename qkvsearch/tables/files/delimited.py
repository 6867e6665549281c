"""Text with a delimiter between the cells to frames, batch by batch: CSV, TSV and the like."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import NAMES, folded
from qkvsearch.tables.files.frames import (
    Piece,
    begins_with_number,
    check_names,
    check_width,
    distinct,
    header_row,
    note_above,
    rows_at_once,
)
from qkvsearch.tables.files.quotes import QuotedText
from qkvsearch.tables.report import ReadReport

# The first of those that fit equally well is taken.
DELIMITERS = ",;\t|"
# A text of one column is split at a character that no text has.
ONE_COLUMN = "\x1f"
# Characters that decide the delimiter and where the header is.
SAMPLE = 100_000
# Lines behind them, which may be longer.
LINES = 10
# Characters that are read at a time.
BLOCK = 1 << 23
BLANK = " \t"
# The line with which Excel names the delimiter.
SEP = re.compile(r'"?sep=([^\r\n"])"?[,;\t|]*(?:\r\n|\r|\n)', re.IGNORECASE)
COLUMN_NAMES = frozenset(name for names in NAMES["whole"].values() for name in names)
NOTHING = "not a table: no line has anything in it"


class Layout(NamedTuple):
    """A text's columns. above: lines above the header. others: delimiters that fit as well."""

    delimiter: str
    above: Sequence[str]
    width: int
    others: Sequence[str] = ()


def read_delimited(
    label: str,
    name: str,
    text: io.TextIOBase,
    delimiter: str | None,
    names: Sequence[str] | None,
) -> Iterator[Piece]:
    """Read rows below a header, or below `names` where the file has no header.

    `label` and `name` are what errors and the report call the file. Raises `DataError`.
    """
    if delimiter is not None and (not delimiter or set(delimiter) & set('"\r\n')):
        raise DataError(f"`delimiter` is a sign such as ; or |, not {delimiter!r}")
    has_escapes = False
    if names:
        layout: Layout | None = Layout(delimiter or ",", [], len(names))
    else:
        start = io.StringIO(_sample(text), newline="")
        sampled = QuotedText(start, delimiter or DELIMITERS, label, is_sample=True)
        sample, has_escapes = sampled.read(), sampled.has_escapes
        sep = SEP.match(sample)
        layout = find_layout(sample[sep.end() if sep else 0 :], delimiter or (sep and sep[1]))
        if layout and sep:
            layout = layout._replace(above=[sep[0], *layout.above])
    if layout is None:
        raise DataError(f"{label}: {NOTHING}")
    delimiter, above, width, others = layout
    check_width(width, label)
    text.seek(0)
    n_lines_above = text.read(sum(map(len, above))).count("\n")
    quoted = names is None and not (delimiter == "\t" and _quotes_are_text(text))
    # pandas knows no quotes beside a delimiter of several characters.
    quotes = None
    if quoted and len(delimiter) == 1:
        text = quotes = QuotedText(text, delimiter, label, n_lines_above, has_escapes)
    report = ReadReport(name)
    note_above(report, len(above), "".join(above))
    if others:
        listed = " and ".join(map(repr, [delimiter, *others]))
        report.warnings.append(
            f"{name}: {listed} divide its lines equally well, and {delimiter!r} was taken for the "
            "delimiter; `delimiter` says which"
        )
    too_long = np.empty(0, np.int64)
    # pandas accepts a first row of any length, so the header is read as a row. One column more
    # than the header has shows which rows are too long.
    for frame, left_out in _parsed(label, text, delimiter, quoted, width):
        report.n_lines += len(frame) + len(left_out)
        frame = frame.set_axis(frame.index + len(above)).dropna(how="all")
        too_long = np.append(too_long, left_out + len(above))
        if names is None:
            if frame.empty:
                continue
            names, frame = distinct(frame.iloc[0, :width]), frame.iloc[1:]
            check_names(names, label)
            first = {folded(cell) for cell in frame.iloc[:1].to_numpy().flat if cell == cell}
            if first and first <= COLUMN_NAMES and COLUMN_NAMES.isdisjoint(map(folded, names)):
                report.warnings.append(
                    f"{name}: line {frame.index[0]} may have the names of the columns, which were "
                    f"taken from above it ({names[0]!r}): if so, remove what is above it"
                )
        report.read += len(frame) + len(too_long)
        fits = frame[width].isna()
        report.skip("with too many columns", np.sort([*too_long, *frame.index[~fits]]))
        too_long = too_long[:0]
        yield frame[fits].drop(columns=width).set_axis(list(names), axis=1), report
    if quotes is not None and (kept := quotes.note()):
        report.warnings.append(f"{name}: {kept}")
    if names is None:
        raise DataError(f"{label}: {NOTHING}")


# --- the delimiter and the header ---


def _sample(text: io.TextIOBase) -> str:
    """Return whole lines from the beginning of a text, more than one if there are."""
    return text.read(SAMPLE) + "".join(text.readline() for _ in range(LINES))


def find_layout(sample: str, delimiter: str | None = None) -> Layout | None:
    """Return the layout of a text by its first characters; None where all lines are blank.

    The delimiter is the one that each line from the header to the end has. Of several it is the
    one whose header comes first, then the one that divides the most lines into the same number of
    cells, then the first of `DELIMITERS`. A text that none of them divides has one column.

    >>> find_layout("Prices in May\\nid;title;price\\na;Tent, red;9,50\\nb;Rope, blue;1,20\\n")
    Layout(delimiter=';', above=['Prices in May\\n'], width=3, others=[])
    """
    delimiters = [delimiter] if delimiter else list(DELIMITERS)
    records = _records(sample, delimiters)
    if len(sample) > SAMPLE and len(records) > 1:
        del records[-1]  # perhaps a cell of it goes on
    if not any(record.bare.strip(BLANK + DELIMITERS) for record in records):
        return None
    layouts: dict[tuple[int, int, int], list[Layout]] = {}
    for each in delimiters:
        filled = [n for n, record in enumerate(records) if record.n_filled(each)]
        if not filled:
            continue
        rows = [records[n] for n in filled]
        n_cells = [row.bare.count(each) + 1 for row in rows]
        n_filled = [row.n_filled(each) for row in rows]
        header = header_row(n_cells, n_filled)
        if begins_with_number(rows[header].text.split(each)):
            header = 0
        if n_cells[header] == 1 and delimiter is None:
            continue
        below = n_cells[header:]
        fit = (below.count(1), header, -max(Counter(below).values()))
        above = [record.text for record in records[: filled[header]]] if header else []
        layouts.setdefault(fit, []).append(Layout(each, above, n_cells[header]))
    if not layouts:
        return Layout(ONE_COLUMN, [], 1)
    first, *others = layouts[min(layouts)]
    return first._replace(others=[layout.delimiter for layout in others])


class Record(NamedTuple):
    """A line, or several where a quoted cell goes on. bare: the text without its quoted cells."""

    text: str
    bare: str

    def n_filled(self, delimiter: str) -> int:
        """Return the number of cells, without empty ones at the end."""
        filled = self.bare.rstrip(BLANK + delimiter)
        return filled.count(delimiter) + 1 if filled else 0


def _records(text: str, delimiters: Sequence[str]) -> list[Record]:
    """Return the lines of a text, joined where a quoted cell goes on."""
    ends = "|".join(map(re.escape, [*delimiters, "\r", "\n"]))
    quoted = re.compile(rf'(^|{ends})( *"(?:[^"]++|"")*+(?:"(?=[ ]*(?:{ends}|\Z))|\Z))')
    bare = quoted.sub(lambda match: match[1] + _blanked(match[2]), text)
    records, start = [], 0
    for line in io.StringIO(bare, newline=""):
        records.append(Record(text[start : start + len(line)], line.rstrip("\r\n")))
        start += len(line)
    return records


def _blanked(cell: str) -> str:
    """Return as many letters as a quoted cell has, or spaces where nothing is in its quotes."""
    return ("x" if cell.strip(' "') else " ") * len(cell)


# --- rows ---


def _parsed(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Yield rows of at most `width` cells and one more, blank ones too, by their numbers from 1;
    and the numbers of longer rows, which are left out. Raises `DataError`.
    """
    reader: Any = None
    blocks, max_rows = _Blocks(text), rows_at_once(width)
    n_before, too_long, at_end = 0, np.empty(0, np.int64), False
    while not at_end:
        n_lines = blocks.read_ahead()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            try:
                if reader is None:
                    reader = pd.read_csv(
                        blocks,
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
                        iterator=True,
                    )
                frame = reader.get_chunk(min(n_lines or max_rows, max_rows))
            except StopIteration:
                frame, at_end = pd.DataFrame(columns=range(width + 1), dtype=str), True
            except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
                raise DataError(f"{label}: not a table: {_in_words(error)}".rstrip()) from None
        messages = " ".join(str(warning.message) for warning in caught)
        skipped = np.array(re.findall(r"Skipping line (\d+)", messages), dtype=np.int64)
        # pandas may warn of lines below those that it returns.
        too_long = np.append(too_long[too_long > n_before], skipped)
        rows = np.arange(n_before + 1, n_before + 1 + len(frame) + len(too_long))
        rows = rows[~np.isin(rows, too_long)][: len(frame)]
        n_before = int(rows[-1]) if len(rows) else n_before
        if len(frame) or len(skipped):
            yield frame.set_axis(rows), skipped


class _Blocks(io.TextIOBase):
    """A text of which a block is read ahead, so that few long rows are parsed at a time."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text, self._block = text, io.StringIO()

    def read_ahead(self) -> int | None:
        """Read the next block, and return how many lines it has; None if it is the last one."""
        block = self._block.read()
        block += self._text.read(max(1, BLOCK - len(block)))
        last_line = self._text.readline()
        self._block = io.StringIO(block + last_line, newline="")
        return max(1, block.count("\n"), block.count("\r")) if last_line else None

    def read(self, size: int | None = -1) -> str:
        return self._block.read(size) or self._text.read(size)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self._block.readline(size) or self._text.readline(size)


def _in_words(error: Exception) -> str:
    """Return the message of pandas, or a clearer one for a quote that is never closed."""
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if unclosed is None:
        return str(error)
    return (
        f"row {int(unclosed[1]) + 1}, the header counted, opens a quote that is never closed; "
        'close it, or write "" for a quote that belongs to the text'
    )


def _quotes_are_text(text: io.TextIOBase) -> bool:
    """Return whether all lines of a text with tabs have as many cells, and a cell opens a quote
    that its line does not close: read as quotes, they would join lines.
    """
    start = text.tell()
    try:
        if not any('"' in piece for piece in iter(lambda: text.read(SAMPLE), "")):
            return False
        text.seek(start)
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
        text.seek(start)

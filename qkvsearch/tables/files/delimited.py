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
from qkvsearch.tables.files.file_format import TextFormat, TextOptions
from qkvsearch.tables.files.quotes import QuotedText, line_ends
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.frames import (
    Piece,
    begins_with_number,
    check_names,
    check_width,
    distinct,
    header_row,
    note_above,
    rows_at_once,
)
from qkvsearch.tables.report import TOO_MANY_COLUMNS, ReadReport

# The first of those that fit equally well is taken.
DELIMITERS = ",;\t|"
# Commas, semicolons and bars of Chinese, Japanese and Arabic keyboards. Texts have them, too, so
# each line from the first one on must have as many.
WIDE_DELIMITERS = "，；｜،؛"
# Suffixes of files whose delimiter is a tab.
TAB_SUFFIXES = (".tsv", ".tab")
# A text of one column is split at a character that no text has.
ONE_COLUMN = "\x1f"
# Characters that decide the delimiter and where the header is.
SAMPLE = 100_000
# Lines behind them, which may be longer.
LINES = 10
# Characters that are read at a time.
BLOCK = 1 << 23
# Characters that are read at a time where more are needed.
AT_ONCE = 1 << 20
# Rows that are parsed before it is known how long they are.
FIRST_ROWS = 128
BLANK = " \t"
# The line with which Excel names the delimiter.
SEP = re.compile(r'"?sep=([^\r\n"])"?[,;\t|]*(?:\r\n|\r|\n)', re.IGNORECASE)
COLUMN_NAMES = frozenset(name for names in NAMES["whole"].values() for name in names)
NOTHING = "not a table: no line has anything in it"


class DelimitedLayout(NamedTuple):
    """A text's columns. above: lines above the header. others: delimiters that fit as well.
    instead: the delimiter of another file, which is not in this one. perhaps: a sign that may
    divide the only column.
    """

    delimiter: str
    above: Sequence[str]
    width: int
    others: Sequence[str] = ()
    instead: str = ""
    perhaps: str = ""


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
        layout: DelimitedLayout | None = DelimitedLayout(delimiter or ",", [], len(names))
    else:
        layout, has_escapes = _layout_of(text, delimiter, label)
    if layout is None:
        raise DataError(f"{label}: {NOTHING}")
    width, n_above = layout.width, len(layout.above)
    check_width(width, label)
    report = _report_on(layout, name)
    text.seek(0)
    n_lines_above = line_ends(text.read(sum(map(len, layout.above))))
    quoted = names is None and not (layout.delimiter == "\t" and _quotes_are_text(text))
    # pandas knows no quotes beside a delimiter of several characters.
    quotes = None
    if quoted and len(layout.delimiter) == 1:
        quotes = QuotedText(text, layout.delimiter, label, n_lines_above, has_escapes)
        text = quotes
    header = list(names) if names else None
    # Rows with too many columns that are not reported yet: some may be above the header.
    too_long: list[int] = []
    sign = layout.delimiter
    if len(sign) == 1 and not sign.isascii():
        text = _OtherSign(text, sign)
    for chunk in _chunks(label, text, sign, quoted, width):
        report.n_lines += len(chunk.frame) + len(chunk.too_long)
        too_long += (chunk.too_long + n_above).tolist()
        frame = chunk.frame.set_axis(chunk.frame.index + n_above).dropna(how="all")
        if header is None:
            if frame.empty:
                continue
            header = distinct(frame.iloc[0, :width])
            frame = frame.iloc[1:]
            check_names(header, label)
            _warn_of_header_below(frame, header, report)
        has_one_more = frame[width].notna()
        report.read += len(frame) + len(too_long)
        report.skip(TOO_MANY_COLUMNS, np.sort([*too_long, *frame.index[has_one_more]]))
        too_long = []
        yield frame[~has_one_more].drop(columns=width).set_axis(header, axis=1), report
    if quotes is not None and quotes.note():
        report.warnings.append(f"{name}: {quotes.note()}")
    if header is None:
        raise DataError(f"{label}: {NOTHING}")


def _layout_of(
    text: io.TextIOBase, delimiter: str | None, label: str
) -> tuple[DelimitedLayout | None, bool]:
    """Return the layout of a text with a header, None where all lines are blank; and whether it
    writes a backslash before a quote.
    """
    start = _sample(text)
    quotes = _quoted_sample(start, delimiter or DELIMITERS, label)
    sample = quotes.read()
    sep = SEP.match(sample)
    if delimiter is not None and sep is None:
        own = _layout_of_its_own(text, sample, delimiter, label)
        if own is not None:
            return own
    if sep is None:
        layout = find_layout(sample, delimiter)
        if delimiter is None and layout is not None and (layout.width == 1 or layout.above):
            own = _wide_layout(start, label)
            if own is not None:
                return own
            if layout.width == 1:
                layout = layout._replace(perhaps=_sign_of_most(sample))
        return layout, quotes.has_escapes
    layout = find_layout(sample[sep.end() :], delimiter or sep[1])
    if layout is not None:
        layout = layout._replace(above=[sep[0], *layout.above])
    return layout, quotes.has_escapes


def _quoted_sample(start: str, delimiters: str, label: str) -> QuotedText:
    return QuotedText(io.StringIO(start, newline=""), delimiters, label, is_sample=True)


def _wide_layout(start: str, label: str) -> tuple[DelimitedLayout, bool] | None:
    """Return the layout of a text that one of `WIDE_DELIMITERS` divides, each line into as many
    cells; None for any other text.
    """
    for sign in WIDE_DELIMITERS:
        quotes = _quoted_sample(start, sign, label)
        lines = _whole_lines(quotes.read(), [sign])
        n_cells = {line.bare.count(sign) + 1 for line in lines if line.bare.strip(BLANK)}
        if len(lines) > 1 and len(n_cells) == 1 and n_cells != {1}:
            return DelimitedLayout(sign, [], n_cells.pop()), quotes.has_escapes
    return None


def _sign_of_most(sample: str) -> str:
    """Return the one of `WIDE_DELIMITERS` that the first line and most others have, or ""."""
    first, *others = [line for line in sample.splitlines() if line.strip()]
    for sign in WIDE_DELIMITERS:
        if sign in first and 2 * sum(sign in line for line in others) > len(others):
            return sign
    return ""


def _layout_of_its_own(
    text: io.TextIOBase, sample: str, delimiter: str, label: str
) -> tuple[DelimitedLayout, bool] | None:
    """Return the layout of a text whose first line has another delimiter than the one that is
    named, which is then for another file; None for any other text.
    """
    first = next((line for line in sample.splitlines() if line.strip()), "")
    if delimiter in first:
        return None
    text.seek(0)
    layout, has_escapes = _layout_of(text, None, label)
    if layout is None or layout.width == 1 or layout.above or layout.delimiter not in first:
        return None
    return layout._replace(instead=delimiter, others=()), has_escapes


def _report_on(layout: DelimitedLayout, name: str) -> ReadReport:
    """Return a report that says what was left out above the table, and which delimiters fit."""
    report = ReadReport(name)
    note_above(report, len(layout.above), "".join(layout.above))
    if layout.instead:
        report.notes.append(
            f"no {layout.instead!r} in its first line, so read with {layout.delimiter!r}"
        )
    elif layout.delimiter in WIDE_DELIMITERS:
        report.notes.append(f"read with {layout.delimiter!r} between the cells")
    if layout.perhaps:
        report.warnings.append(
            f"{name}: read as one column, but its first line and most others have "
            f"{layout.perhaps!r}, not equally often; if it is between the cells, name it with "
            "`delimiter`"
        )
    if layout.others:
        listed = " and ".join(map(repr, [layout.delimiter, *layout.others]))
        report.warnings.append(
            f"{name}: {listed} divide its lines equally well, and {layout.delimiter!r} was taken "
            "for the delimiter; `delimiter` says which"
        )
    return report


def _warn_of_header_below(frame: pd.DataFrame, header: Sequence[str], report: ReadReport) -> None:
    """Warn where the names that were taken are unusual, and the row below them has usual ones."""
    first = {folded(cell) for cell in frame.iloc[:1].to_numpy().flat if pd.notna(cell)}
    if first and first <= COLUMN_NAMES and COLUMN_NAMES.isdisjoint(map(folded, header)):
        report.warnings.append(
            f"{report.file}: line {frame.index[0]} may have the names of the columns, which were "
            f"taken from above it ({header[0]!r}): if so, remove what is above it"
        )


# --- the delimiter and the header ---


def _sample(text: io.TextIOBase) -> str:
    """Return whole lines from the beginning of a text, more than one if there are."""
    return text.read(SAMPLE) + "".join(text.readline() for _ in range(LINES))


def find_layout(sample: str, delimiter: str | None = None) -> DelimitedLayout | None:
    """Return the layout of a text by its first characters; None where all lines are blank.

    The delimiter is the one that each line from the header to the end has. Of several it is the
    one whose header comes first, then the one that divides the most lines into the same number of
    cells, then the first of `DELIMITERS`. A text that none of them divides has one column.

    >>> layout = find_layout("Prices in May\\nid;title;price\\na;Tent, red;9,50\\nb;Rope;1,20\\n")
    >>> layout.delimiter, layout.above, layout.width
    (';', ['Prices in May\\n'], 3)
    """
    delimiters = [delimiter] if delimiter else list(DELIMITERS)
    lines = _whole_lines(sample, delimiters)
    if not any(line.bare.strip(BLANK + DELIMITERS) for line in lines):
        return None
    layouts: dict[tuple[int, int, int], list[DelimitedLayout]] = {}
    for each in delimiters:
        filled = [n for n, line in enumerate(lines) if line.n_filled(each)]
        if not filled:
            continue
        rows = [lines[n] for n in filled]
        n_cells = [row.bare.count(each) + 1 for row in rows]
        n_filled = [row.n_filled(each) for row in rows]
        header = header_row(n_cells, n_filled)
        if begins_with_number(rows[header].text.split(each)):
            header = 0
        if n_cells[header] == 1 and delimiter is None:
            continue
        below = n_cells[header:]
        fit = (below.count(1), header, -max(Counter(below).values()))
        above = [line.text for line in lines[: filled[header]]] if header else []
        layouts.setdefault(fit, []).append(DelimitedLayout(each, above, n_cells[header]))
    if not layouts:
        return DelimitedLayout(ONE_COLUMN, [], 1)
    first, *others = layouts[min(layouts)]
    return first._replace(others=[layout.delimiter for layout in others])


class LogicalLine(NamedTuple):
    """A line, or several where a quoted cell goes on. bare: the text without its quoted cells."""

    text: str
    bare: str

    def n_filled(self, delimiter: str) -> int:
        """Return the number of cells, without empty ones at the end."""
        filled = self.bare.rstrip(BLANK + delimiter)
        return filled.count(delimiter) + 1 if filled else 0


def _whole_lines(sample: str, delimiters: Sequence[str]) -> list[LogicalLine]:
    """Return the lines of a sample, without a last one that may go on behind it."""
    lines = _logical_lines(sample, delimiters)
    if len(sample) > SAMPLE and len(lines) > 1:
        del lines[-1]
    return lines


def _logical_lines(text: str, delimiters: Sequence[str]) -> list[LogicalLine]:
    """Return the lines of a text, joined where a quoted cell goes on."""
    ends = "|".join(map(re.escape, [*delimiters, "\r", "\n"]))
    # A quoted cell with the delimiter before it. The last one may be cut off by the end of a text.
    quoted = re.compile(rf'(^|{ends})( *"(?:[^"]++|"")*+(?:"(?=[ ]*(?:{ends}|\Z))|\Z))')
    bare = quoted.sub(lambda match: match[1] + _blanked(match[2]), text)
    lines = []
    start = 0
    for line in io.StringIO(bare, newline=""):
        end = start + len(line)
        lines.append(LogicalLine(text[start:end], line.rstrip("\r\n")))
        start = end
    return lines


def _blanked(cell: str) -> str:
    """Return as many letters as a quoted cell has, or spaces where nothing is in its quotes."""
    return ("x" if cell.strip(' "') else " ") * len(cell)


# --- rows ---


class NumberedRows(NamedTuple):
    """Rows of a text. The index of the frame has their numbers, which count from 1.

    frame: rows of at most `width` cells and one more, blank rows too. too_long: the numbers of
    rows with still more cells, int64, ascending. Rows of later chunks may be among them.
    """

    frame: pd.DataFrame
    too_long: np.ndarray


def _chunks(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> Iterator[NumberedRows]:
    """Read rows, few at a time. Raises `DataError`.

    pandas accepts a first row of any length, so the header is read as a row. It accepts no row with
    more cells than there are columns, so there is a column more than the header has: a cell in it
    shows that a row is too long by one cell. It leaves longer rows out, and says so in warnings.
    """
    numbers = _RowNumbers()
    for frame, too_long in _frames(label, text, delimiter, quoted, width):
        numbers.leave_out(too_long)
        if len(frame) or len(too_long):
            yield NumberedRows(frame.set_axis(numbers.following(len(frame))), too_long)


class _RowNumbers:
    """The numbers of the rows that pandas returns.

    pandas does not number rows, but the rows that it leaves out count, too. It parses ahead, so
    that it may leave out rows far below those that it returns. Here it returns two rows when it has
    left out rows 2 and 5, and then two more:

    >>> numbers = _RowNumbers()
    >>> numbers.leave_out(np.array([2, 5]))
    >>> numbers.following(2).tolist(), numbers.following(2).tolist()
    ([1, 3], [4, 6])
    """

    def __init__(self) -> None:
        # The number of the last row that was returned, and those left out that are behind it.
        self._last = 0
        self._left_out = np.empty(0, np.int64)

    def leave_out(self, numbers: np.ndarray) -> None:
        """Note that pandas left out the rows of these numbers."""
        self._left_out = np.append(self._left_out, numbers)

    def following(self, count: int) -> np.ndarray:
        """Return the numbers of the next `count` rows, int64, ascending."""
        first = self._last + 1
        candidates = np.arange(first, first + count + len(self._left_out))
        numbers = candidates[~np.isin(candidates, self._left_out)][:count]
        if count:
            self._last = int(numbers[-1])
            self._left_out = self._left_out[self._left_out > self._last]
        return numbers


def _frames(
    label: str, text: io.TextIOBase, delimiter: str, quoted: bool, width: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Let pandas parse rows, few at a time, and return the numbers of those that it leaves out.

    The rows left out are those that pandas met meanwhile, int64. Raises `DataError`.
    """
    blocks = _Blocks(text)
    reader: Any = None
    is_at_end = False
    n_done = 0
    while not is_at_end:
        n_rows = rows_at_once(width)
        n_lines = blocks.read_ahead()
        if n_lines is not None:
            # Rows may have many lines. How long they are is known after the first ones.
            n_known = FIRST_ROWS if not n_done else BLOCK * n_done // max(1, blocks.n_read)
            n_rows = min(n_rows, n_lines, max(1, n_known))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            try:
                if reader is None:
                    reader = _pandas_reader(blocks, delimiter, quoted, width)
                frame = reader.get_chunk(n_rows)
                if isinstance(text, _OtherSign):
                    frame = text.put_back(frame)
            except StopIteration:
                # There may still be warnings: the last rows of a text may all be too long.
                frame = pd.DataFrame(columns=range(width + 1), dtype=str)
                is_at_end = True
            except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
                raise DataError(f"{label}: not a table: {_in_words(error)}".rstrip()) from None
        n_done += len(frame)
        yield frame, _numbers_in(caught)


def _pandas_reader(text: io.TextIOBase, delimiter: str, quoted: bool, width: int) -> Any:
    is_one_sign = len(delimiter) == 1
    if is_one_sign and not delimiter.isascii():
        delimiter = ONE_COLUMN  # see `_OtherSign`
    return pd.read_csv(
        text,
        sep=delimiter if is_one_sign else re.escape(delimiter),
        engine="c" if is_one_sign else "python",
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


def _numbers_in(caught: Sequence[warnings.WarningMessage]) -> np.ndarray:
    """Return the numbers of the rows that pandas says it left out, int64.

    Only its warnings have them. One warning has a line for each row: "Skipping line 5: expected 3
    fields, saw 7".
    """
    messages = " ".join(str(warning.message) for warning in caught)
    return np.array(re.findall(r"Skipping line (\d+)", messages), dtype=np.int64)


class _OtherSign(io.TextIOBase):
    """A text with `ONE_COLUMN` for its delimiter, since the parser takes ASCII alone."""

    def __init__(self, text: io.TextIOBase, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter

    def read(self, size: int | None = -1) -> str:
        return self._text.read(size).replace(self._delimiter, ONE_COLUMN)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self._text.readline(size).replace(self._delimiter, ONE_COLUMN)

    def put_back(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with the delimiter in quoted cells as it was written."""
        return frame.replace(ONE_COLUMN, self._delimiter, regex=True)


class _Blocks(io.TextIOBase):
    """A text of which a block is read ahead, so that few long rows are parsed at a time."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._block = io.StringIO()
        # How many characters the parser has read.
        self.n_read = 0

    def read_ahead(self) -> int | None:
        """Read the next block, and return how many lines it has; None if it is the last one."""
        block = self._block.read()
        block += self._text.read(max(1, BLOCK - len(block)))
        last_line = self._text.readline()
        self._block = io.StringIO(block + last_line, newline="")
        return max(1, block.count("\n"), block.count("\r")) if last_line else None

    def read(self, size: int | None = -1) -> str:
        """Return at most `size` bytes of UTF-8: pandas would copy all that it has too much at each
        further call.
        """
        if size is None or size < 0:
            return self._block.read() + self._text.read()
        n_characters = max(1, size // 4)
        piece = self._block.read(n_characters)
        if not piece:
            self._block = io.StringIO(self._text.read(max(n_characters, AT_ONCE)), newline="")
            piece = self._block.read(n_characters)
        self.n_read += len(piece)
        return piece

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        line = self._block.readline(size) or self._text.readline(size)
        self.n_read += len(line)
        return line


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
    """Return whether the quotes of a text with tabs belong to its cells.

    They do where all lines have as many cells, and a cell opens a quote that its line does not
    close: if this were a quoted cell, it would join lines.
    """
    start = text.tell()
    try:
        if not any('"' in piece for piece in iter(lambda: text.read(SAMPLE), "")):
            return False
        text.seek(start)
        width, has_unclosed = None, False
        for line in text:
            if not line.strip():
                continue
            cells = line.rstrip("\r\n").split("\t")
            if width is None:
                width = len(cells)
            if len(cells) != width:
                return False
            has_unclosed = has_unclosed or any(map(_opens_quote, cells))
        return has_unclosed
    finally:
        text.seek(start)


def _opens_quote(cell: str) -> bool:
    return cell.startswith('"') and (len(cell) == 1 or not cell.endswith('"'))


def _read(file: TableFile, text: io.TextIOBase, options: TextOptions) -> Iterator[Piece]:
    delimiter = options.delimiter or ("\t" if file.suffix in TAB_SUFFIXES else None)
    return read_delimited(file.label, file.name, text, delimiter, options.names)


DELIMITED = TextFormat(
    name="CSV, TSV",
    recognized_by="anything else; `.tsv`, `.tab`",
    notes="delimiter `, ; tab` or `|` ([which one](#the-delimiter)), `，` or `；`, or "
    "`--delimiter`; quoted cells may span lines; a quote in them is doubled or has a backslash "
    "before it",
    fits=lambda file, text, options: True,
    read=_read,
)

"""Quoted cells of text with a delimiter, written as the parser of pandas reads them.

A quoted cell may span lines, and a quote within it is doubled. Many programs write something else:

| cell | is read as |
|---|---|
| `"The \\"Sea\\" House"` | `The "Sea" House`: MySQL and Book-Crossing put a backslash before it |
| `"C:\\dir\\"` | `C:\\dir\\`, since nothing else closes the cell on its line |
| `"closed" tail` | `"closed" tail`: as written, and counted |
| `"never closed` | an error, as soon as the text behind the next quote shows it |

The last one matters most: the parser would read all rows up to the next quote as one cell.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

import numpy as np

from qkvsearch.errors import DataError, quantity
from qkvsearch.tables.report import EMAIL
from qkvsearch.terminal import shorten

# A quoted cell is looked for in as many characters. A longer one is no cell.
LONGEST_CELL = 1 << 26
# A quote behind a backslash that is not itself behind one.
ESCAPED_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)\\"')


class Grammar:
    """What is a quoted cell between some delimiters. All patterns begin at its first quote."""

    def __init__(self, delimiters: str) -> None:
        ends = re.escape(delimiters) + r"\r\n"
        is_end = rf"(?= *(?:[{ends}]|\Z))"
        # The whole text up to the first quote that needs a closer look: one that opens a cell with
        # a backslash before a quote, a cell that does not end where its quote closes it, and a
        # quote behind a blank.
        self.regular = re.compile(
            rf"""(?: [^"]++
            | (?<![^{ends}]) " (?:[^"\\]++ | "" | \\(?!"))*+ " (?=[ ]*(?:[{ends}]|\Z))
            | (?<=[^{ends}\ ]) "
            )*+""",
            re.VERBOSE,
        )
        # A cell on one line with a backslash before each quote, and such a quote with text behind.
        self.escaped_line = re.compile(rf'(?<![^{ends}])"(?:[^"\\\r\n]++|\\[^\r\n])*+"{is_end}')
        self.unmistakable = re.compile(rf'\\"(?!"| *(?:[{ends}]|\Z))')
        self.doubled = re.compile(r'"(?:[^"]++|"")*+')
        self.escaped = re.compile(r'"(?:[^"\\]++|""|\\.)*+', re.DOTALL)
        self.closed = re.compile(rf'"{is_end}')
        # A cell as it is written, up to the next delimiter, and up to a quote that ends a cell
        # before another quote opens one.
        self.up_to_delimiter = re.compile(rf"[^{ends}]*+")
        opens_cell = rf'[{re.escape(delimiters)}] *"'
        self.up_to_quote = re.compile(rf'(?:(?!{opens_cell})[^\r\n])*?"{is_end}')
        self.ends = set(delimiters) | set("\r\n")

    def is_regular(self, text: str) -> bool:
        """Return whether each quote of a text opens a cell, closes one, or is doubled in one.

        This takes a third of the time of the pattern, and is False for some regular texts, too.
        """
        if '\\"' in text or not all(map(str.isascii, self.ends)):
            return False
        characters = np.frombuffer(f"\n{text}\n".encode(errors="replace"), np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        if len(quotes) % 2:
            return False
        is_end = np.zeros(256, dtype=bool)
        is_end[[ord(end) for end in self.ends]] = True
        opening, closing = quotes[::2], quotes[1::2]
        # Of two quotes that are one, the first seems to close the cell, and the second to open it.
        is_doubled = closing[:-1] + 1 == opening[1:]
        opens, closes = is_end[characters[opening - 1]], is_end[characters[closing + 1]]
        opens[1:] |= is_doubled
        closes[:-1] |= is_doubled
        return bool(opens.all() and closes.all())

    def has_escapes(self, text: str) -> bool:
        """Return whether a cell on one line has quotes that only backslashes explain."""
        return '\\"' in text and any(
            self.unmistakable.search(cell[0]) for cell in self.escaped_line.finditer(text)
        )


class Reading(NamedTuple):
    """A quoted cell in one of the two ways to write quotes. is_whole: whether a quote closes it
    where a cell can end; otherwise `end` is where its text stops, perhaps that of all text.
    """

    end: int
    is_whole: bool


class QuotedText(io.TextIOBase):
    """A text whose quoted cells follow the rules, piece by piece. A piece ends with a whole row.

    label: the file in messages. n_above: lines of the file above `text`. is_sample: nothing behind
    a piece is looked at, what is malformed stays, and positions stay: a backslash and a quote take
    two characters as two quotes do. has_escapes: whether quotes have a backslash before them where
    a cell may be read both ways.
    """

    def __init__(
        self,
        text: io.TextIOBase,
        delimiters: str,
        label: str,
        n_above: int = 0,
        has_escapes: bool = False,
        is_sample: bool = False,
    ) -> None:
        self._text = text
        self._grammar = Grammar(delimiters)
        self._label = label
        self._n_lines = n_above
        self._is_sample = is_sample
        self.has_escapes = has_escapes
        # Cells with text behind their closing quote, and the first of them.
        self._n_kept = 0
        self._first_kept = ""

    def read(self, size: int | None = -1) -> str:
        piece = self._text.read(size)
        if self._is_sample:
            self.has_escapes |= self._grammar.has_escapes(piece)
        if piece and not piece.endswith("\n"):
            piece += self._text.readline()
        return self._repaired(piece)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self._repaired(self._text.readline(size))

    def note(self) -> str:
        """Return a sentence on the cells with text behind their closing quote; "" without any."""
        if not self._n_kept:
            return ""
        cells = quantity(self._n_kept, "quoted cell")
        return (
            f"{cells} with text behind the closing quote, kept as written, quotes included; the "
            f'first in {self._first_kept}: write "" for a quote that belongs to the text'
        )

    def _repaired(self, piece: str) -> str:
        """Return the piece, and the rest of a cell that goes on behind it. Raises `DataError`."""
        if '"' not in piece or self._grammar.is_regular(piece):
            self._n_lines += _line_ends(piece)
            return piece
        repaired, start = [], 0
        while True:
            at = self._grammar.regular.match(piece, start).end()  # type: ignore[union-attr]
            repaired.append(piece[start:at])
            if at == len(piece):
                break
            if self._is_text(piece, at):
                repaired.append('"')
                start = at + 1
                continue
            piece = self._with_whole_cell(piece, at)
            cell, start = self._cell(piece, at)
            repaired.append(cell)
        self._n_lines += _line_ends(piece)
        return "".join(repaired)

    def _is_text(self, piece: str, at: int) -> bool:
        """Return whether a quote is within an unquoted cell: 5 " pipe."""
        if at == 0 or piece[at - 1] in self._grammar.ends:
            return False
        before = piece[max(0, at - 1_000) : at].rstrip(" ")
        return bool(before) and before[-1] not in self._grammar.ends

    def _with_whole_cell(self, piece: str, at: int) -> str:
        """Return the piece with as many more lines as the cell at `at` has."""
        grammar, n_more = self._grammar, 1 << 12
        while not self._is_sample and len(piece) - at < LONGEST_CELL:
            readings = [self._reading(pattern, piece, at) for pattern in _both(grammar)]
            goes_on = any(reading.end == len(piece) for reading in readings)
            if any(reading.is_whole for reading in readings) or not goes_on:
                break
            more = self._text.read(n_more)
            if not more:
                break
            piece += more + ("" if more.endswith("\n") else self._text.readline())
            n_more *= 2
        return piece

    def _reading(self, pattern: re.Pattern[str], piece: str, at: int) -> Reading:
        end = pattern.match(piece, at).end()  # type: ignore[union-attr]
        closed = self._grammar.closed.match(piece, end)
        return Reading(end + 1, True) if closed else Reading(end, False)

    def _cell(self, piece: str, at: int) -> tuple[str, int]:
        """Return the quoted cell at `at` as the parser reads it, and where it ends."""
        doubled, escaped = (self._reading(pattern, piece, at) for pattern in _both(self._grammar))
        if escaped.is_whole and self._is_escaped(piece, at, doubled, escaped):
            # A cell that only backslashes explain tells how the file writes quotes.
            self.has_escapes |= not doubled.is_whole
            return ESCAPED_QUOTE.sub(r'\1""', piece[at : escaped.end]), escaped.end
        if doubled.is_whole:
            return piece[at : doubled.end], doubled.end
        if doubled.end - at >= LONGEST_CELL:
            line, begins = self._place(piece, at)
            raise DataError(
                f"{self._label}, line {line:,}: a quote opens a cell ({begins}) and is not closed "
                f'within {LONGEST_CELL:,} characters: close it, or write "" for a quote that '
                "belongs to the text"
            )
        if self._is_sample or doubled.end == len(piece):
            # The parser itself names the row of a quote that is never closed.
            return piece[at:], len(piece)
        return self._kept(piece, at, doubled.end)

    def _is_escaped(self, piece: str, at: int, doubled: Reading, escaped: Reading) -> bool:
        """Return whether a cell has backslashes before its quotes: the file tells, or else one
        line is likelier than several.
        """
        if not doubled.is_whole or self.has_escapes:
            return True
        has_lines = _line_ends(piece[at : doubled.end]) > 0
        return has_lines and not _line_ends(piece[at : escaped.end])

    def _kept(self, piece: str, at: int, closing: int) -> tuple[str, int]:
        """Return a cell that has text behind its closing quote as it is written, and where it ends.

        Raises `DataError` where it has several lines, since rows may have been lost in it, and
        where a delimiter may belong to it or end it.
        """
        n_more = _line_ends(piece[at:closing])
        if n_more:
            first, begins = self._place(piece, at)
            raise DataError(
                f"{self._label}, lines {first:,} to {first + n_more:,}: the quoted cell that "
                f"begins in line {first:,} ({begins}) has text behind its closing quote in line "
                f"{first + n_more:,}, so rows may be lost in it: close the quote in line "
                f'{first:,}, or write "" for each quote that belongs to a text'
            )
        end = self._grammar.up_to_delimiter.match(piece, closing).end()  # type: ignore[union-attr]
        longer = self._grammar.up_to_quote.match(piece, closing + 1)
        if longer and longer.end() > end:
            line, begins = self._place(piece, at)
            raise DataError(
                f"{self._label}, line {line:,}: {begins} has quotes within quotes, so that its "
                'end is not clear: write "" for each quote that belongs to the text'
            )
        if not self._n_kept:
            line, _ = self._place(piece, at)
            self._first_kept = f"line {line:,} ({shorten(piece[at:end])})"
        self._n_kept += 1
        return '"' + piece[at:end].replace('"', '""') + '"', end

    def _place(self, piece: str, at: int) -> tuple[int, str]:
        """Return the number of a cell's line in the file, and how the cell begins."""
        line = self._n_lines + _line_ends(piece[:at]) + 1
        begins = re.split(r"[\r\n]", piece[at : at + 200])[0]
        return line, shorten(EMAIL.sub("(e-mail address)", begins))


def _both(grammar: Grammar) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the two ways to write quotes within a cell: doubled, and behind a backslash."""
    return grammar.doubled, grammar.escaped


def _line_ends(text: str) -> int:
    return max(text.count("\n"), text.count("\r"))

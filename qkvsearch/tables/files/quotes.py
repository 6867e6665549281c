r'''Quoted cells of text with a delimiter, rewritten as the parser of pandas reads them.

A quoted cell begins with a quote behind a delimiter or a line end, and ends with a quote before
one. It may span lines, and a quote within it is doubled. Text like that is regular and stays as it
is. Many programs write something else. With a comma as delimiter:

| text                 | rewritten as            | since                                     |
|----------------------|-------------------------|-------------------------------------------|
| `1,"a ""b"" c"`      | `1,"a ""b"" c"`         | it is regular                             |
| `1,5" pipe`          | `1,5" pipe`             | the cell is not quoted: its quote is text |
| `1,"\"Sea\" Inn"`    | `1,"""Sea"" Inn"`       | only backslashes explain the quotes       |
| `1,"C:\dir\",x`      | `1,"C:\dir\",x`         | nothing else closes the cell on its line  |
| `1,"closed" tail`    | `1,"""closed"" tail"`   | it is kept as written, and counted        |
| `1,"one "two, x" y"` | an error                | the cell may end in two places            |
| `1,"open⏎2,"x" y`    | an error                | the parser would lose row 2 in the cell   |

A quote that is never closed is left to the parser, which names its row.
'''

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
# Characters that are read first where a cell goes on behind a piece; then twice as many each time.
READ_ON = 1 << 16

# The two ways to write a quoted cell. Each pattern matches from the opening quote up to the quote
# that closes the cell, without it:
#     doubled   "a ""b"" c",x   matches   "a ""b"" c
#     escaped   "a \"b\" c",x   matches   "a \"b\" c
DOUBLED = re.compile(r'"(?:[^"]++|"")*+')
ESCAPED = re.compile(r'"(?:[^"\\]++|""|\\.)*+', re.DOTALL)
# A quote behind a backslash that is not itself behind one.
ESCAPED_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)\\"')


class QuotedReading(NamedTuple):
    """One way to read a quoted cell."""

    # Behind the closing quote; where is_whole is False, at the quote that should have closed it or
    # at the end of the text.
    end: int
    # Whether a quote closes the cell where a cell can end.
    is_whole: bool


class Candidate(NamedTuple):
    """A quote that may open a cell, and the two ways to read what is behind it."""

    piece: str
    at: int
    doubled: QuotedReading
    escaped: QuotedReading

    def goes_on(self) -> bool:
        """Return whether only text behind the piece can tell where the cell ends."""
        if self.doubled.is_whole or self.escaped.is_whole:
            return False
        return len(self.piece) in (self.doubled.end, self.escaped.end)

    def n_lines(self, reading: QuotedReading) -> int:
        """Return how many line ends are within the cell."""
        return line_ends(self.piece[self.at : reading.end])


class Grammar:
    """What begins and ends a quoted cell between some delimiters."""

    def __init__(self, delimiters: str) -> None:
        self.ends = set(delimiters) | set("\r\n")
        # What is behind a closing quote: blanks, then a delimiter, a line end or the end of all.
        ends = re.escape(delimiters) + r"\r\n"
        cell_ends = rf"(?=[ ]*(?:[{ends}]|\Z))"
        self._closing_quote = re.compile(rf'"{cell_ends}')
        self._regular = re.compile(
            rf"""(?: [^"]++  # text without quotes
            | (?<![^{ends}]) " (?:[^"\\]++ | "" | \\(?!"))*+ " {cell_ends}  # ,"a ""b"" c",
            | (?<=[^{ends}\ ]) "  # the quote of ,5" pipe,
            )*+""",
            re.VERBOSE,
        )
        # A cell of one line in which each quote has a backslash: ,"a \"b\" c",
        self._escaped_cell = re.compile(rf'(?<![^{ends}])"(?:[^"\\\r\n]++|\\[^\r\n])*+"{cell_ends}')
        # In it, the quote of \"b: it can neither be half of a doubled quote nor close the cell.
        self._needs_backslash = re.compile(rf'\\"(?!"|[ ]*(?:[{ends}]|\Z))')
        self._delimiter = re.compile(rf"[{ends}]|\Z")
        # Up to the next quote that can close a cell, on the same line, if no quote opens a cell
        # before it. Behind the second quote of ,"one "two, x", it matches two, x" and behind that
        # of ,"one" two, "x", nothing.
        opens_cell = rf'[{re.escape(delimiters)}][ ]*"'
        self._up_to_closing_quote = re.compile(rf'(?:(?!{opens_cell})[^\r\n])*?"{cell_ends}')

    def next_irregular(self, text: str, start: int) -> int:
        """Return where the next quote is that needs a closer look, len(text) if none does.

        Such a quote opens a cell that has a backslash before a quote or does not end where a quote
        closes it, or it is behind a blank. `start` is not within a quoted cell.
        """
        if start == 0 and ('"' not in text or self._is_surely_regular(text)):
            return len(text)
        regular = self._regular.match(text, start)
        assert regular is not None  # it also matches nothing
        return regular.end()

    def _is_surely_regular(self, text: str) -> bool:
        """Return True only if all of a text is regular: False for some regular texts, too.

        Most files are regular, and this takes half the time of the pattern. The quotes of a regular
        text come in pairs. The first of a pair opens a cell, the second closes it:
            ,"two",     one pair
            ,"a ""b",   two pairs: the doubled quote closes the first one and opens the second one
        """
        if '\\"' in text or not all(map(str.isascii, self.ends)):
            return False
        characters = np.frombuffer(f"\n{text}\n".encode(errors="replace"), np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        if len(quotes) % 2:
            return False
        is_end = np.zeros(256, dtype=bool)
        is_end[[ord(end) for end in self.ends]] = True
        first, second = quotes[::2], quotes[1::2]
        opens = is_end[characters[first - 1]]
        closes = is_end[characters[second + 1]]
        is_doubled = second[:-1] + 1 == first[1:]
        opens[1:] |= is_doubled
        closes[:-1] |= is_doubled
        return bool(opens.all() and closes.all())

    def candidate(self, piece: str, at: int) -> Candidate:
        """Return both ways to read the cell that the quote at `at` may open."""
        doubled = self._reading(DOUBLED, piece, at)
        escaped = self._reading(ESCAPED, piece, at)
        return Candidate(piece, at, doubled, escaped)

    def _reading(self, way: re.Pattern[str], piece: str, at: int) -> QuotedReading:
        cell = way.match(piece, at)
        assert cell is not None  # there is a quote at `at`
        if self._closing_quote.match(piece, cell.end()):
            return QuotedReading(cell.end() + 1, is_whole=True)
        return QuotedReading(cell.end(), is_whole=False)

    def is_within_cell(self, piece: str, at: int) -> bool:
        """Return whether a quote is within an unquoted cell: that of ,5 " pipe, is."""
        if at == 0 or piece[at - 1] in self.ends:
            return False
        before = piece[max(0, at - 1_000) : at].rstrip(" ")
        return bool(before) and before[-1] not in self.ends

    def end_of_unquoted(self, piece: str, start: int) -> int:
        """Return where the next delimiter or line end is, len(piece) if there is none."""
        delimiter = self._delimiter.search(piece, start)
        assert delimiter is not None  # the end of the text matches
        return delimiter.start()

    def may_end_later(self, piece: str, closing: int, end: int) -> bool:
        """Return whether a cell that seems to end at `end` may go on to a later quote of its line.

        closing: the quote of the cell that has text behind it.
        """
        longer = self._up_to_closing_quote.match(piece, closing + 1)
        return longer is not None and longer.end() > end

    def has_escapes(self, text: str) -> bool:
        r"""Return whether a cell on one line has quotes that only backslashes explain.

        >>> Grammar(",").has_escapes('1,"a \\"b\\" c"'), Grammar(",").has_escapes('1,"C:\\\\"')
        (True, False)
        """
        if '\\"' not in text:
            return False
        cells = self._escaped_cell.finditer(text)
        return any(self._needs_backslash.search(cell[0]) for cell in cells)


class QuotedText(io.TextIOBase):
    """A text whose quoted cells are rewritten, piece by piece. A piece ends with a whole row.

    label: the file in messages. n_above: lines of the file above `text`.

    is_sample: `text` is the beginning of a file. Nothing behind a piece is read, what is malformed
    stays, and positions stay: a backslash and a quote take two characters, and so do two quotes.

    has_escapes: whether the file is known to write backslashes before quotes. Cells that can be
    read both ways are then read so. The sample of the file tells it, or else the first cell that
    can be read in no other way, for the cells below it.
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
        if self._is_sample and self._grammar.has_escapes(piece):
            self.has_escapes = True
        if piece and not piece.endswith("\n"):
            piece += self._text.readline()
        return self._rewritten(piece)

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return self._rewritten(self._text.readline(size))

    def note(self) -> str:
        """Return a sentence on the cells with text behind their closing quote; "" without any."""
        if not self._n_kept:
            return ""
        cells = quantity(self._n_kept, "quoted cell")
        return (
            f"{cells} with text behind the closing quote, kept as written, quotes included; the "
            f'first in {self._first_kept}: write "" for a quote that belongs to the text'
        )

    def _rewritten(self, piece: str) -> str:
        """Return the piece, and the rest of a cell that goes on behind it. Raises `DataError`."""
        rewritten = []
        done = 0
        while True:
            at = self._grammar.next_irregular(piece, done)
            rewritten.append(piece[done:at])
            if at == len(piece):
                break
            if self._grammar.is_within_cell(piece, at):
                rewritten.append('"')
                done = at + 1
                continue
            candidate = self._whole_candidate(piece, at)
            piece = candidate.piece
            cell, done = self._cell(candidate)
            rewritten.append(cell)
        self._n_lines += line_ends(piece)
        return "".join(rewritten)

    def _whole_candidate(self, piece: str, at: int) -> Candidate:
        """Return the candidate at `at`, with more lines behind the piece if its cell has them."""
        n_more = READ_ON
        while True:
            candidate = self._grammar.candidate(piece, at)
            if self._is_sample or not candidate.goes_on() or len(piece) - at >= LONGEST_CELL:
                return candidate
            more = self._text.read(n_more)
            if not more:
                return candidate
            if not more.endswith("\n"):
                more += self._text.readline()
            piece += more
            n_more *= 2

    def _cell(self, candidate: Candidate) -> tuple[str, int]:
        """Return a cell as the parser reads it, and where it ends. Raises `DataError`.

        | doubled quotes close it | backslashes close it | it is read                            |
        |-------------------------|----------------------|---------------------------------------|
        | no                      | yes                  | with backslashes, as the file's way   |
        | yes                     | yes                  | as `_is_escaped` says                 |
        | yes                     | no                   | with doubled quotes                   |
        | no                      | no                   | as it is written, if its end is clear |
        """
        piece, at, doubled, escaped = candidate
        if escaped.is_whole and not doubled.is_whole:
            self.has_escapes = True
        if escaped.is_whole and self._is_escaped(candidate):
            return ESCAPED_QUOTE.sub(r'\1""', piece[at : escaped.end]), escaped.end
        if doubled.is_whole:
            return piece[at : doubled.end], doubled.end
        if doubled.end - at >= LONGEST_CELL:
            line, begins = self._place(candidate)
            raise DataError(
                f"{self._label}, line {line:,}: a quote opens a cell ({begins}) and is not closed "
                f'within {LONGEST_CELL:,} characters: close it, or write "" for a quote that '
                "belongs to the text"
            )
        if self._is_sample or doubled.end == len(piece):
            # The parser itself names the row of a quote that is never closed.
            return piece[at:], len(piece)
        return self._kept(candidate)

    def _is_escaped(self, candidate: Candidate) -> bool:
        """Return whether a cell that backslashes close is read so."""
        if not candidate.doubled.is_whole or self.has_escapes:
            return True
        # A cell of one line is likelier than one of several.
        return candidate.n_lines(candidate.doubled) > 0 and not candidate.n_lines(candidate.escaped)

    def _kept(self, candidate: Candidate) -> tuple[str, int]:
        """Return a cell that has text behind its closing quote as it is written, and where it ends.

        Raises `DataError` where it has several lines, since rows may have been lost in it, and
        where a delimiter may belong to it or end it.
        """
        piece, at, doubled, _ = candidate
        n_more = candidate.n_lines(doubled)
        if n_more:
            first, begins = self._place(candidate)
            raise DataError(
                f"{self._label}, lines {first:,} to {first + n_more:,}: the quoted cell that "
                f"begins in line {first:,} ({begins}) has text behind its closing quote in line "
                f"{first + n_more:,}, so rows may be lost in it: close the quote in line "
                f'{first:,}, or write "" for each quote that belongs to a text'
            )
        end = self._grammar.end_of_unquoted(piece, doubled.end)
        if self._grammar.may_end_later(piece, doubled.end, end):
            line, begins = self._place(candidate)
            raise DataError(
                f"{self._label}, line {line:,}: {begins} has quotes within quotes, so that its "
                'end is not clear: write "" for each quote that belongs to the text'
            )
        if not self._n_kept:
            line, _ = self._place(candidate)
            self._first_kept = f"line {line:,} ({shorten(piece[at:end])})"
        self._n_kept += 1
        return '"' + piece[at:end].replace('"', '""') + '"', end

    def _place(self, candidate: Candidate) -> tuple[int, str]:
        """Return the number of a cell's line in the file, and how the cell begins."""
        piece, at = candidate.piece, candidate.at
        line = self._n_lines + line_ends(piece[:at]) + 1
        begins = re.split(r"[\r\n]", piece[at : at + 200])[0]
        return line, shorten(EMAIL.sub("(e-mail address)", begins))


def line_ends(text: str) -> int:
    """Return how many lines end in a text: with \\n, \\r\\n or \\r, the same in all of a file."""
    return max(text.count("\n"), text.count("\r"))

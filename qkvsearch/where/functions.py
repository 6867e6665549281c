"""Text functions that replace SQLite's own: they know all letters, and none takes long."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from qkvsearch.errors import QkvError
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.column_types.date import date_span
from qkvsearch.tables.date_spans import earliest, latest

# The most characters that a text may grow to, and the most pairs that a pattern may compare.
MAX_GROWN, MAX_COMPARED = 1_000_000, 20_000_000


def folded(text: str) -> str:
    """Return the same text for upper and lower case and every Unicode form; accents stay.

    >>> folded("École") == folded("ÉCOLE") != folded("Ecole")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def has(cell: Any, entry: Any) -> int:
    """Return 1 if a list has the entry, else 0. No list has an empty entry.

    >>> has("Outdoor|Rain", "rain"), has("Outdoor|Rain", "out"), has(None, "rain")
    (1, 0, 0)
    """
    if cell is None or entry is None:
        return 0
    entries = (part.strip() for part in folded(str(cell)).split(LIST_SEPARATOR))
    return int(folded(str(entry)).strip() in entries)


def like(pattern: Any, text: Any, escape: Any = None) -> int | None:
    """Match as SQL's LIKE: `%` is any text, `_` any character, and neither after `escape`.

    >>> like("%école%", "L'ÉCOLE"), like("50!%", "50%", "!"), like("_", "ab")
    (1, 1, 0)
    """
    if pattern is None or text is None:
        return None
    return int(_matcher(str(pattern), escape)(str(text)))


def replace(text: Any, old: Any, new: Any) -> str | None:
    """Replace texts as SQLite does. Raises `QkvError` for a text that would grow too long."""
    if text is None or old is None or new is None:
        return None
    text, old, new = str(text), str(old), str(new)
    if not old:
        return text
    if len(new) > len(old) and len(text) + text.count(old) * (len(new) - len(old)) > MAX_GROWN:
        raise QkvError(f"replace() makes a text of more than {MAX_GROWN:,} characters")
    return text.replace(old, new)


def instr(text: Any, part: Any) -> int | None:
    return None if text is None or part is None else str(text).find(str(part)) + 1


def lower(text: Any) -> str | None:
    return None if text is None else str(text).lower()


def upper(text: Any) -> str | None:
    return None if text is None else str(text).upper()


# Name, number of arguments, function.
FUNCTIONS: list[tuple[str, int, Callable[..., Any]]] = [
    ("has", 2, has),
    ("like", 2, like),
    ("like", 3, like),
    ("replace", 3, replace),
    ("instr", 2, instr),
    ("lower", 1, lower),
    ("upper", 1, upper),
    ("_earliest", 1, lambda date: None if date is None else earliest(date)),
    ("_latest", 1, lambda date: None if date is None else latest(date)),
]


def order_of_dates(one: str, other: str) -> int:
    """Return -1, 0 or 1, comparing as much as both dates have: any day of March equals 2024-03.

    >>> order_of_dates("2024-03-01", "2024-03"), order_of_dates("2024-03-01", "2024-04")
    (0, -1)
    """
    length = min(len(one), len(other))
    return _order(one[:length], other[:length])


def order_without_case(one: str, other: str) -> int:
    return _order(folded(one), folded(other))


def order_of_spans(one: str, other: str) -> int:
    """Return -1, 0 or 1, comparing dates of which only a span may be known: 0 where they may be the
    same.

    >>> order_of_spans("1880/1900", "1895"), order_of_spans("-0499", "0001")
    (0, -1)
    """
    if one == other:
        return 0
    first, second = date_span(one), date_span(other)
    if first is None or second is None:  # a text that was computed of one
        return _order(one, other)
    return (first.first > second.last) - (first.last < second.first)


DATES, SPANS = "DATES", "SPANS"
COLLATIONS = {DATES: order_of_dates, SPANS: order_of_spans, "NOCASE": order_without_case}
# The first and the last day of an uncertain date, which < and > compare. A condition cannot call
# them itself.
EARLIEST, LATEST = "_earliest", "_latest"


def _order(one: str, other: str) -> int:
    return (one > other) - (one < other)


@lru_cache(maxsize=64)
def _matcher(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a function that matches texts. It looks for the pieces between `%` one after the
    other, each where it comes first, so that no pattern takes exponential time.
    """
    if escape is not None and len(escape) != 1:
        raise QkvError("what follows ESCAPE is one character")
    pieces = [[]]  # type: list[list[str | None]]
    chars = iter(unicodedata.normalize("NFC", pattern))
    for char in chars:
        if char == escape:
            pieces[-1].append(next(chars, ""))
        elif char == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if char == "_" else char)
    if any(None in piece for piece in pieces):
        return _by_characters(pieces)
    return _by_texts([folded("".join(filter(None, piece))) for piece in pieces])


def _by_texts(pieces: list[str]) -> Callable[[str], bool]:
    first, *middle = pieces
    last = middle.pop() if middle else None
    if len(middle) == 1 and not first and not last:  # by far the most frequent, '%words%'
        return lambda text: middle[0] in folded(text)

    def matches(text: str) -> bool:
        text = folded(text)
        if last is None:
            return text == first
        if len(text) < len(first) + len(last):
            return False
        if not (text.startswith(first) and text.endswith(last)):
            return False
        start, end = len(first), len(text) - len(last)
        for piece in middle:
            index = text.find(piece, start, end)
            if index < 0:
                return False
            start = index + len(piece)
        return True

    return matches


def _by_characters(pieces: list[list[str | None]]) -> Callable[[str], bool]:
    """Match pieces with `_` by regular expressions, which count characters as they are written: ß
    is one character here, and not ss.
    """
    written = ["".join("." if c is None else re.escape(c) for c in piece) for piece in pieces]
    first, *middle = [re.compile(piece, re.IGNORECASE | re.DOTALL) for piece in written]
    last = middle.pop() if middle else None
    longest = max(map(len, pieces))

    def matches(text: str) -> bool:
        text = unicodedata.normalize("NFC", text)
        if len(text) * longest > MAX_COMPARED:
            raise QkvError(f"a text of {len(text):,} characters is too long for this pattern")
        if last is None:
            return first.fullmatch(text) is not None
        match = first.match(text)
        end = len(text) - len(pieces[-1])
        for piece in middle:
            match = match and piece.search(text, match.end(), max(end, 0))
        return bool(match and match.end() <= end and last.fullmatch(text, end))

    return matches

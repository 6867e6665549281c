"""The units of words as numbers, so that the texts of many items are compared at once.

A Chinese, Japanese or Korean character has the number of its code point, which is read from the
bytes of all spellings together. A word in a script with spaces is one unit, whose number is its row
of the spellings. Words of Thai and the like are split one by one, and numbered as they come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.text.analysis import CJK

# The number of the unit that ends a column, and that of no unit.
END, NO_UNIT = 0, -1
# Words, and letters with vowels, are numbered from here on.
FIRST_OTHER = 0x110000
# The longest character in UTF-8.
MAX_BYTES = 4
# From the first to the last character of each range: of characters that are units, and of scripts
# whose letters may have vowels of their own.
CJK_RANGES = [(ord(each[0]), ord(each[2])) for each in re.findall(".-.", CJK)]
SPLIT_RANGES = [(0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)]


class SpelledUnits(NamedTuple):
    """The units of each of n spellings."""

    # The first one, int32 (n,).
    first: np.ndarray
    # The second one of a pair, int32 (n,); `NO_UNIT` for all other words.
    second: np.ndarray
    # Which words have to be split one by one, bool (n,). Here they have at most their first
    # character, if that is a unit.
    is_unread: np.ndarray

    @classmethod
    def of(cls, spellings: np.ndarray) -> SpelledUnits:
        """Read sorted spellings in UTF-8, dtype S (n,), of which row 0 is the end of a column.

        >>> found = SpelledUnits.of(np.array([text.encode() for text in ("", "ai", "茶碗")]))
        >>> (found.first[:2] - [END, FIRST_OTHER]).tolist(), chr(found.first[2])
        ([0, 1], '茶')
        >>> found.second.tolist() == [NO_UNIT, NO_UNIT, ord("碗")]
        True
        """
        n, width = len(spellings), spellings.dtype.itemsize
        letters = np.zeros((n, 3 * MAX_BYTES), np.uint8)
        n_read = min(width, 2 * MAX_BYTES + 1)
        as_bytes = np.ascontiguousarray(spellings).view(np.uint8).reshape(n, width)
        letters[:, :n_read] = as_bytes[:, :n_read]

        rows = np.arange(n)
        first, behind_first = _characters(letters, np.zeros(n, np.int64))
        second, behind_second = _characters(letters, behind_first)
        is_cjk = _is_in(first, CJK_RANGES)
        is_single = is_cjk & (letters[rows, behind_first] == 0)
        is_pair = is_cjk & _is_in(second, CJK_RANGES) & (letters[rows, behind_second] == 0)
        is_read = is_single | is_pair
        is_unread = ~is_read & (is_cjk | _is_in(first, SPLIT_RANGES))

        words = np.where(is_cjk, first, FIRST_OTHER + rows)
        words[is_unread & ~is_cjk] = NO_UNIT
        words[:1] = END
        seconds = np.where(is_pair, second, NO_UNIT)
        return cls(words.astype(np.int32), seconds.astype(np.int32), is_unread)


def is_character(unit: str) -> bool:
    """Return whether a unit is a character, whose number is its code point."""
    return len(unit) == 1 and any(first <= ord(unit) <= last for first, last in CJK_RANGES)


def _characters(letters: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of three or four bytes that begin at these places of rows of UTF-8, as
    code points, int32 (n,), and the places behind them; 0 and the same place where there is none.
    """
    rows = np.arange(len(letters))
    lead, second, third, fourth = (letters[rows, at + i].astype(np.int32) for i in range(MAX_BYTES))
    is_long = lead >= 0xF0
    is_any = lead >= 0xE0
    of_three = (lead & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F
    of_four = (lead & 0x7) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F
    characters = np.where(is_long, of_four, np.where(is_any, of_three, 0))
    return characters, at + np.where(is_long, 4, np.where(is_any, 3, 0))


def _is_in(characters: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return which code points are in any of these ranges, bool (n,)."""
    is_in = np.zeros(len(characters), dtype=bool)
    for first, last in ranges:
        is_in |= (characters >= first) & (characters <= last)
    return is_in

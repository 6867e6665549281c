"""Subword pieces to the words they are pieces of, so that reasons can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from qkvsearch.texts.analysis import CJK, MARKS

# For `errors.need`: the extra that has the libraries of the pretrained encoders.
ENCODERS = ("encoders", "a pretrained encoder")
# A CJK character is a word: a run of them has no spaces to divide it.
LETTER = rf"(?:(?![{CJK}_])[\w{MARKS}\u0300-\u036f])"
WORDS = re.compile(rf"[{CJK}]|{LETTER}+(?:['’]{LETTER}+)*")
# Anything but spaces, controls and characters of no width.
VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufe0f\ufeff]"
)
# Where a piece of spaces stands.
UNPLACED = -1


def is_blank(text: str) -> bool:
    """Whether there is nothing to see.

    >>> is_blank(" \\t\\u200b"), is_blank("!")
    (True, False)
    """
    return VISIBLE.search(text) is None


def whole(text: str) -> str:
    """The text with half of a surrogate pair, which no tokenizer takes, as "?".

    >>> whole("deep\\ud800")
    'deep?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def join_pieces(text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[str], np.ndarray]:
    """The words of a text that was cut into pieces, and of each piece the word it belongs to.

    spans: (start, end) of each piece in the text, in order -> labels (n_words) as written, and
    int64 (n_spans,). A space alone belongs to the word that follows.

    >>> join_pieces("It didn't 注意", [(0, 2), (2, 7), (7, 8), (8, 9), (10, 11), (11, 12)])
    (['It', "didn't", '注', '意'], array([0, 1, 1, 1, 2, 3]))
    """
    homes = list(range(len(text)))
    for found in WORDS.finditer(text):
        homes[found.start() : found.end()] = [found.start()] * (found.end() - found.start())
    places = []
    for start, end in spans:
        piece = text[start:end]
        visible = start + len(piece) - len(piece.lstrip())
        places.append(homes[visible] if visible < end else UNPLACED)
    for i in range(len(spans) - 2, -1, -1):
        if places[i] == UNPLACED:
            places[i] = places[i + 1]
    for i in range(1, len(spans)):
        if places[i] == UNPLACED:
            places[i] = places[i - 1]

    is_first = np.diff(places, prepend=UNPLACED - 1) != 0
    owners = np.cumsum(is_first) - 1
    bounds = [*np.flatnonzero(is_first), len(spans)]
    labels = [
        text[spans[first][0] : max(end for _, end in spans[first:last])].strip()
        for first, last in pairwise(bounds)
    ]
    return labels, owners


def sum_rows(vectors: np.ndarray, owners: np.ndarray, n: int) -> np.ndarray:
    """vectors (n_pieces, d), owners ascending (n_pieces,) -> (n, d), the sum of each owner's.

    >>> sum_rows(np.array([[1.0], [2.0], [3.0]]), np.array([0, 0, 1]), 2)
    array([[3.],
           [3.]])
    """
    if not n:
        return vectors[:0]
    return np.add.reduceat(vectors, np.searchsorted(owners, np.arange(n)), axis=0)

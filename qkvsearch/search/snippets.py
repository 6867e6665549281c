"""Snippets: the passage of an item's longest text that answers a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from qkvsearch.retrieval import TermKeys
from qkvsearch.retrieval.keys import inverse_frequency
from qkvsearch.text.analysis import Analyzer

# Characters of a passage; a text that is not longer is shown whole.
LENGTH = 160
# How many passages the encoder reads where no word of the query is in a text.
MOST_READ = 12
SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？…])\s+|(?<=[。！？])|\n+")
ELLIPSIS = "…"


def snippet(
    text: str, terms: Mapping[str, float], analyzer: Analyzer, length: int = LENGTH
) -> str | None:
    """The passage of a text in which the most of these terms stand, each counted once by its
    weight; None where it has none of them. Of equal ones the first.

    >>> text = "A long walk. " * 20 + "Then rain fell on the jacket."
    >>> snippet(text, {"rain": 2.0}, Analyzer(), 40)
    '…long walk. Then rain fell on the…'
    """
    placed = [
        (start, end, token.term)
        for (start, end), token in zip(
            analyzer.token_spans(text), analyzer.tokens(text), strict=True
        )
        if token.term in terms
    ]
    if not placed:
        return None
    best, gain, last = 0, -1.0, 0
    inside: Counter[str] = Counter()  # how often each stands from place i to before `stop`
    stop = 0
    for i, (start, _, term) in enumerate(placed):
        while stop < len(placed) and placed[stop][1] - start <= length:
            inside[placed[stop][2]] += 1
            stop += 1
        found = sum(terms[one] for one, n in inside.items() if n)
        if found > gain + 1e-9:
            best, gain, last = start, found, placed[max(stop - 1, i)][1]
        if i < stop:
            inside[term] -= 1
        stop = max(stop, i + 1)
    return cut(text, best, last, length)


def cut(text: str, start: int, end: int, length: int = LENGTH) -> str:
    """About `length` characters of a text around text[start:end], from word to word."""
    room = max(length - (end - start), 0)
    first = max(0, start - room // 2)
    last = min(len(text), first + max(length, end - start))
    first = max(0, min(first, last - length))
    if first:
        blank = text.find(" ", first, start)
        first = blank + 1 if blank >= 0 else first
    if last < len(text):
        blank = text.rfind(" ", end, last)
        last = blank if blank >= 0 else last
    passage = " ".join(text[first:last].split())
    return f"{ELLIPSIS * (first > 0)}{passage}{ELLIPSIS * (last < len(text))}"


def passages(text: str, length: int = LENGTH) -> list[tuple[int, int]]:
    """A text as sentences, short ones joined: (start, end) each, at most `MOST_READ`."""
    ends = [found.end() for found in SENTENCE_ENDS.finditer(text)] + [len(text)]
    found, start = [], 0
    for end in ends:
        if end - start >= length // 2 or end == len(text):
            found.append((start, end))
            start = end
    return [span for span in found if text[slice(*span)].strip()][:MOST_READ]


def idf_of_terms(terms: Sequence[str], keys: TermKeys) -> dict[str, float]:
    """Return the idf of each term."""
    idf = inverse_frequency(np.array([keys.n_with(term) for term in terms]), keys.n_items)
    return dict(zip(terms, idf.tolist(), strict=True))

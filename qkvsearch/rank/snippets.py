"""Snippets: the passage of an item's longest text that answers a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from qkvsearch.text.analysis import Analyzer

# Characters of a passage; a text that is not longer is shown whole.
LENGTH = 160
# The passages that the encoder reads if no word of the query is in a text.
MAX_PASSAGES = 12
SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？…])\s+|(?<=[。！？])|\n+")
# How a sentence ends, with what closes it; signs inside a sentence, which end no passage.
ENDED = re.compile(r"[.!?。！？…][\"'”’»)）」』]*$")
PAUSES = ",;:，；：、"
ELLIPSIS = "…"


def snippet(
    text: str, terms: Mapping[str, float], analyzer: Analyzer, length: int = LENGTH
) -> str | None:
    """Return the passage of a text with the largest sum of the weights of its distinct terms, the
    first of equal ones; None for a text without any of the terms.

    >>> text = "A long walk. " * 20 + "Then rain fell on the jacket."
    >>> snippet(text, {"rain": 2.0}, Analyzer(), 40)
    '…long walk. Then rain fell on the…'
    >>> snippet("Rain fell. It was late, and all slept.", {"rain": 2.0}, Analyzer(), 12)
    'Rain fell.'
    """
    occurrences = [
        (start, end, token.term)
        for (start, end), token in zip(
            analyzer.token_spans(text), analyzer.tokens(text), strict=True
        )
        if token.term in terms
    ]
    if not occurrences:
        return None
    best, best_value, last = 0, -1.0, 0
    inside: Counter[str] = Counter()  # how often each term occurs from i to before `stop`
    stop = 0
    for i, (start, _, term) in enumerate(occurrences):
        while stop < len(occurrences) and occurrences[stop][1] - start <= length:
            inside[occurrences[stop][2]] += 1
            stop += 1
        value = sum(terms[term_inside] for term_inside, n in inside.items() if n)
        if value > best_value + 1e-9:
            best, best_value, last = start, value, occurrences[max(stop - 1, i)][1]
        if i < stop:
            inside[term] -= 1
        stop = max(stop, i + 1)
    return cut(text, best, last, length)


def densest(text: str, words: Sequence[tuple[int, int]], length: int = LENGTH) -> tuple[int, int]:
    """Return the part of a text, (start, end), of at most `length` characters that has the most
    distinct ones of these words, (start, end) each; the beginning where there are none.
    """
    best, most = (0, 0), 0
    for i, (start, _) in enumerate(words):
        inside = [span for span in words[i:] if span[1] - start <= length]
        n_distinct = len({text[slice(*span)].casefold() for span in inside})
        if n_distinct > most:
            best, most = (start, inside[-1][1]), n_distinct
    return best


def cut(text: str, start: int, end: int, length: int = LENGTH) -> str:
    """Return about `length` characters of a text around text[start:end], cut between words."""
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
    # A sentence that ends, or begins, where the passage does is not cut off there.
    before = ELLIPSIS if text[:first].rstrip() and not ENDED.search(text[:first].rstrip()) else ""
    if not text[last:].strip() or ENDED.search(passage):
        return f"{before}{passage}"
    return f"{before}{passage.rstrip(PAUSES)}{ELLIPSIS}"


def passages(text: str, length: int = LENGTH) -> list[tuple[int, int]]:
    """Return (start, end) of the sentences of a text, short ones joined."""
    ends = [match.end() for match in SENTENCE_ENDS.finditer(text)] + [len(text)]
    spans, start = [], 0
    for end in ends:
        if end - start >= length // 2 or end == len(text):
            spans.append((start, end))
            start = end
    return [span for span in spans if text[slice(*span)].strip()][:MAX_PASSAGES]

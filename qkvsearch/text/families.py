"""Words of one family: "guitarist" finds "guitar", though their stems differ.

A stemmer takes off what a word gets from its grammar, and leaves apart what other words are made of
it. Adamson and Boreham 1974 ("The use of an association measure based on character structure to
identify semantically related pairs of words") count the letters that two words share, by Dice's
coefficient; here those that both begin with, by which families of words are known.
"""

from __future__ import annotations

from collections.abc import Iterable

# The fewest letters that both begin with, and the least share of all their letters, by
# `related_words.py` among the benchmarks.
SHORTEST, LEAST = 4, 0.65
# The shorter one is a beginning of the longer, but for its last letter: "recipe" and "receive" have
# as many letters alike, and nothing else.
MOST_REST = 1
# Families are looked up where items have at most so many words in the mean: a longer text has the
# other forms of its words itself, and what only begins alike does harm there.
LONGEST = 50


def related_terms(term: str, others: Iterable[str]) -> dict[str, float]:
    """Those of `others` that are of one family with a term, and how much each counts beside it: the
    share of both words' letters that they begin with alike, from .65 to below 1.

    >>> related_terms("guitarist", ["guitar", "guilt", "guitarist"])
    {'guitar': 0.8}
    """
    if len(term) < SHORTEST or not term.isalpha():
        return {}
    shares = {other: alike(term, other) for other in others if other != term and other.isalpha()}
    return {other: share for other, share in shares.items() if share >= LEAST}


def alike(one: str, other: str) -> float:
    """2 n / (length + length), with n letters that both begin with; 0 where these are too few."""
    short, long = sorted((one, other), key=len)
    for rest in range(MOST_REST + 1):
        n = len(short) - rest
        if n < SHORTEST + rest:
            return 0.0
        if long.startswith(short[:n]):
            return 2 * n / (len(one) + len(other))
    return 0.0

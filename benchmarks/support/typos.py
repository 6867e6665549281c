"""Queries with one typo in one word, as fingers make them: seeded, and told by kind."""

from __future__ import annotations

from random import Random

from qkvsearch.text.languages import stop_words

KINDS = ("swapped", "dropped", "doubled", "neighbouring key")
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    letter: row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
    for row in ROWS
    for place, letter in enumerate(row)
}
# Shorter words are mostly typed right, and say little.
SHORTEST = 4


def with_typo(text: str, random: Random) -> str:
    """The text with one word mistyped: one of those of 4 letters or more that are no stop words,
    or else any; never its first letter.
    """
    words = text.split()
    places = [
        place
        for place, word in enumerate(words)
        if word.isalpha() and len(word) >= SHORTEST and word.lower() not in stop_words()
    ]
    place = random.choice(places or range(len(words)))
    words[place] = mistyped(words[place], random)
    return " ".join(words)


def mistyped(word: str, random: Random) -> str:
    """A word with two letters swapped, one dropped, doubled, or hit beside.

    >>> mistyped("jacket", Random(1))
    'jackt'
    """
    place = random.randrange(1, max(2, len(word) - 1))
    before, letter, behind = word[:place], word[place : place + 1], word[place + 1 :]
    kind = random.choice(KINDS)
    if kind == "swapped":
        return before + behind[:1] + letter + behind[1:]
    if kind == "dropped":
        return before + behind
    if kind == "doubled":
        return before + letter + letter + behind
    return before + random.choice(NEIGHBOURS.get(letter.lower()) or letter) + behind

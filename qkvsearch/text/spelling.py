"""Words that a catalog does not have, and what they may be misspellings of.

Damerau 1964 ("A technique for computer detection and correction of spelling errors"): four in five
errors are one letter too many, too few or wrong, or two that are swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

import numpy as np

from qkvsearch.text.analysis import fold
from qkvsearch.text.language.languages import CODES, ENGLISH

# How many errors a word of so many letters may have: from 4 letters one, from 8 two.
ONE_ERROR, TWO_ERRORS = 4, 8
# What a word counts that was typed with so many errors.
PER_ERROR = 0.8
# The shortest half of a word that two were run together in.
SHORTEST_HALF = 4


def most_errors(word: str) -> int:
    """How many errors are looked for in a word.

    >>> [most_errors(word) for word in ("tea", "bread", "beginers")]
    [0, 1, 2]
    """
    return (len(word) >= ONE_ERROR) + (len(word) >= TWO_ERRORS)


class LetterIndex:
    """The words of a catalog by their letters, so that few have to be compared with a misspelled
    one: each error brings in one letter at the most, and takes one away.

    >>> LetterIndex(["jacket", "packet", "rain"]).alike("jakcet")
    ['jacket', 'packet']
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        self._order = np.argsort(lengths, kind="stable")
        self._lengths = lengths[self._order]
        self._letters = _letters(words)[self._order]

    def alike(self, word: str) -> list[str]:
        """The words, in their order, that may differ from this one by as few errors as `near_words`
        allows.
        """
        most, own = most_errors(word), np.uint32(sum({1 << (ord(char) & 31) for char in word}))
        limits = np.array([len(word) - most, len(word) + most + 1])
        as_long = slice(*self._lengths.searchsorted(limits))
        theirs = self._letters[as_long]
        near = np.bitwise_count(theirs & ~own) <= most
        near &= np.bitwise_count(own & ~theirs) <= most
        rows = np.sort(self._order[as_long][near])
        return [self.words[row] for row in rows.tolist()]


def _letters(words: Sequence[str]) -> np.ndarray:
    """Which letters each word has, uint32 (n,): a bit for each, shared by some of other scripts."""
    if not len(words):
        return np.zeros(0, np.uint32)
    wide = np.array(words)
    codes = wide.view(np.uint32).reshape(len(words), -1)
    bits = np.where(codes > 0, np.uint32(1) << (codes & np.uint32(31)), np.uint32(0))
    return np.asarray(np.bitwise_or.reduce(bits, axis=1))


def near_words(word: str, known: Sequence[str], limit: int = 50) -> list[tuple[str, int]]:
    """The words of `known` that differ from `word` by the fewest errors, and by how many: letters
    added, dropped, replaced, or two neighbours swapped. Another first letter counts as two errors,
    for people seldom mistake that one. In a word of three letters only swapped ones count.

    >>> near_words("jakcet", ["jacket", "packet", "rain"])
    [('jacket', 1)]
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    most = most_errors(word)
    if len(word) == ONE_ERROR - 1:
        swapped = {word[1] + word[0] + word[2], word[0] + word[2] + word[1]}
        return [(other, 1) for other in known if other in swapped]
    if not most:
        return []
    found = process.extract(word, known, scorer=OSA.distance, score_cutoff=most, limit=limit)
    best = [(other, int(errors) + _begins_otherwise(word, other)) for other, errors, _ in found]
    fewest = min((errors for _, errors in best), default=0)
    return [(other, errors) for other, errors in best if errors == fewest <= most]


def _begins_otherwise(word: str, other: str) -> bool:
    return word[0] != other[0] and word[:2] != other[1::-1]


def halves(word: str, is_known: Callable[[str], bool]) -> tuple[str, str] | None:
    """The two known words that `word` is without the blank between them, the most even ones.

    >>> halves("rainjacket", {"rain", "jacket"}.__contains__)
    ('rain', 'jacket')
    """
    places = range(SHORTEST_HALF, len(word) - SHORTEST_HALF + 1)
    for place in sorted(places, key=lambda place: abs(2 * place - len(word))):
        if is_known(word[:place]) and is_known(word[place:]):
            return word[:place], word[place:]
    return None


def is_a_word(word: str, language: str = ENGLISH) -> bool:
    """Whether a dictionary of the language, by Snowball's name, or of English has the word: it is
    no misspelling then, though the catalog be without it.
    """
    folded, lower = fold(word), word.casefold()
    known = _dictionaries(language)
    return any(folded in words or lower in words for words in known)


def has_dictionary() -> bool:
    """Whether one is read already, which takes as long as many searches."""
    return _dictionaries.cache_info().currsize > 0


@lru_cache(maxsize=4)
def _dictionaries(language: str) -> list[Collection[str]]:
    """Those of the language and of English that the package has."""
    codes = [code for code, name in CODES.items() if name in (language, ENGLISH)]
    found = map(_dictionary, codes)
    return [words for words in found if words is not None]


@lru_cache(maxsize=4)
def _dictionary(code: str) -> Collection[str] | None:
    """None where the package has none."""
    from spellchecker import SpellChecker

    try:
        return SpellChecker(language=code).word_frequency.dictionary
    except ValueError:
        return None

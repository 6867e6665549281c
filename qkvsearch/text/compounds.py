"""Words written as one: what "jacke" has to do with "regenjacke", by the words of the catalog.

A word is taken for a compound where its parts are words of the catalog themselves, as Koehn and
Knight 2003 ("Empirical methods for compound splitting", section 2) do it, here at search time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from qkvsearch.text.analysis import fold, stem
from qkvsearch.text.vocabulary import Vocabulary

# What stands between two parts, by Snowball's names of the languages that write them as one.
LINKS: Mapping[str, tuple[str, ...]] = {
    "german": ("", "s", "es", "n", "en", "er", "e", "ns", "ens"),
    "dutch": ("", "s", "e", "en", "er"),
    "danish": ("", "s", "e", "er"),
    "norwegian": ("", "s", "e", "er"),
    "swedish": ("", "s", "e", "o", "u", "a"),
    "finnish": ("", "n", "en", "s"),
}
# What a first part may lose: Schule, Schulfest; wohnen, Wohnheim; Swedish flicka, flickskola.
DROPPED: Mapping[str, tuple[str, ...]] = {
    "german": ("e", "en"), "dutch": ("e", "en"), "danish": ("e",), "norwegian": ("e",),
    "swedish": ("a", "e"), "finnish": (),
}  # fmt: skip
SHORTEST = 4
# A last part of so many letters will do where the catalog does not have the first one by itself:
# shops sell "Winterjacken" and never mention winter. Not of adjectives, such as "prak-tisch".
PLAUSIBLE = 5
NO_HEAD = ("isch",)
# How much longer than a word one of its other forms may be: "haus", "hausern".
LONGEST_ENDING = 4
VOWEL = re.compile("[aeiouy]").search


class Compound(NamedTuple):
    """word: of the catalog. other: its other part, without what links them. is_head: whether the
    word asked for is the last part, which says what the whole is.
    """

    word: str
    other: str
    is_head: bool


def compounds_of(word: str, words: np.ndarray, language: str) -> list[Compound]:
    """The words of a catalog that have a word as their first or last part, in some form; in the
    catalog's order. None in a language that does not write compounds as one.

    words: the catalog's, folded, sorted UTF-8, dtype S (n_words,), each once. Both parts have at
    least 4 letters, and the other one is a word of the catalog, too; or the word asked for, of 5
    letters at least, is the last part of one that has a vowel.

    >>> words = np.array([b"jackpot", b"jackentasche", b"regen", b"regenjacken", b"tasche"])
    >>> [found.word for found in compounds_of("Jacke", np.sort(words), "german")]
    ['jackentasche', 'regenjacken']
    """
    word = fold(word)
    if language not in LINKS or len(word) < SHORTEST or not len(words):
        return []
    known = _Known(words, language)
    found = [*_with_first(word, known), *_with_last(word, known)]
    return sorted({one.word: one for one in found}.values())


def parts_of(word: str, words: np.ndarray, language: str) -> tuple[str, str] | None:
    """The two words of a catalog that a word is made of, the last as it stands in the word; None
    where it is not made of two. Words are as in `compounds_of`.

    Of several ways the one without anything between the parts comes first, then the one with the
    longest last part.

    >>> parts_of("Regenjacken", np.array([b"jacke", b"regen"]), "german")
    ('regen', 'jacken')
    """
    word = fold(word)
    if language not in LINKS:
        return None
    known = _Known(words, language)
    ways = (
        (first, word[cut:])
        for is_linked in (False, True)
        for cut in range(SHORTEST, len(word) - SHORTEST + 1)
        for first in known.first_parts(word[:cut], is_linked)
        if known.has(word[cut:])
    )
    return next(ways, None)


class _Known:
    """The catalog's words, to look up a part in any of its forms."""

    def __init__(self, words: np.ndarray, language: str) -> None:
        self.words, self.language = words, language
        self.vocabulary = Vocabulary(words)

    def is_word(self, text: str) -> bool:
        return self.vocabulary.row(text) >= 0

    def has(self, text: str) -> bool:
        """Whether a form of the word is there."""
        if self.is_word(text):
            return True
        root = self.stem(text)
        forms = self.beginning(_key(text, root))
        return any(len(form) <= len(text) + LONGEST_ENDING and self.stem(form) == root
                   for form in forms)  # fmt: skip

    def first_parts(self, text: str, is_linked: bool | None = None) -> Iterator[str]:
        """The words that a compound may begin with that has this before its last part. is_linked:
        only those that something stands behind, or nothing.
        """
        for link in LINKS[self.language]:
            part = text.removesuffix(link)
            if is_linked in (None, bool(link)) and text.endswith(link) and len(part) >= SHORTEST:
                whole = [part, *(part + ending for ending in DROPPED[self.language] if not link)]
                yield from (one for one in whole if self.is_word(one))

    def stem(self, text: str) -> str:
        return _stem(text, self.language)

    def beginning(self, text: str) -> Iterator[str]:
        """The words that begin with a text."""
        start = text.encode(errors="surrogatepass")
        # NumPy would copy all words to compare them with one that is longer than each.
        if len(start) >= self.words.itemsize:
            return iter([text] if self.is_word(text) else [])
        first, last = np.searchsorted(self.words, [start, start + b"\xff"])
        return (found.decode() for found in self.words[first:last])

    def holding(self, text: str) -> Iterator[str]:
        """The words that have a text in them."""
        width = self.words.itemsize
        raw = np.ascontiguousarray(self.words).view(np.uint8)
        places = (
            match.start()
            for match in re.finditer(re.escape(text.encode(errors="surrogatepass")), raw.data)
        )
        rows = dict.fromkeys(place // width for place in places)
        # A match may reach from the end of one word into the next.
        return (found for row in rows if text in (found := self.words[row].decode()))


@lru_cache(maxsize=1 << 14)
def _stem(text: str, language: str) -> str:
    return fold(stem(text, language))


def _with_first(word: str, known: _Known) -> Iterator[Compound]:
    stems = {word, *(word.removesuffix(ending) for ending in DROPPED[known.language])}
    for start in stems:
        links = LINKS[known.language] if start == word else ("",)
        for found in known.beginning(start) if len(start) >= SHORTEST - 1 else ():
            rests = (found[len(start) + len(link) :] for link in links
                     if found.startswith(link, len(start)))  # fmt: skip
            for rest in rests:
                if len(rest) >= SHORTEST and known.has(rest):
                    yield Compound(found, rest, False)
                    break


def _with_last(word: str, known: _Known) -> Iterator[Compound]:
    root = known.stem(word)
    is_telling = len(word) >= PLAUSIBLE and not root.endswith(NO_HEAD)
    key = _key(word, root)
    for found in known.holding(key):
        cut = found.rfind(key)
        rest, last = found[:cut], found[cut:]
        if len(rest) < SHORTEST or len(last) > len(word) + LONGEST_ENDING:
            continue
        if last != word and known.stem(last) != root:
            continue
        first = _shortest(known.first_parts(rest))
        if first is None and is_telling and VOWEL(rest):
            first = rest
        if first is not None:
            yield Compound(found, first, True)


def _shortest(words: Iterable[str]) -> str | None:
    return min(words, key=len, default=None)


def _key(word: str, root: str) -> str:
    """What all forms of a word begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(word, root, strict=False))
    n = sum(1 for _ in same)
    return word[:n] if n >= SHORTEST - 1 else word

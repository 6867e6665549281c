"""The languages that texts are in: their names, what is elided, and a guess by stop words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkvsearch.errors import QkvError, quantity, suggest

AUTO, NONE, ENGLISH = "auto", "none", "english"
# A file for each language, by Snowball's name.
STOP_WORDS = Path(__file__).with_name("stop_words")
# ISO 639-1 codes of the languages that Snowball has stems for, by the names that it has for them.
CODES: Mapping[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

# What a word loses before an apostrophe. In English, where it is in names from abroad, only before
# a vowel or h and three letters: "l'amour" and "d'artagnan" do, "d'you" and "d'oh" do not.
_ROMANCE = "l d n s t m"
ELISIONS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": "l d",
        "french": f"{_ROMANCE} j c qu jusqu lorsqu puisqu quoiqu presqu quelqu",
        "catalan": _ROMANCE,
        "italian": "l d un dell all nell sull dall coll dell quest quell sant gl c m t s v "
        "bell buon nessun tutt mezz anch com dov senz",
        "irish": "d b m",
    }.items()
}
ELIDED_IN_ENGLISH = frozenset("aeiouh")
SHORTEST_IN_ENGLISH = 3

# A guess goes by that many texts, spread over the catalog, and the beginning of each.
MOST_TEXTS, MOST_CHARACTERS = 5_000, 1_000
# It takes so many different stop words of a language, and such a share of all words; another one
# than English so many times as many as English has.
FEWEST_DIFFERENT, LEAST_SHARE, MARGIN = 3, 0.02, 1.5


@lru_cache
def stop_words(language: str = ENGLISH) -> frozenset[str]:
    """Return the articles, pronouns, prepositions and auxiliaries of a language, in lower case as
    they are written; none for a language without a list.

    Longer lists that are common elsewhere also have "time", "work" and "good": people search for
    these.

    >>> "nicht" in stop_words("german"), len(stop_words("klingon"))
    (True, 0)
    """
    path = STOP_WORDS / f"{language}.txt"
    return frozenset(path.read_text(encoding="utf-8").split() if path.exists() else ())


class Language(NamedTuple):
    """name: Snowball's, or "none". why: how that is known, for a person."""

    name: str
    why: str

    def __str__(self) -> str:
        """
        >>> str(Language("german", "as asked for"))
        'German (as asked for)'
        """
        return f"{self.name.capitalize()} ({self.why})"


def named(language: str) -> str:
    """Snowball's name of a language that is given by that or by its ISO code; "none". Raises
    `QkvError` for another one.

    >>> named("de"), named("Dutch"), named("none")
    ('german', 'dutch', 'none')
    """
    wanted = language.strip().lower()
    names = [*CODES.values(), NONE]
    if wanted not in names and wanted not in CODES:
        near = suggest(wanted, [*CODES, *names])
        there = ", ".join([AUTO, *CODES, NONE])
        raise QkvError(f"no `language` {language!r}{near} (there is {there})")
    return CODES.get(wanted, wanted)


def chosen(language: str, texts: Sequence[str], words_of: Callable[[str], list[str]]) -> Language:
    """The language asked for, or with "auto" the one of the texts. words_of: a text's words,
    folded, and those of a stop word's. Raises `QkvError`.
    """
    if language != AUTO:
        return Language(named(language), "as asked for")
    return guess(texts, words_of)


def guess(texts: Sequence[str], words_of: Callable[[str], list[str]]) -> Language:
    """The language that most words are stop words of; English where that is not plain.

    A stop word of several languages counts for each of them, divided by how many they are, and
    words of one letter, which are in all, not at all. In short titles few words are stop words:
    three different ones and 2 % of all words will do, and half as many again as are English.
    """
    step = max(1, len(texts) // MOST_TEXTS)
    sample = list(islice(texts[::step], MOST_TEXTS))
    counts = Counter(word for text in sample for word in words_of(text[:MOST_CHARACTERS]))
    n_texts = quantity(len(sample), "text")
    if not counts:
        return Language(ENGLISH, f"no word in {n_texts} to guess by")
    languages, known = _shares(words_of)
    scores, different = np.zeros(len(languages)), np.zeros(len(languages))
    for word, count in counts.items():
        if (row := known.get(word)) is not None:
            scores += count * row
            different += row > 0
    english = languages.index(ENGLISH)
    fits = (different >= FEWEST_DIFFERENT) & (scores >= LEAST_SHARE * counts.total())
    fits &= (scores >= MARGIN * scores[english]) | (np.arange(len(languages)) == english)
    if not fits.any():
        return Language(ENGLISH, f"too few known words in {n_texts} to guess another")
    best = int(np.where(fits, scores, -1).argmax())
    return Language(languages[best], f"guessed from {n_texts}")


@lru_cache(maxsize=1)
def _shares(words_of: Callable[[str], list[str]]) -> tuple[list[str], dict[str, np.ndarray]]:
    """The languages with stop words, and for each such word what it counts for each of them."""
    languages = sorted(path.stem for path in STOP_WORDS.iterdir())
    known: dict[str, np.ndarray] = {}
    for column, language in enumerate(languages):
        for word in {word for written in stop_words(language) for word in words_of(written)}:
            if len(word) > 1:
                known.setdefault(word, np.zeros(len(languages)))[column] = 1
    return languages, {word: row / row.sum() for word, row in known.items()}

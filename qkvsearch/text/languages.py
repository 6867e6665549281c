"""Languages of texts: their names, elided articles and stop words, and a guess by stop words."""

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
# ISO 639-1 codes of the languages with a Snowball stemmer, and their names there.
CODES: Mapping[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

# Articles that are removed before an apostrophe. In English and the languages without a line here,
# which have them in foreign names, only before a vowel or h and three letters: in "l'amour" and
# "d'artagnan", not in "d'you" and "d'oh".
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

# A guess reads this many texts, spread over the catalog, and the beginning of each.
MAX_TEXTS, MAX_CHARACTERS = 5_000, 1_000
# A language needs this many different stop words, this share of all words, and, if it is not
# English, this many times the score of English.
MIN_DIFFERENT, MIN_SHARE, MARGIN = 3, 0.02, 1.5


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
    """A language, by Snowball's name or "none", and the reason for choosing it."""

    name: str
    why: str

    def __str__(self) -> str:
        """
        >>> str(Language("german", "your choice"))
        'German (your choice)'
        """
        return f"{self.name.capitalize()} ({self.why})"


def named(language: str) -> str:
    """Return Snowball's name of a language, given by that name, by its ISO code, or as "none".

    Raises `QkvError` for an unknown language.

    >>> named("de"), named("Dutch"), named("none")
    ('german', 'dutch', 'none')
    """
    name = language.strip().lower()
    names = [*CODES.values(), NONE]
    if name not in names and name not in CODES:
        near = suggest(name, [*CODES, *names])
        codes = ", ".join([AUTO, *CODES, NONE])
        raise QkvError(f"no `language` {language!r}{near} (there is {codes})")
    return CODES.get(name, name)


def chosen(language: str, texts: Sequence[str], words_of: Callable[[str], list[str]]) -> Language:
    """Return the requested language, or with "auto" a guess from the texts.

    words_of: returns the folded words of a text. Raises `QkvError` for an unknown language.
    """
    if language != AUTO:
        return Language(named(language), "your choice")
    return guess(texts, words_of)


def guess(texts: Sequence[str], words_of: Callable[[str], list[str]]) -> Language:
    """Return the language whose stop words are most frequent; English if that is not clear.

    A stop word of several languages counts for each of them, divided by their number. Words of one
    letter do not count, since all languages have them. Short titles have few stop words, so three
    different ones and 2 % of all words are enough, and half as many again as in English.

    >>> guess(["die Jacke und der Hut"], str.split)
    Language(name='german', why='guessed from 1 text')
    """
    step = max(1, len(texts) // MAX_TEXTS)
    sample = list(islice(texts[::step], MAX_TEXTS))
    counts = Counter(word for text in sample for word in words_of(text[:MAX_CHARACTERS]))
    n_texts = quantity(len(sample), "text")
    if not counts:
        return Language(ENGLISH, f"no word in {n_texts} to guess by")
    languages, counts_for = _shares(words_of)
    scores, different = np.zeros(len(languages)), np.zeros(len(languages))
    for word, count in counts.items():
        if (row := counts_for.get(word)) is not None:
            scores += count * row
            different += row > 0
    english = languages.index(ENGLISH)
    fits = (different >= MIN_DIFFERENT) & (scores >= MIN_SHARE * counts.total())
    fits &= (scores >= MARGIN * scores[english]) | (np.arange(len(languages)) == english)
    if not fits.any():
        return Language(ENGLISH, f"too few known words in {n_texts} to guess another")
    best = int(np.where(fits, scores, -1).argmax())
    return Language(languages[best], f"guessed from {n_texts}")


@lru_cache(maxsize=1)
def _shares(words_of: Callable[[str], list[str]]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the languages with stop words, and the shares of each stop word for the languages."""
    languages = sorted(path.stem for path in STOP_WORDS.iterdir())
    counts_for: dict[str, np.ndarray] = {}
    for column, language in enumerate(languages):
        for word in {word for written in stop_words(language) for word in words_of(written)}:
            if len(word) > 1:
                counts_for.setdefault(word, np.zeros(len(languages)))[column] = 1
    return languages, {word: row / row.sum() for word, row in counts_for.items()}

"""Languages of texts: their names, elided articles and stop words, and a guess."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from qkvsearch._utils.validation import check_text
from qkvsearch.errors import DataError, QkvError, quantity, suggest

AUTO, NONE, ENGLISH = "auto", "none", "english"
# A file for each language, by Snowball's name.
STOP_WORDS = Path(__file__).with_name("stop_words")
# Of each language with a Snowball stemmer, by its name there: its ISO 639-1 codes, and words and
# letters that rules of this package need, folded.
FACTS: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(
    Path(__file__).with_name("languages.json").read_text(encoding="utf-8")
)


def fact(name: str) -> dict[str, Sequence[str]]:
    """Return a fact by language, of the languages that have it."""
    return {language: facts[name] for language, facts in FACTS.items() if name in facts}


CODES = dict(sorted((code, name) for name, codes in fact("codes").items() for code in codes))
# Articles that are removed before an apostrophe. In English and the languages without any here,
# which have them in foreign names, only before a vowel or h and three letters: in "l'amour" and
# "d'artagnan", not in "d'you" and "d'oh".
ELISIONS = fact("elided")
ELIDED_IN_ENGLISH = frozenset("aeiouh")
SHORTEST_IN_ENGLISH = 3

# What leads from the kind of a thing to its topic, as in "a book about bees".
ABOUT = fact("about")
# Words for the kind of a catalog's items. Those in one tuple name the same kind.
KINDS = (
    ("movie", "film"),
    ("video", "clip"),
    ("book", "novel"),
    ("talk", "lecture"),
    ("song", "track"),
    ("product", "article", "item"),
    ("game",),
    ("recipe",),
)

# A guess reads this many texts, spread over the catalog, and the beginning of each.
MAX_TEXTS, MAX_CHARACTERS = 500, 300
# The share of the texts that a language other than English needs.
MIN_VOTES = 0.5
# A catalog of this many texts has no language where the second has this share of them, and the
# first two together this one: short titles of one language are taken for a dozen.
MIN_TEXTS, MIXED, CLEAR = 20, 0.25, 0.75
# Fewer letters of ASCII alone tell no language: with 10 to 19 of them, 40 in 100 English titles of
# films are taken for another language, and with 30 to 39, 1 in 100.
MIN_ASCII_LETTERS = 30
# A word, in any script, with its marks; codes have one or two letters together. Two characters of
# kana, Han or Hangul are a word.
LETTERS = re.compile(
    r"[^\s\d\x00-@\[-`{-~…–—“”„‘’]{3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}"
)
# Languages without a stemmer that many texts are in, by their codes.
WITHOUT_STEMMER = {
    "bg": "bulgarian",
    "he": "hebrew",
    "hr": "croatian",
    "ja": "japanese",
    "ko": "korean",
    "sk": "slovak",
    "sl": "slovenian",
    "th": "thai",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "zh": "chinese",
}
# A text is surely in a language that has this share of the probability: of the English titles of
# TED talks, of films and of XQuAD's questions none is surely in another language, and nine of ten
# German questions are in German.
SURE = 0.9
# A catalog is in several languages where this share of its texts is surely in other ones.
SEVERAL = 0.1


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
        name = self.name if self.name == NONE else self.name.capitalize()
        return f"{name} ({self.why})"


def named(language: str, others: Sequence[str] = ()) -> str:
    """Return Snowball's name of a language, given by that name, by its ISO code, or as "none".

    Raises `DataError` for an unknown language. others: what its message names beside them.

    >>> named("de"), named("Dutch"), named("none")
    ('german', 'dutch', 'none')
    """
    name = check_text("language", language).strip().lower()
    names = [*CODES.values(), NONE]
    if name not in names and name not in CODES:
        near = suggest(name, [*CODES, *names])
        codes = ", ".join([*others, *CODES, NONE])
        raise DataError(f"no `language` {language!r}{near} (there is {codes})")
    return CODES.get(name, name)


def chosen(language: str, texts: Sequence[str]) -> Language:
    """Return the requested language, or with "auto" a guess from the texts.

    Raises `DataError` for an unknown language.
    """
    if language != AUTO:
        return Language(named(language, [AUTO]), "your choice")
    return guess(texts)


def guess(texts: Sequence[str]) -> Language:
    """Return the language of most texts, by the frequencies of their character sequences.

    Another language than English is taken if it is that of all texts in one and of half of them one
    by one. A few words of ASCII letters look like any language, and are read as English. Where a
    quarter of the texts are in one language and a quarter in another, or most are in a language
    without a stemmer, it is "none".

    Source: Lui and Baldwin 2012, "langid.py: An off-the-shelf language identification tool".

    >>> guess(["die Jacke und der Hut", "Schuhe aus Leder"])
    Language(name='german', why='guessed from 2 texts')
    """
    sample = _sample(texts)
    if not sample:
        return Language(ENGLISH, "no letters to detect it by")
    letters = "".join(filter(str.isalpha, "".join(sample)))
    if letters.isascii() and len(letters) < MIN_ASCII_LETTERS:
        return Language(ENGLISH, f"{quantity(len(letters), 'letter')} are too few to detect it by")
    n_texts = quantity(len(sample), "text")
    classify = _classifier()
    votes = Counter(vote.code for vote in _votes(tuple(sample))).most_common(2)
    code, n_votes = votes[0]

    if len(votes) == 2 and len(sample) >= MIN_TEXTS:
        n_second = votes[1][1]
        two_are_common = n_second >= MIXED * len(sample)
        others_are_few = n_votes + n_second >= CLEAR * len(sample)
        if two_are_common and others_are_few:
            both = " and ".join(english_name(code) for code, _ in votes)
            return Language(NONE, f"{n_texts} are in {both}")
    if code != "en":
        has_majority = n_votes >= MIN_VOTES * len(sample)
        if not has_majority or classify(" ".join(sample)).code != code:
            return Language(ENGLISH, f"{n_texts} do not clearly have another")
    if code not in CODES:
        why = f"{n_texts} are in {english_name(code)}, which has no stemmer here"
        return Language(NONE, why)
    return Language(CODES[code], f"guessed from {n_texts}")


def languages_in(texts: Sequence[str], language: str = NONE) -> list[str]:
    """Return the ISO 639-1 codes of the languages of a catalog, that of most texts first.

    It is one language, unless a tenth of the texts are surely in others: texts of a few words look
    like many languages. language: Snowball's name of the first one, "none" if it is unknown.

    >>> languages_in(["Why do rivers bend, and how far?"] * 8 + ["河流为什么会弯曲？"] * 2)
    ['en', 'zh']
    """
    sample = _sample(texts)
    votes = _votes(tuple(sample))
    counts = Counter(vote.code for vote in votes if vote.probability >= SURE)
    if language != NONE:
        first = iso_code(language)
    else:
        likely = counts or Counter(vote.code for vote in votes)
        first = likely.most_common(1)[0][0] if likely else "en"
    others = [code for code, _ in counts.most_common() if code != first]
    if sum(counts[code] for code in others) < SEVERAL * len(sample):
        return [first]
    return sorted([first, *others], key=lambda code: -counts[code])


def iso_code(language: str) -> str:
    """Return the ISO 639-1 code of a language by Snowball's name.

    >>> iso_code("german")
    'de'
    """
    return str(FACTS[language]["codes"][0])


def english_name(code: str) -> str:
    """Return the English name of a language by its ISO 639-1 code.

    >>> english_name("de"), english_name("zh")
    ('German', 'Chinese')
    """
    return (CODES.get(code) or WITHOUT_STEMMER.get(code, code)).capitalize()


def _sample(texts: Sequence[str]) -> list[str]:
    """Return the beginnings of some texts with letters, spread over all."""
    step = max(1, math.ceil(len(texts) / MAX_TEXTS))
    sample = []
    for text in texts[::step]:
        beginning = text[:MAX_CHARACTERS]
        if LETTERS.search(beginning):
            # Capitals look like another language.
            sample.append(beginning.lower() if beginning.isupper() else beginning)
    return sample


def languages_of(texts: Iterable[str]) -> list[str]:
    """Return the ISO 639-1 code of each text's language, "" for a text without a word.

    >>> languages_of(["die Jacke und der Hut", "the coat and the hat", "42"])
    ['de', 'en', '']
    """
    classify = _classifier()
    starts = (text[:MAX_CHARACTERS] for text in texts)
    return [classify(text).code if LETTERS.search(text) else "" for text in starts]


class Vote(NamedTuple):
    """The language of one text, by its ISO 639-1 code, and how likely it is among all."""

    code: str
    probability: float


@lru_cache(maxsize=1)
def _votes(sample: tuple[str, ...]) -> list[Vote]:
    """Return the language of each text; a build asks twice for those of its catalog."""
    return list(map(_classifier(), sample)) if sample else []


@lru_cache(maxsize=1)
def _classifier() -> Callable[[str], Vote]:
    """Return a function that tells a text's language. The model that it reads takes .4 s."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:  # it is unpacked into the temporary folder
        raise QkvError(f"cannot unpack the model of languages: {error}; set `language`") from None
    known = [*CODES, *WITHOUT_STEMMER]
    identifier.set_languages([code for code in known if code in identifier.nb_classes])

    def classify(text: str) -> Vote:
        code, probability = identifier.classify(text)
        # Both Norwegians have one stemmer.
        return Vote("no" if code in ("nn", "nb") else str(code), float(probability))

    return classify

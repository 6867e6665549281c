"""Words as they are spelled, and what each finds: the lexical head, computed to the end.

Other forms of the texts' words come from the dictionary that tells misspellings: by them, too, what
is typed is found without a stemmer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkvsearch.answers.asked.lexicon import Lexicon
from qkvsearch.errors import WorkspaceError
from qkvsearch.progress import Progress
from qkvsearch.retrieval.keys import AskedWord, FoundWord, TermKeys
from qkvsearch.stored import StoredModels
from qkvsearch.texts.analysis import Token
from qkvsearch.texts.language.word_patterns import HAS_CJK
from qkvsearch.texts.spelling import dictionary_words

# The last character that is one unit of UTF-16.
LAST_UNIT = "\uffff"


class Lookup(NamedTuple):
    """What words of one meaning to the lexical head find.

    term: what they are matched by. ways: the items' own words for which each is found, but for the
    first, which is the word as it was typed. items: uint16 (n,), ascending row numbers. weights:
    float32 (n,), what the word adds to each. best: uint16 (n,), which of the ways adds it.
    """

    term: str
    ways: list[str]
    items: np.ndarray
    weights: np.ndarray
    best: np.ndarray


@dataclass(frozen=True)
class Lookups:
    """words: as they are spelled, folded, in the order that JavaScript compares by: those of the
    texts and those of a dictionary that find as much. numbers: int64 (n_words,), which of `every`
    each finds. others: all other words of the dictionary. A page needs no stemmer with these.
    """

    words: list[str]
    numbers: np.ndarray
    every: list[Lookup]
    others: list[str]

    @classmethod
    def of(cls, models: StoredModels, progress: Progress) -> Lookups:
        """All words of a build, with the other words that each is looked up by."""
        lexicon, keys = Lexicon(models), models.lexical_keys
        places: dict[tuple[object, ...], int] = {}
        words: list[str] = []
        numbers: list[int] = []
        every: list[Lookup] = []
        tokens = _tokens(models)
        forms, others = _other_forms(models, tokens)
        spelled = sorted((tokens | forms).items(), key=lambda pair: _order(pair[0]))
        for done, (text, token) in enumerate(spelled):
            asked = lexicon.word(token)
            place = places.get(_meaning(asked))
            if place is None:
                found = keys.found(asked)
                if not len(found.items):
                    continue
                place = places[_meaning(asked)] = len(every)
                every.append(_lookup(asked, found, keys))
            words.append(text)
            numbers.append(place)
            if done % 1000 == 0:
                progress("looking up words", done, len(spelled))
        return cls(words, np.array(numbers, np.int64), every, others)


def _order(word: str) -> bytes:
    """JavaScript compares UTF-16 units."""
    return word.encode("utf-16-be", errors="surrogatepass")


def _meaning(asked: AskedWord) -> tuple[object, ...]:
    first, *others = asked.ways
    return (first.term, *others)


def _lookup(asked: AskedWord, found: FoundWord, keys: TermKeys) -> Lookup:
    """Ways that find nothing are not there; the word as it was typed is the first all the same."""
    shown = [way.shown for way in found.ways]
    if not keys.has(asked.ways[0].term):
        shown = ["", *shown]
    offset = len(shown) - len(found.ways)
    weights, best = np.zeros(keys.n_items, np.float32), np.zeros(keys.n_items, np.uint16)
    for number, way in enumerate(found.ways, start=offset):
        scaled = way.scaled
        better = scaled > weights[way.items]
        weights[way.items[better]] = scaled[better]
        best[way.items[better]] = number
    items = found.items.astype(np.uint16)
    return Lookup(asked.ways[0].term, shown[1:], items, found.weights, best[items])


def _tokens(models: StoredModels) -> dict[str, Token]:
    """Each word that a query may have, by its folded spelling: those of the texts, the bare words
    of code, and single characters of scripts without blanks.
    """
    index = models.words
    if index is None:
        raise WorkspaceError(
            f"{models.snapshot.workspace}: its build is of an older version and knows no "
            "spellings; build it again"
        )
    found: dict[str, Token] = {}
    for spelling in index.spellings.tolist():
        for token in _every(models.analyzer.tokens(spelling.decode(errors="replace"))):
            found.setdefault(token.text, token)
    return found


def _other_forms(
    models: StoredModels, known: dict[str, Token]
) -> tuple[dict[str, Token], list[str]]:
    """The dictionary's words that are not spelled so in the texts: forms of words that are there,
    and the others.
    """
    forms: dict[str, Token] = {}
    others = []
    for word in sorted(dictionary_words(models.analyzer.language)):
        if word in known or not word.isalpha() or max(word) > LAST_UNIT:
            continue
        (token,) = models.analyzer.tokens(word) if not HAS_CJK(word) else [Token(word, "")]
        if token.text == word and models.lexical_keys.has(token.term):
            forms[word] = token
        else:
            others.append(word)
    return forms, others


def _every(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.parts
        if HAS_CJK(token.text):
            yield from (Token(char, char) for char in token.text)

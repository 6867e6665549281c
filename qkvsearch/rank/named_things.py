"""The thing that a query names, and the items that are called so.

In "cheap tent for a festival" it is the tent. The words beside it say which one, and a catalog
that calls no tent cheap has tents all the same. So an item with the thing in its title is no weak
match, if it has at least half of the words of the phrase:

| query | thing | phrase |
|---|---|---|
| cheap tent for a festival | tent | cheap tent |
| garden hose | hose | garden hose |
| zapatos baratos | zapatos | zapatos baratos |

In scripts without spaces, where the first or the last characters are no word, the thing is a part
of the query that stands between blanks, if it has three characters or more: of 张国荣 霸王别姬, an
item that has all of 张国荣 is no weak match, wherever the item has it.

A column of at most `CATEGORY` words is read like a title: "cheap paintings" names the paintings of
a museum that has them as a class. Words that ask for a thing (`asking_words.json`) name none: in
"kayak sale" the thing is the kayak.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkvsearch.heads.bm25 import QueryTerm
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.title_head import has_titles
from qkvsearch.heads.unit_phrases import UnitRow, has_unspaced, overlap, units_of
from qkvsearch.text.analysis import Token

# Longer queries are sentences, whose first nouns are seldom what is asked for.
FEW_WORDS = 5
# A title of more words is a text.
SHORT = 30
# A column of at most so many words says what an item is, as a title does.
CATEGORY = 5
# Words by which people ask for a thing or talk of it, in all languages, folded.
_BY_LANGUAGE = json.loads(Path(__file__).with_name("asking_words.json").read_text("utf-8"))
ASKING_UNSPACED: Sequence[str] = _BY_LANGUAGE.pop("chinese")
ASKING = frozenset(word for words in _BY_LANGUAGE.values() for word in words)
# An item has at least this share of the words of the phrase.
HALF = 0.5
# A thing is looked up by the words that count so much for it.
SAME_THING = 0.8
# Fewer characters are no name.
MIN_UNITS = 3
# Languages in which an adjective follows its noun.
NOUN_FIRST = frozenset(
    ("arabic", "catalan", "french", "indonesian", "italian", "portuguese", "romanian", "spanish")
)


class NamedThing(NamedTuple):
    """The phrase of a query that names a thing."""

    # What its words are looked up by.
    terms: Sequence[QueryTerm]
    # Of these, the thing itself, which an item has in its title; None where all must be there.
    thing: QueryTerm | None
    # Whether an item has it in a column of a few words that is not its title.
    is_category: bool = False

    def items(self, models: StoredModels, within: np.ndarray | None = None) -> np.ndarray:
        """Return the items that have it, bool (n_items,).

        within: bool (n_items,), the items that are asked for; None for all.
        """
        keys = models.lexical_keys
        counts = np.zeros(keys.n_items, np.int64)
        for term in self.terms:
            counts[keys.items_with(term)] += 1
        least = len(self.terms) if self.thing is None else HALF * len(self.terms)
        is_found = counts >= least
        if within is not None:
            is_found &= within
        if self.thing is None:
            return is_found
        has_thing = np.zeros(keys.n_items, dtype=bool)
        has_thing[keys.items_with(self.thing)] = True
        candidates = np.flatnonzero(is_found & has_thing)
        # A part of a longer word is another thing: a ringtone is no ring.
        ways = [way.term for way in self.thing.expansions if way.weight >= SAME_THING]
        in_titles = models.words.in_columns(ways, candidates, SHORT, first_alone=True)
        in_categories = models.words.in_columns(ways, candidates, CATEGORY)
        return in_categories & ~in_titles if self.is_category else in_titles | in_categories


def named_things(
    models: StoredModels,
    tokens: Sequence[Token],
    terms: Mapping[str, QueryTerm],
    asking: Collection[str] = (),
) -> list[NamedThing]:
    """Return what a query names; nothing where this is not clear.

    tokens: all words in order, with stop words. terms: by term, what a word is looked up by.
    asking: the terms of words by which the query only asks.
    """
    if has_unspaced(tokens):
        parts = list(_parts(tokens))
        names = [
            NamedThing([terms[token.term] for token in part], None)
            for part in parts
            if len(parts) > 1 and _is_name(part) and all(token.term in terms for token in part)
        ]
        return [*names, *_category(tokens, terms)]
    asked_for = [token for token in tokens if token.term in terms and token.term not in asking]
    if not has_titles(models) or not 1 < len(asked_for) <= FEW_WORDS:
        return []
    # Where all words only ask, they are the thing: "car sale" is one in a catalog of events.
    asked_for = [token for token in asked_for if token.text not in ASKING] or asked_for
    phrase = phrase_of(tokens, {token.term for token in asked_for})
    words = [token for token in phrase if any(map(str.isalpha, token.text))]
    if not words:
        return []
    thing = words[0] if models.analyzer.language in NOUN_FIRST else words[-1]
    return [NamedThing([terms[token.term] for token in phrase], terms[thing.term])]


def phrase_of(tokens: Sequence[Token], asked_for: Collection[str]) -> list[Token]:
    """Return the first words that are asked for, up to a stop word.

    >>> from qkvsearch.text.analysis import Analyzer
    >>> tokens = Analyzer().tokens("where is a cheap tent for a festival")
    >>> [token.text for token in phrase_of(tokens, {"cheap", "tent", "festiv"})]
    ['cheap', 'tent']
    """
    phrase: list[Token] = []
    for token in tokens:
        if not token.is_stop_word and token.term in asked_for:
            phrase.append(token)
        elif phrase:
            break
    return phrase


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the words of a query by what stands between blanks."""
    part: list[Token] = []
    for token in tokens:
        if part and not overlap(units_of(part[-1].text), units_of(token.text)):
            yield part
            part = []
        part.append(token)
    if part:
        yield part


def _category(tokens: Sequence[Token], terms: Mapping[str, QueryTerm]) -> list[NamedThing]:
    """Return the class that a query in a script without spaces asks for, as 爱情 of 爱情片推荐.

    It is two units before a last one, which only says what kind of thing it is. Words of asking at
    the beginning and at the end do not count.
    """
    units = UnitRow.of(tokens).units
    text = "".join(units)
    for word in ASKING_UNSPACED:
        text = text.removeprefix(word).removesuffix(word)
    pair = text[-3:-1]
    by_text = {token.text: token.term for token in tokens}
    if len(text) < 3 or pair not in by_text or by_text[pair] not in terms:
        return []
    term = terms[by_text[pair]]
    return [NamedThing([term], term, is_category=True)]


def _is_name(part: Sequence[Token]) -> bool:
    """Return whether a part of a query has `MIN_UNITS` units in a script without spaces."""
    return len(part) + 1 >= MIN_UNITS and len(units_of(part[0].text)) == 2


def are_named(
    models: StoredModels, things: Sequence[NamedThing], within: np.ndarray | None = None
) -> np.ndarray:
    """Return the items that have one of the things, bool (n_items,)."""
    found = np.zeros(models.n_items, dtype=bool)
    for thing in things:
        found |= thing.items(models, within)
    return found


def terms_by_word(tokens: Sequence[Token], terms: Sequence[QueryTerm]) -> dict[str, QueryTerm]:
    """Return by term what each word of a query is looked up by."""
    return {token.term: term for token, term in zip(tokens, terms, strict=False)}

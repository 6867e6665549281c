"""Words of a query that are read as others: misspelled, run together, or not typed to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_by_word
from qkvsearch.index import StoredModels
from qkvsearch.search.synonyms import SYNONYM, OwnSynonyms
from qkvsearch.text.analysis import HAS_CJK, MAX_TERM, Token, fold
from qkvsearch.text.related_words import split_compound
from qkvsearch.text.spelling import (
    ERROR_PENALTY,
    is_dictionary_loaded,
    is_in_dictionary,
    near_words,
    split_in_two,
)

# A name that no item has is rarely a misspelling of a short word.
SHORTEST_NAME = 6
# What a word counts that was completed, beside the word as it was typed.
COMPLETED = 0.8
# Of what a word that is being typed may become, so many words are looked up.
MOST_COMPLETIONS = 50
# And so many are read by their meaning, which is kept of so many beginnings.
MOST_READ, KEPT_MEANINGS = 5, 1 << 10
# And what counts for it as a compound with it, or as a part of one that no item has.
COMPOUND = 0.6
# A long query is prose, which is seldom mistyped: so many of its words, those that no text has, are
# looked up among misspellings.
MOST_LOOKED_UP = 6
# Words of which it is kept what they were read as: each takes a comparison with many.
KEPT_CHANGES = 1 << 12
KEPT_WORDS = 1 << 14

Span = tuple[int, int]


@dataclass(frozen=True)
class Change:
    """A word that is read as another. kind: "spelling", "blank" between two words, "prefix",
    "synonym", "compound" for its parts.
    """

    typed: str
    read: str
    weight: float
    kind: str

    @property
    def label(self) -> str:
        """As reasons name it."""
        return f"{self.typed} → {self.read} ×{self.weight:.2g}"

    @property
    def note(self) -> str:
        """For whoever typed it; nothing for what was only completed."""
        if self.kind == "prefix":
            return ""
        how = "searched for" if self.kind == "spelling" else "read as"
        return f"No item has “{self.typed}”: {how} “{self.read}”."

    def to_record(self) -> dict[str, Any]:
        """As an answer lists it."""
        return asdict(self)


@dataclass(frozen=True)
class Changes:
    """What a build makes of words that none of its items has."""

    models: StoredModels
    synonyms: OwnSynonyms

    def of_text(self, text: str, is_typing: bool) -> Iterator[tuple[Span, Change]]:
        """Where in a text a word is read as another, and as which. is_typing: whether the last word
        may be unfinished.
        """
        tokens = self.models.analyzer.tokens(text)
        unspelled = (i for i in self._unspelled(tokens) if not tokens[i].is_stop_word)
        looked_up = list(islice(unspelled, MOST_LOOKED_UP))
        # What stays as it is in small letters does so in capitals, wherever it stands.
        folded = (tokens[i] for i in looked_up)
        if not is_typing and all(self.mended(token, token.text) is None for token in folded):
            return
        spans = self.models.analyzer.token_spans(text)
        for i in looked_up:
            start, end = spans[i]
            is_last = is_typing and end == len(text)
            change = (self.completed if is_last else self.mended)(tokens[i], text[start:end])
            if change is not None:
                yield (start, end), change

    def completed(self, token: Token, typed: str) -> Change | None:
        """An unfinished word as the most frequent one that begins so, unless it is one itself; or
        else as what it may be a misspelling of.
        """
        if _KnownWords(self.models).has(token.text):
            return None
        if found := self.completions(token.text):
            return Change(typed, found[0][0], COMPLETED, "prefix")
        return self.mended(token, typed)

    @cached_property
    def completions(self) -> Callable[[str], list[tuple[str, float]]]:
        """The words that begin so, each in one form, the most frequent first, with the share that
        each has of the items of all.
        """
        return cached_by_word(_Completions(self.models), KEPT_CHANGES)

    @cached_property
    def meaning(self) -> Callable[[str, str], np.ndarray]:
        """The mean (d,) of the words that begin so, by a dense head, by how likely each is."""

        def mean(begun: str, head: str) -> np.ndarray:
            words, shares = zip(*self.completions(begun)[:MOST_READ], strict=True)
            encoded = self.models.encoder(head).encode_many(words)
            return np.asarray(np.array(shares, encoded.dtype) @ encoded)

        return cached_by_word(mean, KEPT_MEANINGS)

    @cached_property
    def mended(self) -> Callable[[Token, str], Change | None]:
        """A word that no item has in this spelling as what it may mean, if anything."""
        return cached_by_word(_Mended(self.models, self.synonyms), KEPT_CHANGES)

    def _unspelled(self, tokens: Sequence[Token]) -> Iterator[int]:
        """The places of words that no text has in this spelling, and no item is called."""
        yield from (i for i, token in enumerate(tokens) if not self._is_spelled(token.text))

    @cached_property
    def _is_spelled(self) -> Callable[[str], bool]:
        """Whether a text has a word in this spelling, or an item is called so."""
        words, codes = self.models.words, self.models.code_keys

        def known(word: str) -> bool:
            return words.has(word) or codes.has(word)

        return cached_by_word(known, KEPT_WORDS)


@dataclass(frozen=True)
class _KnownWords:
    """Words that items have, in whatever form."""

    models: StoredModels

    def has(self, word: str) -> bool:
        return self.n_with(word) > 0

    def n_with(self, word: str) -> int:
        """How many items have the word, or the rarest of its words."""
        terms = [token.term for token in self.models.analyzer.tokens(fold(word))]
        return min((self.models.lexical_keys.n_with(term) for term in terms), default=0)

    def term(self, word: str) -> str:
        return " ".join(token.term for token in self.models.analyzer.tokens(word))


@dataclass(frozen=True)
class _Completions:
    models: StoredModels

    def __call__(self, begun: str) -> list[tuple[str, float]]:
        index, keys, counts = self.models.words, self.models.lexical_keys, {}
        forms: dict[tuple[str, ...], str] = {}
        for word in index.beginning(begun):
            terms = tuple(token.term for token in self.models.analyzer.tokens(fold(word)))
            if forms.setdefault(terms, word) == word:
                counts[word] = min(map(keys.n_with, terms), default=0)
        total = sum(counts.values())
        best = sorted((word for word in counts if counts[word]), key=lambda word: -counts[word])
        return [(word, counts[word] / total) for word in best[:MOST_COMPLETIONS]]


@dataclass(frozen=True)
class _Mended:
    models: StoredModels
    synonyms: OwnSynonyms

    def __call__(self, token: Token, typed: str) -> Change | None:
        index, word, known = self.models.words, token.text, _KnownWords(self.models)
        if not word.isalpha() or HAS_CJK(word) or len(word) > MAX_TERM:
            return None
        language = self.models.analyzer.language
        is_known = any(map(self.models.lexical_keys.has, (token.term, *token.variants)))
        if not is_known:
            if others := list(filter(known.has, self.synonyms.of(word))):
                return Change(typed, others[0], SYNONYM, "synonym")
            if two := split_compound(word, index.spellings, language):
                return Change(typed, " ".join(two), COMPOUND, "compound")
        if typed[0].isupper() and len(word) < SHORTEST_NAME:
            return None
        if is_dictionary_loaded() and is_in_dictionary(typed, language):
            return None
        # Another form of a word that is there is no misspelling.
        alike = near_words(word, index.by_letters.candidates(word))
        near = [pair for pair in alike if known.term(pair[0]) != token.term]
        two = None if near or is_known else split_in_two(word, known.has)
        if not (near or two) or is_in_dictionary(typed, language):
            return None
        if two:
            return Change(typed, " ".join(two), ERROR_PENALTY, "blank")
        best, errors = max(near, key=lambda pair: known.n_with(pair[0]))
        return Change(typed, best, ERROR_PENALTY**errors, "spelling")


def with_changes(text: str, changes: list[tuple[Span, Change]]) -> str:
    """The text as it is read."""
    for (start, end), change in reversed(changes):
        text = f"{text[:start]}{change.read}{text[end:]}"
    return text

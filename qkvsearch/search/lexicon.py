"""What single words mean to a build: all that each is looked up by. Queries share their words, so
what was found of one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from qkvsearch._utils.caching import cached_by_word
from qkvsearch.index import StoredModels
from qkvsearch.retrieval.keys import Expansion, QueryTerm
from qkvsearch.search.expansion import COMPOUND, KEPT_CHANGES, KEPT_WORDS, Changes
from qkvsearch.search.synonyms import OwnSynonyms
from qkvsearch.text.analysis import Token
from qkvsearch.text.related_words import (
    LINKS,
    MAX_MEAN_LENGTH,
    MIN_PREFIX,
    compounds_of,
    related_terms,
)

# The words that `word*` is looked up by.
MAX_EXPANSION = 50


@dataclass(frozen=True)
class Lexicon:
    """Of one build."""

    models: StoredModels

    @cached_property
    def synonyms(self) -> OwnSynonyms:
        return OwnSynonyms(self.models)

    @cached_property
    def changes(self) -> Changes:
        return Changes(self.models, self.synonyms)

    @cached_property
    def expansion(self) -> Callable[[str], tuple[list[str], int]]:
        """The most frequent words that begin as `word*` says, and how many words do."""
        words = self.models.words
        return cached_by_word(lambda begun: words.most_frequent(begun, MAX_EXPANSION), KEPT_CHANGES)

    @cached_property
    def word(self) -> Callable[[Token], QueryTerm]:
        """A word with all that it is looked up by: as it is, compounds, its family, synonyms."""
        return cached_by_word(_Words(self.models, self.synonyms), KEPT_WORDS)


@dataclass(frozen=True)
class _Words:
    models: StoredModels
    synonyms: OwnSynonyms

    def __call__(self, token: Token) -> QueryTerm:
        others = [*self._compounds(token), *self._related(token), *self.synonyms.one_word(token)]
        return QueryTerm.of(token).also(others)

    def _related(self, token: Token) -> Sequence[Expansion]:
        """The words of its family that the catalog has."""
        index = self.models.words
        if index.mean_length > MAX_MEAN_LENGTH or len(token.term) < MIN_PREFIX:
            return ()
        there = index.terms_beginning(token.term[:MIN_PREFIX])
        related = related_terms(token.term, there) if there else {}
        return [Expansion(term, there[term], share) for term, share in related.items()]

    def _compounds(self, token: Token) -> Iterator[Expansion]:
        """The words of the catalog that a word is the first or the last part of."""
        analyzer, index = self.models.analyzer, self.models.words
        if token.is_stop_word or analyzer.language not in LINKS:
            return
        for found in compounds_of(token.text, index.spellings, analyzer.language):
            yield from (
                Expansion(t.term, found.word, COMPOUND) for t in analyzer.tokens(found.word)
            )

"""Words of a query that stand for others: misspellings, completions, synonyms, related words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.bm25 import Expansion, QueryTerm
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.tables.synonyms import FACT
from qkvsearch.text.analysis import HAS_CJK, MAX_TERM, Token
from qkvsearch.text.related_words import (
    LINKS,
    MAX_MEAN_LENGTH,
    MIN_PREFIX,
    compounds_of,
    related_terms,
    split_compound,
)
from qkvsearch.text.spelling import (
    ERROR_PENALTY,
    is_dictionary_loaded,
    is_in_dictionary,
    near_words,
    split_in_two,
)

# Shorter capitalized words are names rather than misspellings.
MIN_NAME = 6
# The weights of a completion, of a synonym, and of a compound or a part of one, beside the word as
# it was typed.
COMPLETED, SYNONYM, COMPOUND = 0.8, 0.8, 0.6
# Longer words are no initials. Written with full stops in an item, they count twice.
MAX_INITIALS, DOTTED = 4, 2.0
# The words that `word*` is looked up by.
MAX_EXPANSION = 50
# The words that an unfinished word is completed to, and those of them whose meaning counts.
MAX_COMPLETIONS, MAX_MEANINGS = 50, 5
# A long query is prose, which is seldom mistyped: only so many unknown words are corrected.
MAX_CORRECTED = 6
# The sizes of the caches. A correction compares a word with many, so it is worth caching.
CACHED_CHANGES, CACHED_WORDS, CACHED_MEANINGS = 1 << 12, 1 << 14, 1 << 10

Span = tuple[int, int]


@dataclass(frozen=True)
class Change:
    """A word that is read as another.

    kind: "spelling", "blank" for two words run together, "prefix" for a completion, "synonym", or
    "compound" for the parts of one.
    """

    typed: str
    read: str
    weight: float
    kind: str

    @property
    def label(self) -> str:
        """The word's name in reasons."""
        return f"{self.typed} → {self.read} ×{self.weight:.2g}"

    @property
    def note(self) -> str:
        """The note for the user; empty for a completion."""
        if self.kind == "prefix":
            return ""
        how = "searched for" if self.kind == "spelling" else "read as"
        return f"No item has “{self.typed}”: {how} “{self.read}”."

    def to_record(self) -> dict[str, Any]:
        """Return the fields by name, for the answer's `corrections`."""
        return asdict(self)


class Lexicon:
    """What the words of queries mean to a build. Queries share words, so results are cached.

    is_spelled(word): whether a text has a word in this spelling, or an item is named so.
    corrected(token, typed): the `Change` of a word that no item has in this spelling; None where
    there is nothing better; see `_Corrector`.
    completions(prefix): the words that begin with a prefix, each in one form, the most frequent
    first, with its share of the items of all.
    prefix_words(prefix): the most frequent words that begin with a prefix, and how many do.
    meaning(prefix, head): the mean (d,) of a prefix's completions in a dense head, weighted by
    shares.
    term(token): a word with its compounds, its related words and its synonyms; see `_Expander`.
    """

    def __init__(self, models: StoredModels) -> None:
        self.models = models
        self.synonyms = Synonyms(models)
        completions = cached_by_word(_Completer(models).completions, CACHED_CHANGES)

        def is_spelled(word: str) -> bool:
            return models.words.has(word) or models.code_keys.has(word)

        def prefix_words(prefix: str) -> tuple[list[str], int]:
            return models.words.most_frequent(prefix, MAX_EXPANSION)

        def meaning(prefix: str, head: str) -> np.ndarray:
            words, shares = zip(*completions(prefix)[:MAX_MEANINGS], strict=True)
            vectors = models.encoder(head).encode_many(words)
            return np.asarray(np.array(shares, vectors.dtype) @ vectors)

        self.is_spelled = cached_by_word(is_spelled, CACHED_WORDS)
        self.corrected = cached_by_word(_Corrector(models, self.synonyms).correct, CACHED_CHANGES)
        self.completions = completions
        self.prefix_words = cached_by_word(prefix_words, CACHED_CHANGES)
        self.meaning = cached_by_word(meaning, CACHED_MEANINGS)
        self.term = cached_by_word(_Expander(models, self.synonyms).term, CACHED_WORDS)

    def changes(self, text: str, is_typing: bool) -> list[tuple[Span, Change]]:
        """Return which words of a text are read as others, with their spans.

        is_typing: whether the last word may be unfinished.
        """
        tokens = self.models.analyzer.tokens(text)
        unknown = (
            i
            for i, token in enumerate(tokens)
            if not (token.is_stop_word or self.is_spelled(token.text))
        )
        looked_up = list(islice(unknown, MAX_CORRECTED))
        # A word without a correction in lower case has none in capitals.
        folded = (tokens[i] for i in looked_up)
        if not is_typing and all(self.corrected(token, token.text) is None for token in folded):
            return []
        spans, changes = self.models.analyzer.token_spans(text), []
        for i in looked_up:
            start, end = spans[i]
            is_last = is_typing and end == len(text)
            change = (self.completed if is_last else self.corrected)(tokens[i], text[start:end])
            if change is not None:
                changes.append(((start, end), change))
        return changes

    def completed(self, token: Token, typed: str) -> Change | None:
        """Return an unfinished word completed or else corrected; None for a word of the catalog."""
        if n_with_word(self.models, token.text):
            return None
        if completions := self.completions(token.text):
            return Change(typed, completions[0][0], COMPLETED, "prefix")
        return self.corrected(token, typed)


def with_changes(text: str, changes: list[tuple[Span, Change]]) -> str:
    """Return the text with its words replaced by those that they are read as."""
    for (start, end), change in reversed(changes):
        text = f"{text[:start]}{change.read}{text[end:]}"
    return text


def n_with_word(models: StoredModels, word: str) -> int:
    """Return how many items have a word in any form; of several words, the rarest one."""
    tokens = models.analyzer.tokens(fold(word))
    return min((models.lexical_keys.n_with(token.term) for token in tokens), default=0)


@dataclass(frozen=True)
class Synonyms:
    """The synonyms that the owner of a catalog gave."""

    models: StoredModels

    @cached_property
    def _by_text(self) -> Mapping[str, list[str]]:
        synonyms: Mapping[str, list[str]] = self.models.snapshot.facts.get(FACT, {})
        return {fold(text): others for text, others in synonyms.items()}

    @cached_property
    def _by_terms(self) -> dict[tuple[str, ...], list[str]]:
        by_terms: dict[tuple[str, ...], list[str]] = {}
        for text, others in self._by_text.items():
            terms = tuple(token.term for token in self.models.analyzer.tokens(text))
            by_terms.setdefault(terms, []).extend(others)
        return by_terms

    def of(self, word: str) -> Sequence[str]:
        """Return the synonyms of a folded word."""
        return self._by_text.get(word, ())

    def of_one_word(self, token: Token) -> Iterator[Expansion]:
        """Yield the synonyms of a word that are one word, too: they match in its place."""
        for other in self._by_terms.get((token.term,), ()):
            tokens = self.models.analyzer.tokens(other)
            if len(tokens) == 1:
                yield Expansion(tokens[0].term, tokens[0].text, SYNONYM)

    def of_several_words(self, text: str) -> Iterator[QueryTerm]:
        """Yield the synonyms of several words, or for several words of a text. They are query terms
        of their own, which share the weight.
        """
        if not self._by_terms:
            return
        analyzer = self.models.analyzer
        tokens = analyzer.tokens(text)
        longest = max(map(len, self._by_terms))
        for start in range(len(tokens)):
            for n in range(1, min(longest, len(tokens) - start) + 1):
                span = tokens[start : start + n]
                for other in self._by_terms.get(tuple(token.term for token in span), ()):
                    others = analyzer.query_tokens(other)
                    if n == 1 and len(others) <= 1:
                        continue
                    typed = " ".join(token.text for token in span)
                    label = f"{typed} → {other} ×{SYNONYM:.2g}"
                    weight = SYNONYM * n / max(len(others), 1)
                    for token in others:
                        yield QueryTerm(label, (Expansion(token.term, token.text, weight),))


@dataclass(frozen=True)
class _Completer:
    models: StoredModels

    def completions(self, prefix: str) -> list[tuple[str, float]]:
        keys, counts = self.models.lexical_keys, {}
        forms: dict[tuple[str, ...], str] = {}
        for word in self.models.words.words_with_prefix(prefix):
            terms = tuple(token.term for token in self.models.analyzer.tokens(fold(word)))
            if forms.setdefault(terms, word) == word:
                counts[word] = min(map(keys.n_with, terms), default=0)
        total = sum(counts.values())
        best = sorted((word for word in counts if counts[word]), key=lambda word: -counts[word])
        return [(word, counts[word] / total) for word in best[:MAX_COMPLETIONS]]


@dataclass(frozen=True)
class _Corrector:
    models: StoredModels
    synonyms: Synonyms

    def correct(self, token: Token, typed: str) -> Change | None:
        index, word = self.models.words, token.text
        if not word.isalpha() or HAS_CJK(word) or len(word) > MAX_TERM:
            return None
        language = self.models.analyzer.language
        is_known = any(map(self.models.lexical_keys.has, (token.term, *token.variants)))
        if not is_known:
            if others := list(filter(self._n_with, self.synonyms.of(word))):
                return Change(typed, others[0], SYNONYM, "synonym")
            if parts := split_compound(word, index.spellings, language):
                return Change(typed, " ".join(parts), COMPOUND, "compound")
            parts = split_in_two(word, index.has, shortest=1)
            if parts and self._are_neighbours(*parts):
                return Change(typed, " ".join(parts), ERROR_PENALTY, "blank")
        if typed[0].isupper() and len(word) < MIN_NAME:
            return None
        if is_dictionary_loaded() and is_in_dictionary(typed, language):
            return None
        # Another form of a word of the catalog is no misspelling.
        similar = near_words(word, index.by_letters.candidates(word))
        near = [pair for pair in similar if self._term(pair[0]) != token.term]
        two = None if near or is_known else split_in_two(word, lambda part: self._n_with(part) > 0)
        if not (near or two) or is_in_dictionary(typed, language):
            return None
        if two:
            return Change(typed, " ".join(two), ERROR_PENALTY, "blank")
        best, n_errors = max(near, key=lambda pair: self._n_with(pair[0]))
        return Change(typed, best, ERROR_PENALTY**n_errors, "spelling")

    def _are_neighbours(self, *words: str) -> bool:
        """Return whether an item has these words one behind the other, as in Spider-Man; not two
        words that only join others.
        """
        tokens = [token for word in words for token in self.models.analyzer.tokens(word)]
        if all(token.is_stop_word for token in tokens):
            return False
        terms, has_all = [token.term for token in tokens], np.ones(self.models.n_items, dtype=bool)
        for term in terms:
            has_term = np.zeros_like(has_all)
            has_term[self.models.lexical_keys.postings(term)[0]] = True
            has_all &= has_term
        return bool(self.models.words.with_phrase(terms, has_all).any())

    def _n_with(self, word: str) -> int:
        return n_with_word(self.models, word)

    def _term(self, word: str) -> str:
        return " ".join(token.term for token in self.models.analyzer.tokens(word))


@dataclass(frozen=True)
class _Expander:
    models: StoredModels
    synonyms: Synonyms

    def term(self, token: Token) -> QueryTerm:
        pause()
        others = [*self._initials(token), *self._compounds(token), *self._related(token)]
        return QueryTerm.of(token).also([*others, *self.synonyms.of_one_word(token)])

    def _initials(self, token: Token) -> Iterator[Expansion]:
        """Yield the word as initials with full stops: E.T. is no French "et"."""
        dotted = ".".join(token.text)
        if (
            not token.is_stop_word
            and 1 < len(token.text) <= MAX_INITIALS
            and self.models.lexical_keys.has(dotted)
        ):
            yield Expansion(dotted, dotted, DOTTED)

    def _related(self, token: Token) -> Sequence[Expansion]:
        """Return the words of the same family that the catalog has."""
        index = self.models.words
        if index.mean_length > MAX_MEAN_LENGTH or len(token.term) < MIN_PREFIX:
            return ()
        words = index.terms_with_prefix(token.term[:MIN_PREFIX])
        related = related_terms(token.term, words)
        return [Expansion(term, words[term], share) for term, share in related.items()]

    def _compounds(self, token: Token) -> Iterator[Expansion]:
        """Yield the words of the catalog that a word is the first or the last part of."""
        analyzer, index = self.models.analyzer, self.models.words
        if token.is_stop_word or analyzer.language not in LINKS:
            return
        for compound in compounds_of(token.text, index.spellings, analyzer.language):
            for part in analyzer.tokens(compound):
                yield Expansion(part.term, compound, COMPOUND)

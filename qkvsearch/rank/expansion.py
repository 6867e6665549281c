"""Words of a query that stand for others: misspellings, completions, synonyms, related words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.bm25 import Expansion, QueryTerm
from qkvsearch.heads.item_texts import ItemTexts
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.unit_phrases import has_unspaced, near_phrase
from qkvsearch.tables.synonyms import FACT
from qkvsearch.text.analysis import IS_SPACED_WORD, MAX_TERM, NUMBER, Span, Token
from qkvsearch.text.related_words import (
    LINKS,
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
    without_doubles,
)

# Shorter capitalized words are names rather than misspellings.
MIN_NAME = 6
# The weights of other words beside the word as it was typed: of a completion, of a synonym, and of
# a compound or a part of one.
COMPLETED, SYNONYM, COMPOUND = 0.8, 0.8, 0.6
# The weight of one word beside the two that it was typed as: of "whiteboard" for "white board".
JOINED = 0.8
# Two words make a shorter one by chance.
MIN_JOINED = 5
# Longer texts are prose, in which words are seldom torn apart.
MAX_JOINED = 32
# The weight of a number beside the number with its unit: of 25 beside 25 m.
BARE_NUMBER = 0.6
# Longer words are no initials.
MAX_INITIALS = 4
# The weight of initials that an item writes with full stops.
DOTTED = 2.0
# The words that `word*` is looked up by.
MAX_EXPANSION = 50
# The words that an unfinished word is completed to.
MAX_COMPLETIONS = 50
# The most likely of them, whose mean is the meaning of the unfinished word.
MAX_MEANINGS = 5
# A long query is prose, which is seldom mistyped: only so many unknown words are corrected.
MAX_CORRECTED = 6
# The sizes of the caches. A correction compares a word with many, so it is worth caching.
CACHED_CHANGES, CACHED_WORDS, CACHED_MEANINGS, CACHED_TEXTS = 1 << 12, 1 << 14, 1 << 10, 64


@dataclass(frozen=True)
class Change:
    """A word that is read as another."""

    # The word as typed.
    typed: str
    # The word, or words, that it is read as.
    read: str
    # How much it counts beside a word that is read as typed.
    weight: float
    # "spelling", "blank" for two words run together, "joined" for one word that was typed as two,
    # "prefix" for a completion, "synonym", or "compound" for the parts of one.
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


class CorrectedText(NamedTuple):
    """A text as it is read, and the words of it that are read as others."""

    text: str
    changes: Sequence[Change] = ()


class Joined(NamedTuple):
    """Two words of a text that the catalog has as one."""

    first: Token
    second: Token
    # Where both are in the text.
    span: Span
    # The one word.
    expansion: Expansion

    def change(self, typed: str) -> Change:
        """Return what the answer says of it. typed: both words."""
        return Change(typed, self.expansion.word, JOINED, "joined")


class Lexicon:
    """What the words of queries mean to a build. Queries share words, so results are cached."""

    def __init__(self, models: StoredModels, texts: ItemTexts) -> None:
        self.models = models
        self.synonyms = QuerySynonyms(models)
        # The caches are of functions and objects that do not know the lexicon. A cache of its own
        # methods would refer back to it, and keep a closed build until the garbage collector runs.
        completions = cached_by_word(_Completer(models).completions, CACHED_CHANGES)
        self._completions = completions
        self._is_spelled = cached_by_word(partial(_is_spelled, models), CACHED_WORDS)
        self._prefix_words = cached_by_word(partial(_frequent_words, models), CACHED_CHANGES)
        self._meaning = cached_by_word(partial(_meaning, models, completions), CACHED_MEANINGS)
        self._correct = cached_by_word(_Corrector(models, self.synonyms).correct, CACHED_CHANGES)
        # A query is asked for them twice: when it is corrected, and when it is looked up.
        self._joined_words = lru_cache(CACHED_TEXTS)(partial(_joined_words, models))
        self._near_phrase = cached_by_word(partial(_near_phrase, models, texts), CACHED_CHANGES)
        self._term = cached_by_word(_Expander(models, self.synonyms).term, CACHED_WORDS)

    def is_spelled(self, word: str) -> bool:
        """Return whether a text has a word in this spelling, or an item is named so."""
        return self._is_spelled(word)

    def prefix_words(self, prefix: str) -> tuple[list[str], int]:
        """Return the most frequent words that begin with a prefix, and how many do."""
        return self._prefix_words(prefix)

    def completions(self, prefix: str) -> list[tuple[str, float]]:
        """Return what an unfinished word may become, the most frequent word first.

        With each word goes its share of the items that have any of them.
        """
        return self._completions(prefix)

    def meaning(self, prefix: str, head: str) -> np.ndarray:
        """Return the mean (d,) of a prefix's completions in a dense head, weighted by shares."""
        return self._meaning(prefix, head)

    def term(self, token: Token) -> QueryTerm:
        """Return a word with its initials, compounds, related words and synonyms."""
        return self._term(token)

    def joined(self, text: str) -> Sequence[Joined]:
        """Return the neighbouring words of a text that the catalog has as one word.

        Stop words are not joined: "a part" is no "apart".
        """
        return self._joined_words(text)

    def joined_text(self, text: str) -> CorrectedText:
        """Return a text with pairs of words as one, where the catalog has that and no item has
        both.
        """
        pieces: list[str] = []
        changes: list[Change] = []
        position = 0
        for pair in self.joined(text):
            start, end = pair.span
            if start >= position and not self._is_together(pair):
                pieces += [text[position:start], pair.expansion.word]
                changes.append(pair.change(text[start:end]))
                position = end
        pieces.append(text[position:])
        return CorrectedText("".join(pieces), changes)

    def _is_together(self, pair: Joined) -> bool:
        """Return whether an item has both words."""
        postings = self.models.lexical_keys.postings
        items, _ = postings(pair.first.term)
        others, _ = postings(pair.second.term)
        return bool(np.isin(items, others, assume_unique=True).any())

    def corrected(self, token: Token, typed: str) -> Change | None:
        """Return the change of a word that no item has in this spelling.

        Return None where there is nothing better. typed: the word with its capitals.
        """
        return self._correct(token, typed)

    def completed(self, token: Token, typed: str) -> Change | None:
        """Return the most frequent word that an unfinished word begins, or else its correction.

        Return None for a word of the catalog, and where there is neither.
        """
        if n_with_word(self.models, token.text):
            return None
        if completions := self.completions(token.text):
            return Change(typed, completions[0][0], COMPLETED, "prefix")
        return self.corrected(token, typed)

    def corrected_text(self, text: str, is_unfinished: bool = False) -> CorrectedText:
        """Return a text as it is read. is_unfinished: whether its last word may be unfinished."""
        tokens = self.models.analyzer.tokens(text)
        phrase = self._near_phrase(text) if has_unspaced(tokens) else None
        if phrase is not None:
            return CorrectedText(phrase, [Change(text, phrase, ERROR_PENALTY, "spelling")])
        unknown = (
            i
            for i, token in enumerate(tokens)
            if not (token.is_stop_word or self.is_spelled(token.text))
        )
        looked_up = list(islice(unknown, MAX_CORRECTED))
        # A word without a correction in lower case has none in capitals.
        folded = (tokens[i] for i in looked_up)
        if not is_unfinished and all(self.corrected(token, token.text) is None for token in folded):
            return CorrectedText(text)
        spans = self.models.analyzer.token_spans(text)
        pieces: list[str] = []
        changes: list[Change] = []
        position = 0
        for i in looked_up:
            start, end = spans[i]
            change_of = self.completed if is_unfinished and end == len(text) else self.corrected
            change = change_of(tokens[i], text[start:end])
            if change is not None:
                pieces += [text[position:start], change.read]
                changes.append(change)
                position = end
        pieces.append(text[position:])
        return CorrectedText("".join(pieces), changes)


def _joined_words(models: StoredModels, text: str) -> list[Joined]:
    analyzer = models.analyzer
    tokens = analyzer.tokens(text)
    if len(tokens) > MAX_JOINED:
        return []
    found: list[Joined] = []
    for place, (first, second) in enumerate(pairwise(tokens)):
        if first.is_stop_word or second.is_stop_word:
            continue
        word = first.text + second.text
        if len(word) < MIN_JOINED or not IS_SPACED_WORD(word):
            continue
        term = analyzer.term(word)
        if models.lexical_keys.has(term):
            spans = analyzer.token_spans(text)
            span = spans[place][0], spans[place + 1][1]
            found.append(Joined(first, second, span, Expansion(term, word, JOINED)))
    return found


def _near_phrase(models: StoredModels, texts: ItemTexts, typed: str) -> str | None:
    """Return the phrase that was meant, as an item has it; None for none."""
    analyzer = models.analyzer
    has_titles = texts.columns[:1] == ["title"]
    near = near_phrase(models.lexical_keys, models.words, analyzer.tokens(typed), has_titles)
    if near is None:
        return None
    for text in texts.of(near.item):
        phrase = near.in_text(text, analyzer)
        if phrase is not None:
            return phrase
    return near.text


def _is_spelled(models: StoredModels, word: str) -> bool:
    return models.words.has(word) or models.code_keys.has(word)


def _frequent_words(models: StoredModels, prefix: str) -> tuple[list[str], int]:
    return models.words.most_frequent(prefix, MAX_EXPANSION)


def _meaning(
    models: StoredModels,
    completions: Callable[[str], list[tuple[str, float]]],
    prefix: str,
    head: str,
) -> np.ndarray:
    words, shares = zip(*completions(prefix)[:MAX_MEANINGS], strict=True)
    vectors = models.encoder(head).encode_queries(words)
    return np.asarray(np.array(shares, vectors.dtype) @ vectors)


def n_with_word(models: StoredModels, word: str) -> int:
    """Return how many items have a word in any form; of several words, the rarest one."""
    tokens = models.analyzer.tokens(fold(word))
    return min((models.lexical_keys.n_with(token.term) for token in tokens), default=0)


@dataclass(frozen=True)
class QuerySynonyms:
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
        """Return the words that begin with a prefix, the most frequent first, each in one form.

        With each goes its share of the items that have any of them.
        """
        n_with = self.models.lexical_keys.n_with
        counts: dict[str, int] = {}
        # The first word of each form: "knot" stands for "knots".
        first_words: dict[tuple[str, ...], str] = {}
        for word in self.models.words.words_with_prefix(prefix):
            terms = tuple(token.term for token in self.models.analyzer.tokens(fold(word)))
            if first_words.setdefault(terms, word) == word:
                counts[word] = min(map(n_with, terms), default=0)
        total = sum(counts.values())
        found = [word for word in counts if counts[word]]
        most_frequent = sorted(found, key=lambda word: -counts[word])[:MAX_COMPLETIONS]
        return [(word, counts[word] / total) for word in most_frequent]


@dataclass(frozen=True)
class _Corrector:
    models: StoredModels
    synonyms: QuerySynonyms

    def correct(self, token: Token, typed: str) -> Change | None:
        """Return the change of a word that no item has in this spelling.

        Return None where there is nothing better. typed: the word with its capitals.
        """
        word = token.text
        if not IS_SPACED_WORD(word) or len(word) > MAX_TERM:
            return None
        # Items may have the word in another form, such as the plural.
        is_known = any(map(self.models.lexical_keys.has, (token.term, *token.variants)))
        change = None if is_known else self._replaced(word, typed)
        return change or self._respelled(token, typed, is_known)

    def _replaced(self, word: str, typed: str) -> Change | None:
        """Return a word that is spelled correctly as a synonym, or as words that it is made of."""
        index = self.models.words
        known_synonyms = list(filter(self._n_with, self.synonyms.of(word)))
        if known_synonyms:
            return Change(typed, known_synonyms[0], SYNONYM, "synonym")
        parts = split_compound(word, index.spellings, self.models.analyzer.language)
        if parts:
            return Change(typed, " ".join(parts), COMPOUND, "compound")
        # Looking up many pieces at once takes less time than up to the first cut that fits. Few
        # beginnings are words, so most ends need not be looked up.
        cuts = range(1, len(word))
        beginnings = index.known([word[:cut] for cut in cuts])
        pieces = beginnings | index.known([word[len(first) :] for first in beginnings])
        parts = split_in_two(word, pieces.__contains__, shortest=1)
        if parts and self._are_neighbours(*parts):
            return Change(typed, " ".join(parts), ERROR_PENALTY, "blank")
        return None

    def _respelled(self, token: Token, typed: str, is_known: bool) -> Change | None:
        """Return a misspelled word as the word, or the two words, that are most likely meant."""
        word, languages = token.text, self.models.languages
        if typed[0].isupper() and len(word) < MIN_NAME:
            return None
        # The dictionary takes long to load. Where it is not, it is asked last.
        if is_dictionary_loaded() and is_in_dictionary(typed, languages):
            return None
        similar = near_words(word, self.models.words.by_letters.candidates(word))
        # Another form of a word of the catalog is no misspelling.
        near = [pair for pair in similar if self._term(pair[0]) != token.term]
        two = None
        if not near and not is_known:
            two = split_in_two(word, lambda part: self._n_with(part) > 0)
        if not (near or two) or is_in_dictionary(typed, languages):
            return None
        if two:
            return Change(typed, " ".join(two), ERROR_PENALTY, "blank")
        # A letter that is doubled, or should be, is the likeliest slip: "hobit" is no "habit".
        undoubled = without_doubles(word)
        best, n_errors = max(
            near, key=lambda pair: (without_doubles(pair[0]) == undoubled, self._n_with(pair[0]))
        )
        return Change(typed, best, ERROR_PENALTY**n_errors, "spelling")

    def _are_neighbours(self, *words: str) -> bool:
        """Return whether an item has these words one behind the other, as in Spider-Man.

        Stop words alone are no neighbours: they stand beside each other everywhere.
        """
        tokens = [token for word in words for token in self.models.analyzer.tokens(word)]
        if all(token.is_stop_word for token in tokens):
            return False
        terms = [token.term for token in tokens]
        has_all = np.ones(self.models.n_items, dtype=bool)
        for term in terms:
            has_term = np.zeros_like(has_all)
            has_term[self.models.lexical_keys.postings(term)[0]] = True
            has_all &= has_term
        return bool(has_all.any() and self.models.words.with_phrase(terms, has_all).any())

    def _n_with(self, word: str) -> int:
        return n_with_word(self.models, word)

    def _term(self, word: str) -> str:
        return " ".join(token.term for token in self.models.analyzer.tokens(word))


@dataclass(frozen=True)
class _Expander:
    models: StoredModels
    synonyms: QuerySynonyms

    def term(self, token: Token) -> QueryTerm:
        """Return a word with its initials, compounds, related words and synonyms."""
        pause()
        if NUMBER(token.term):
            return self._number(token)
        others = [
            *self._other_spellings(token),
            *self._initials(token),
            *self._compounds(token),
            *self._related(token),
            *self.synonyms.of_one_word(token),
        ]
        return QueryTerm.of(token).also(others)

    def _number(self, token: Token) -> QueryTerm:
        """Return a number, which counts less without the letters that are typed beside it."""
        wholes = [whole for whole in token.variants if self.models.lexical_keys.has(whole)]
        expansions = [Expansion(whole, whole) for whole in wholes]
        weight = BARE_NUMBER if wholes else 1.0
        bare = Expansion(token.term, token.text, weight)
        return QueryTerm(token.text, (*expansions, bare)).also(self.synonyms.of_one_word(token))

    def _other_spellings(self, token: Token) -> Iterator[Expansion]:
        """Yield the word without its apostrophe: O'Neill is also written Oneill."""
        if "'" in token.text:
            for term in token.variants:
                yield Expansion(term, term)

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
        families = self.models.families
        if not families or len(token.term) < MIN_PREFIX:
            return ()
        words = self.models.words.terms_with_prefix(token.term[:MIN_PREFIX])
        related = related_terms(token.term, words)
        return [Expansion(term, words[term], families * share) for term, share in related.items()]

    def _compounds(self, token: Token) -> Iterator[Expansion]:
        """Yield the words of the catalog that a word is the first or the last part of."""
        analyzer, index = self.models.analyzer, self.models.words
        if token.is_stop_word or analyzer.language not in LINKS:
            return
        for compound in compounds_of(token.text, index.spellings, analyzer.language):
            for part in analyzer.tokens(compound):
                yield Expansion(part.term, compound, COMPOUND)

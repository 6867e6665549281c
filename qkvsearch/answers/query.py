"""A query as the heads of a build read it: its words, what typos mean, and what must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qkvsearch.answers.codes import QueryCodes
from qkvsearch.answers.conditions import Conditions
from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval.keys import AskedWord, Way
from qkvsearch.stored import StoredModels
from qkvsearch.texts.analysis import Analyzer, Token, fold
from qkvsearch.texts.query_language import Clause, parsed
from qkvsearch.texts.related import LONGEST, SHORTEST, related_terms
from qkvsearch.texts.spelling import PER_ERROR, halves, is_a_word, near_words
from qkvsearch.texts.text_encoder import EncodedQuery
from qkvsearch.workspace import Tables

# A name that no item has is rarely a misspelling of a short word.
SHORTEST_NAME = 6
STOP_WORDS_ALONE = "These words are in so many texts that alone they say nothing."
# A phrase of stop words says something where at most this share of the items has it.
MOST_SHARE = 0.05
# What a word counts that was completed, beside the word as it was typed.
COMPLETED = 0.8
# And what counts for it because the owner of the catalog says so.
SYNONYM = 0.8
# A page-long query is no typed one: so many of its words are looked up among misspellings.
MOST_CORRECTED = 20
# And so many of its words are looked up with those of their families.
MOST_RELATED = 100
# Completions that are told; all of them count.
SHOWN_COMPLETIONS = 3


@dataclass(frozen=True)
class Change:
    """A word that is read as another. kind: "spelling", "blank" between two words, "prefix",
    "synonym".
    """

    typed: str
    read: str
    weight: float
    kind: str

    @property
    def label(self) -> str:
        """As reasons name it."""
        return f"{self.typed} → {self.read} ×{self.weight:.2g}"

    def to_record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("typed", "read", "weight", "kind")}


@dataclass(frozen=True)
class Query:
    """typed: what the person wrote. is_typing: whether the last word may be unfinished."""

    typed: str
    models: StoredModels
    tables: Tables
    is_typing: bool = False

    @cached_property
    def clauses(self) -> list[Clause]:
        """Text and operators, in order."""
        return parsed(self.typed, self.tables.catalog_columns.has)

    @cached_property
    def conditions(self) -> Conditions:
        """What the operators demand of an item."""
        return Conditions.of(self.clauses, self.models, self.tables)

    @cached_property
    def stop_words_mask(self) -> np.ndarray | None:
        """Of a text of stop words alone, bool (n_items,): the items that it is the title of, or
        else those that have it as a phrase, where they are few. None of any other text.
        """
        tokens = Analyzer().tokens(self.text)
        if self.models.words is None or not tokens or not all(t.is_stop_word for t in tokens):
            return None
        titled = fold(" ".join(self.text.split()))
        found = np.zeros(self.models.n_items, dtype=bool)
        found[[i for i, title in self.tables.column("title") if fold(str(title)) == titled]] = True
        if found.any():
            return found
        phrase = Clause(self.text, "phrase")
        found = Conditions.of([phrase], self.models, self.tables).leave(~found)
        return found if found.mean() <= MOST_SHARE else ~found & False

    def leave(self, mask: np.ndarray) -> np.ndarray:
        """What of `mask`, bool (n_items,), the query may rank."""
        mask = self.conditions.leave(mask)
        return mask if self.stop_words_mask is None else mask & self.stop_words_mask

    @cached_property
    def changes(self) -> list[Change]:
        """The words that are read as others."""
        return self._readings[1]

    @property
    def text(self) -> str:
        """What heads read, typos mended: all but conditions on what search does not read."""
        return " ".join(text for text, _ in self._readings[0])

    @cached_property
    def _readings(self) -> tuple[list[tuple[str, Clause]], list[Change]]:
        """The text of each clause that is read, and what was changed in it."""
        pieces: list[tuple[str, Clause]] = []
        changes: list[Change] = []
        clauses = [clause for clause in self.clauses if self._is_read(clause)]
        for place, clause in enumerate(clauses):
            text, found = clause.text, []
            if clause.kind == "prefix":
                found = self._completed(text, whole=text)
            elif clause.kind == "text" and not clause.field:
                is_last = self.is_typing and place == len(clauses) - 1
                found = list(self._changed(text, is_last, MOST_CORRECTED - len(changes)))
            pieces.append((_with_changes(text, found), clause))
            changes += [change for _, change in found]
        return pieces, changes

    def _is_read(self, clause: Clause) -> bool:
        if clause.excluded:
            return False
        searched = self.models.snapshot.facts["text_columns"]
        columns = self.tables.catalog_columns
        return not clause.field or columns.find(clause.field).stored in searched

    # --- words that the catalog does not have ---

    def _changed(
        self, text: str, is_last: bool, most: int
    ) -> Iterator[tuple[tuple[int, int], Change]]:
        """Where in a text a word is read as another, and as which."""
        analyzer = Analyzer()
        index = self.models.words
        if index is None:
            return
        spans, tokens = analyzer.token_spans(text), analyzer.tokens(text)
        for span, token in zip(spans, tokens, strict=True):
            if is_last and span[1] == len(text):
                yield from self._completed(token.text, text[slice(*span)], span)
            elif most > 0 and (change := self._mended(token, text[slice(*span)])):
                most -= 1
                yield span, change

    def _mended(self, token: Token, typed: str) -> Change | None:
        """What a word that no item has is a misspelling of, if anything."""
        index, word = self.models.words, token.text
        if index is None or not word.isalpha() or not word.isascii() or self._is_known(word):
            return None
        if others := [other for other in self._synonyms.get(word, ()) if self._is_known(other)]:
            return Change(typed, others[0], SYNONYM, "synonym")
        if is_a_word(word) or (typed[0].isupper() and len(word) < SHORTEST_NAME):
            return None
        near = near_words(word, index.words)
        if near:
            best, errors = max(near, key=lambda pair: self._n_with(pair[0]))
            return Change(typed, best, PER_ERROR**errors, "spelling")
        if two := halves(word, self._is_known):
            return Change(typed, " ".join(two), PER_ERROR, "blank")
        return None

    def _completed(
        self, word: str, whole: str, span: tuple[int, int] | None = None
    ) -> list[tuple[tuple[int, int], Change]]:
        """An unfinished word as the most frequent one that begins so, unless it is a word itself,
        or else as what it may be a misspelling of.
        """
        index, word = self.models.words, fold(word)
        span = span or (0, len(whole))
        if index is None or self._is_known(word):
            return []
        if found := [other for other in index.beginning(word) if self._n_with(other)]:
            best = max(found, key=self._n_with)
            return [(span, Change(whole, best, COMPLETED, "prefix"))]
        tokens = Analyzer().tokens(word)
        mended = self._mended(tokens[0], whole) if len(tokens) == 1 else None
        return [(span, mended)] if mended else []

    def _is_known(self, word: str) -> bool:
        return self._n_with(word) > 0

    def _n_with(self, word: str) -> int:
        terms = [token.term for token in Analyzer().tokens(word)]
        return min((self.models.lexical_keys.n_with(term) for term in terms), default=0)

    # --- what the heads are given ---

    @cached_property
    def tokens(self) -> list[Token]:
        """The words that the lexical head looks for, stop words left out unless there are no
        others.
        """
        return Analyzer().query_tokens(self.text)

    @cached_property
    def words(self) -> list[AskedWord]:
        """The same with all that each is looked up by."""
        prefixes = {fold(clause.text) for clause in self.clauses if clause.kind == "prefix"}
        labels = self._labels
        found: list[AskedWord] = []
        for token in self.tokens:
            label, factor = labels.get(token.text, (token.text, 1.0))
            ways = [Way(token.term, token.text)]
            begun = self._begun(token, prefixes)
            ways += [Way(term, shown, COMPLETED) for term, shown in begun if term != token.term]
            ways += self._one_word_synonyms(token, {way.term for way in ways})
            if len(found) < MOST_RELATED:
                ways += self._related(token, {way.term for way in ways})
            found.append(AskedWord(label, ways, factor))
        return [*found, *self._longer_synonyms()]

    def _related(self, token: Token, known: set[str]) -> Iterator[Way]:
        """The words of its family that the catalog has."""
        index = self.models.words
        if index is None or index.mean_length > LONGEST or len(token.term) < SHORTEST:
            return
        there = index.terms_beginning(token.term[:SHORTEST])
        for term, share in related_terms(token.term, there).items():
            if term not in known:
                yield Way(term, there[term], share)

    @cached_property
    def _synonyms(self) -> Mapping[str, list[str]]:
        """What the owner says of each text, folded."""
        given: Mapping[str, list[str]] = self.models.snapshot.facts.get("synonyms", {})
        return {fold(text): others for text, others in given.items()}

    @cached_property
    def _synonyms_by_terms(self) -> dict[tuple[str, ...], list[str]]:
        analyzer = Analyzer()
        found: dict[tuple[str, ...], list[str]] = {}
        for text, others in self._synonyms.items():
            terms = tuple(token.term for token in analyzer.tokens(text))
            found.setdefault(terms, []).extend(others)
        return found

    def _one_word_synonyms(self, token: Token, known: set[str]) -> Iterator[Way]:
        """Of a word, those that are one word, too: they are found in its place."""
        for other in self._synonyms_by_terms.get((token.term,), ()):
            own = Analyzer().tokens(other)
            if len(own) == 1 and own[0].term not in known:
                yield Way(own[0].term, own[0].text, SYNONYM)

    def _longer_synonyms(self) -> Iterator[AskedWord]:
        """Those of several words, or for several: words of their own, which share the weight."""
        if not self._synonyms_by_terms:
            return
        analyzer = Analyzer()
        every = analyzer.tokens(self.text)
        terms = [token.term for token in every]
        longest = max(map(len, self._synonyms_by_terms))
        for start in range(len(terms)):
            for n in range(1, min(longest, len(terms) - start) + 1):
                typed = " ".join(token.text for token in every[start : start + n])
                for other in self._synonyms_by_terms.get(tuple(terms[start : start + n]), ()):
                    own = analyzer.query_tokens(other)
                    if n == len(own) == 1:
                        continue
                    for token in own:
                        label = f"{typed} → {other} ×{SYNONYM:.2g}"
                        way = Way(token.term, token.text, SYNONYM * n / len(own))
                        yield AskedWord(label, [way])

    def _begun(self, token: Token, prefixes: set[str]) -> list[tuple[str, str]]:
        """The terms of the words that the word, or what it was completed from, is the beginning of,
        each with its most frequent spelling.
        """
        index = self.models.words
        typed = {fold(c.read): fold(c.typed) for c in self.changes if c.kind == "prefix"}
        last = self.tokens[-1] if self.is_typing and self.tokens else None
        begins = token.text in typed or token.text in prefixes or token is last
        if index is None or not begins:
            return []
        terms: dict[str, str] = {}
        for word in index.beginning(typed.get(token.text, token.text)):
            for own in Analyzer().tokens(word):
                terms.setdefault(own.term, word)
        return list(terms.items())

    @cached_property
    def _labels(self) -> Mapping[str, tuple[str, float]]:
        """Of each word, folded, that was changed or boosted: how reasons name it, and how many
        times it counts.
        """
        found: dict[str, tuple[str, float]] = {}
        for text, clause in self._readings[0]:
            if clause.boost != 1:
                for token in Analyzer().tokens(text):
                    found[token.text] = (f"{token.text} ×{clause.boost:g}", clause.boost)
        for change in self.changes:
            for token in Analyzer().tokens(change.read):
                _, boost = found.get(token.text, ("", 1.0))
                found[token.text] = (change.label, boost * change.weight)
        return found

    @cached_property
    def codes(self) -> QueryCodes:
        """What of the text is an id or another code of an item."""
        return QueryCodes.of(self.text, self.models)

    def parts(self, head: str) -> LabelledVectors:
        """The labelled vectors that are added up to the query of a dense head."""
        is_main = head == self.models.main_head
        rest = self.codes.rest
        found = self.reading.parts if is_main else self.models.encoder(head).encode(rest)
        return self._weighed(found)

    @cached_property
    def reading(self) -> EncodedQuery:
        """What the main head's encoder makes of the text, each word as it comes."""
        return self.models.encoder(self.models.main_head).read(self.codes.rest)

    @property
    def late_labels(self) -> list[tuple[Any, float]]:
        """How reasons name each token of the main head's reading, and how many times it counts."""
        return [self._named(label) for label in self.reading.tokens.labels]

    def _weighed(self, parts: LabelledVectors) -> LabelledVectors:
        if not self._labels:
            return parts
        named = [self._named(label) for label in parts.labels]
        boosts = np.array([boost for _, boost in named], dtype=parts.vectors.dtype)
        return LabelledVectors([label for label, _ in named], parts.vectors * boosts[:, None])

    def _named(self, label: Any) -> tuple[Any, float]:
        return self._labels.get(fold(str(label)), (label, 1.0)) if self._labels else (label, 1.0)

    @property
    def notes(self) -> list[str]:
        """What was changed, and what no item has."""
        notes = [_told(change) for change in self.changes if change.kind != "prefix"]
        stopped = self.stop_words_mask is not None and not self.stop_words_mask.any()
        return [*notes, *[STOP_WORDS_ALONE] * stopped, *self.conditions.notes]

    @property
    def corrections(self) -> list[dict[str, Any]]:
        """The changes, as an answer lists them."""
        return [change.to_record() for change in self.changes]


def _with_changes(text: str, changes: Sequence[tuple[tuple[int, int], Change]]) -> str:
    for (start, end), change in sorted(changes, key=lambda found: -found[0][0]):
        text = f"{text[:start]}{change.read}{text[end:]}"
    return text


def _told(change: Change) -> str:
    if change.kind in ("blank", "synonym"):
        return f"No item has “{change.typed}”: read as “{change.read}”."
    return f"No item has “{change.typed}”: searched for “{change.read}” instead."

"""The two sides of a comparison, and what each answers to a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.errors import QkvError
from qkvsearch.heads.rule_heads import RULE_HEADS
from qkvsearch.heads.token_head import TOKENS
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.query import Query
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.ranking import Hit, Ranking
from qkvsearch.rank.reasons import OVERALL, WordReasons, are_constant
from qkvsearch.rank.search import search
from qkvsearch.tables.ids import Ids, id_text
from qkvsearch.text.analysis import HAS_UNSPACED

# The hits that are compared.
DEPTH = 10


class Group(NamedTuple):
    """Parts of a score that are told as one: those of a head, for a word of the query."""

    head: str
    # The folded word as it was typed; None where the parts are of no word. Of a rule of the owner,
    # its name.
    word: str | None


class FoundWord(NamedTuple):
    """A word of the query that finds an item in a column."""

    # The word as it was typed; in Chinese the piece of it that the column has.
    word: str
    column: str


# What each group adds to a score.
Sums = dict[Group, float]


@dataclass(frozen=True, eq=False)
class Side:
    """One side: a build, and the heads by which it answers, by default all.

    rules: whether the owner's rules apply.
    """

    build: LoadedBuild
    heads: Sequence[str] | None = None
    rules: bool = True

    @cached_property
    def ids(self) -> Ids:
        """The ids of the items, read once."""
        return self.build.catalog.ids("items")

    def check_heads(self) -> None:
        """Raise `QkvError`, which names the build, if it lacks a head."""
        try:
            self.build.texts.requested(self.heads, has_user=False)
        except QkvError as error:
            raise QkvError(f"build {self.build.snapshot.name}: {error}") from None

    def answer(self, text: str) -> SideAnswer:
        """Return the answer to a query. Raises `QkvError`."""
        return SideAnswer(self, text)


class SideAnswer:
    """The hits of one side for a query, and the parts of any item's score.

    Items are named by their ids as text, which two builds share.
    """

    def __init__(self, side: Side, text: str) -> None:
        self.build, self._ids = side.build, side.ids
        question = SearchQuestion(query=text, k=DEPTH, heads=side.heads, rules=side.rules)
        self.ranking: Ranking = search(side.build, question)
        self.hits: dict[str, Hit] = {id_text(hit.id): hit for hit in self.ranking}
        self.items = list(self.hits)
        self._reasons = WordReasons(text)
        self._sums: dict[str, Sums] = {}

    def rank(self, item: str) -> int | None:
        """Return the rank of an item, from 1; None if it is not among the hits."""
        hit = self.hits.get(item)
        return None if hit is None else hit.rank

    def above(self, item: str) -> list[str]:
        """Return the hits above an item: all of them if it is no hit."""
        rank = self.rank(item)
        return self.items if rank is None else self.items[: rank - 1]

    def row(self, item: str) -> int:
        """Return the row of an item in the build, −1 if it is not in the catalog."""
        return self._ids.find(item)

    # --- what was understood ---

    @cached_property
    def query(self) -> Query:
        """The query as the build reads it."""
        return self.build.texts.reader.read(self.ranking.query)

    @cached_property
    def readings(self) -> dict[str, str]:
        """The words of the query that are read as others, by what was typed, folded."""
        return {fold(change.typed): change.read for change in self.query.understood.changes}

    @cached_property
    def _typed_of(self) -> dict[str, str]:
        """The folded word that was typed, by the names that reasons have for words that count more
        or less than others, or are read as others: "film" by "film ×0.3".
        """
        labels = self.query.lookup.labels
        typed_of = {fold(str(label.name)): fold(word) for word, label in labels.items()}
        changes = self.query.understood.changes
        return typed_of | {fold(change.label): fold(change.typed) for change in changes}

    @property
    def words(self) -> list[str]:
        """The words of the query by which items are looked up, as typed."""
        words = (self._word(term.text, term.text) for term in self.query.lookup.terms)
        return [word for word in dict.fromkeys(words) if word is not None]

    # --- whether an item may be a hit ---

    @property
    def is_silent(self) -> bool:
        """Whether nothing is found."""
        return not self.items

    @property
    def knows_no_word(self) -> bool:
        """Whether nothing is found since no head knows a word of the query."""
        return self.ranking.head is None

    @property
    def is_unanswered(self) -> bool:
        """Whether nothing is found since nothing in the catalog answers the query."""
        head = self.ranking.head
        return self.is_silent and head is not None and not head.is_answer

    @cached_property
    def _meeting_conditions(self) -> np.ndarray:
        """The items that the operators of the query allow, bool (n_items,)."""
        return self.query.mask(np.ones(self.build.n_items, dtype=bool))

    def meets_conditions(self, item: str) -> bool:
        """Return whether an item of the catalog meets the operators of the query."""
        return bool(self._meeting_conditions[self.row(item)])

    def is_ranked(self, item: str) -> bool:
        """Return whether an item of the catalog is ranked at all, at whatever rank."""
        head = self.ranking.head
        return head is not None and bool(head.allowed(self._meeting_conditions)[self.row(item)])

    # --- what a score is made of ---

    @property
    def heads(self) -> set[str]:
        """The names of the heads that the scores are the sum of."""
        head = self.ranking.head
        return set() if head is None else {addend.name for addend in head.addends or [head]}

    @cached_property
    def weights(self) -> dict[str, float]:
        """How much each head counts beside the others that took part."""
        models = self.build.models
        known = {name: w for name, w in models.search_weights.items() if name in self.heads}
        total = sum(known.values())
        if not total:
            return {}
        weights = {name: weight / total for name, weight in known.items()}
        if TOKENS.name in self.heads:
            weights[TOKENS.name] = models.second_pass * models.search_weights[models.main_head]
        return weights

    def sums(self, item: str) -> Sums:
        """Return what each head adds to an item's score for each word of the query.

        What is subtracted from all items alike is left out, so that differences between two items
        are exact.
        """
        if item not in self._sums:
            self._sums[item] = self._summed(self.row(item))
        return self._sums[item]

    @query_lock()
    @one_blas_thread()
    def _summed(self, row: int) -> Sums:
        assert self.ranking.head is not None
        parts = self.ranking.head.parts(row)
        sums: Sums = {}
        for source, key, is_constant, value in zip(
            parts.sources, parts.first_keys, are_constant(parts), parts.sums.tolist(), strict=True
        ):
            if not is_constant:
                is_rule = source.head in RULE_HEADS
                group = Group(source.head, key if is_rule else self._word(source.query, key))
                sums[group] = sums.get(group, 0.0) + value
        return sums

    def _word(self, label: Any, key: Any) -> str | None:
        """Return the word of the query that parts are of, as it was typed; None if of no word."""
        if label is None or key is None:
            return None
        typed = self._typed_of.get(fold(str(label)))
        if typed is not None:
            return typed
        name = self._reasons.word_of(label)
        return None if name == OVERALL else name

    def found(self, item: str, word: str) -> set[FoundWord]:
        """Return in which columns words find an item, of those that a word of the query is looked
        up by: the word in any form, a correction, or a synonym.
        """
        terms = {
            expansion.term
            for term in self.query.lookup.terms
            if self._word(term.text, term.text) == word
            for expansion in term.expansions
        }
        # Chinese is typed without blanks, and an item may have a piece of what was typed.
        has_pieces = HAS_UNSPACED(word) is not None
        tokens_of = self.build.models.analyzer.tokens
        columns = self.build.texts.matches_of(self.query, self.row(item))
        return {
            FoundWord(text if has_pieces else word, column)
            for column, texts in columns.items()
            for text in texts
            if any(token.term in terms for token in tokens_of(text))
        }

"""What a search found: which candidates match, which match only weakly, and why there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.scores.topk import best_of_groups

if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.rank.owner_rules import QueryRules
    from qkvsearch.rank.query import Query
    from qkvsearch.rank.questions import SearchQuestion
    from qkvsearch.scores.fusion import Scores
    from qkvsearch.where import Where

# Why a query has no hits:
#   no_texts       the items have no texts to search
#   no_words       the query has no word, only signs
#   too_common     all words of the query are too common to be searched for alone
#   unknown_words  neither a text nor an encoder knows one of the words
#   filtered_out   there are hits without the conditions
#   not_answered   no item answers the words, or only weakly; `anyway` lists what comes nearest
NoHitsReason = Literal[
    "no_texts",
    "no_words",
    "too_common",
    "unknown_words",
    "filtered_out",
    "not_answered",
]

# Puts rows of items in an order; equal ones stay as they are.
Order = Callable[[np.ndarray], np.ndarray]


class NoHits(NamedTuple):
    """Why a query has no hits, and what would help.

    >>> NoHits("unknown_words", words=["xqzvw"]).to_dict()
    {'reason': 'unknown_words', 'words': ['xqzvw']}
    """

    reason: NoHitsReason
    # The words of the query that it is about.
    words: Sequence[str] = ()
    # The condition of the question that leaves nothing.
    where: Where | None = None
    # The operators of the query that leave nothing, such as `brand:Calder`.
    operators: Sequence[str] = ()
    # How many hits there are without these conditions.
    total: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that apply."""
        return {name: value for name, value in self._asdict().items() if value not in (None, ())}


class SearchedTexts(Protocol):
    """What is asked of the texts of a workspace: of `text_search.TextSearch`, which ranks what is
    found here.
    """

    @property
    def models(self) -> StoredModels:
        """The stored models."""

    def weak(self, query: Query, scores: Scores) -> np.ndarray:
        """Return which items match only weakly, bool (n_items,)."""


@dataclass(frozen=True)
class Counted:
    """What remains of `Found` in a copy of a ranking."""

    total: int
    total_weak: int
    no_hits: NoHits | None

    def remains(self) -> Counted:
        return self


@dataclass(frozen=True, eq=False)
class Found:
    """The items that a search found. What is asked of it is computed once, when it is asked.

    A candidate that is graded as weak is no hit here: `total` counts the others.
    """

    texts: SearchedTexts
    question: SearchQuestion
    query: Query
    # The scores of all items; None where no head knows a word of the query.
    scores: Scores | None
    # The items that may be ranked, bool (n_items,).
    mask: np.ndarray
    # The number of each item's group, of which only the best item is listed; None for all.
    groups: np.ndarray | None
    # What rules of the owner do to the answer.
    rules: QueryRules
    # Returns how many hits there are without `where`, or without the query's operators.
    total_without: Callable[[bool, bool], int] = field(repr=False)

    def remains(self) -> Counted:
        """Return what can be asked without the build."""
        return Counted(self.total, self.total_weak, self.no_hits)

    @cached_property
    def candidates(self) -> np.ndarray:
        """The items that are ranked at all, bool (n_items,)."""
        if self.scores is None:
            return np.zeros_like(self.mask)
        return self.scores.allowed(self.mask)

    @cached_property
    def weak(self) -> np.ndarray:
        """The candidates that match only weakly, bool (n_items,)."""
        return self._weak()

    @query_lock()
    @one_blas_thread()
    def _weak(self) -> np.ndarray:
        if self.scores is None or not self.candidates.any():
            return np.zeros_like(self.mask)
        weak = self.candidates & self.texts.weak(self.query, self.scores)
        weak[self.pinned] = False
        return weak

    @property
    def pinned(self) -> list[int]:
        """The rows of the items that a rule pins, which are never weak."""
        return self.rules.pinned_rows(self.mask)

    @cached_property
    def matching(self) -> np.ndarray:
        """The candidates that match, bool (n_items,): what `total` counts."""
        return self.candidates & ~self.weak

    @property
    def counted(self) -> np.ndarray:
        """What facets count, bool (n_items,): weak hits too where they are listed below the others,
        so that a filter by a value lists as many items as its facet says.
        """
        is_below = self.lists_weak and not self.question.is_by_score
        return self.candidates if is_below else self.matching

    @cached_property
    def total(self) -> int:
        """The number of hits, without weak ones: of each group one."""
        return self._n_listed(self.matching)

    @cached_property
    def total_weak(self) -> int:
        """The number of weak hits, of the groups without another one."""
        return self._n_listed(self.candidates) - self.total

    def _n_listed(self, items: np.ndarray) -> int:
        if self.groups is None:
            return int(np.count_nonzero(items))
        return len(np.unique(self.groups[items]))

    # --- the hits to list ---

    @property
    def lists_weak(self) -> bool:
        """Whether weak hits are listed as well."""
        question = self.question
        return question.is_by_score or bool(question.weak) or question.anyway

    @property
    def n_listed(self) -> int:
        """How many hits there are to list, on all pages."""
        return self.total + (self.total_weak if self.lists_weak else 0)

    def page(
        self, order: Order | None, scores: Scores | None = None, of_weak: Scores | None = None
    ) -> np.ndarray | None:
        """Return the rows of the hits to list, int64 (n_hits,); None for the best by score.

        Weak hits, where they are asked for, are below all others. order: puts rows in the order of
        a column, equal ones as they come. scores: by which hits are ranked, and of_weak by which
        weak ones are; by default those that were found.
        """
        question = self.question
        if self.scores is None or question.is_by_score:
            return None
        end = question.n_ranked
        rows = _in_order((scores or self.scores).scores, end, self.matching, self.groups, order)
        if self.lists_weak and len(rows) < end:
            weak = self.weak
            if self.groups is not None:
                weak = weak & ~np.isin(self.groups, self.groups[self.matching])
            n_left = end - len(rows)
            below = _in_order((of_weak or self.scores).scores, n_left, weak, self.groups, order)
            rows = np.concatenate([rows, below])
        return rows[question.offset : end]

    # --- why there are none ---

    @cached_property
    def no_hits(self) -> NoHits | None:
        """Why there are no hits; None where there are any, on whatever page."""
        if self.candidates.any() and self.n_listed:
            return None
        return self._cause() or self._filtered_out() or NoHits("not_answered")

    def _cause(self) -> NoHits | None:
        """Return what keeps the query from being answered, whatever the conditions are."""
        models, query = self.texts.models, self.query
        words = list(dict.fromkeys(query.as_typed(token.text) for token in query.lookup.tokens))
        if query.has_text and not models.snapshot.facts["text_columns"]:
            return NoHits("no_texts")
        if query.is_too_common and not self.question.anyway:
            return NoHits("too_common", words)
        if self.scores is None:
            return NoHits("unknown_words", words) if words else NoHits("no_words")
        return None

    def _filtered_out(self) -> NoHits | None:
        """Return the conditions without which there are hits; None where there are none."""
        operators = [str(clause) for clause in self.query.typed.clauses if clause.is_condition]
        tried = [(True, False), (False, True), (True, True)]
        for without_where, without_operators in tried:
            if without_where and self.question.where is None:
                continue
            if without_operators and not operators:
                continue
            total = self.total_without(without_where, without_operators)
            if total:
                return NoHits(
                    "filtered_out",
                    where=self.question.where if without_where else None,
                    operators=operators if without_operators else (),
                    total=total,
                )
        return None


def _in_order(
    scores: np.ndarray, n: int, items: np.ndarray, groups: np.ndarray | None, order: Order | None
) -> np.ndarray:
    """Return the first n of some items, bool (n_items,), by their scores, or in another order."""
    if order is None:
        return best_of_groups(scores, n, items, groups)
    # All of them are put in order: any may be among the first.
    return order(best_of_groups(scores, len(items), items, groups))[:n]

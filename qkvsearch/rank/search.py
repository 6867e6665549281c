"""Answer a `SearchQuestion`: from the text of a query to a ranking with notes and facets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.heads.late_interaction import DEPTH
from qkvsearch.rank.answerable import none_found, weak_alone
from qkvsearch.rank.candidates import candidates, groups_of, with_where_note
from qkvsearch.rank.found import Found, Order
from qkvsearch.rank.hit_passages import with_passages
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.owner_rules import NO_RULES, QueryRules
from qkvsearch.rank.query import Query
from qkvsearch.rank.questions import SMALLEST, SearchQuestion
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.rank.reasons import WordReasons
from qkvsearch.rank.smallest_words import SmallestWords
from qkvsearch.scores.approximate import Filter
from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.catalog_columns import StoredColumn


@dataclass(frozen=True)
class AskedSearch:
    """A question as a build reads it, and the items that may be its hits."""

    build: LoadedBuild
    question: SearchQuestion
    query: Query
    # The group of each item, of which only the best one is a hit; None without groups.
    groups: np.ndarray | None
    # The beginning of a note that the user is unknown, who has no preferences; empty otherwise.
    user_notes: list[str]
    rules: QueryRules
    # The items that meet `where`, bool (n_items,).
    where_mask: np.ndarray
    # Those of them that may be ranked, bool (n_items,).
    mask: np.ndarray

    def scores(self, allowed: Filter) -> Scores | None:
        """Return the scores of all items; None where no head knows a word of the query, and no rule
        pins an item to it.

        allowed: the items that are asked for, and how many. Raises `UnknownIdError` for an unknown
        user with `strict_user`.
        """
        build, question = self.build, self.question

        def preferences() -> Scores | None:
            if self.user_notes:
                return None
            return build.recommender.head(build.histories.of(question.user))

        fused = build.texts.fused(
            self.query,
            question.heads,
            None if question.user is None else preferences,
            allowed,
            question.anyway,
            question.prefix,
            self.rules,
            self.mask,
        )
        if fused is not None and self.query.has_text and not question.anyway:
            # An item that no head scores higher than the average item is no hit.
            fused = fused.above_mean()
        if not len(self.rules.placed_rows):
            return fused
        assert allowed.mask is not None
        return self.rules.placed(fused, allowed.mask)

    def found(self, fused: Scores | None) -> Found:
        """Return what the search finds by these scores."""
        # A function that refers to itself would be a reference cycle, in which files wait for the
        # garbage collector.
        total_without = partial(_total_without, self)
        return Found(
            self.build.texts,
            self.question,
            self.query,
            fused,
            self.mask,
            self.groups,
            self.rules,
            total_without,
        )


@query_lock()
@one_blas_thread()
def search(build: LoadedBuild, question: SearchQuestion) -> Ranking:
    """Rank the items of a build for a text, as `Engine.search` describes. Raises `QkvError`."""
    catalog, texts = build.catalog, build.texts
    # Names of columns that the catalog lacks are refused before any work.
    columns = own_columns(catalog, question.fields)
    facet_columns = own_columns(catalog, question.facets, "facets")
    groups = groups_of(catalog, question.distinct)
    order = _order(build, question.sort)

    asked = _asked(build, question, groups)
    # Where weak hits are apart, what is weak must not depend on which page is asked for.
    n_exact = question.n_ranked if question.is_by_score else 0
    fused = asked.scores(Filter(asked.mask, n_exact, groups))
    found = asked.found(fused)
    positions = found.page(order)
    if positions is not None and fused is not None and not _are_exact(positions, found, fused):
        positions, fused = _exact_page(asked, found, order)
    ranking = rank(
        fused,
        catalog.names,
        k=question.k,
        offset=question.offset,
        temperature=question.temperature,
        mask=asked.mask,
        groups=groups,
        positions=positions,
    )
    ranking = with_where_note(ranking, question.where, asked.where_mask)
    ranking = _with_listing_notes(ranking, asked, found)
    ranking = with_fields(ranking, catalog, columns)
    weak = None if question.is_by_score else found.weak
    ranking = texts.with_match(ranking, asked.query, weak, found.pinned)
    ranking = _with_notes(ranking, asked, fused).noted(asked.rules.notes)
    ranking = replace(
        ranking,
        query=question.query,
        corrections=[change.to_record() for change in asked.query.understood.changes],
        reasoning=WordReasons(question.query),
        smallest_of=_smallest_words(build, question).of,
        source=build,
        found=found,
    )
    return _with_details(ranking, asked, found, facet_columns)


def _asked(
    build: LoadedBuild,
    question: SearchQuestion,
    groups: np.ndarray | None,
    text: str | None = None,
    has_where: bool = True,
) -> AskedSearch:
    """Read a question. text: instead of its own. has_where: whether its condition holds."""
    user_notes = _unknown_user(build, question)
    query = build.texts.reader.read(question.query if text is None else text, question.prefix)
    where_mask = candidates(build.catalog, build.n_items, question.where if has_where else None)
    rules = _rules(build, question, query)
    mask = _rankable(query, question, where_mask, rules)
    return AskedSearch(build, question, query, groups, user_notes, rules, where_mask, mask)


def _with_details(
    ranking: Ranking, asked: AskedSearch, found: Found, facet_columns: Sequence[StoredColumn]
) -> Ranking:
    """Return the ranking with what the question wants to know beside its hits."""
    question, query, texts = asked.question, asked.query, asked.build.texts
    if facet_columns:
        from qkvsearch.rank.facets import facets

        counts = facets(asked.build.catalog, facet_columns, found.counted)
        ranking = replace(ranking, facets=counts)
    if query.has_text:
        ranking = with_passages(ranking, texts.item_texts, question.passages)
    if question.snippet:
        ranking = texts.with_snippets(ranking, query)
    if question.explain:
        ranking = texts.with_matches(ranking, query)
    if question.explain == SMALLEST:
        ranking = ranking.with_smallest()
    return ranking


def _rules(build: LoadedBuild, question: SearchQuestion, query: Query) -> QueryRules:
    """Return what the owner's rules do to the answer."""
    rules = build.rules if question.rules else None
    if rules is None:
        return NO_RULES
    return rules.of_query([question.query, query.understood.text])


def _rankable(
    query: Query, question: SearchQuestion, where_mask: np.ndarray, rules: QueryRules
) -> np.ndarray:
    """Return the items that may be ranked, bool (n_items,): those that the query may mean, and
    pinned ones that meet its conditions, also for a query of stop words.
    """
    mask = query.mask(where_mask, question.anyway)
    if not rules.pinned:
        return mask
    pinned = rules.pinned_rows(query.understood.conditions.apply(where_mask))
    mask = mask.copy()
    mask[pinned] = True
    return mask


def _with_listing_notes(ranking: Ranking, asked: AskedSearch, found: Found) -> Ranking:
    """Return the ranking with notes on an order that tells nothing, and on weak hits alone."""
    question = asked.question
    notes: list[str] = []
    if question.sort is not None:
        from qkvsearch.rank.sorting import sorted_rows

        notes += sorted_rows(asked.build, np.flatnonzero(found.candidates), question.sort)[1]
    if question.k and ranking.n_candidates and not found.lists_weak and not found.total:
        notes.append(weak_alone(found.total_weak))
    return ranking.noted(notes)


def _are_exact(positions: np.ndarray, found: Found, fused: Scores) -> bool:
    """Return whether the scores of these hits are exact: all scores are, or those of the best."""
    if not fused.has_estimates:
        return True
    best = top_k(fused.scores, DEPTH, found.candidates)
    return bool(np.isin(positions, best).all())


def _exact_page(asked: AskedSearch, found: Found, order: Order | None) -> tuple[np.ndarray, Scores]:
    """Return the rows of the hits to list, and scores that are exact for these, where the scores of
    most items are estimates.
    """

    def scores(items: np.ndarray, k: int) -> Scores:
        fused = asked.scores(Filter(items, k, asked.groups))
        assert fused is not None
        return fused

    end = asked.question.n_ranked
    best = of_weak = None
    if order is None:
        best = scores(found.matching, end)
        if found.lists_weak and found.total < end:
            of_weak = scores(found.weak, end)
    rows = found.page(order, best, of_weak)
    assert rows is not None
    if best is not None and of_weak is None:
        return rows, best
    is_listed = np.zeros(len(found.mask), dtype=bool)
    is_listed[rows] = True
    return rows, scores(is_listed, len(rows))


def _order(build: LoadedBuild, sort: str | None) -> Order | None:
    """Return what puts rows in the order of a column; None without one. Raises `QkvError` for an
    unknown column.
    """
    if sort is None:
        return None
    from qkvsearch.rank.sorting import sorted_rows

    sorted_rows(build, np.zeros(0, np.int64), sort)
    return lambda rows: sorted_rows(build, rows, sort)[0]


@query_lock()
@one_blas_thread()
def _total_without(asked: AskedSearch, where: bool, operators: bool) -> int:
    """Count the hits without the condition, without the operators of the query, or without both."""
    text = asked.query.typed.without_conditions if operators else None
    other = _asked(asked.build, asked.question, asked.groups, text, has_where=not where)
    return other.found(other.scores(Filter(other.mask, 0, other.groups))).total


def _smallest_words(build: LoadedBuild, question: SearchQuestion) -> SmallestWords:
    """Return what finds the words without which a hit would not be there."""
    models = build.models

    def n_texts(pair: str) -> int:
        tokens = models.analyzer.tokens(pair)
        return min((models.lexical_keys.n_with(token.term) for token in tokens), default=0)

    def again(other: SearchQuestion) -> np.ndarray:
        return search(build, other).positions

    return SmallestWords(build.catalog.catalog_columns.has, question, n_texts, again)


def _unknown_user(build: LoadedBuild, question: SearchQuestion) -> list[str]:
    """Return the beginning of a note that the user is unknown; nothing for a known one."""
    if question.user is None or question.strict_user:
        return []
    from qkvsearch.rank.recommender import unknown

    return unknown(build.histories, question.user)


def _with_notes(ranking: Ranking, asked: AskedSearch, fused: Scores | None) -> Ranking:
    """Return the ranking with the notes on the user and on the query before its own."""
    build, question, user_notes = asked.build, asked.question, asked.user_notes
    query_notes = build.texts.notes(asked.query)
    is_explained = ranking.notes or query_notes or user_notes
    if not ranking and not is_explained:
        ranking = ranking.noted(none_found(fused, ranking.n_candidates, question.k))
    is_known_user = question.user is not None and not user_notes
    if is_known_user and build.models.implicit is None:
        from qkvsearch.rank.recommender import BY_TEXT

        ranking = ranking.noted([BY_TEXT])
    user_notes = [f"{note}: ranked without preferences." for note in user_notes]
    return ranking.noted([*user_notes, *query_notes])

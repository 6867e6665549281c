"""Similar items, by their users and their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.errors import QkvError, listed_names
from qkvsearch.heads.dense_keys import product_parts
from qkvsearch.heads.histories import Histories
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.models.recommend_heads import COLLABORATIVE, NEIGHBOURS
from qkvsearch.rank.candidates import (
    candidates,
    groups_of,
    named_once,
    positions_of,
    with_where_note,
)
from qkvsearch.rank.history_reasons import what_people_did
from qkvsearch.rank.item_users import ItemUsers, Likers
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.none_ranked import no_neighbours
from qkvsearch.rank.questions import SimilarQuestion
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.rank.reasons import (
    Reason,
    are_constant,
    constant,
    few,
    is_word,
    quoted,
    short,
    terms,
)
from qkvsearch.rank.recommender import history_head
from qkvsearch.rank.shared_runs import shared_runs
from qkvsearch.rank.text_search import TextSearch
from qkvsearch.scores.approximate import (
    ALL_ITEMS,
    ApproximateQuery,
    Filter,
    fuse_candidates,
)
from qkvsearch.scores.components import Components, PartsOf, PartSource
from qkvsearch.scores.fusion import Scores, fuse, summed
from qkvsearch.text.analysis import HAS_UNSPACED
from qkvsearch.text.labelled import LabelledVectors

# The name of the head that compares texts.
SEMANTIC = "semantic"
# How much the weight of a neighbour counts beside the cosine of embeddings. Chosen on four logs: by
# NDCG@10 the best ten then hold more of what held-out users have beside the item (on average .304
# instead of .273). With 10 instead of 3 they have fewer genres in common with it.
SPEAKS_FOR = 3.0
# Chosen by eye, on neighbours of well-known films: no judged set of neighbours was at hand.
# Where a smaller share of an item's users like both, they only like similar things.
MIN_SHARED = 0.25
WEIGHTS = {COLLABORATIVE: 0.6, SEMANTIC: 0.4}
# The words shared by two texts that a reason names.
MAX_NAMED = 4
# The texts of so many items are explained word by word. Of more items each is one part.
MAX_BY_WORD = 5


@query_lock()
@one_blas_thread()
def similar(build: LoadedBuild, question: SimilarQuestion) -> Ranking:
    """Rank the neighbours of items, as `Engine.similar` describes. Raises `QkvError`."""
    catalog, texts = build.catalog, build.texts
    columns = own_columns(catalog, question.fields)
    positions, item_notes = named_once(catalog, question.items)
    excluded, excluded_notes = positions_of(catalog, question.exclude)
    mask = candidates(catalog, build.n_items, question.where, [*positions, *excluded])
    groups = groups_of(catalog, question.distinct)
    head = Neighbours(texts, positions).fused(Filter(mask, question.n_ranked, groups))
    ranking = rank(
        head,
        catalog.names,
        k=question.k,
        offset=question.offset,
        temperature=question.temperature,
        mask=mask,
        groups=groups,
    )
    ranking = with_where_note(ranking, question.where, mask)
    if not ranking.n_candidates and (question.where is None or mask.any()):
        ranking = ranking.noted([no_neighbours(catalog, positions, head)])
    hits = ranking.positions.tolist()
    did = what_people_did(build.snapshot.facts)
    reasoning = NeighbourReasons(texts, build.histories, positions, hits, did)
    ranking = replace(ranking, reasoning=reasoning, source=build)
    ranking = ranking.noted([*item_notes, *excluded_notes])
    return with_fields(ranking, catalog, columns)


@dataclass(frozen=True)
class Neighbours:
    """The keys of items as a query: by each head, the mean of them at length 1.

    positions: the row numbers of the items, each once.
    """

    texts: TextSearch
    positions: Sequence[int]

    def fused(self, allowed: Filter = ALL_ITEMS) -> Scores | None:
        """Return the scores of all items, None where no head knows the query's items."""
        heads = self._heads()
        if not heads:
            return None
        return fuse_candidates(heads, self._fuse, allowed)[1]

    def _heads(self) -> dict[str, Scores | ApproximateQuery]:
        """Return the heads that know the items; a component's query is (index of the item, its
        title or a word).
        """
        heads: dict[str, Scores | ApproximateQuery] = {}
        by_text = self._by_text()
        if by_text is not None:
            heads[SEMANTIC] = by_text
        by_users = self._by_users()
        if by_users is not None:
            heads[COLLABORATIVE] = by_users
            by_neighbours = self._by_neighbours()
            if by_neighbours is not None:
                heads[NEIGHBOURS] = by_neighbours
        return heads

    def _fuse(self, heads: Mapping[str, Scores]) -> Scores:
        """Return the weighted sum of what compares items by their users and by their texts."""
        named = {
            name: self._named(head, self._text_parts() if name == SEMANTIC else head.parts)
            for name, head in heads.items()
        }
        if NEIGHBOURS in named:
            # They are in units of the cosine, so that the two are one head by users.
            by_users = summed([named[COLLABORATIVE], named.pop(NEIGHBOURS)])
            named[COLLABORATIVE] = by_users.renamed(COLLABORATIVE)
        return fuse(list(named.values()), [WEIGHTS[name] for name in named])

    # --- by users ---

    def _by_users(self) -> Scores | None:
        """Score by the cosine of embeddings; None where all the items are cold."""
        if self.texts.models.implicit is None:
            return None
        directions = self._directions(self.positions)
        mean = directions.vectors / len(self.positions)
        if not mean.any():
            return None
        query = LabelledVectors(list(enumerate(directions.labels)), mean)
        keys = self.texts.models.load(PreferencesComponent()).unit_rows
        return keys.head(COLLABORATIVE, query, lambda position: self._directions([position]))

    def _by_neighbours(self) -> Scores | None:
        """Score by how much the items speak for another, each as a like of this weight."""
        preferences = self.texts.models.preferences
        if preferences is None or preferences.neighbours is None:
            return None
        rows = np.array(self.positions)
        shares = np.full(len(rows), SPEAKS_FOR / len(rows))
        scored = preferences.neighbours.score_history(rows, shares)
        if scored is None:
            return None
        _, titles = self.texts.catalog.names(self.positions)
        return history_head(NEIGHBOURS, scored, list(enumerate(titles)))

    def _directions(self, positions: Sequence[int]) -> LabelledVectors:
        """Return items' embeddings at length 1, labelled with their titles."""
        _, titles = self.texts.catalog.names(positions)
        vectors = self.texts.models.load(PreferencesComponent()).unit_rows.vectors[list(positions)]
        return LabelledVectors(titles, np.asarray(vectors))

    # --- by texts ---

    def _by_text(self) -> Scores | ApproximateQuery | None:
        """Score by the stored keys alone; the encoder is loaded only to explain a score."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)
        mean = keys.vectors[list(self.positions)].mean(axis=0, keepdims=True)
        if not mean.any():
            return None
        return keys.head(SEMANTIC, LabelledVectors([None], mean))

    def _text_parts(self) -> PartsOf:
        """Return the function that computes the components of the semantic head."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)

        @cache
        def parts_of() -> PartsOf:
            if len(self.positions) <= MAX_BY_WORD:
                pieces_of = partial(self.texts.item_texts.pieces, head)
                return product_parts(SEMANTIC, self._words(), pieces_of)
            of_items = keys.vectors[list(self.positions)] / len(self.positions)
            _, titles = self.texts.catalog.names(self.positions)
            query = LabelledVectors(list(enumerate(titles)), of_items)
            return product_parts(
                SEMANTIC, query, lambda other: LabelledVectors([None], keys.vectors[[other]])
            )

        return lambda position: parts_of()(position)

    def _words(self) -> LabelledVectors:
        """Return the words of all the items, labelled (index of the item, word)."""
        head = self.texts.models.main_head
        pieces = [self.texts.item_texts.pieces(head, position) for position in self.positions]
        labels = [(i, label) for i, item in enumerate(pieces) for label in item.labels]
        vectors = np.concatenate([item.vectors for item in pieces]) / len(pieces)
        return LabelledVectors(labels, vectors)

    def _named(self, head: Scores, parts: PartsOf) -> Scores:
        """Return the head with the word or title alone as a component's query, with its item's id
        where there are several items.
        """
        ids, _ = self.texts.catalog.names(self.positions)
        items = ids if len(ids) > 1 else [None]

        def named(source: PartSource) -> PartSource:
            i, label = source.query
            return PartSource(source.head, label, items[i])

        return replace(head, parts=lambda position: parts(position).renamed(named))


class ReasonLine(NamedTuple):
    """A line of reasons: what it adds, and its text, which is made where it is shown."""

    value: float
    text: Callable[[], str]


class NeighbourReasons:
    """A `Reasoning` by the people who like both items, and by the words that both texts have.

    positions: the rows of the items of the question. hits: those of the items that are explained.
    did: what people did with the items.
    Most answers are never explained, so what was recorded of these items is read with the first
    reason, of all of them at once. What is recorded after the answer does not count.
    """

    def __init__(
        self,
        texts: TextSearch,
        histories: Histories,
        positions: Sequence[int],
        hits: Sequence[int],
        did: str,
    ) -> None:
        ids, titles = texts.catalog.names(positions)
        items = ids if len(ids) > 1 else [None]
        # The row and the title of each item of the question, by what its sources name it.
        self.items = dict(zip(items, zip(positions, titles, strict=True), strict=True))
        self.texts, self.histories, self.explained = texts, histories, [*positions, *hits]
        self.did = did
        with suppress(QkvError):  # damaged records: the ranking needs none, its reasons do
            histories.records.fix_moment()
        self.liking = cache(self._liking)

    def quoting(self) -> NeighbourReasons:
        """Return the same with titles in quotation marks."""
        return self._quoting

    @cached_property
    def _quoting(self) -> NeighbourReasons:
        # Made once: it reads the users of all hits with the first one.
        other = copy(self)
        other.items = {key: (row, quoted(title)) for key, (row, title) in self.items.items()}
        return other

    @cached_property
    def users(self) -> ItemUsers:
        """The users of all these items. Raises `QkvError` where the records are damaged."""
        return ItemUsers.of(self.histories, self.explained)

    def _liking(self, position: int) -> Likers:
        return self.users.liking(position)

    def __call__(self, position: int, parts: Components, score: float) -> list[Reason]:
        """Return the reasons for the score of the item in this row, from the parts of the score."""
        wholes: dict[PartSource, float] = {}  # what the sources add that are whole items
        words: dict[Any, list[int]] = {}  # and, by item, those that are its words
        for row, (source, key, is_constant) in enumerate(
            zip(parts.sources, parts.first_keys, are_constant(parts), strict=True)
        ):
            if is_constant:
                continue
            if key is None or source.head == COLLABORATIVE:
                wholes[source] = wholes.get(source, 0.0) + float(parts.sums[row])
            else:
                words.setdefault(source.item, []).append(row)
        lines = [
            ReasonLine(value, partial(self._of_item, source, position))
            for source, value in wholes.items()
        ]
        for item, rows in words.items():
            row, title = self.items[item]
            lines += _by_words(title, parts, rows, partial(self._runs, row, position))
        shown = few([line.value for line in lines], lambda i: lines[i].text())
        return [*shown, *constant(parts)]

    def _runs(self, row: int, position: int) -> list[str]:
        """Return the runs that the texts of two items have, where these are without spaces."""
        of_item = self.texts.item_texts.of
        return shared_runs(of_item(row), of_item(position), self.texts.models.analyzer)

    def _of_item(self, source: PartSource, position: int) -> str:
        row, title = self.items[source.item]
        if source.head == COLLABORATIVE:
            return self._people(row, title, position)
        return _similar_meaning(title)

    def _people(self, row: int, title: str, position: int) -> str:
        """Return how many like both items, of those who like the item of the question."""
        users = self.liking(row)
        both = users.number_shared(self.liking(position))
        if both < MIN_SHARED * users.number:
            return (
                f"people: those who {self.did} {short(title)} and those who {self.did} this are "
                f"much the same ({both:,} both)"
            )
        return (
            f"people: {both:,} of the {users.number:,} who {self.did} {short(title)} also "
            f"{self.did} this"
        )


def _by_words(
    title: str, parts: Components, rows: Sequence[int], shared: Callable[[], list[str]]
) -> list[ReasonLine]:
    """Return a line for all that words add by similar meanings, and one for the words that both
    texts have, in any form.

    rows: the sources that are the words of one text. shared: returns the `shared_runs` of both
    texts, which are the words of a script without spaces.
    """
    keys, values = parts.table(rows)
    columns_with: dict[str, list[int]] = {}
    for column, key in enumerate(keys):
        for term in terms(key):
            columns_with.setdefault(term, []).append(column)
    same: dict[str, float] = {}  # what each word adds with the same word of the other text
    for row, of_word in zip(rows, values, strict=True):
        query = parts.sources[row].query
        columns = {column for term in terms(query) for column in columns_with.get(term, ())}
        if columns and is_word(query):
            word = fold(query)
            same[word] = same.get(word, 0.0) + float(of_word[list(columns)].sum())
    if any(map(HAS_UNSPACED, same)):
        same = _by_runs(same, shared())
    value_of_same = sum(same.values())
    value_of_others = float(values.sum()) - value_of_same
    lines = [ReasonLine(value_of_others, partial(_similar_meaning, title))]
    if same:
        largest = sorted(same, key=lambda word: -abs(same[word]))
        named = listed_names(largest, MAX_NAMED)
        lines.append(ReasonLine(value_of_same, lambda: f"same words as {short(title)}: {named}"))
    return lines


def _by_runs(same: Mapping[str, float], runs: Sequence[str]) -> dict[str, float]:
    """Return what words add, with the pieces of a run as one. A piece in none of the runs is in
    both texts by chance, and has no line of its own.

    >>> _by_runs({"max": 1.0, "注": 0.5, "意": 0.25, "力": 2.0}, ["注意"])
    {'max': 1.0, '注意': 0.75}
    """
    of_runs: dict[str, float] = {}
    for word, value in same.items():
        name = word
        if HAS_UNSPACED(word):
            with_word = (run for run in runs if word in run)
            name = next(with_word, "")
        if name:
            of_runs[name] = of_runs.get(name, 0.0) + value
    return of_runs


def _similar_meaning(title: str) -> str:
    return f"similar meaning to {short(title)}"

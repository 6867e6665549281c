"""The queries by which searches are tuned: made of the catalog, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qkvsearch.evaluation.made_queries.alike_by_sentence import AlikeBySentence
from qkvsearch.evaluation.made_queries.alike_by_title import AlikeByTitle
from qkvsearch.evaluation.made_queries.halves import Half, half_of, half_of_text, items_of
from qkvsearch.evaluation.made_queries.kinds import KINDS, MAX_QUERIES, make_queries
from qkvsearch.evaluation.made_queries.query_kind import MadeQuery
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.words_among_alike import WordsAmongAlike
from qkvsearch.evaluation.search_parts import COLUMNS, FAMILIES, HEADS, PARTS
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.judgements import Judgements, Queries

JUDGED = "judged"
# The parts that a kind of made queries tells about. On long texts, a part is left out unless people
# liked the step that the kind liked best, and both ordered its steps alike. They never did so for
# heads. On short texts the kind tells about heads, because it orders the settings of the claim
# made_queries.py as people do. The part `agreement` of tuned_search.py measures the steps.
#
# Queries in the words of the title that they look for never tell about the other parts. They reward
# the title's column and words as they stand, whatever people ask for.
TOLD_ON_SHORT_TEXTS: Mapping[str, frozenset[str]] = {WordsAmongAlike.name: frozenset([HEADS])}
TOLD_ON_LONG_TEXTS: Mapping[str, frozenset[str]] = {
    AlikeBySentence.name: frozenset([FAMILIES, COLUMNS]),
    AlikeByTitle.name: frozenset([COLUMNS]),
}
# So many times as many queries as a report has are made on long texts: those for similar items are
# about several items, and two of three belong to neither half.
MORE_ON_LONG_TEXTS = 4


class TuningQuery(NamedTuple):
    """A query with its answers."""

    # A kind of made queries, or "judged".
    kind: str
    text: str
    # The grades of the items that answer it, by their rows.
    answers: Mapping[int, int]
    # The row of the item that it was made of, where a ranking is read without it; else None.
    made_of: int | None = None

    @property
    def item(self) -> int:
        """The first item that the query is about: of two that are alike, the same for either."""
        return items_of(self)[0]


class TuningQueries(NamedTuple):
    """Queries, and by kind the parts of a search that they tell about."""

    queries: list[TuningQuery]
    carried: dict[str, frozenset[str]]


def tuning_queries(
    build: LoadedBuild, random_state: int, judged: tuple[Queries, Judgements] | None = None
) -> TuningQueries:
    """Return the queries that a build makes of its catalog, and those that people judged.

    Kinds that tell about nothing here are not made. Judged queries tell about everything. Those
    without an answer in the catalog are left out.
    """
    source = QueriedCatalog(build)
    told = TOLD_ON_LONG_TEXTS if source.is_long else TOLD_ON_SHORT_TEXTS
    comparing = [kind.name for kind in KINDS if kind.carries_heads(source)]
    carried = {name: told[name] for name in comparing if name in told}
    per_kind = MAX_QUERIES * (MORE_ON_LONG_TEXTS if source.is_long else 1)
    made = make_queries(build, random_state, per_kind, only=carried)
    queries = [asked(query) for query in made]
    if judged is not None:
        carried[JUDGED] = frozenset(PARTS)
        queries += judged_queries(build, *judged)
    return TuningQueries(queries, carried)


def asked(made: MadeQuery) -> TuningQuery:
    """Return a made query as searches are tuned by it."""
    return TuningQuery(made.kind, made.text, dict.fromkeys(made.answers, 1), made.made_of)


def half_of_query(build: LoadedBuild, query: TuningQuery) -> Half | None:
    """Return the half that a query belongs to; None for neither.

    Made queries are split by their items. Judged ones are split by their texts: people find the
    same items right for several queries, so few would be about items of one half alone.
    """
    return half_of_text(query.text) if query.kind == JUDGED else half_of(build, query)


def judged_queries(build: LoadedBuild, texts: Queries, judgements: Judgements) -> list[TuningQuery]:
    ids = build.catalog.ids("items")
    queries = []
    for name, grades in judgements.items():
        answers = {ids.find(item): grade for item, grade in grades.items() if grade > 0}
        answers.pop(-1, None)
        if answers and name in texts:
            queries.append(TuningQuery(JUDGED, texts[name], answers))
    return queries

"""The queries by which searches are tuned: made of the catalog, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qkvsearch.evaluation.made_queries.kinds import KINDS, make_queries
from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.search_parts import HEADS, PARTS
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.judgements import Judgements, Queries

JUDGED = "judged"
# What kinds of made queries tell about whose order of heads agreed with people's. Where texts are
# long, they look for items that are like the one that they are made of. Where texts are short, they
# are in the words of their own title: that rewards the title's column, words that are compared as
# they stand, and no families of words, whatever people ask for. The part `agreement` of the claim
# tuned_search.py measures it.
TOLD_ON_LONG_TEXTS = frozenset(PARTS)
TOLD_ON_SHORT_TEXTS = frozenset([HEADS])


class Query(NamedTuple):
    """A query with its answers."""

    # A kind of made queries, or "judged".
    kind: str
    text: str
    # The grades of the items that answer it, by their rows.
    answers: Mapping[int, int]
    # The row of an item that a ranking is read without; None for none.
    without: int | None = None

    @property
    def item(self) -> int:
        """The first item that the query is about: of two that are alike, the same for either."""
        items = [*self.answers] if self.without is None else [self.without, *self.answers]
        return min(items)


class TuningQueries(NamedTuple):
    """Queries, and by kind the parts of a search that they tell about."""

    queries: list[Query]
    carried: dict[str, frozenset[str]]


def tuning_queries(
    build: LoadedBuild, random_state: int, judged: tuple[Queries, Judgements] | None = None
) -> TuningQueries:
    """Return the queries that a build makes of its catalog, and those that people judged.

    Judged queries tell about everything. Those without an answer in the catalog are left out.
    """
    source = Source(build)
    told = TOLD_ON_LONG_TEXTS if source.is_long else TOLD_ON_SHORT_TEXTS
    carried = {
        kind.name: told if kind.carries_heads(source) else frozenset[str]() for kind in KINDS
    }
    queries = [
        Query(made.kind, made.text, dict.fromkeys(made.answers, 1), made.made_of)
        for made in make_queries(build, random_state)
    ]
    if judged is not None:
        carried[JUDGED] = frozenset(PARTS)
        queries += judged_queries(build, *judged)
    return TuningQueries(queries, carried)


def judged_queries(build: LoadedBuild, texts: Queries, judgements: Judgements) -> list[Query]:
    ids = build.catalog.ids("items")
    queries = []
    for name, grades in judgements.items():
        answers = {ids.find(item): grade for item, grade in grades.items() if grade > 0}
        answers.pop(-1, None)
        if answers and name in texts:
            queries.append(Query(JUDGED, texts[name], answers))
    return queries

"""The queries by which searches are tuned: made of the catalog, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qkvsearch.evaluation.made_queries import query_kind
from qkvsearch.evaluation.made_queries.kinds import KINDS, make_queries
from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.search_parts import COLUMNS, FAMILIES, HEADS, PARTS, SECOND_PASS
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.judgements import Judgements, Queries

JUDGED = "judged"
# The parts that a kind of made queries tells about, by what it can compare. The second pass is a
# head, and the weights of columns change the keys of heads.
TOLD_BY = {
    query_kind.HEADS: {HEADS, SECOND_PASS, COLUMNS, FAMILIES},
    query_kind.SYNONYMS: {FAMILIES},
}


class Query(NamedTuple):
    """A query with its answers."""

    # A kind of made queries, or "judged".
    kind: str
    text: str
    # The grades of the items that answer it, by their rows.
    answers: Mapping[int, int]
    # The row of an item that a ranking is read without; None for none.
    without: int | None = None


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
    carried = {
        kind.name: frozenset().union(*(TOLD_BY.get(what, ()) for what in kind.carries(source)))
        for kind in KINDS
    }
    queries = [
        Query(made.kind, made.text, dict.fromkeys(made.answers, 1), made.made_of)
        for made in make_queries(build, random_state)
    ]
    if judged is not None:
        carried[JUDGED] = frozenset(PARTS)
        queries += _judged_queries(build, *judged)
    return TuningQueries(queries, carried)


def _judged_queries(build: LoadedBuild, texts: Queries, judgements: Judgements) -> list[Query]:
    ids = build.catalog.ids("items")
    queries = []
    for name, grades in judgements.items():
        answers = {ids.find(item): grade for item, grade in grades.items() if grade > 0}
        answers.pop(-1, None)
        if answers and name in texts:
            queries.append(Query(JUDGED, texts[name], answers))
    return queries

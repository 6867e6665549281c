"""How good a search is, by queries that its catalog makes of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import DataError
from qkvsearch.evaluation.made_queries.halves import is_held_out
from qkvsearch.evaluation.made_queries.kinds import (
    KINDS_BY_NAME,
    kinds_that_count,
    make_queries,
)
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery
from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.metrics import interval, resampled_means
from qkvsearch.evaluation.results import WHISKERS, Evaluation
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.search import search

if TYPE_CHECKING:
    from qkvsearch.evaluation.pictures.panel import Panel

PROTOCOL = "made queries"
# So many hits count.
DEPTH = 10
# So many examples of queries whose item was not first.
MAX_WORST = 20
# The quantile of the normal distribution of a 95% interval.
Z = 1.96


class KindFigures(NamedTuple):
    """What became of the queries of one kind."""

    # How many there were.
    queries: int
    # The shares of those whose item was first, among the ten (the first included), and not.
    first: float
    among_ten: float
    missing: float
    # The 95% interval of `first`.
    interval: tuple[float, float]
    mrr: float
    # Of those whose item was not first: for how many a head alone has it first, by head.
    found_by: dict[str, int]
    # What these queries can compare on this catalog.
    carries: list[str]
    # Whether they are in the means over all kinds.
    counts: bool

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        fields = self._asdict()
        fields["mrr@10"] = fields.pop("mrr")
        return {**fields, "interval": list(self.interval)}


@dataclass(frozen=True)
class MadeEvaluation(Evaluation):
    """The result of an evaluation by made queries."""

    # One sentence for people on how often the right item is first.
    sentence: str = ""
    # By the name of the kind.
    kinds: dict[str, KindFigures] = field(default_factory=dict)
    # Queries whose item was not first: `query`, `kind`, `id`, `title`, `rank`, `found_by`.
    worst: Sequence[dict[str, Any]] = ()
    # What these queries do not measure, a sentence each.
    limits: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "sentence": self.sentence,
            **super().to_dict(),
            "kinds": {name: figures.to_dict() for name, figures in self.kinds.items()},
            "worst": list(self.worst),
            "limits": list(self.limits),
        }

    def panels(self) -> list[Panel]:
        """Return what `plot` draws, as data."""
        from qkvsearch.evaluation.pictures.made_panels import made_panels

        return list(made_panels(self.kinds))

    def headline(self) -> str:
        """Return what was evaluated, in one line."""
        queries = self.facts["queries"]
        return f"Search by {queries:,} queries that the catalog made of itself. {WHISKERS}"

    def sentences(self) -> list[str]:
        """Return how often the right item is first, and what such queries do not measure."""
        return [self.sentence, *self.limits]

    def examples(self) -> Sequence[dict[str, Any]]:
        """Return the queries whose item was not first, as rows of a table."""
        names = ("query", "title", "rank", "found_by", "kind", "id")
        rows = [{name: row[name] for name in names} for row in self.worst]
        return [{**row, "kind": row["kind"].replace("_", " ")} for row in rows]

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row for each kind."""
        rows = []
        for name, figures in self.kinds.items():
            low, high = figures.interval
            rows.append(
                {
                    "kind": name,
                    "queries": figures.queries,
                    "first": figures.first,
                    "low": low,
                    "high": high,
                    "among_ten": figures.among_ten,
                    "missing": figures.missing,
                    "mrr@10": figures.mrr,
                }
            )
        return rows


class Outcome(NamedTuple):
    """A made query, and what a search made of it."""

    query: MadeQuery
    # The best rank of an item that answers it; None where none is among the ten.
    rank: int | None
    # The heads that have such an item first by themselves; empty where the search has it first.
    found_by: tuple[str, ...] = ()

    @property
    def reciprocal_rank(self) -> float:
        return 0.0 if self.rank is None else 1 / self.rank

    @property
    def is_first(self) -> bool:
        return self.rank == 1


def evaluate_made_queries(
    build: LoadedBuild,
    *,
    heads: Sequence[str] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> MadeEvaluation:
    """Evaluate the search of a build by queries that are made of its catalog.

    The same random state gives the same report. heads: of the search, None for all. Raises
    `DataError` where no query can be made, and `QkvError` for a head that the build lacks.
    """
    queries = make_queries(build, random_state)
    if not queries:
        raise DataError(
            f"{build.snapshot.workspace}: no query can be made of this catalog: it has neither "
            "titles nor texts of several words; give queries and their answers"
        )
    outcomes = ask(build, queries, heads, progress or silent)
    counted = kinds_that_count(queries, Source(build))
    kinds = _by_kind(outcomes, counted, Source(build))
    of_mean = [outcome for outcome in outcomes if outcome.query.kind in counted]
    metrics, intervals = _means(of_mean)
    held_out = [each for each in of_mean if is_held_out(build, each.query)]
    facts = {
        "queries": len(outcomes),
        "counted": counted,
        "compares": sorted({name for figures in kinds.values() for name in figures.carries}),
        "held_out": {"queries": len(held_out), **(_means(held_out)[0] if held_out else {})},
    }
    return MadeEvaluation(
        PROTOCOL,
        metrics,
        facts=facts,
        intervals=intervals,
        sentence=_sentence(kinds),
        kinds=kinds,
        worst=_worst(build, outcomes),
        limits=_limits(kinds, counted),
    )


def ask(
    build: LoadedBuild,
    queries: Sequence[MadeQuery],
    heads: Sequence[str] | None = None,
    progress: Progress = silent,
) -> list[Outcome]:
    """Ask the search each query, and each head alone those whose item was not first."""
    ranks = []
    for done, query in enumerate(queries, 1):
        ranks.append(rank_of_answer(build, query, heads))
        progress("asking the search", done, len(queries))
    outcomes = []
    single = list(build.models.head_weights)
    for done, (query, rank) in enumerate(zip(queries, ranks, strict=True), 1):
        found_by: Iterable[str] = ()
        if rank != 1:
            found_by = [name for name in single if rank_of_answer(build, query, [name]) == 1]
        outcomes.append(Outcome(query, rank, tuple(found_by)))
        progress("asking each head", done, len(queries))
    return outcomes


def rank_of_answer(
    build: LoadedBuild, query: MadeQuery, heads: Sequence[str] | None = None
) -> int | None:
    """Return the best rank of an item that answers a query; None where none is among the ten.

    The item that the query was made of, where it is not looked for, has no rank.
    """
    n_hits = DEPTH if query.made_of is None else DEPTH + 1
    question = SearchQuestion(query=query.text, k=n_hits, heads=heads)
    found = search(build, question).positions.tolist()
    others = [item for item in found if item != query.made_of][:DEPTH]
    return next((rank for rank, item in enumerate(others, 1) if item in query.answers), None)


# --- figures ---


def _means(outcomes: Sequence[Outcome]) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return the metrics of queries, and their intervals."""
    columns = {
        "mrr@10": [each.reciprocal_rank for each in outcomes],
        "first": [float(each.is_first) for each in outcomes],
        "among_ten": [float(each.rank is not None) for each in outcomes],
    }
    table = np.column_stack(list(columns.values()))
    samples = resampled_means(table)
    means = {name: float(np.mean(values)) for name, values in columns.items()}
    return means, {name: interval(samples[:, i]) for i, name in enumerate(columns)}


def _by_kind(
    outcomes: Sequence[Outcome], counted: Sequence[str], source: Source
) -> dict[str, KindFigures]:
    """Return the figures of each kind, in the order of the kinds."""
    by_kind: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_kind.setdefault(outcome.query.kind, []).append(outcome)
    figures = {}
    for name, own in by_kind.items():
        n = len(own)
        n_first = sum(each.is_first for each in own)
        n_among = sum(each.rank is not None for each in own)
        figures[name] = KindFigures(
            queries=n,
            first=n_first / n,
            among_ten=n_among / n,
            missing=1 - n_among / n,
            interval=wilson(n_first, n),
            mrr=float(np.mean([each.reciprocal_rank for each in own])),
            found_by=dict(Counter(head for each in own for head in each.found_by)),
            carries=sorted(KINDS_BY_NAME[name].carries(source)),
            counts=name in counted,
        )
    return figures


def wilson(n_hits: int, n: int) -> tuple[float, float]:
    """Return the 95% interval of a share, n_hits of n. Wilson 1927, "Probable inference".

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share = n_hits / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    # Rounding errors would leave a share of 0 or 1 outside its interval.
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


# --- for people ---


def _sentence(kinds: Mapping[str, KindFigures]) -> str:
    """Return how often the queries of the first kind find their item first."""
    name, figures = next(iter(kinds.items()))
    n_asked = min(10, figures.queries)
    n_first = round(figures.first * n_asked)
    return f"{n_first} of {n_asked} {KINDS_BY_NAME[name].claim} first."


def _worst(build: LoadedBuild, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the queries whose items are farthest from the first rank, the kinds in turn."""
    by_kind: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.is_first:
            by_kind.setdefault(outcome.query.kind, []).append(outcome)
    for own in by_kind.values():
        own.sort(key=lambda each: -(each.rank or DEPTH + 1))
    turns = zip_longest(*by_kind.values())
    worst = [each for turn in turns for each in turn if each is not None][:MAX_WORST]
    ids, titles = build.catalog.names([each.query.item for each in worst])
    return [
        {
            "query": each.query.text,
            "kind": each.query.kind,
            "id": id_,
            "title": title,
            "rank": each.rank,
            "found_by": each.found_by[0] if each.found_by else None,
        }
        for each, id_, title in zip(worst, ids, titles, strict=True)
    ]


def _limits(kinds: Mapping[str, KindFigures], counted: Sequence[str]) -> list[str]:
    """Return what the queries of a report do not measure, a sentence each."""
    limits = []
    if not any(HEADS in figures.carries for figures in kinds.values()):
        limits.append(
            "These queries do not compare heads: on catalogs like this one, their order of heads "
            "was not compared with people's judgements or differed from it."
        )
    elif len(counted) < len(kinds):
        left_out = [name for name in kinds if name not in counted]
        limits.append(
            "The means leave out kinds whose order of settings differed from people's on catalogs "
            f"like this one: {', '.join(left_out)}."
        )
    limits.append(
        "Made queries do not tell what people ask for that no item answers, nor which of several "
        "right items they prefer."
    )
    return limits

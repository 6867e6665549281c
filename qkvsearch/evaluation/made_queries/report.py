"""How good a search is, by queries that its catalog makes of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import Count, DataError, install
from qkvsearch.evaluation.made_queries.alike import MIN_ITEMS
from qkvsearch.evaluation.made_queries.description import Description
from qkvsearch.evaluation.made_queries.description_clause import DescriptionClause
from qkvsearch.evaluation.made_queries.halves import is_held_out
from qkvsearch.evaluation.made_queries.kinds import (
    KINDS_BY_NAME,
    LAST_RESORT,
    kinds_that_count,
    make_queries,
)
from qkvsearch.evaluation.made_queries.popularity import FirstByPopularity, first_by_popularity
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.metrics import interval, resampled_means, wilson
from qkvsearch.evaluation.results import OURS, WHISKERS, Evaluation
from qkvsearch.heads.lexical_head import LEXICAL
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
# The kinds that ask for an item by its description.
OF_DESCRIPTIONS = frozenset([Description.name, DescriptionClause.name])
# Fewer queries are counted in a sentence one by one, and more by tens.
FEW = 20


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
    # The share of those whose item the lexical head alone has first.
    first_by_lexical: float

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
    # Of the kinds in the means: by how many users of the log met the item. Empty without a log.
    first_by_popularity: Sequence[FirstByPopularity] = ()
    # Queries whose item was not first: `query`, `kind`, `id`, `title`, `rank`, `found_by`, and
    # `others`, how many other items are right as well.
    worst: Sequence[dict[str, Any]] = ()
    # What these queries do not measure, a sentence each.
    limits: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "sentence": self.sentence,
            **super().to_dict(),
            "kinds": {name: figures.to_dict() for name, figures in self.kinds.items()},
            "first_by_popularity": [group.to_dict() for group in self.first_by_popularity],
            "worst": list(self.worst),
            "limits": list(self.limits),
        }

    def panels(self) -> list[Panel]:
        """Return what `plot` draws, as data."""
        from qkvsearch.evaluation.pictures.made_panels import made_panels

        return list(made_panels(self.kinds, self.first_by_popularity))

    def headline(self) -> str:
        """Return what was evaluated, in one line."""
        queries = self.facts["queries"]
        return f"Search by {queries:,} queries that the catalog made of itself. {WHISKERS}"

    def sentences(self) -> list[str]:
        """Return how often the right item is first, and what such queries do not measure."""
        return [self.sentence, *self.limits]

    def examples(self) -> Sequence[dict[str, Any]]:
        """Return the queries whose item was not first, as rows of a table."""
        names = ("query", "title", "others", "rank", "found_by", "kind", "id")
        rows = [{name: row[name] for name in names} for row in self.worst]
        return [{**row, "kind": KINDS_BY_NAME[row["kind"]].description} for row in rows]

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
                    "first_by_lexical": figures.first_by_lexical,
                }
            )
        return rows


class Outcome(NamedTuple):
    """A made query, and what a search made of it."""

    query: MadeQuery
    # The best rank of an item that answers it; None where none is among the ten.
    rank: int | None
    # That rank by the lexical head alone.
    lexical_rank: int | None
    # The heads that have such an item first by themselves; empty where the search has it first.
    found_by: tuple[str, ...] = ()

    @property
    def reciprocal_rank(self) -> float:
        return 0.0 if self.rank is None else 1 / self.rank

    @property
    def is_first(self) -> bool:
        return self.rank == 1

    @property
    def by_lexical(self) -> Outcome:
        """What the lexical head alone made of the query."""
        return self._replace(rank=self.lexical_rank, found_by=())


def _settings_noted(build: LoadedBuild) -> list[str]:
    """Return sentences about what else than heads the answers rest on."""
    notes = []
    if build.models.search_settings.to_dict():
        notes.append("The settings of searches are tuned (tune search).")
    if build.rules is not None:
        n_rules = Count(len(build.rules.rules))
        notes.append(f"{n_rules} {n_rules:rule of the owner counts|rules of the owner count}.")
    return notes


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
    progress = progress or silent
    source = QueriedCatalog(build)
    queries = make_queries(build, random_state, source=source, progress=progress)
    if not queries:
        raise DataError(
            f"{build.snapshot.workspace}: no query can be made of this catalog: "
            f"{_why_none(source)}; give queries and the items that answer them (--queries and "
            "--qrels)"
        )
    outcomes = ask(build, queries, heads, progress)
    counted = kinds_that_count(queries, source)
    kinds = _by_kind(outcomes, counted, source)
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
        baselines={LEXICAL.name: _means([each.by_lexical for each in of_mean])[0]},
        facts=facts,
        intervals=intervals,
        notes=_settings_noted(build),
        sentence=_sentence(kinds),
        kinds=kinds,
        first_by_popularity=_by_popularity(build, of_mean),
        worst=_worst(build, outcomes),
        limits=_limits(kinds, counted, source),
    )


def _why_none(source: QueriedCatalog) -> str:
    """Return why a catalog allows no query, not even a title as it is."""
    if source.titles:
        why = "its titles have no words"
    elif source.build.catalog.is_titled_by_id():
        why = "its items have no titles"
    else:
        why = "its titles are not searched"
    if source.description is None:
        return f"{why}, and no column has sentences"
    return (
        f"{why}, and of its sentences none can be put in other words (build --synonyms FILE adds "
        f"yours) or looks for items that are alike, which takes {MIN_ITEMS} items"
    )


def ask(
    build: LoadedBuild,
    queries: Sequence[MadeQuery],
    heads: Sequence[str] | None = None,
    progress: Progress = silent,
) -> list[Outcome]:
    """Ask the search and the lexical head each query, and every other head alone those whose item
    was not first.
    """
    dense = [name for name in build.models.head_weights if name != LEXICAL.name]
    # The owner's rules are a part of the search, and of no head.
    plain = build.without_rules()
    ranks = []
    for done, query in enumerate(queries, 1):
        ranks.append(rank_of_answer(build, query, heads))
        progress("asking the search", done, len(queries))
    outcomes = []
    for done, (query, rank) in enumerate(zip(queries, ranks, strict=True), 1):
        lexical_rank = rank_of_answer(plain, query, [LEXICAL.name])
        found_by = []
        if rank != 1:
            alone = {name: rank_of_answer(plain, query, [name]) for name in dense}
            alone = {LEXICAL.name: lexical_rank, **alone}
            found_by = [name for name, own_rank in alone.items() if own_rank == 1]
        outcomes.append(Outcome(query, rank, lexical_rank, tuple(found_by)))
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
    outcomes: Sequence[Outcome], counted: Sequence[str], source: QueriedCatalog
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
            first_by_lexical=sum(each.by_lexical.is_first for each in own) / n,
        )
    return figures


def _by_popularity(build: LoadedBuild, outcomes: Sequence[Outcome]) -> list[FirstByPopularity]:
    """Return how often the item is first by its popularity; nothing without a log."""
    if build.models.implicit is None:
        return []
    items = np.array([each.query.item for each in outcomes], dtype=np.int64)
    is_first = {
        OURS: np.array([each.is_first for each in outcomes], dtype=bool),
        LEXICAL.name: np.array([each.by_lexical.is_first for each in outcomes], dtype=bool),
    }
    return first_by_popularity(build.models.item_counts[items], is_first)


# --- for people ---


def _sentence(kinds: Mapping[str, KindFigures]) -> str:
    """Return how often the queries of the first kind find their item first, and those of the kind
    that does it least often, where that is less often than chance explains.
    """
    often_asked = [name for name, figures in kinds.items() if figures.queries >= FEW]
    first = next(iter(often_asked or kinds))
    sentence = f"{n_of_n(kinds[first])} {KINDS_BY_NAME[first].claim} first."
    looking_for_one = [name for name in often_asked if KINDS_BY_NAME[name].looks_for_one_item]
    if not looking_for_one:
        return sentence
    weakest = min(looking_for_one, key=lambda name: kinds[name].first)
    if kinds[weakest].interval[1] < kinds[first].interval[0]:
        sentence += f" Weakest: {n_of_n(kinds[weakest])} {KINDS_BY_NAME[weakest].claim} first."
    return sentence


def n_of_n(figures: KindFigures) -> str:
    """Return how many queries have their item first, such as "8 of 10".

    "10 of 10" and "0 of 10" mean all and none.
    """
    n_first = round(figures.first * figures.queries)
    n_in_ten = round(10 * figures.first)
    is_exact = n_first in (0, figures.queries)
    if figures.queries < FEW or (n_in_ten in (0, 10) and not is_exact):
        return f"{n_first} of {figures.queries}"
    return f"{n_in_ten} of 10"


def _worst(build: LoadedBuild, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the queries whose items are farthest from the first rank, the kinds in turn.

    Those that look for one item come first: which items are alike is arguable.
    """
    not_first = [outcome for outcome in outcomes if not outcome.is_first]
    of_one_item: list[Outcome] = []
    of_alike: list[Outcome] = []
    for outcome in not_first:
        looks_for_one = KINDS_BY_NAME[outcome.query.kind].looks_for_one_item
        (of_one_item if looks_for_one else of_alike).append(outcome)
    worst = [*_in_turns(of_one_item), *_in_turns(of_alike)][:MAX_WORST]
    ids, titles = build.catalog.names([each.query.item for each in worst])
    return [
        {
            "query": each.query.text,
            "kind": each.query.kind,
            "id": id_,
            "title": title,
            "rank": each.rank,
            "found_by": each.found_by[0] if each.found_by else None,
            # How many other items are right as well.
            "others": len(each.query.answers) - 1,
        }
        for each, id_, title in zip(worst, ids, titles, strict=True)
    ]


def _in_turns(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of each kind from the worst on, a kind after the other."""
    by_kind: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_kind.setdefault(outcome.query.kind, []).append(outcome)
    for own in by_kind.values():
        own.sort(key=lambda each: -(each.rank or DEPTH + 1))
    turns = zip_longest(*by_kind.values())
    return [each for turn in turns for each in turn if each is not None]


def _limits(
    kinds: Mapping[str, KindFigures], counted: Sequence[str], source: QueriedCatalog
) -> list[str]:
    """Return what the queries of a report do not measure, a sentence each."""
    limits = []
    if not any(HEADS in figures.carries for figures in kinds.values()):
        limits.append(f"These queries do not compare heads: {_why_no_heads(source)}.")
    elif len(counted) < len(kinds):
        left_out = [KINDS_BY_NAME[name].description for name in kinds if name not in counted]
        limits.append(
            "The means leave out kinds whose order of settings differed from people's on catalogs "
            f"like this one: {'; '.join(left_out)}."
        )
    if source.description is not None and not OF_DESCRIPTIONS & kinds.keys():
        limits.append(
            "No description was asked for in other words: other words are known for too few words "
            "of its sentences, names aside (build --synonyms FILE adds yours)."
        )
    if LAST_RESORT.name in kinds:
        limits.append(
            "Titles were asked as they are, since they are too short or too alike for anything "
            "else. Nearly every search finds them."
        )
    limits.append(
        "Made queries do not tell what people ask for that no item answers, nor which of several "
        "right items they prefer."
    )
    return limits


def _why_no_heads(source: QueriedCatalog) -> str:
    """Return why no kind of queries tells which head is better."""
    if not source.is_in_language_of_table:
        return (
            "on catalogs like this one, which is not in English, their order of heads was not "
            "compared with people's judgements"
        )
    if source.table is None:
        return (
            "which items are alike is known by their words alone, since the table of word meanings "
            f"is not installed ({install('encoders')})"
        )
    if source.n_items < MIN_ITEMS:
        return (
            f"that takes items that are alike, and a catalog of fewer than {MIN_ITEMS} items has "
            "too few of them"
        )
    return (
        "on catalogs like this one, their order of heads was not compared with people's judgements "
        "or differed from it"
    )

"""Evaluate search by the clicks of a log: the hit that somebody clicked on should be first.

Each click is a judged query with one right item. It counts 1 / θ of the position at which the item
was, so that items further down, at which fewer people look, do not count less. The figures are
means with these weights, which are inverse propensities (Joachims, Swaminathan and Schnabel 2017,
"Unbiased learning-to-rank with biased feedback").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import Count, DataError
from qkvsearch.evaluation.clicks.counted import counted_searches, folded
from qkvsearch.evaluation.clicks.position_bias import FLOOR, MIN_CLICKS, PositionBias, position_bias
from qkvsearch.evaluation.metrics import interval, resampled_means
from qkvsearch.evaluation.results import OURS, Evaluation
from qkvsearch.evaluation.search_protocol import (
    BASELINE,
    DEPTH,
    WITHOUT_RULES,
    Search,
    figures_of,
)
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.search import search
from qkvsearch.store.logged_searches import LoggedSearches, read_log
from qkvsearch.tables.ids import Id, Ids, id_text

PROTOCOL = "clicks"
# Fewer clicks show little.
FEW_CLICKS = 100


class ClickedItem(NamedTuple):
    """A click: the query of a search, the item, and its position then."""

    query: str
    item: str
    position: int
    has_options: bool


class JudgedItem(NamedTuple):
    """An item that was clicked on for a query: how often, and how much these clicks count."""

    query: str
    item: str
    clicks: int
    weight: float


@dataclass(frozen=True)
class ClickEvaluation(Evaluation):
    """The result of an evaluation by clicks."""

    # What the figures assume, a sentence each.
    limits: Sequence[str] = ()
    # The metrics where every click counts the same; empty where nothing was corrected.
    uncorrected: dict[str, float] = field(default_factory=dict)

    averaged: ClassVar[str] = "clicks"

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        result = super().to_dict()
        if self.uncorrected:
            result["uncorrected"] = self.uncorrected
        return {**result, "limits": list(self.limits)}

    def sentences(self) -> list[str]:
        """Return what the figures assume."""
        return list(self.limits)


def evaluate_clicks(
    log: LoggedSearches,
    systems: Mapping[str, Search],
    items: Ids,
    progress: Progress | None = None,
) -> ClickEvaluation:
    """Compute nDCG@10, MRR@10 and Recall@100 of the items that were clicked on.

    systems: ours and others, each a function from a query and a number to the ids of the hits.
    items: those of the catalog. Clicks on others are left out. Raises `DataError` where there are
    no clicks.
    """
    clicks = clicked_items(log)
    if not clicks:
        raise DataError(
            "the log of searches has no clicks: serve --log-searches logs what pages send, as "
            "the search page does"
        )
    known = [click for click in clicks if click.item in items]
    if not known:
        raise DataError("none of the items that were clicked on is in the catalog any more")
    bias = position_bias(log, counted_searches(log))
    judged = _judged(known, bias)
    figures = {name: _figures(system, judged, name, progress) for name, system in systems.items()}
    weights = np.array([one.weight for one in judged])
    metrics = {name: _means(of_system, weights) for name, of_system in figures.items()}
    is_corrected = bias.theta is not None
    facts = {
        "clicks": len(known),
        "queries": len({one.query for one in judged}),
        "searches": len({*log.clicks}),
        "clicks_on_other_items": len(clicks) - len(known),
        "clicks_with_options": sum(click.has_options for click in known),
        "position_bias": bias.to_dict(),
    }
    return ClickEvaluation(
        PROTOCOL,
        metrics.pop(OURS),
        metrics,
        facts,
        intervals=_intervals(figures[OURS], judged),
        notes=[*log.notes(), *_notes(facts)],
        limits=list(limits(bias)),
        uncorrected=_means(figures[OURS], np.array([one.clicks for one in judged]))
        if is_corrected
        else {},
    )


def evaluate_build(
    build: LoadedBuild,
    workspace: Path,
    heads: list[str] | None = None,
    progress: Progress | None = None,
) -> ClickEvaluation:
    """Evaluate the searches of a build with these heads (None: all), beside the lexical head alone,
    by the log of its workspace. Where there are rules of the owner, the same heads without them are
    one more baseline. Raises `QkvError`.
    """

    def asking(heads: list[str] | None, rules: bool) -> Search:
        def ask(query: str, k: int) -> list[Id]:
            question = SearchQuestion(query=query, k=k, heads=heads, rules=rules)
            return [hit.id for hit in search(build, question)]

        return ask

    systems = {OURS: asking(heads, rules=True)}
    if heads is None or {*heads} != {BASELINE}:
        systems[BASELINE] = asking([BASELINE], rules=False)
    if build.rules is not None:
        systems[WITHOUT_RULES] = asking(heads, rules=False)
    return evaluate_clicks(read_log(workspace), systems, build.catalog.ids("items"), progress)


def clicked_items(log: LoggedSearches) -> list[ClickedItem]:
    """Return the clicks of a log, each with the text of its search. The position is that in the
    answer, where the log has it, and otherwise what the client said.
    """
    found = []
    for logged in log.searches:
        places = {item: logged.offset + n for n, item in enumerate(logged.shown, 1)}
        for item, position in log.clicks[logged.id].items():
            place = places.get(item, max(position, 1))
            found.append(ClickedItem(logged.query, item, place, logged.has_options))
    return found


def _judged(clicks: Sequence[ClickedItem], bias: PositionBias) -> list[JudgedItem]:
    """Return each query and item once, with its clicks and the sum of their weights."""
    spellings: dict[str, str] = {}
    n_clicks: Counter[tuple[str, str]] = Counter()
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for click in clicks:
        query = spellings.setdefault(folded(click.query), click.query)
        n_clicks[query, click.item] += 1
        weights[query, click.item] += bias.weight(click.position)
    return [JudgedItem(*pair, n, weights[pair]) for pair, n in n_clicks.items()]


def _figures(
    system: Search, judged: Sequence[JudgedItem], name: str, progress: Progress | None
) -> dict[str, np.ndarray]:
    """Return the value of each metric for each query and item, (n,). Each query is asked once."""
    queries = list(dict.fromkeys(one.query for one in judged))
    rankings = {}
    for done, query in enumerate(queries, 1):
        rankings[query] = [id_text(id_) for id_ in system(query, DEPTH)]
        if progress is not None:
            progress(f"asking {name}", done, len(queries))
    ranked = [rankings[one.query] for one in judged]
    return figures_of(ranked, [{one.item: 1} for one in judged])


def _means(figures: Mapping[str, np.ndarray], weights: np.ndarray) -> dict[str, float]:
    return {name: float(np.average(of, weights=weights)) for name, of in figures.items()}


def _intervals(
    figures: Mapping[str, np.ndarray], judged: Sequence[JudgedItem]
) -> dict[str, tuple[float, float]]:
    """Return the 95% interval of each metric, bootstrapped over queries: clicks of one query depend
    on one another.
    """
    rows: dict[str, int] = defaultdict(lambda: len(rows))
    row_of = np.array([rows[one.query] for one in judged])
    weights = np.array([one.weight for one in judged])
    sums = np.zeros((len(rows), len(figures)))
    np.add.at(sums, row_of, np.column_stack([*figures.values()]) * weights[:, None])
    samples = resampled_means(sums, np.bincount(row_of, weights))
    return {name: interval(of) for name, of in zip(figures, samples.T, strict=True)}


def _notes(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences about clicks that are left out, or are asked otherwise than then."""
    notes = []
    if facts["clicks_on_other_items"]:
        n = Count(facts["clicks_on_other_items"])
        notes.append(f"{n} {n:click|clicks} on items that are not in the catalog any more left out")
    if facts["clicks_with_options"]:
        n = Count(facts["clicks_with_options"])
        notes.append(
            f"{n} {n:click was|clicks were} in answers with a filter, a user or another order; "
            "here the words are asked alone"
        )
    if facts["clicks"] < FEW_CLICKS:
        n = Count(facts["clicks"])
        notes.append(f"{n} {n:click is|clicks are} few: the figures may be chance")
    return notes


def limits(bias: PositionBias) -> list[str]:
    """Return what the figures assume."""
    shown = (
        "Somebody clicks only on what is shown: an item that the search of that time did not show "
        "has no clicks, so these figures favour that search over others."
    )
    if bias.theta is None:
        n = Count(bias.n_clicks)
        return [
            "Position bias is not corrected: people look at the first hits most, so the order of "
            "that time looks better than it was. A correction needs the same items at several "
            f"positions for the same query; the log has {n} {n:click|clicks} on such items, "
            f"{MIN_CLICKS} would do.",
            shown,
        ]
    theta = ", ".join(f"{x:.2f}" for x in bias.theta)
    return [
        "Position bias is corrected: a click counts 1 / how likely people are to look at its "
        f"position, at most {1 / FLOOR:.0f}. Positions 1 to {len(bias.theta)}: {theta}, estimated "
        f"from {bias.n_clicks:,} clicks on {bias.n_pairs:,} pairs of a query and an item that were "
        "shown at several positions.",
        "This assumes that a click depends on the position and on the item alone, and that an item "
        "was as right for its query at one position as at the other.",
        shown,
    ]

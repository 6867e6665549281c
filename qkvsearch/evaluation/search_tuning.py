"""Tune searches: look for settings that find more right items than those in use."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.validation import random_seed
from qkvsearch.errors import Count, listed_names
from qkvsearch.evaluation.made_queries.halves import Half
from qkvsearch.evaluation.metrics import interval, ndcg, reciprocal_rank, resampled_means
from qkvsearch.evaluation.out_of_time import OutOfTimeError
from qkvsearch.evaluation.search_parts import COLUMNS, PARTS, Parts
from qkvsearch.evaluation.tuning_queries import (
    JUDGED,
    TuningQueries,
    TuningQuery,
    half_of_query,
    tuning_queries,
)
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.learn.tuned_search import MadeKeys, encoded_columns
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.search import search
from qkvsearch.tables.judgements import Judgements, Queries, check_queries
from qkvsearch.text.text_encoder import EncodedItems

# How many hits count.
K = 10
# Fewer queries in either half tell too little.
MIN_QUERIES = 20
# The search goes through all parts at most so often.
MAX_ROUNDS = 3
# About so many settings are tried, the held-out half included: where time is limited, each asks as
# many queries as fit.
EXPECTED_TRIALS = 30
# So many queries are asked first, to load the models, and then so many to tell how long one takes.
N_LOADING, N_TIMED = 5, 15
# The share of the time that is left in which columns are encoded, or else not tried.
COLUMNS_SHARE = 0.4
# The judged half, which is asked at the end, and the build take longer than they should.
RESERVE_FACTOR = 1.5
# A step is taken if it is better by more than so many standard errors.
MIN_ERRORS = 1.0
# Kinds of queries with a higher figure set nothing. Their items are found already. The few that are
# not are too odd to say what suits other queries.
MOST_FOUND = 0.95
# Changes of fewer held-out items tell too little. Even if settings made no difference, five changes
# would all be for the better, or all for the worse, in one of 16 cases.
MIN_CHANGED = 6


@dataclass(frozen=True)
class SearchTrial:
    """One evaluation of settings on the half that they are found on."""

    # 0 for the settings in use.
    number: int
    # The part that was changed; empty for the settings in use.
    part: str
    settings: dict[str, Any]
    # Over the queries that tell about the part: the metric, and how much more that is than before.
    figure: float
    gain: float
    # Of the queries asked.
    queries: int


@dataclass(frozen=True)
class SearchTuning:
    """The result of tuning searches."""

    metric: str
    # The best settings, empty for the default ones, and those in use before.
    settings: dict[str, Any]
    in_use: dict[str, Any]
    # The metric on the half that settings were found on, and on the other one.
    found_on: dict[str, float]
    held_out: dict[str, float]
    # Tuned − in use on the held-out half, with its 95% interval.
    difference: float
    interval: tuple[float, float]
    # By kind, the number of held-out queries, and the figures of both settings.
    kinds: dict[str, dict[str, Any]]
    # The same of kinds that do not tell about what was changed, which must not be worse either.
    other_kinds: dict[str, dict[str, Any]]
    # Kinds of queries that the tuned settings are worse for, by more than chance.
    worse: list[str]
    # How many queries the halves have, and how many of these were asked in the time.
    queries: int
    asked: int
    # For how many held-out items the queries' hits differ in the metric.
    changed: int
    # Kinds of queries that the settings in use find already, which tell nothing.
    found_already: list[str]
    # What was not tried, or found and not judged, and why.
    left_out: list[str]
    out_of_time: bool = False
    # How many queries belong to neither half: they are about items of both.
    in_neither: int = 0
    trials: list[SearchTrial] = field(default_factory=list, repr=False)
    # The best settings as a build keeps them: `settings` has the owner's names of columns.
    found: SearchSettings = field(default_factory=SearchSettings, repr=False)
    # The keys with the tuned weights of columns; None where these are the ones in use.
    keys: MadeKeys | None = field(default=None, repr=False)

    @property
    def worthwhile(self) -> bool:
        """Whether the tuned settings are better than those in use by more than chance, and worse
        for no kind of query.
        """
        is_certain = self.interval[0] > 0 and self.changed >= MIN_CHANGED
        return self.settings != self.in_use and is_certain and not self.worse

    @property
    def notes(self) -> list[str]:
        """Sentences for people about limits of the result."""
        notes = [f"Left out: {reason}." for reason in self.left_out]
        if self.found_already:
            kinds = listed_names([kind.replace("_", " ") for kind in self.found_already])
            notes.append(
                f"Found already, so of no use to tune by: {kinds} ({self.metric.upper()} above "
                f"{MOST_FOUND:g})."
            )
        if self.out_of_time:
            notes.append("The time was up before all settings were tried: `minutes` gives it more.")
        if self.in_neither:
            about = "{n} {n:query is|queries are} about items of both halves".format(
                n=Count(self.in_neither)
            )
            notes.append(f"{about}, so in neither: what was found by an item never judges itself.")
        if 0 < self.asked < self.queries:
            notes.append(
                f"A sample: settings are judged by {self.asked:,} of {self.queries:,} queries, so "
                "that many can be tried in the time."
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "metric": self.metric,
            "settings": self.settings,
            "in_use": self.in_use,
            "found_on": self.found_on,
            "held_out": self.held_out,
            "difference": self.difference,
            "interval": list(self.interval),
            "worthwhile": self.worthwhile,
            "kinds": self.kinds,
            "other_kinds": self.other_kinds,
            "worse": self.worse,
            "changed": self.changed,
            "found_already": self.found_already,
            "queries": self.queries,
            "asked": self.asked,
            "in_neither": self.in_neither,
            "left_out": self.left_out,
            "out_of_time": self.out_of_time,
            "trials": [asdict(trial) for trial in self.trials],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row for each kind of queries, and one for all of them."""
        n_held_out = sum(kind["queries"] for kind in self.kinds.values())
        over_all = {"queries": n_held_out, **self.held_out, "difference": self.difference}
        rows = {**self.kinds, "all": {**over_all, "interval": list(self.interval)}}
        return [{"kind": name, **row} for name, row in rows.items()]


def tune_search(
    build: LoadedBuild,
    judged: tuple[Queries, Judgements] | None = None,
    *,
    minutes: float | None = None,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> SearchTuning:
    """Search for settings by the queries that a catalog makes of itself, and by `judged` ones.

    The metric is MRR@10, or with judged queries nDCG@10. Other arguments are as in
    `tune_by_queries`. minutes: the time limit, in which the queries are made, too. Raises
    `DataError` where a judgement names a query that does not exist.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    seed = random_seed(random_state)
    if judged is not None:
        check_queries(judged[1], judged[0])
    (progress or silent)("making queries", 0, 1)
    asked = tuning_queries(build, seed, judged)
    return tune_by_queries(
        build,
        asked,
        metric="mrr@10" if judged is None else "ndcg@10",
        deadline=deadline,
        seed=seed,
        progress=progress,
    )


def tune_by_queries(
    build: LoadedBuild,
    asked: TuningQueries,
    *,
    metric: str = "mrr@10",
    deadline: float = math.inf,
    seed: int = 0,
    progress: Progress | None = None,
) -> SearchTuning:
    """Search for settings by steps from those in use, part by part.

    Half of the queries of each kind is held out. A step changes one weight, and is judged by the
    other half: by the kinds of queries that tell about its part. The best step of a part is taken
    if it is better by more than its standard error. When no part has such a step, what was found
    is compared with the settings in use on the held-out half, once, by the kinds that tell about
    everything that was changed. The other kinds must not be worse by it. The queries are asked as
    `search` asks them.

    metric: "mrr@10" or "ndcg@10". deadline: by `time.monotonic`. Without it the result depends on
    `seed` alone.
    """
    carried = asked.carried
    queries = [query for query in asked.queries if carried.get(query.kind)]
    found_on, held_out = _halves(build, queries, np.random.default_rng(seed))
    n_queries = len(found_on) + len(held_out)
    in_neither = len(queries) - n_queries
    if min(len(found_on), len(held_out)) < MIN_QUERIES:
        return _too_few(metric, build, n_queries, in_neither)
    asking = Asking(build, metric, deadline, progress or silent)
    n_each = asking.affordable(found_on)
    found_on, held_out = found_on[:n_each], held_out[:n_each]
    steps = _Steps(asking, found_on, carried, deadline)
    steps.leave_out_found()
    best = steps.best()
    return _judged(steps, best, held_out, seed, n_queries, in_neither)


def _halves(
    build: LoadedBuild, queries: Sequence[TuningQuery], rng: np.random.Generator
) -> tuple[list[TuningQuery], list[TuningQuery]]:
    """Return two halves of the queries, each with the kinds in turn, in random order within them.

    Made queries are split as in `evaluate search`. Those of neither half are left out.
    """
    found_on: dict[str, list[TuningQuery]] = {}
    held_out: dict[str, list[TuningQuery]] = {}
    for number in rng.permutation(len(queries)).tolist():
        query = queries[number]
        half = half_of_query(build, query)
        if half is Half.FOUND_ON:
            found_on.setdefault(query.kind, []).append(query)
        elif half is Half.HELD_OUT:
            held_out.setdefault(query.kind, []).append(query)
    return _in_turns(found_on), _in_turns(held_out)


def _in_turns(by_kind: Mapping[str, list[TuningQuery]]) -> list[TuningQuery]:
    turns = zip_longest(*(by_kind[kind] for kind in sorted(by_kind)))
    return [query for turn in turns for query in turn if query is not None]


@dataclass
class Asking:
    """Queries asked with any settings."""

    build: LoadedBuild
    metric: str
    deadline: float
    progress: Progress
    # The embeddings of the text columns by head, where weights of columns are tried.
    columns: dict[str, EncodedItems] | None = None

    def affordable(self, queries: Sequence[TuningQuery]) -> int:
        """Return how many queries of each half there is time for. The first ones are asked."""
        for query in queries[:N_LOADING]:
            self._figure(self.build, query)
        left, start = self.deadline - time.monotonic(), time.monotonic()
        timed = queries[N_LOADING : N_LOADING + N_TIMED]
        for query in timed:
            self._figure(self.build, query)
        seconds = (time.monotonic() - start) / len(timed)
        if math.isinf(left):
            return len(queries)
        return max(MIN_QUERIES, int(left / (EXPECTED_TRIALS * seconds)))

    def figures(
        self, settings: SearchSettings, queries: Sequence[TuningQuery], until: float = math.inf
    ) -> np.ndarray:
        """Return the metric of each query, (n,). Raise `OutOfTimeError` at this time."""
        build = self.build.with_search(settings, self._search_keys(settings))
        figures = np.zeros(len(queries))
        for i, query in enumerate(queries):
            if time.monotonic() >= until:
                raise OutOfTimeError
            figures[i] = self._figure(build, query)
        return figures

    def _figure(self, build: LoadedBuild, query: TuningQuery) -> float:
        # One more, since a ranking may be read without an item.
        question = SearchQuestion(query=query.text, k=K + 1, rules=False)
        ranked = search(build.for_question(), question).positions.tolist()
        ranked = [row for row in ranked if row != query.made_of]
        measure = ndcg if self.metric.startswith("ndcg") else reciprocal_rank
        return measure(ranked, query.answers, K)

    def _search_keys(self, settings: SearchSettings) -> dict[str, DenseKeys]:
        keys = self.keys(settings)
        return {head: DenseKeys(vectors) for head, vectors in keys.items()}

    def keys(self, settings: SearchSettings) -> dict[str, np.ndarray]:
        """Return the keys with the weights of columns in `settings`, if there are any. Where
        columns are not encoded, there are the stored ones.
        """
        if settings.columns is None or self.columns is None:
            return {}
        names = self.build.snapshot.facts["text_columns"]
        weights = [settings.columns[name] for name in names]
        return {head: items.keys(weights) for head, items in self.columns.items()}

    def shown(self, settings: SearchSettings) -> dict[str, Any]:
        """Return settings with the owner's names of columns."""
        return settings.shown(self.build.catalog.catalog_columns.name_of)

    def encode_columns(self, until: float) -> None:
        """Encode the text columns. Raise `OutOfTimeError` at this time."""

        def report(stage: str, done: int, total: int) -> None:
            if time.monotonic() >= until:
                raise OutOfTimeError
            self.progress(stage, done, total)

        report("encoding columns", 0, 1)
        self.columns = encoded_columns(self.build.models, report)


@dataclass
class _Steps:
    """Steps from the settings in use, each to better ones."""

    asking: Asking
    queries: Sequence[TuningQuery]
    carried: Mapping[str, frozenset[str]]
    deadline: float
    trials: list[SearchTrial] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    out_of_time: bool = False
    # The kinds of queries that the settings in use find already.
    found: list[str] = field(default_factory=list)
    # The metric of each query by settings, (n,); NaN for one that was not asked with them.
    known: dict[str, np.ndarray] = field(default_factory=dict)
    until: float = math.inf

    def __post_init__(self) -> None:
        models = self.asking.build.models
        self.parts = Parts.of(models)
        self.in_use = self.current = models.search_settings
        start = time.monotonic()
        self._note("", self.current, np.arange(len(self.queries)))
        # The held-out half is asked twice, and a build is written.
        self.until = self.deadline - RESERVE_FACTOR * 2 * (time.monotonic() - start)

    def leave_out_found(self) -> None:
        """Leave out the kinds of made queries that the settings in use find already."""
        figures = self.known[repr(self.in_use)]
        kinds = np.array([query.kind for query in self.queries])
        means = {kind: float(figures[kinds == kind].mean()) for kind in {*kinds.tolist()}}
        self.found = sorted(
            kind for kind, mean in means.items() if mean > MOST_FOUND and kind != JUDGED
        )
        self.carried = {**self.carried, **dict.fromkeys(self.found, frozenset())}

    def best(self) -> SearchSettings:
        """Return the settings from which no step leads to better ones, or the last in the time."""
        try:
            parts = [part for part in PARTS if self._can_be_tried(part)]
            for _ in range(MAX_ROUNDS):
                before = self.current
                for part in parts:
                    self._improve(part)
                if self.current == before:
                    break
        except OutOfTimeError:
            self.out_of_time = True
        return self.current

    def found_on(self, best: SearchSettings) -> dict[str, float]:
        """Return the figures of the settings in use and of the best, by which these were found."""
        in_use, tuned = self.known[repr(self.in_use)], self.known[repr(best)]
        told = changed(self.in_use, best)
        is_told = [told <= self.carried[query.kind] for query in self.queries]
        rows = np.flatnonzero(is_told & ~np.isnan(tuned))
        weights = kind_weights([self.queries[row] for row in rows.tolist()])
        if not len(rows):
            return {}
        figures = {"in_use": in_use[rows], "tuned": tuned[rows]}
        return {name: mean_and_error(values, weights)[0] for name, values in figures.items()}

    def _can_be_tried(self, part: str) -> bool:
        """Return whether there are settings of a part to try, and queries that tell about it."""
        if next(self.parts.tried(part, self.current), None) is None:
            return False
        if len(self._rows(part)) < MIN_QUERIES:
            self.left_out.append(f"{NAMES[part]}, of which these queries tell too little")
            return False
        return part != COLUMNS or self._has_columns()

    def _has_columns(self) -> bool:
        """Return whether weights of columns can be tried, with their texts encoded."""
        why_not = self.parts.why_not_columns()
        if why_not is None:
            start = time.monotonic()
            try:
                self.asking.encode_columns(start + COLUMNS_SHARE * (self.until - start))
            except OutOfTimeError:
                why_not = "to encode their texts takes longer than the time allows"
        if why_not is not None:
            self.left_out.append(f"{NAMES[COLUMNS]}: {why_not}")
        return why_not is None

    def _rows(self, part: str) -> np.ndarray:
        """Return the numbers of the queries that tell about a part and all that is changed, (n,).

        What is found is judged by such queries on the held-out half.
        """
        told = {part, *changed(self.in_use, self.current)}
        return np.flatnonzero([told <= self.carried[query.kind] for query in self.queries])

    def _improve(self, part: str) -> None:
        """Take the best step of a part, if it is better by more than its standard error."""
        rows = self._rows(part)
        if len(rows) < MIN_QUERIES:
            return
        best, best_gain = self.current, 0.0
        for settings in self.parts.tried(part, self.current):
            gain, error = self._note(part, settings, rows)
            if gain > max(best_gain, MIN_ERRORS * error):
                best, best_gain = settings, gain
        self.current = best

    def _figures(self, settings: SearchSettings, rows: np.ndarray) -> np.ndarray:
        """Return the metric of the queries in these rows, (n,). Each is asked once."""
        known = self.known.setdefault(repr(settings), np.full(len(self.queries), np.nan))
        missing = rows[np.isnan(known[rows])]
        queries = [self.queries[row] for row in missing.tolist()]
        known[missing] = self.asking.figures(settings, queries, self.until)
        return known[rows]

    def _note(self, part: str, settings: SearchSettings, rows: np.ndarray) -> tuple[float, float]:
        """Add a trial, and tell about it. Return how much better it is than the current settings,
        and the standard error of that.
        """
        weights = kind_weights([self.queries[row] for row in rows.tolist()])
        figures, before = self._figures(settings, rows), self._figures(self.current, rows)
        figure, _ = mean_and_error(figures, weights)
        gain, error = mean_and_error(figures - before, weights)
        number = len(self.trials)
        shown = self.asking.shown(settings)
        self.trials.append(SearchTrial(number, part, shown, figure, gain, len(rows)))
        self.asking.progress("trying settings", number + 1, max(EXPECTED_TRIALS, number + 1))
        return gain, error


NAMES = {
    "families": "words of a family",
    "second_pass": "the second pass",
    "heads": "weights of heads",
    "columns": "weights of columns",
}


def changed(before: SearchSettings, after: SearchSettings) -> set[str]:
    """Return the parts that differ.

    >>> changed(SearchSettings(), SearchSettings(families=0.5))
    {'families'}
    """
    return {part for part in PARTS if getattr(before, part) != getattr(after, part)}


def kind_weights(queries: Sequence[TuningQuery]) -> np.ndarray:
    """Return the weight of each query, (n,): all kinds count alike, and so do queries of a kind."""
    kinds = [query.kind for query in queries]
    sizes = {kind: kinds.count(kind) for kind in set(kinds)}
    return np.array([1 / sizes[kind] for kind in kinds])


def mean_and_error(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the weighted mean of values (n,), and its standard error.

    >>> mean_and_error(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    (0.5, 0.3535533905932738)
    """
    shares = weights / weights.sum()
    mean = float(shares @ values)
    return mean, math.sqrt(float(np.square(shares) @ np.square(values - mean)))


# --- the held-out half ---


def _judged(
    steps: _Steps,
    best: SearchSettings,
    held_out: Sequence[TuningQuery],
    seed: int,
    n_queries: int,
    in_neither: int,
) -> SearchTuning:
    """Compare the best settings with those in use on the held-out half.

    Where too few of its queries tell about what was changed, those in use are the best.
    """
    asking, in_use = steps.asking, steps.in_use
    told = changed(in_use, best)
    queries = [query for query in held_out if told <= steps.carried[query.kind]]
    others = [query for query in held_out if not told <= steps.carried[query.kind]]
    left_out = list(steps.left_out)
    if len(queries) < MIN_QUERIES:
        parts = listed_names([NAMES[part] for part in PARTS if part in told])
        tell = "{n} held-out {n:query tells|queries tell}".format(n=Count(len(queries)))
        left_out.append(f"better {parts} were found, but only {tell} about them")
        best, queries, others = in_use, list(held_out), []
    asking.progress("judging by the held-out half", 0, 2)
    before = asking.figures(in_use, queries)
    asking.progress("judging by the held-out half", 1, 2)
    after = asking.figures(best, queries) if best != in_use else before
    asking.progress("judging by the held-out half", 2, 2)
    kinds = _by_kind(before, after, queries, seed)
    other_kinds: dict[str, dict[str, Any]] = {}
    if best != in_use:
        before_others, after_others = asking.figures(in_use, others), asking.figures(best, others)
        other_kinds = _by_kind(before_others, after_others, others, seed)
    over_all = _compared(before, after, queries, seed)
    keys = None
    if best.columns is not None and best.columns != in_use.columns:
        keys = MadeKeys(asking.build.snapshot.name, asking.keys(best))
    low, high = over_all["interval"]
    return SearchTuning(
        metric=asking.metric,
        settings=asking.shown(best),
        in_use=asking.shown(in_use),
        found_on=steps.found_on(best),
        held_out={"in_use": over_all["in_use"], "tuned": over_all["tuned"]},
        difference=over_all["difference"],
        interval=(low, high),
        kinds=kinds,
        other_kinds=other_kinds,
        worse=[kind for kind, row in {**kinds, **other_kinds}.items() if row["interval"][1] < 0],
        queries=n_queries,
        in_neither=in_neither,
        asked=len(steps.queries) + len(held_out),
        changed=len({queries[row].item for row in np.flatnonzero(before != after)}),
        found_already=steps.found,
        left_out=left_out,
        out_of_time=steps.out_of_time,
        trials=steps.trials,
        found=best,
        keys=keys,
    )


def _by_kind(
    before: np.ndarray, after: np.ndarray, queries: Sequence[TuningQuery], seed: int
) -> dict[str, dict[str, Any]]:
    """Return the number of queries of each kind, and `_compared` of them."""
    kinds = {}
    for kind in sorted({query.kind for query in queries}):
        rows = [row for row, query in enumerate(queries) if query.kind == kind]
        of_kind = [queries[row] for row in rows]
        kinds[kind] = {"queries": len(rows), **_compared(before[rows], after[rows], of_kind, seed)}
    return kinds


def _compared(
    before: np.ndarray, after: np.ndarray, queries: Sequence[TuningQuery], seed: int
) -> dict[str, Any]:
    """Return the figures of two settings, and the difference with its interval. The metric of the
    same queries (n,).
    """
    weights = kind_weights(queries)
    # Several queries may ask for one item, and what changes for one changes for the others. So
    # items are resampled, each with all of its queries.
    _, items = np.unique([query.item for query in queries], return_inverse=True)
    gains = np.bincount(items, weights=(after - before) * weights)
    samples = resampled_means(gains[:, None], np.bincount(items, weights), random_state=seed)
    low, high = interval(samples)
    difference = float(gains.sum() / weights.sum())
    return {
        "in_use": mean_and_error(before, weights)[0],
        "tuned": mean_and_error(after, weights)[0],
        "difference": difference,
        # By rounding alone, equal values may have another mean.
        "interval": [min(low, difference), max(high, difference)],
    }


def _too_few(metric: str, build: LoadedBuild, n_queries: int, in_neither: int) -> SearchTuning:
    """Return the result where there are too few queries to find anything."""
    if n_queries:
        tell = "only {n} {n:query tells|queries tell}".format(n=Count(n_queries))
        few = f"{tell} which are better, and each half needs {MIN_QUERIES}"
    else:
        few = "no query that the catalog makes of itself tells which are better"
    few = f"all settings, because {few}: give judged queries (`queries` and `qrels`)"
    in_use = build.models.search_settings
    shown = in_use.shown(build.catalog.catalog_columns.name_of)
    return SearchTuning(
        metric=metric,
        settings=shown,
        in_use=shown,
        found_on={},
        held_out={},
        difference=0.0,
        interval=(0.0, 0.0),
        kinds={},
        other_kinds={},
        worse=[],
        queries=n_queries,
        asked=0,
        changed=0,
        found_already=[],
        left_out=[few],
        in_neither=in_neither,
        found=in_use,
    )

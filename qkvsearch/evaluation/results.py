"""Results of an evaluation: metrics, those of baselines, and the counts behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from qkvsearch.errors import quantity
from qkvsearch.evaluation.groups import GradeGroup, HistoryGroup, PopularityGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qkvsearch.evaluation.pictures.panel import Panel

# Name of a metric, such as "ndcg@10", to its value.
Metrics = dict[str, float]

OURS = "qkvsearch"
LOWER_IS_BETTER = frozenset({"rmse", "mae"})
# Higher values of these are not better in themselves: items that nobody watches are novel too.
NEITHER_IS_BETTER = frozenset({"coverage", "novelty", "diversity"})
# What the lines at the bars of a picture are.
WHISKERS = "Whiskers: 95% intervals."


@dataclass(frozen=True)
class Difference:
    """Our metric − the best baseline's, for the same users, and its 95% interval."""

    baseline: str
    difference: float
    low: float
    high: float

    @property
    def could_be_chance(self) -> bool:
        """Whether the interval includes 0."""
        return self.low <= 0 <= self.high

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        interval = [fields.pop("low"), fields.pop("high")]
        return {**fields, "interval": interval, "could_be_chance": self.could_be_chance}


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    >>> Evaluation("random", {"mrr@10": 0.5}, facts={"users": 3}).to_dict()
    {'protocol': 'random', 'metrics': {'mrr@10': 0.5}, 'baselines': {}, 'users': 3}
    """

    protocol: str
    # Ours.
    metrics: Metrics
    # The metrics of other systems under the same protocol, by name.
    baselines: dict[str, Metrics] = field(default_factory=dict)
    # Counts of users or queries, and what was left out.
    facts: dict[str, Any] = field(default_factory=dict)
    # The 95% confidence interval of each metric, for other users like these.
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Between each metric and the best baseline's.
    differences: dict[str, Difference] = field(default_factory=dict)
    # Sentences for people about what was left out; not in `to_dict`, since the facts contain it.
    notes: Sequence[str] = ()
    # The metrics of each of our heads alone, if there are several.
    heads: dict[str, Metrics] = field(default_factory=dict)
    # Of recommendations: by the length of the user's history, and by the popularity of the item.
    by_history: Sequence[HistoryGroup] = ()
    by_popularity: Sequence[PopularityGroup] = ()
    # Of a search: by the match grade of the hits.
    match_grades: dict[str, GradeGroup] = field(default_factory=dict)

    # What the metrics of a search are means of, as `facts` call it.
    averaged: ClassVar[str] = "queries"

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON, without intervals, differences and groups if there are
        none.
        """
        result: dict[str, Any] = {"protocol": self.protocol, "metrics": self.metrics}
        if self.intervals:
            result["intervals"] = {name: list(ends) for name, ends in self.intervals.items()}
        result["baselines"] = self.baselines
        if self.differences:
            result["differences"] = {name: d.to_dict() for name, d in self.differences.items()}
        if self.heads:
            result["heads"] = self.heads
        for name in ("by_history", "by_popularity"):
            if groups := getattr(self, name):
                result[name] = [group.to_dict() for group in groups]
        if self.match_grades:
            result["match_grades"] = {
                grade: group.to_dict() for grade, group in self.match_grades.items()
            }
        return {**result, **self.facts}

    def plot(self) -> Figure:
        """Return a figure of matplotlib, with a panel for each aspect, which a notebook shows.

        Save it by `figure.savefig("quality.png")`. Raises `QkvError` if matplotlib is missing,
        which the extra `plot` installs.
        """
        from qkvsearch.evaluation.pictures.figure import draw

        return draw(self.panels(), self.headline())

    def panels(self) -> list[Panel]:
        """Return what `plot` draws, as data."""
        from qkvsearch.evaluation.pictures.recommend_panels import recommend_panels
        from qkvsearch.evaluation.pictures.search_panels import search_panels

        panels = recommend_panels if self.by_history else search_panels
        return list(panels(self))

    @property
    def title(self) -> str:
        """What is evaluated."""
        return "Quality of recommendations" if self.by_history else "Quality of search"

    def sentences(self) -> list[str]:
        """Return which system is ahead, and what to try where it is not ours."""
        first = next(iter(self.metrics))
        return [
            sentence
            for sentence in (self.verdict(first), self.advice(first), self.verdict("rmse"))
            if sentence
        ]

    def examples(self) -> Sequence[dict[str, Any]]:
        """Return single cases to look at, as rows of a table; none here."""
        return ()

    def headline(self) -> str:
        """Return what was evaluated, in one line."""
        if self.by_history:
            users = quantity(self.facts["users"], "user")
            return f"Recommendations to {users}, protocol {self.protocol}. {WHISKERS}"
        return f"Search by {self.protocol}. {WHISKERS}"

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row for each system, ours first."""
        return [
            {"protocol": self.protocol, "system": system, **metrics}
            for system, metrics in self.systems().items()
        ]

    def systems(self) -> dict[str, Metrics]:
        """Return the metrics by system, ours first, then those of its heads."""
        return {OURS: self.metrics, **self.heads, **self.baselines}

    def best(self, name: str) -> str | None:
        """Return the system with the best value of a metric; None if no direction is better.

        >>> Evaluation("random", {"rmse": 0.9}, {"biases": {"rmse": 0.8}}).best("rmse")
        'biases'
        """
        if name.partition("@")[0] in NEITHER_IS_BETTER:
            return None
        values = {
            system: metrics[name] for system, metrics in self.systems().items() if name in metrics
        }
        return best_of(name, values)

    def verdict(self, name: str) -> str:
        """Return one sentence on which system is ahead; empty without a baseline."""
        if name not in self.differences:
            return ""
        gap = self.differences[name]
        if gap.difference == gap.low == gap.high == 0:
            return f"{name}: {OURS} and {gap.baseline} are equal."
        ours_is_ahead = (gap.difference < 0) == (name in LOWER_IS_BETTER)
        first, second = (OURS, gap.baseline) if ours_is_ahead else (gap.baseline, OURS)
        sign = -1 if gap.difference < 0 else 1
        low, high = sorted((sign * gap.low, sign * gap.high))
        chance = ", which could be chance" if gap.could_be_chance else ""
        return (
            f"{name}: {first} is ahead of {second} by {abs(gap.difference):.4f}{chance} "
            f"(95% interval {low:.4f} to {high:.4f})."
        )

    def advice(self, name: str) -> str:
        """Return what to try where a baseline has more of a metric; empty where none has."""
        if name not in self.differences or self.differences[name].difference >= 0:
            return ""
        ideas = ["qkvsearch tune searches settings of both heads for this log"]
        for head, metrics in self.heads.items():
            if metrics[name] > self.metrics[name]:
                ideas.append(f"recommend --heads {head} reaches {metrics[name]:.4f} alone")
        if self.differences[name].baseline == "popularity":
            ideas.append("build --plan shows whether ratings, weights and events are read right")
        return f"To try: {'; '.join(ideas)}."


def best_of(name: str, values: dict[str, float]) -> str:
    """Return the system with the best value of a metric; the first of equal ones."""
    best = min if name in LOWER_IS_BETTER else max
    return best(values, key=lambda system: values[system])

"""What an evaluation found: figures, those of simpler methods beside them, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# Name of a figure, such as "ndcg@10", to its value.
Metrics = dict[str, float]

OURS = "qkvsearch"
LOWER_IS_BETTER = frozenset({"rmse", "mae"})
# More of these is not better in itself: what is never watched is novel too.
NEITHER_IS_BETTER = frozenset({"coverage", "novelty", "diversity"})


@dataclass(frozen=True)
class Difference:
    """Our figure − that of the best baseline, of the same users, and its 95% interval."""

    baseline: str
    difference: float
    low: float
    high: float

    @property
    def could_be_chance(self) -> bool:
        """True where the interval includes 0."""
        return self.low <= 0 <= self.high

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        low, high = found.pop("low"), found.pop("high")
        return {**found, "interval": [low, high], "could_be_chance": self.could_be_chance}


@dataclass(frozen=True)
class Evaluation:
    """`metrics` of what was judged, `baselines` of others by name under the same `protocol`, and
    the `facts` that the figures rest on: how many users or queries, and what was left out.

    `intervals`: within which each figure lies with 95% confidence, for other users like these.
    `differences`: for each figure, how far ours is from the best baseline's. `notes`: sentences on
    what the figures leave out, for people; not in `to_dict`, whose facts have all of it.

    >>> Evaluation("random", {"mrr@10": 0.5}, facts={"users": 3}).to_dict()
    {'protocol': 'random', 'metrics': {'mrr@10': 0.5}, 'baselines': {}, 'users': 3}
    """

    protocol: str
    metrics: Metrics
    baselines: dict[str, Metrics] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    differences: dict[str, Difference] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """One object, ready for JSON; without intervals and differences where there are none."""
        judged: dict[str, Any] = {"protocol": self.protocol, "metrics": self.metrics}
        if self.intervals:
            judged["intervals"] = {name: list(ends) for name, ends in self.intervals.items()}
        judged["baselines"] = self.baselines
        if self.differences:
            judged["differences"] = {name: d.to_dict() for name, d in self.differences.items()}
        return {**judged, **self.facts}

    def to_records(self) -> list[dict[str, Any]]:
        """One row a system, ours first."""
        return [
            {"protocol": self.protocol, "system": system, **metrics}
            for system, metrics in self.systems().items()
        ]

    def systems(self) -> dict[str, Metrics]:
        """Figures by system, ours first."""
        return {OURS: self.metrics, **self.baselines}

    def best(self, name: str) -> str | None:
        """The system with the best figure of this name; None where neither more nor less is better.

        >>> Evaluation("random", {"rmse": 0.9}, {"biases": {"rmse": 0.8}}).best("rmse")
        'biases'
        """
        if name.partition("@")[0] in NEITHER_IS_BETTER:
            return None
        return best_of(name, {s: m[name] for s, m in self.systems().items() if name in m})

    def verdict(self, name: str) -> str:
        """One sentence on who is ahead; empty where nobody is beside us."""
        if name not in self.differences:
            return ""
        found = self.differences[name]
        ours_is_ahead = (found.difference < 0) == (name in LOWER_IS_BETTER)
        first, second = (OURS, found.baseline) if ours_is_ahead else (found.baseline, OURS)
        sign = -1 if found.difference < 0 else 1
        low, high = sorted((sign * found.low, sign * found.high))
        chance = ", which could be chance" if found.could_be_chance else ""
        return (
            f"{name}: {first} is ahead of {second} by {abs(found.difference):.4f}{chance} "
            f"(95% interval {low:.4f} to {high:.4f})."
        )


def best_of(name: str, figures: dict[str, float]) -> str:
    """Who has the best figure of this name; of equal ones the first."""
    return (min if name in LOWER_IS_BETTER else max)(figures, key=lambda who: figures[who])

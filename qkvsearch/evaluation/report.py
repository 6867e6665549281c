"""What an evaluation found: figures, those of simpler methods beside them, and what was counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# Name of a figure, such as "ndcg@10", to its value.
Metrics = dict[str, float]
# What is being done, how far, of how much.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Evaluation:
    """`metrics` of what was judged, `baselines` of others by name under the same `protocol`, and
    the `facts` that the figures rest on: how many users or queries, and what was left out.

    >>> Evaluation("random", {"mrr@10": 0.5}, facts={"users": 3}).to_dict()
    {'protocol': 'random', 'metrics': {'mrr@10': 0.5}, 'baselines': {}, 'users': 3}
    """

    protocol: str
    metrics: Metrics
    baselines: dict[str, Metrics] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        return {
            "protocol": self.protocol,
            "metrics": self.metrics,
            "baselines": self.baselines,
            **self.facts,
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One row a system, ours first."""
        systems = {"qkvsearch": self.metrics, **self.baselines}
        return [
            {"protocol": self.protocol, "system": system, **metrics}
            for system, metrics in systems.items()
        ]

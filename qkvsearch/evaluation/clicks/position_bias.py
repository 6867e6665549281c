"""How likely people are to look at each position: estimated from a log, where it allows that.

The model: somebody clicks on a hit if they look at its position and the item answers their query,
P(click) = θ(position) · r(query, item). Where the same item was shown for the same query at several
positions, only θ differs between them. So the clicks at these positions tell θ apart from r, as
"intervention harvesting" does (Agarwal, Zaitsev, Wang, Li, Najork and Joachims 2019, "Estimating
position bias without intrusive interventions").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.evaluation.clicks.counted import folded
from qkvsearch.store.logged_searches import LoggedSearch, LoggedSearches
from qkvsearch.store.search_log import N_SHOWN

# Fewer clicks on items that were shown at several positions estimate nothing.
MIN_CLICKS = 100
# No click counts more than 1 / FLOOR: a few clicks far down would decide everything.
FLOOR = 0.1
MAX_ROUNDS, TOLERANCE = 10_000, 1e-7


class PositionBias(NamedTuple):
    """θ of the positions from 1 on, relative to the first; None where the log does not allow it."""

    theta: np.ndarray | None
    # Pairs of a query and an item that were shown at several positions, and their clicks.
    n_pairs: int
    n_clicks: int

    def weight(self, position: int) -> float:
        """Return how much a click at a position counts: 1 / θ, at most 1 / `FLOOR`. A position that
        has no estimate counts as the last one before it that has one.
        """
        if self.theta is None:
            return 1.0
        place = min(position, len(self.theta)) - 1
        return float(1 / max(self.theta[place], FLOOR))

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "corrected": self.theta is not None,
            "theta": None if self.theta is None else [round(float(x), 4) for x in self.theta],
            "floor": FLOOR,
            "pairs": self.n_pairs,
            "clicks": self.n_clicks,
        }


def position_bias(log: LoggedSearches, searches: Sequence[LoggedSearch]) -> PositionBias:
    """Estimate how likely people are to look at each position. searches: those that count."""
    shown, clicked = _counts(log, searches)
    is_varied = (shown > 0).sum(axis=1) > 1
    shown, clicked = shown[is_varied], clicked[is_varied]
    has_clicks = clicked.sum(axis=1) > 0
    shown, clicked = shown[has_clicks], clicked[has_clicks]
    n_pairs, n_clicks = len(shown), int(clicked.sum())
    if n_clicks < MIN_CLICKS or not clicked[:, 0].sum():
        return PositionBias(None, n_pairs, n_clicks)
    theta = fitted(shown, clicked)
    return PositionBias(_filled(theta, _reachable(shown)), n_pairs, n_clicks)


def _counts(log: LoggedSearches, searches: Sequence[LoggedSearch]) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each pair of a query and an item was shown and clicked on at each position,
    both (n_pairs, N_SHOWN).
    """
    rows: dict[tuple[str, str], int] = defaultdict(lambda: len(rows))
    impressions: list[tuple[int, int, bool]] = []
    for search in searches:
        query, clicks = folded(search.query), log.clicks[search.id]
        for place, item in enumerate(search.shown[:N_SHOWN]):
            impressions.append((rows[query, item], place, item in clicks))
    shown, clicked = np.zeros((len(rows), N_SHOWN)), np.zeros((len(rows), N_SHOWN))
    if impressions:
        pairs, positions, has_click = map(np.array, zip(*impressions, strict=True))
        np.add.at(shown, (pairs, positions), 1)
        np.add.at(clicked, (pairs, positions), has_click)
    return shown, clicked


def fitted(shown: np.ndarray, clicked: np.ndarray) -> np.ndarray:
    """Return θ of each position, relative to the first, (n_positions,).

    The most likely θ and r where clicks are Poisson counts with means shown · θ · r. Each of them
    has a closed form given the other one, and they take turns:
    θ(p) = Σ clicked(·, p) / Σ shown(·, p) r and r(i) = Σ clicked(i, ·) / Σ shown(i, ·) θ.

    shown, clicked: (n_pairs, n_positions).

    >>> shown = np.full((1, 2), 100.0)
    >>> fitted(shown, np.array([[40.0, 10.0]])).round(3).tolist()
    [1.0, 0.25]
    """
    theta = np.ones(shown.shape[1])
    for _ in range(MAX_ROUNDS):
        before = theta
        relevance = clicked.sum(axis=1) / (shown @ theta)
        expected = relevance @ shown
        theta = np.divide(
            clicked.sum(axis=0), expected, out=np.zeros_like(theta), where=expected > 0
        )
        theta = theta / theta[0]
        if np.abs(theta - before).max() < TOLERANCE:
            break
    return theta


def _reachable(shown: np.ndarray) -> np.ndarray:
    """Return which positions are compared with the first one, by pairs shown at both or through
    other positions, bool (n_positions,).
    """
    is_shown = shown > 0
    reached = np.zeros(shown.shape[1], dtype=bool)
    reached[0] = True
    while True:
        has_any = is_shown[:, reached].any(axis=1)
        wider = reached | is_shown[has_any].any(axis=0)
        if (wider == reached).all():
            return reached
        reached = wider


def _filled(theta: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Return θ where each position without an estimate has that of the last one before it."""
    last_known = np.maximum.accumulate(np.where(is_known, np.arange(len(theta)), 0))
    return theta[last_known]

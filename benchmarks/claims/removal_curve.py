"""Reasons put to the test: what becomes of a hit without the items that are its reasons.

A user's first hit is scored again without the first item of the history, the first two, and so on
up to ten, in the order of reasons or in a random order; the others are ranked as before. A hit at
rank r has the gain 1 / log2(1 + r), as in NDCG. *Area* is the gain lost, on average over the ten
steps and the users, and *places* by how many ranks the hit falls after one, three and ten removals,
at most by 100. Up to 500 users of a log have 20 to 200 items, drawn with a seed. Reasons of ALS are
the addends of a solve for the whole history, and without an item that is another solve; those of
neighbours are what each removal takes off.

QKVSEARCH_DATA=data python benchmarks --only removal_curve    (two minutes)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.support.public_data import read_purchases, read_ratings
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.systems import Fused
from qkvsearch.models.preferences import COLLABORATIVE, NEIGHBOURS, Preferences

MIN_ITEMS, MAX_ITEMS, MAX_USERS = 20, 200, 500
STEPS, LOWEST = 10, 100
STEPS_SHOWN = (1, 3, 10)
USERS_AT_ONCE = 50
# What the scores of each head are multiplied by.
Heads = dict[str, float]


def rated_films() -> csr_matrix:
    users, items, ratings = read_ratings("ml-1m")
    return csr_matrix((np.ones(len(ratings), np.float32), (users, items)))


def curves(title: str, log: Callable[[], csr_matrix]) -> Iterable[Row]:
    """What each order of removals loses, and that over what a random order loses."""
    matrix = log()
    preferences = Fused().fit(matrix).preferences_
    lengths = np.diff(matrix.indptr)
    users = np.flatnonzero((lengths >= MIN_ITEMS) & (lengths <= MAX_ITEMS))
    users = np.sort(np.random.default_rng(0).permutation(users)[:MAX_USERS])
    ours, als, near = preferences.multipliers(), {COLLABORATIVE: 1.0}, {NEIGHBOURS: 1.0}
    orders: dict[str, tuple[Heads, dict[str, Heads]]] = {
        "`recommend`": (ours, {"our reasons": ours, "the reasons of ALS": als, "random": {}}),
        "neighbours alone": (near, {"their reasons": near, "random": {}}),
        "ALS alone": (als, {"its reasons": als, "random": {}}),
    }
    task = f"{title}, {len(users)} users; the first hit without up to {STEPS} items"
    for system, (heads, reasons) in orders.items():
        ranks = {name: ranks_of(preferences, matrix[users], heads, by)
                 for name, by in reasons.items()}  # fmt: skip
        areas = {name: 1 - (1 / np.log2(1 + of_order)).mean() for name, of_order in ranks.items()}
        for name, of_order in ranks.items():
            order = "in random order" if name == "random" else f"by {name}"
            row = partial(Row, task, f"{system}, {order}")
            fallen = np.minimum(of_order - 1, LOWEST).mean(axis=0)
            for step in STEPS_SHOWN:
                yield row(f"places after {step}", float(fallen[step - 1]))
            yield row("area", float(areas[name]))
            yield row("area / random", float(areas[name] / areas["random"]))


def ranks_of(
    preferences: Preferences, histories: csr_matrix, heads: Heads, by: Heads
) -> np.ndarray:
    """The rank of each user's first hit (n, STEPS) without the items that most speak for it."""
    generator = np.random.default_rng(0)
    ranks = []
    for first in range(0, histories.shape[0], USERS_AT_ONCE):
        block = histories[first : first + USERS_AT_ONCE]
        scores = scores_by(preferences, block, heads)
        scores[block.nonzero()] = -np.inf
        hits = scores.argmax(axis=1)
        shorter = []
        for history, hit in zip(block, hits.tolist(), strict=True):
            order = generator.permutation(history.nnz)
            order = order[np.argsort(-addends(preferences, history, hit, by)[order], kind="stable")]
            shorter += [without(history, order[:n]) for n in range(1, STEPS + 1)]
        scores = scores_by(preferences, vstack(shorter, "csr"), heads)
        scores = scores.reshape(len(hits), STEPS, -1)
        for of_user, history, hit in zip(scores, block, hits.tolist(), strict=True):
            others = np.delete(of_user, [*history.indices, hit], axis=1)
            own = of_user[:, [hit]]
            # Of equal scores half are before it.
            ranks.append(1 + (others > own).sum(axis=1) + (others == own).sum(axis=1) / 2)
    return np.array(ranks)


def scores_by(preferences: Preferences, histories: csr_matrix, heads: Heads) -> np.ndarray:
    return sum(factor * preferences.head_scores(name, histories) for name, factor in heads.items())


def addends(preferences: Preferences, history: csr_matrix, item: int, heads: Heads) -> np.ndarray:
    """What each item of a history (1, n_items) adds to the score of an item; no heads: nothing."""
    rows, confidences = history.indices, history.data
    total = np.zeros(len(rows))
    if COLLABORATIVE in heads:
        vectors = preferences.factors.history_vectors(rows, confidences)
        total += heads[COLLABORATIVE] * (vectors @ preferences.factors.item_embeddings[item])
    if NEIGHBOURS in heads:
        total += heads[NEIGHBOURS] * preferences.neighbours.addends(rows, item, confidences)
    return total


def without(history: csr_matrix, gone: np.ndarray) -> csr_matrix:
    """A history (1, n_items) without some of its entries."""
    stays = np.delete(np.arange(history.nnz), gone)
    parts = history.data[stays], history.indices[stays], [0, len(stays)]
    return csr_matrix(parts, shape=history.shape)


PARTS = {
    "steam": partial(curves, "Steam purchases", read_purchases),
    "ml-1m": partial(curves, "MovieLens-1M as positives", rated_films),
}

if __name__ == "__main__":
    main(__file__, PARTS)

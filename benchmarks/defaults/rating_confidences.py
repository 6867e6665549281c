"""From ratings to confidences: how the rule in `models/confidences.py` was chosen.

Holds out a fifth of each set's ratings, five times over, and trains `ImplicitALS` on the others
under each rule. NDCG@10 is for what was rated in the upper fifth of the scale; beside it stands the
share of hits that were disliked (lower half of the scale). The height squared from the middle up
was taken: it gives few disliked hits, and with nothing for a dislike, none is ever a reason.

QKVSEARCH_DATA=data python benchmarks --only rating_confidences    (a minute)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.support.public_data import data_folder
from benchmarks.support.quality import mean_ndcg, rankings
from benchmarks.support.recommenders import als
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch import Interactions
from qkvsearch.tables.sources import read_movielens

# From the height of a rating on its scale, 0 to 1, to a confidence.
RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1 for every rating": np.ones_like,
    "1 from the middle up": lambda height: (height >= 0.5).astype(float),
    "1 from 4 of 5 stars up": lambda height: (height >= 0.7).astype(float),
    "height": lambda height: height,
    "height above the middle": lambda height: np.maximum(2 * height - 1, 0),
    "height squared": lambda height: height**2,
    "height squared from the middle up": lambda height: np.where(height >= 0.5, height**2, 0),
    "height cubed": lambda height: height**3,
}
K = 10
SEEDS = range(5)


def by_rule(name: str) -> list[Row]:
    log = read_movielens(data_folder() / name).interactions
    assert log is not None
    rows = []
    for rule, confidence in RULES.items():
        found = [judge(log, confidence, seed) for seed in SEEDS]
        ndcg, disliked = np.mean(found, axis=0)
        rows += [Row(name, rule, f"NDCG@{K}", ndcg), Row(name, rule, "disliked hits", disliked)]
    return rows


def judge(
    log: Interactions, confidence: Callable[[np.ndarray], np.ndarray], seed: int
) -> tuple[float, float]:
    """Train under one rule on four fifths of the log; NDCG of the liked ones of the last, over the
    users who have any, and the share of judged hits that were disliked.
    """
    assert log.ratings is not None
    height = (log.ratings - log.ratings.min()) / (log.ratings.max() - log.ratings.min())
    held_out = np.random.default_rng(seed).random(len(log)) < 0.2

    def matrix(values: np.ndarray, rows: np.ndarray) -> csr_matrix:
        return csr_matrix(
            (values[rows], (log.users[rows], log.items[rows])),
            shape=(len(log.user_ids), len(log.item_ids)),
        )

    score = als("", 64).run(matrix(confidence(height), ~held_out))
    train = matrix(np.ones(len(log)), ~held_out)
    top = list(rankings(score, train, K))
    liked = matrix(np.ones(len(log)), held_out & (height >= 0.75))
    judged = matrix(height + 1e-6, held_out)
    heights = np.concatenate([judged[user, items].toarray()[0] for user, items in enumerate(top)])
    return mean_ndcg(top, liked, K), float((heights[heights > 0] < 0.5).mean())


PARTS = {name: partial(by_rule, name) for name in ("ml-latest-small", "ml-100k")}

if __name__ == "__main__":
    main(__file__, PARTS)

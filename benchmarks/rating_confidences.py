"""From ratings to confidences: how the rule in `collaborative/confidences.py` was chosen.

Holds out a fifth of each set's ratings, five times over, and trains `ImplicitALS` on the others
under each rule. Prints NDCG@10 for what was rated in the upper fifth of the scale, and the share of
hits that were disliked (lower half of the scale).

QKVSEARCH_DATA=data python benchmarks/rating_confidences.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from common import data_folder
from scipy.sparse import csr_matrix

from qkvsearch.data.interactions import Interactions
from qkvsearch.data.movielens import read_movielens
from qkvsearch.embeddings import ImplicitALS

# From the height of a rating on its scale, 0 to 1, to a confidence.
RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1 for every rating": np.ones_like,
    "1 from the middle up": lambda height: (height >= 0.5).astype(float),
    "1 from 4 of 5 stars up": lambda height: (height >= 0.7).astype(float),
    "height": lambda height: height,
    "height above the middle": lambda height: np.maximum(2 * height - 1, 0),
    "height squared": lambda height: height**2,
    "height cubed": lambda height: height**3,
}
K = 10
SEEDS = range(5)


def main() -> None:
    for name in ("ml-latest-small", "ml-100k"):
        log = read_movielens(data_folder() / name).interactions
        assert log is not None
        print(f"\n{name:28}{'NDCG@10':>10}{'disliked':>10}")
        for rule, confidence in RULES.items():
            figures = [evaluate(log, confidence, seed) for seed in SEEDS]
            ndcg, disliked = np.mean(figures, axis=0)
            print(f"{rule:28}{ndcg:10.4f}{disliked:10.1%}")


def evaluate(
    log: Interactions, confidence: Callable[[np.ndarray], np.ndarray], seed: int
) -> tuple[float, float]:
    """Train under one rule on four fifths of the log, judge on the last."""
    assert log.ratings is not None
    height = (log.ratings - log.ratings.min()) / (log.ratings.max() - log.ratings.min())
    held_out = np.random.default_rng(seed).random(len(log)) < 0.2
    shape = (len(log.user_ids), len(log.item_ids))

    def matrix(values: np.ndarray, rows: np.ndarray) -> csr_matrix:
        return csr_matrix((values[rows], (log.users[rows], log.items[rows])), shape=shape)

    model = ImplicitALS(random_state=0).fit(matrix(confidence(height), ~held_out))
    scores = model.user_embeddings_ @ model.item_embeddings_.T
    scores[matrix(np.ones(len(log)), ~held_out).nonzero()] = -np.inf
    truth = matrix(height + 1e-6, held_out).toarray()
    return judge(np.argsort(-scores, axis=1)[:, :K], truth)


def judge(top: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """NDCG of the liked, over users who have any; the share of judged hits that were disliked."""
    discounts = 1 / np.log2(np.arange(2, K + 2))
    found = np.take_along_axis(truth, top, axis=1)
    n_liked = (truth >= 0.75).sum(axis=1)
    ideal = np.cumsum(discounts)[np.minimum(n_liked, K) - 1]
    ndcg = ((found >= 0.75) @ discounts)[n_liked > 0] / ideal[n_liked > 0]
    return float(ndcg.mean()), float((found[found > 0] < 0.5).mean())


if __name__ == "__main__":
    main()

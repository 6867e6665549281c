"""How the defaults of ItemNeighbours were chosen, and how the shares of two heads are.

Each log without a fifth of its interactions is split again: NDCG@20 on the second fifth, of the
neighbours alone and with the embeddings at several shares. Taken were 100 neighbours, reg 20 and
dropout 1: within .004 of the best on every log, where reg alone wants 20 on one and 400 on another.

QKVSEARCH_DATA=data python benchmarks --only neighbour_defaults    (some minutes)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.support.public_data import (
    data_folder,
    read_positives,
    read_purchases,
    read_ratings,
    split,
)
from benchmarks.support.quality import ndcg_of
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.models.confidences import rating_confidences
from qkvsearch.models.estimators import ImplicitALS, ItemNeighbours
from qkvsearch.models.preferences import COLLABORATIVE, NEIGHBOURS, HeadShares, Preferences
from qkvsearch.tables.ratings import infer_scale

GRID = [(20, 0), (100, 0), (400, 0), (5, 0.3), (5, 1), (20, 0.3), (20, 1), (50, 0.3), (50, 1)]
SHARES = (0.0, 0.3, 0.5, 0.7)


def logs() -> Iterable[tuple[str, csr_matrix]]:
    """Training parts: the fifth that `implicit_feedback` holds out is not read."""
    yield "MovieLens-1M", read_positives(data_folder() / "ml-1m-implicit/train.txt", (6040, 3883))
    yield "Steam purchases", split(read_purchases(), seed=16)[0]
    for name in ("ml-100k", "ml-latest-small"):
        users, items, ratings = read_ratings(name)
        confidences = rating_confidences(ratings, len(ratings), infer_scale(ratings))
        liked = confidences > 0
        matrix = csr_matrix((confidences[liked], (users[liked], items[liked])))
        yield name, split(matrix, seed=16)[0]


def scores_of(preferences: Preferences, train: csr_matrix, rows: slice) -> np.ndarray:
    return preferences.scores(train[rows])


def penalties() -> Iterable[Row]:
    for title, log in logs():
        train, test = split(log, seed=17)
        factors = ImplicitALS(random_state=0).fit(train).factors_
        for reg, dropout in GRID:
            weights = ItemNeighbours(reg=reg, dropout=dropout).fit(train).weights_
            heads = {COLLABORATIVE: factors, NEIGHBOURS: weights}
            trial = Preferences(heads)
            sample = train[:: max(1, train.shape[0] // 1000)]
            scales = {
                name: float(trial.head_scores(name, sample).std(axis=1).mean())
                for name in (COLLABORATIVE, NEIGHBOURS)
            }
            for share in SHARES:
                shares = HeadShares({COLLABORATIVE: share, NEIGHBOURS: 1 - share}, scales)
                fused = Preferences(heads, shares)

                score = partial(scores_of, fused, train)
                system = f"reg {reg}, dropout {dropout}, share of embeddings {share:g}"
                quality = ndcg_of(score, train, test)
                yield Row(f"{title}, neighbours and embeddings", system, "NDCG@20", quality)


PARTS = {"penalties": penalties}

if __name__ == "__main__":
    main(__file__, PARTS)

"""How the defaults of ItemNeighbours were chosen, and why it has neighbours and no whole inverse.

Each log without a fifth of its interactions is split again: NDCG@20 on the second fifth, of the
weights between items alone and with the embeddings, at the best of three shares. EASE^R (Steck
2019) has the whole inverse, with the 200 largest weights of each item. Where each user counts
n^-1/2, with n the length of the history, neighbours with the embeddings are ahead of it on every
log or equal; alone they are .004 below it on the hours of play. Taken were 100 neighbours, reg 40,
dropout 1 and the exponent 1/2.

QKVSEARCH_DATA=data python benchmarks --only neighbour_defaults    (a quarter of an hour)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags

from benchmarks.defaults.weights_and_scales import play
from benchmarks.support.public_data import (
    data_folder,
    read_positives,
    read_purchases,
    read_ratings,
    read_views,
    split,
)
from benchmarks.support.quality import ndcg_of
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.systems import EASE
from qkvsearch.models.confidences import Feedback, rating_confidences
from qkvsearch.models.estimators import ImplicitALS, ItemNeighbours
from qkvsearch.models.item_neighbours import NeighbourWeights
from qkvsearch.models.preferences import COLLABORATIVE, NEIGHBOURS, HeadShares, Preferences
from qkvsearch.models.recommend_head import FittedHead
from qkvsearch.tables.ratings import infer_scale

# Of the embeddings, beside the weights between items.
SHARES = (0.3, 0.5, 0.7)
LARGEST = 200


class Local(NamedTuple):
    """`ItemNeighbours` with these parameters."""

    reg: float
    dropout: float
    user_exponent: float
    n_neighbours: int = 100

    def weights(self, train: csr_matrix) -> NeighbourWeights:
        return ItemNeighbours(**self._asdict()).fit(train).weights_

    def __str__(self) -> str:
        return (
            f"{self.n_neighbours} neighbours, reg {self.reg:g}, dropout {self.dropout:g}, "
            f"exponent {self.user_exponent:g}"
        )


class Whole(NamedTuple):
    """EASE^R with the largest weights of each item, the rest dropped."""

    reg: float
    user_exponent: float

    def weights(self, train: csr_matrix) -> NeighbourWeights:
        lengths = np.maximum(np.diff(train.indptr), 1)
        counts = np.power(lengths, -float(self.user_exponent))
        counts *= lengths.sum() / (counts * lengths).sum()
        weighted = (diags(np.sqrt(counts)) @ train).tocsr().astype(np.float32)
        model = EASE(self.reg).fit(weighted)
        values = model.weights_
        sizes = np.abs(values)
        k = min(LARGEST, len(values))
        values[sizes < np.partition(sizes, -k, axis=0)[-k]] = 0
        return _of_all_items(csr_matrix(values), model.items_, train.shape[1])

    def __str__(self) -> str:
        return f"whole inverse, λ {self.reg:g}, exponent {self.user_exponent:g}"


def _of_all_items(weights: csr_matrix, items: np.ndarray, n_items: int) -> NeighbourWeights:
    """The weights between some of the items as those between all."""
    entries = weights.tocoo()
    places = items[entries.row], items[entries.col]
    B = csr_matrix((entries.data, places), shape=(n_items, n_items))
    return NeighbourWeights(B.indptr.astype(np.int64), B.indices.astype(np.int32), B.data)


COMPARED: list[Local | Whole] = [
    *(Local(reg, 1, exponent) for exponent in (0, 0.5, 1) for reg in (20, 40, 80)),
    Local(40, 0, 0.5),
    Local(40, 0.3, 0.5),
    Local(40, 1, 0.5, n_neighbours=50),
    Local(40, 1, 0.5, n_neighbours=200),
    *(Whole(reg, exponent) for exponent in (0, 0.5) for reg in (100, 400)),
]


def logs() -> Iterable[tuple[str, csr_matrix]]:
    """Training parts: the fifth that `implicit_feedback` holds out is not read."""
    yield "MovieLens-1M", read_positives(data_folder() / "ml-1m-implicit/train.txt", (6040, 3883))
    yield "Steam, purchases", split(read_purchases(), seed=16)[0]
    log = play()
    hours = log.matrix(Feedback.of(log).confidences(log.items, log.ratings, log.weights))
    yield "Steam, hours of play", split(hours, seed=16)[0]
    yield "RetailRocket, views", split(read_views(), seed=16)[0]
    for name in ("ml-100k", "ml-latest-small"):
        users, items, ratings = read_ratings(name)
        confidences = rating_confidences(ratings, len(ratings), infer_scale(ratings))
        liked = confidences > 0
        matrix = csr_matrix((confidences[liked], (users[liked], items[liked])))
        yield name, split(matrix, seed=16)[0]


def weights_between_items() -> Iterable[Row]:
    for title, log in logs():
        train, test = split(log, seed=17)
        factors = ImplicitALS(random_state=0).fit(train).factors_
        for compared in COMPARED:
            weights = compared.weights(train)
            heads: dict[str, FittedHead] = {COLLABORATIVE: factors, NEIGHBOURS: weights}
            quality = partial(quality_at, heads, train, test)
            task, system = f"{title}, dev", str(compared)
            yield Row(task, system, "NDCG@20 alone", quality(0))
            yield Row(task, system, "with embeddings", max(map(quality, SHARES)))


def quality_at(
    heads: Mapping[str, FittedHead], train: csr_matrix, test: csr_matrix, share: float
) -> float:
    """NDCG@20 of the sum in which the embeddings have this share."""
    sample = train[:: max(1, train.shape[0] // 1000)]
    trial = Preferences(heads)
    scales = {name: float(trial.head_scores(name, sample).std(axis=1).mean()) for name in heads}
    shares = HeadShares({COLLABORATIVE: share, NEIGHBOURS: 1 - share}, scales)
    fused = Preferences(heads, shares)

    def score(rows: slice) -> np.ndarray:
        return fused.scores(train[rows])

    return ndcg_of(score, train, test)


PARTS = {"weights": weights_between_items}

if __name__ == "__main__":
    main(__file__, PARTS)

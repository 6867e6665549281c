"""BiasedMF by its defaults predicts ratings better than Surprise's SVD by its own, and fits sooner.

QKVSEARCH_DATA=data python benchmarks/rating_prediction.py    (peers: pip install '.[bench]')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from common import Row, System, compare, installed, print_table, read_ratings
from scipy.sparse import csr_matrix

from qkvsearch.embeddings import BiasedMF
from qkvsearch.evaluation.metrics import rmse

SETS = {
    "ml-1m": "MovieLens-1M",
    "ml-100k": "MovieLens-100k",
    "ml-latest-small": "MovieLens latest-small",
}
FOLDS = 5

# Users (n,) and items (n,) to ratings (n,).
Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]


def claim() -> list[Row]:
    return [row for name in SETS for row in compare_on(name)]


def compare_on(name: str) -> list[Row]:
    users, items, ratings = read_ratings(name)
    shape = (users.max() + 1, items.max() + 1)
    apart = np.array_split(np.random.default_rng(7).permutation(len(ratings)), FOLDS)
    trains = []
    for test in apart:
        rest = np.setdiff1d(np.arange(len(ratings)), test)
        trains.append(csr_matrix((ratings[rest], (users[rest], items[rest])), shape=shape))

    def error(models: list[Predict]) -> float:
        """The mean over the folds."""
        pairs = zip(models, apart, strict=True)
        return float(np.mean([rmse(rate(users[t], items[t]), ratings[t]) for rate, t in pairs]))

    task = f"{SETS[name]} ratings, {FOLDS} folds; a fit"
    return compare(task, list(systems()), trains, metric="RMSE", judge=error)


def systems() -> Iterator[System]:
    yield System("qkvsearch `BiasedMF`, defaults", fit_ours)
    if installed("scikit-surprise"):
        yield System("Surprise `SVD`, defaults", fit_surprise, prepare=surprise_data)


def fit_ours(train: csr_matrix) -> Predict:
    return BiasedMF(random_state=0).fit(train).predict


def surprise_data(train: csr_matrix) -> Any:
    from surprise import Dataset, Reader

    pairs = train.tocoo()
    frame = pd.DataFrame({"user": pairs.row, "item": pairs.col, "rating": pairs.data})
    scale = Reader(rating_scale=(pairs.data.min(), pairs.data.max()))
    return Dataset.load_from_df(frame, scale).build_full_trainset()


def fit_surprise(train: Any) -> Predict:
    from surprise import SVD

    return partial(predict_surprise, SVD(random_state=0).fit(train))


def predict_surprise(model: Any, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return np.array([model.predict(u, i).est for u, i in zip(users, items, strict=True)])


if __name__ == "__main__":
    print_table([claim])

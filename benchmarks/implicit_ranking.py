"""ImplicitALS by its defaults ranks as well as implicit and irspack at their best, and fits sooner.

QKVSEARCH_DATA=data python benchmarks/implicit_ranking.py    (peers: pip install '.[bench]')
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    CORES,
    Row,
    System,
    compare,
    data_folder,
    installed,
    ndcg,
    print_table,
    read_positives,
)
from scipy.sparse import csr_matrix

from qkvsearch.embeddings import ImplicitALS

TASK = "MovieLens-1M as positives, 80/20, 64 components; a fit"
SHAPE = (6040, 3883)
TURNS = 5

# User and item embeddings.
Embeddings = tuple[np.ndarray, np.ndarray]


def claim() -> list[Row]:
    folder = data_folder() / "ml-1m-implicit"
    train, test = (read_positives(folder / f"{part}.txt", SHAPE) for part in ("train", "test"))

    def quality(fits: list[Embeddings]) -> float:
        users, items = fits[-1]
        return ndcg(users, items, train, test)

    return compare(TASK, list(systems()), [train] * TURNS, metric="NDCG@20", judge=quality)


def systems() -> Iterator[System]:
    yield System("qkvsearch `ImplicitALS`, defaults", fit_ours)
    if installed("implicit"):
        yield System("`implicit`, defaults", fit_implicit)
        yield System(
            "`implicit`, best of a small search",
            lambda train: fit_implicit(train, regularization=60, alpha=5),
        )
    if installed("irspack"):
        yield System(
            "`irspack`, settings tuned for this set",
            fit_irspack,
            prepare=lambda train: train.astype(np.float64),
        )


def fit_ours(train: csr_matrix) -> Embeddings:
    model = ImplicitALS(random_state=0).fit(train)
    return model.user_embeddings_, model.item_embeddings_


def fit_implicit(train: csr_matrix, **settings: Any) -> Embeddings:
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=64, random_state=0, num_threads=CORES, **settings)
    model.fit(train, show_progress=False)
    return model.user_factors, model.item_factors


def fit_irspack(train: csr_matrix) -> Embeddings:
    from irspack import IALSRecommender

    with contextlib.redirect_stdout(io.StringIO()):
        model = IALSRecommender(
            train, n_components=64, alpha0=0.5, reg=0.006, train_epochs=10,
            n_threads=CORES, solver_type="CG",
        ).learn()  # fmt: skip
    return model.get_user_embedding(), model.get_item_embedding()


if __name__ == "__main__":
    print_table([claim])

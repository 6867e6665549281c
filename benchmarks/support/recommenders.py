"""What learns from interactions, ours and the peers, in the form that `timing.compare` runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from benchmarks.support.quality import Score
from benchmarks.support.results import CORES, installed
from benchmarks.support.timing import System
from qkvsearch.evaluation.systems import EASE, Fused, ItemKNN, Popularity
from qkvsearch.models.estimators import BiasedMF, ImplicitALS, ItemNeighbours

# Users (n,) and items (n,) to ratings (n,).
Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]

EASE_REG = 400.0
N_NEIGHBOURS = 100


# --- positives ---


def als(name: str, d: int, **settings: Any) -> System:
    def fit(train: csr_matrix) -> Score:
        model = ImplicitALS(d, random_state=0, **settings).fit(train)
        return partial(products, model.user_embeddings_, model.item_embeddings_)

    return System(f"qkvsearch `ImplicitALS`, {name}", fit)


def neighbours(name: str, **settings: Any) -> System:
    def fit(train: csr_matrix) -> Score:
        weights = ItemNeighbours(**settings).fit(train).weights_.matrix()
        return lambda rows: (train[rows] @ weights).toarray()

    return System(f"qkvsearch `ItemNeighbours`, {name}", fit)


def fused() -> System:
    """What `recommend` scores with: both heads, in the shares that they learn."""
    return _baseline("qkvsearch `recommend`, defaults", Fused)


def implicit(name: str, d: int, **settings: Any) -> list[System]:
    """One system, or none where the peer is not installed."""

    def fit(train: csr_matrix) -> Score:
        from implicit.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(factors=d, random_state=0, num_threads=CORES, **settings)
        model.fit(train, show_progress=False)
        return partial(products, model.user_factors, model.item_factors)

    return [System(f"`implicit`, {name}", fit)] if installed("implicit") else []


def irspack(name: str, d: int, **settings: Any) -> list[System]:
    def fit(train: csr_matrix) -> Score:
        from irspack import IALSRecommender

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            model = IALSRecommender(train, n_components=d, n_threads=CORES, **settings).learn()
        return partial(products, model.get_user_embedding(), model.get_item_embedding())

    def prepared(train: csr_matrix) -> csr_matrix:
        return train.astype(np.float64)

    return [System(f"`irspack`, {name}", fit, prepared)] if installed("irspack") else []


def implicit_cosine() -> list[System]:
    """The nearest items by cosine, as many as ours."""

    def fit(train: csr_matrix) -> Score:
        from implicit.nearest_neighbours import CosineRecommender

        model = CosineRecommender(K=N_NEIGHBOURS, num_threads=CORES)
        model.fit(train.astype(np.float64), show_progress=False)
        return lambda rows: (train[rows] @ model.similarity).toarray()

    return [System("`implicit` `CosineRecommender`", fit)] if installed("implicit") else []


def irspack_graph() -> list[System]:
    def fit(train: csr_matrix) -> Score:
        from irspack import RP3betaRecommender

        model = RP3betaRecommender(train, n_threads=CORES).learn()
        return lambda rows: np.asarray((train[rows] @ model.W).toarray())

    def prepared(train: csr_matrix) -> csr_matrix:
        return train.astype(np.float64)

    return [System("`irspack` `RP3beta`", fit, prepared)] if installed("irspack") else []


def baselines() -> list[System]:
    return [ease(), _baseline("item-kNN", ItemKNN), _baseline("popularity", Popularity)]


def ease(reg: float = EASE_REG) -> System:
    return _baseline(f"EASE^R, λ = {reg:g}", partial(EASE, reg))


def _baseline(name: str, make: Callable[[], Any]) -> System:
    def fit(train: csr_matrix) -> Score:
        model = make().fit(train)
        return lambda rows: model.scores(train[rows])

    return System(name, fit)


def products(users: np.ndarray, items: np.ndarray, rows: slice) -> np.ndarray:
    return users[rows] @ items.T


# --- ratings ---


def mf(name: str, **settings: Any) -> System:
    def fit(train: csr_matrix) -> Predict:
        return BiasedMF(random_state=0, **settings).fit(train).predict

    return System(f"qkvsearch `BiasedMF`, {name}", fit)


def surprise(kind: str) -> list[System]:
    """SVD or SVD++ by its defaults."""

    def fit(train: Any) -> Predict:
        from surprise import SVD, SVDpp

        model = {"SVD": SVD, "SVD++": SVDpp}[kind](random_state=0).fit(train)
        return lambda users, items: np.array(
            [model.predict(u, i).est for u, i in zip(users, items, strict=True)]
        )

    name = f"Surprise `{kind}`, defaults"
    return [System(name, fit, surprise_data)] if installed("scikit-surprise") else []


def surprise_data(train: csr_matrix) -> Any:
    from surprise import Dataset, Reader

    pairs = train.tocoo()
    frame = pd.DataFrame({"user": pairs.row, "item": pairs.col, "rating": pairs.data})
    scale = Reader(rating_scale=(pairs.data.min(), pairs.data.max()))
    return Dataset.load_from_df(frame, scale).build_full_trainset()

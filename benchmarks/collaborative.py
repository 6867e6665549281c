"""ImplicitALS and BiasedMF beside what people would otherwise install, in one run, one table.

QKVSEARCH_DATA=data python benchmarks/collaborative.py    (peers: pip install 'qkvsearch[bench]')
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from qkvsearch.embeddings.explicit import BiasedMF
from qkvsearch.embeddings.implicit import ImplicitALS

warnings.filterwarnings("ignore")
THREADS = os.cpu_count() or 1
TURNS = 5


def data_folder() -> Path:
    if "QKVSEARCH_DATA" not in os.environ:
        raise SystemExit("set QKVSEARCH_DATA to the folder that holds ml-100k, ml-1m, …")
    return Path(os.environ["QKVSEARCH_DATA"])


def read_ratings(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users (n,), items (n,) as row numbers and ratings (n,) of a MovieLens set."""
    folder = data_folder() / name
    if name == "ml-100k":
        table = pd.read_csv(folder / "u.data", sep="\t", header=None)
    else:
        table = pd.read_csv(folder / "ratings.csv")
    users, items = (pd.factorize(table.iloc[:, column])[0] for column in (0, 1))
    return users, items, table.iloc[:, 2].to_numpy(np.float32)


def read_positives(path: Path, shape: tuple[int, int] | None = None) -> csr_matrix:
    """A matrix of ones from lines `user item item …`."""
    lines = [np.array(line.split(), dtype=np.int32) for line in path.read_text().splitlines()]
    users = np.repeat([line[0] for line in lines], [len(line) - 1 for line in lines])
    items = np.concatenate([line[1:] for line in lines])
    return csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape)


def ndcg(users: np.ndarray, items: np.ndarray, train: csr_matrix, test: csr_matrix) -> float:
    """NDCG@20 of user · item over all items not in `train`; users without test items left out."""
    k, total, tested = 20, 0.0, 0
    discount = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discount)
    for start in range(0, train.shape[0], 1024):
        block = slice(start, start + 1024)
        scores = users[block] @ items.T
        scores[train[block].nonzero()] = -np.inf
        top = np.argpartition(-scores, k, axis=1)[:, :k]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(scores, top, 1), axis=1), 1)
        hits = np.take_along_axis(test[block].toarray() > 0, top, axis=1)
        relevant = np.diff(test[block].indptr)
        some = relevant > 0
        total += (hits[some] @ discount / ideal[np.minimum(relevant[some], k) - 1]).sum()
        tested += some.sum()
    return total / tested


def implicit_models() -> Iterator[tuple[str, Callable[[csr_matrix], tuple[Any, Any]]]]:
    """Each installed library at 64 components: name, and a function from data to embeddings."""

    def ours(train: csr_matrix) -> tuple[Any, Any]:
        model = ImplicitALS(random_state=0).fit(train)
        return model.user_embeddings_, model.item_embeddings_

    yield "qkvsearch ImplicitALS (defaults)", ours
    if installed("implicit"):
        from implicit.als import AlternatingLeastSquares

        def implicit(train: csr_matrix, **settings: Any) -> tuple[Any, Any]:
            model = AlternatingLeastSquares(
                factors=64, random_state=0, num_threads=THREADS, **settings
            )
            model.fit(train, show_progress=False)
            return model.user_factors, model.item_factors

        yield "implicit ALS (15 iterations, defaults)", implicit
        yield "implicit ALS (reg 60, α 5)", lambda t: implicit(t, regularization=60, alpha=5)
    if installed("irspack"):
        from irspack import IALSRecommender

        def irspack(train: csr_matrix) -> tuple[Any, Any]:
            with contextlib.redirect_stdout(io.StringIO()):
                model = IALSRecommender(
                    train.astype(np.float64), n_components=64, alpha0=0.5, reg=0.006,
                    train_epochs=10, n_threads=THREADS, solver_type="CG",
                ).learn()  # fmt: skip
            return model.get_user_embedding(), model.get_item_embedding()

        yield "irspack iALS (α₀ .5, reg .006, 10 epochs)", irspack


def rating_models() -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    """Each installed library: name, and a function from ratings and test pairs to predictions."""

    def ours(train: csr_matrix, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return BiasedMF(random_state=0).fit(train).predict(users, items)

    yield "qkvsearch BiasedMF (defaults)", ours
    if installed("surprise"):
        import surprise

        def svd(train: csr_matrix, users: np.ndarray, items: np.ndarray) -> np.ndarray:
            pairs = train.tocoo()
            frame = pd.DataFrame({"user": pairs.row, "item": pairs.col, "rating": pairs.data})
            scale = surprise.Reader(rating_scale=(pairs.data.min(), pairs.data.max()))
            data = surprise.Dataset.load_from_df(frame, scale).build_full_trainset()
            model = surprise.SVD(random_state=0).fit(data)
            return np.array([model.predict(u, i).est for u, i in zip(users, items, strict=True)])

        yield "Surprise SVD (defaults)", svd


def installed(library: str) -> bool:
    found = importlib.util.find_spec(library) is not None
    if not found:
        print(f"{library} is not installed: left out")
    return found


def compare_implicit() -> None:
    folder = data_folder() / "ml-1m-implicit"
    shape = (6040, 3883)
    train, test = (read_positives(folder / f"{part}.txt", shape) for part in ("train", "test"))
    models = dict(implicit_models())
    seconds: dict[str, list[float]] = {name: [] for name in models}
    quality = {}
    # Turn by turn, so that a busy moment of the machine hits all alike; the first turn warms up.
    for _ in range(TURNS + 1):
        for name, fit in models.items():
            began = time.perf_counter()
            with threadpool_limits(1, "blas"):
                embeddings = fit(train)
            seconds[name].append(time.perf_counter() - began)
            quality[name] = embeddings
    middle = {name: float(np.median(times[1:])) for name, times in seconds.items()}
    ours = next(iter(middle.values()))
    print(f"\n{'ml-1m-implicit, 64 components':44} NDCG@20  fit (s)  × ours")
    for name, took in middle.items():
        score = ndcg(*quality[name], train, test)
        print(f"{name:44} {score:7.4f} {took:8.2f} {took / ours:7.2f}")


def compare_ratings(name: str, folds: int = 5) -> None:
    users, items, ratings = read_ratings(name)
    shape = (users.max() + 1, items.max() + 1)
    parts = np.array_split(np.random.default_rng(7).permutation(len(ratings)), 5)
    print(f"\n{name + f', {folds} of 5 folds':44}    RMSE  s/fold  × ours")
    ours = None
    for model, rate in rating_models():
        errors, began = [], time.perf_counter()
        for test in parts[:folds]:
            rest = np.setdiff1d(np.arange(len(ratings)), test)
            train = csr_matrix((ratings[rest], (users[rest], items[rest])), shape=shape)
            guess = rate(train, users[test], items[test])
            errors.append(np.sqrt(np.mean((guess - ratings[test]) ** 2)))
        took = (time.perf_counter() - began) / folds
        ours = ours or took
        print(f"{model:44} {np.mean(errors):7.4f} {took:7.2f} {took / ours:7.2f}")


if __name__ == "__main__":
    compare_implicit()
    for dataset in ("ml-100k", "ml-latest-small", "ml-1m"):
        compare_ratings(dataset)

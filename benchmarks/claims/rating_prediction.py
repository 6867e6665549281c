"""BiasedMF beside Surprise's SVD: RMSE over five folds of ratings, and the time of a fit.

QKVSEARCH_DATA=data python benchmarks --only rating_prediction
(two minutes, most of it the peer's, and SVD++ an hour; peer: pip install scikit-surprise)
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import root_mean_squared_error

from benchmarks.support.public_data import read_ratings
from benchmarks.support.recommenders import Predict, mf, surprise
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare

SETS = {
    "ml-1m": "MovieLens-1M",
    "ml-100k": "MovieLens-100k",
    "ml-latest-small": "MovieLens latest-small",
}
FOLDS = 5


def ratings(name: str, beside: list[System]) -> list[Row]:
    users, items, values = read_ratings(name)
    shape = (users.max() + 1, items.max() + 1)
    apart = np.array_split(np.random.default_rng(7).permutation(len(values)), FOLDS)
    trains = []
    for test in apart:
        rest = np.setdiff1d(np.arange(len(values)), test)
        trains.append(csr_matrix((values[rest], (users[rest], items[rest])), shape=shape))

    def error(models: list[Predict]) -> float:
        """The mean over the folds."""
        pairs = zip(models, apart, strict=True)
        return float(
            np.mean(
                [root_mean_squared_error(rate(users[t], items[t]), values[t]) for rate, t in pairs]
            )
        )

    systems = [mf("defaults"), mf("100 components", n_components=100), *beside]
    return compare(f"{SETS[name]} ratings, {FOLDS} folds; a fit", systems, trains, "RMSE", error)


PARTS = {name: partial(ratings, name, surprise("SVD")) for name in SETS}
EXTRA = {f"{name}-svdpp": partial(ratings, name, surprise("SVD++")) for name in SETS}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA, peers=["scikit-surprise"])

"""How the defaults of ImplicitALS and BiasedMF were chosen: on validation parts of training data.

Small sets, each also weighted by its ratings (w), then larger or sparser ones. Nothing here reads a
test file, nor the fifth of the rating sets that is set aside first. Taken were the constants 10 and
0.2 with a highest α₀ of 1, two steps of conjugate gradient, and for `BiasedMF` 64 components, .045,
.04 and 50.

QKVSEARCH_DATA=data python benchmarks --only collaborative_defaults    (some minutes)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.metrics import root_mean_squared_error

from benchmarks.support.public_data import (
    Split,
    data_folder,
    planted,
    read_positives,
    read_ratings,
    split,
)
from benchmarks.support.quality import ndcg_of
from benchmarks.support.recommenders import als, mf
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.tables import SHARE
from qkvsearch.models import implicit_als as als_module
from qkvsearch.models.confidences import rating_confidences
from qkvsearch.tables.ratings import infer_scale
from qkvsearch.tables.samples import datasets_folder

CONSTANTS = ("AUTO_ALPHA0", "AUTO_REG", "HIGHEST_ALPHA0")


# --- the sets ---


def small_ratings() -> dict[str, csr_matrix]:
    """Sets of ratings that are quick to learn from; the first two are dense."""
    table = pd.read_csv(datasets_folder() / "ratings.csv")
    users, items = (pd.factorize(table[column])[0] for column in ("user", "movie"))
    sets = {"sample": csr_matrix((table["rating"].to_numpy(np.float32), (users, items)))}
    for name in ("ml-100k", "ml-latest-small"):
        kept = without_a_fifth(name)
        if name == "ml-100k":
            most_rated = np.argsort(-kept.getnnz(axis=0), kind="stable")[:200]
            sets["100k top 200"] = csr_matrix(kept[:, np.sort(most_rated)])
        sets[name] = kept
    return sets


def without_a_fifth(name: str) -> csr_matrix:
    users, items, ratings = read_ratings(name)
    return split(csr_matrix((ratings, (users, items))), seed=1)[0]


def plain_and_weighted(ratings: csr_matrix) -> tuple[Split, Split]:
    """All ratings as ones; and as `build` weighs them, judged by those of four stars and more."""
    train, valid = split(ratings, seed=2)
    ones = train.sign(), valid.sign()
    scale = infer_scale(ratings.data)
    for part in (train, valid):
        part.data = rating_confidences(part.data, part.nnz, scale)
    valid.data *= valid.data > 0.5
    for part in (train, valid):
        part.eliminate_zeros()
    return ones, (train, valid)


def implicit_sets() -> dict[str, Split]:
    """Train and validation parts: small sets, each also weighted (w), then larger or sparser."""
    sets = {}
    for name, ratings in small_ratings().items():
        sets[name], sets[f"{name} w"] = plain_and_weighted(ratings)
    movielens = read_positives(data_folder() / "ml-1m-implicit" / "train.txt")
    sets["ml-1m"] = split(movielens, seed=2)
    sets["ml-1m thinned"] = split(split(movielens, seed=3, share=0.06)[1], seed=2)
    sets["planted"] = split(planted(5000, 4000, 9, topics=40, seed=4), seed=2)
    sets["planted thin"] = split(planted(6000, 12000, 6, topics=200, seed=5), seed=2)
    return sets


# --- the choices ---


def implicit_constants() -> Iterable[Row]:
    """NDCG@20 by the constants of the formulas for α₀ and reg, beside the highest α₀ of 1.

    10, 0.2 and 1 were taken. What comes first gains on the thinned set alone, where little but
    popularity can be learned, and loses on ml-1m and the planted sets. A penalty in proportion to
    the confidences keeps weighted sets at their plain ones' constants.
    """
    tried = itertools.product((7, 10, 15), (0.1, 0.15, 0.2, 0.25), (1,))
    return by_constants(implicit_sets(), list(tried))


def highest_alpha0() -> Iterable[Row]:
    """In dense sets an α₀ above 1 shrinks too much."""
    dense = ("sample", "100k")
    sets = {name: parts for name, parts in implicit_sets().items() if name.startswith(dense)}
    return by_constants(sets, list(itertools.product((10,), (0.2,), (0.5, 0.7, 1, 1.4, 2))))


def by_constants(sets: dict[str, Split], tried: list[tuple]) -> list[Row]:
    def figure(values: tuple, parts: Split) -> float:
        # The constants themselves are replaced, so that what is tried is the formula in use.
        with patch.multiple(als_module, **dict(zip(CONSTANTS, values, strict=True))):
            return fitted_ndcg(parts, 64)

    names = ["α₀ constant", "reg constant", "highest α₀"]
    return grid("NDCG@20", names, tried, sets, figure, is_loss=False)


def steps() -> list[Row]:
    """NDCG@20 by conjugate gradient steps per half iteration.

    Two were taken: a third gains nothing, and with one a set or two lose a percent.
    """
    tried = [(d, steps) for d in (64, 256) for steps in (1, 2, 3)]
    return grid(
        "NDCG@20", ["components", "steps"], tried, implicit_sets(),
        lambda values, parts: fitted_ndcg(parts, values[0], cg_steps=values[1]), is_loss=False,
    )  # fmt: skip


def fitted_ndcg(parts: Split, d: int, **settings: Any) -> float:
    train, valid = parts
    return ndcg_of(als("", d, **settings).run(train), train, valid)


def ratings() -> list[Row]:
    """RMSE of BiasedMF by its settings.

    64 components, .045, .04 and 50 were taken: twice as many components gain two thousandths at
    most and take twice as long.
    """
    names = ["n_components", "learning_rate", "reg", "damping"]
    tried = list(itertools.product((64, 128), (0.035, 0.045), (0.035, 0.04, 0.05), (10, 50, 100)))
    sets = {name: split(without_a_fifth(name), seed=2)
            for name in ("ml-100k", "ml-latest-small", "ml-1m")}  # fmt: skip

    def figure(values: tuple, parts: Split) -> float:
        predict = mf("", **dict(zip(names, values, strict=True))).run(parts[0])
        pairs = parts[1].tocoo()
        return root_mean_squared_error(predict(pairs.row, pairs.col), pairs.data)

    return grid("RMSE", names, tried, sets, figure, is_loss=True)


def grid(
    metric: str,
    names: Sequence[str],
    tried: Sequence[tuple],
    sets: Mapping[str, Split],
    figure: Callable[[tuple, Split], float],
    is_loss: bool,
) -> list[Row]:
    """The figure of each setting on each set, and the mean share of each set's best, by which the
    settings are sorted.
    """
    figures = np.array([[figure(values, parts) for parts in sets.values()] for values in tried])
    share = figures.min(axis=0) / figures if is_loss else figures / figures.max(axis=0)
    shares = share.mean(axis=1)
    rows = []
    for place in np.argsort(-shares, kind="stable"):
        setting = ", ".join(
            f"{name} {value:g}" for name, value in zip(names, tried[place], strict=True)
        )
        rows += [
            Row(name, setting, metric, float(value))
            for name, value in zip(sets, figures[place], strict=True)
        ]
        rows.append(Row(SHARE, setting, SHARE, float(shares[place])))
    return rows


PARTS = {
    "implicit": implicit_constants,
    "dense": highest_alpha0,
    "steps": steps,
    "ratings": ratings,
}

if __name__ == "__main__":
    main(__file__, PARTS)

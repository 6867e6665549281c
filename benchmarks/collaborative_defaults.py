"""How the defaults of ImplicitALS and BiasedMF were chosen: on validation parts of training data.

QKVSEARCH_DATA=data python benchmarks/collaborative_defaults.py    (about two minutes)

Nothing here reads a test file, nor the fifth of the rating sets that is set aside first.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
from common import data_folder, ndcg, read_positives, read_ratings
from scipy.sparse import csr_matrix

from qkvsearch.collaborative import als as implicit
from qkvsearch.collaborative.als import ImplicitALS
from qkvsearch.collaborative.biased_mf import BiasedMF
from qkvsearch.collaborative.confidences import confidences, rating_scale

Split = tuple[csr_matrix, csr_matrix]


def split(matrix: csr_matrix, seed: int, share: float = 0.2) -> Split:
    """A random `share` of the entries apart from the rest."""
    coo = matrix.tocoo()
    apart = np.random.default_rng(seed).random(coo.nnz) < share
    rest, held_out = (
        csr_matrix((coo.data[part], (coo.row[part], coo.col[part])), shape=coo.shape)
        for part in (~apart, apart)
    )
    return rest, held_out


def planted(n_users: int, n_items: int, length: float, topics: int, seed: int) -> csr_matrix:
    """A sparse set: users with one to three topics meet items by power-law popularity in them."""
    rng = np.random.default_rng(seed)
    topic_of = rng.integers(topics, size=n_items)
    popularity = 1 / rng.permutation(np.arange(1, n_items + 1)) ** 0.8
    users, items = [], []
    for user in range(n_users):
        liked = rng.choice(topics, size=rng.integers(1, 4), replace=False)
        chance = popularity * np.where(np.isin(topic_of, liked), 1.0, 0.01)
        count = min(3 + rng.poisson(rng.lognormal(np.log(length), 0.8)), n_items // 4)
        items.append(rng.choice(n_items, size=count, replace=False, p=chance / chance.sum()))
        users.append(np.full(count, user))
    rows, columns = np.concatenate(users), np.concatenate(items)
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_users, n_items))


def small_ratings() -> dict[str, csr_matrix]:
    """Sets of ratings that are quick to learn from; the first two are dense."""
    table = pd.read_csv(Path(__file__).parents[1] / "datasets" / "ratings.csv")
    users, items = (pd.factorize(table[column])[0] for column in ("user", "movie"))
    sets = {"sample": csr_matrix((table["rating"].to_numpy(np.float32), (users, items)))}
    for name in ("ml-100k", "ml-latest-small"):
        users, items, ratings = read_ratings(name)
        kept, _apart = split(csr_matrix((ratings, (users, items))), seed=1)
        if name == "ml-100k":
            most_rated = np.argsort(-kept.getnnz(axis=0), kind="stable")[:200]
            sets["100k top 200"] = csr_matrix(kept[:, np.sort(most_rated)])
        sets[name] = kept
    return sets


def plain_and_weighted(ratings: csr_matrix) -> tuple[Split, Split]:
    """All ratings as ones; and as `build` weighs them, judged by those of four stars and more."""
    train, valid = split(ratings, seed=2)
    ones = train.sign(), valid.sign()
    scale = rating_scale(ratings.data)
    for part in (train, valid):
        part.data = confidences(part.data, part.nnz, scale)
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


def rating_sets() -> dict[str, Split]:
    """Train and validation parts; a fifth of each set was put apart first."""
    sets = {}
    for name in ("ml-100k", "ml-latest-small", "ml-1m"):
        users, items, ratings = read_ratings(name)
        kept, _apart = split(csr_matrix((ratings, (users, items))), seed=1)
        sets[name] = split(kept, seed=2)
    return sets


def choose_implicit() -> None:
    """NDCG@20 by the constants of the formulas, the best mean share of the best first.

    10, 0.2 and 1 were taken. The first line of the first table gains on the thinned set alone,
    where little but popularity can be learned, and loses on ml-1m and the planted sets. A penalty
    in proportion to the confidences keeps weighted sets at their plain ones' constants. In dense
    sets α₀ above 1 shrinks too much.
    """
    sets = implicit_sets()
    show_sets(sets)
    try_implicit(sets, list(itertools.product((7, 10, 15), (0.1, 0.15, 0.2, 0.25), (1,))))
    dense = {name: parts for name, parts in sets.items() if name.startswith(("sample", "100k"))}
    try_implicit(dense, list(itertools.product((10,), (0.2,), (0.5, 0.7, 1, 1.4, 2))))


def try_implicit(sets: dict[str, Split], settings: list[tuple]) -> None:
    figures = np.empty((len(settings), len(sets)))
    for row, (c, k, highest) in enumerate(settings):
        # The constants themselves are replaced, so that what is tried is the formula in use.
        implicit.AUTO_ALPHA0, implicit.AUTO_REG, implicit.HIGHEST_ALPHA0 = c, k, highest
        figures[row] = [fitted_ndcg(*parts) for parts in sets.values()]
    share = (figures / figures.max(axis=0)).mean(axis=1)
    show(["α₀ constant", "reg constant", "highest α₀"], settings, list(sets), figures, share)


def fitted_ndcg(train: csr_matrix, valid: csr_matrix, **settings: int) -> float:
    model = ImplicitALS(**settings, random_state=0).fit(train)
    return ndcg(model.user_embeddings_, model.item_embeddings_, train, valid)


def choose_steps() -> None:
    """NDCG@20 by conjugate gradient steps per half iteration, the best mean share first.

    Two were taken: a third gains nothing, and with one a set or two lose a percent.
    """
    sets = implicit_sets()
    settings = [(d, steps) for d in (64, 256) for steps in (1, 2, 3)]
    figures = np.array(
        [
            [fitted_ndcg(*parts, n_components=d, cg_steps=steps) for parts in sets.values()]
            for d, steps in settings
        ]
    )
    share = (figures / figures.max(axis=0)).mean(axis=1)
    show(["n_components", "steps"], settings, list(sets), figures, share)


def choose_ratings() -> None:
    """RMSE by settings, the best mean ratio to the best first.

    64 components, .045, .04 and 50 were taken: twice as many components gain two thousandths at
    most and take twice as long.
    """
    sets = rating_sets()
    names = ["n_components", "learning_rate", "reg", "damping"]
    settings = list(
        itertools.product((64, 128), (0.035, 0.045), (0.035, 0.04, 0.05), (10, 50, 100))
    )
    figures = np.empty((len(settings), len(sets)))
    for row, values in enumerate(settings):
        for column, (train, valid) in enumerate(sets.values()):
            model = BiasedMF(**dict(zip(names, values, strict=True)), random_state=0).fit(train)
            pairs = valid.tocoo()
            errors = model.predict(pairs.row, pairs.col) - pairs.data
            figures[row, column] = np.sqrt(np.mean(errors**2))
    share = (figures.min(axis=0) / figures).mean(axis=1)
    show_sets(sets)
    show(names, settings, list(sets), figures, share)


def show_sets(sets: dict[str, Split]) -> None:
    print()
    for name, (train, _) in sets.items():
        n_users, n_items = train.shape
        length = train.nnz / np.count_nonzero(np.diff(train.indptr))
        print(f"{name:16} {n_users:6} × {n_items:6}, {length:6.1f} interactions a user")


def show(
    names: list[str], settings: list[tuple], sets: list[str], figures: np.ndarray, share: np.ndarray
) -> None:
    """A line per setting: the figure on each set, and the mean share of the best."""
    print("\n" + " ".join(f"{name:>15}" for name in [*names, *sets, "mean share"]))
    for row in np.argsort(-share):
        cells = [f"{value:15g}" for value in settings[row]]
        cells += [f"{value:15.4f}" for value in [*figures[row], share[row]]]
        print(" ".join(cells))


if __name__ == "__main__":
    choose_implicit()
    choose_steps()
    choose_ratings()

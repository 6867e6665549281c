"""What `recommend` learns, and its heads, beside implicit, irspack and three simple baselines.

NDCG@20, and the time of a fit.

Ranked are all items that the user did not have in training. Defaults stand beside defaults and
tuned settings beside tuned ones, at equal components. EASE^R keeps a number for each pair of items,
so that its time and memory grow with the square of the catalog; it has the 10,000 items with the
most users. Memory is that of a fit, over the size of its input and its factors; in the seconds of
processors a busy machine counts too.

All logs, by defaults: a random fifth is held out, and users with nothing else are left out. Likes
are ratings from the middle up, as confidences, and so are hours of play; the samples and the last
two logs are made. `CosineRecommender` has 100 neighbours, as ours; RP3beta walks at random over
users and items. EASE^R has the one of the penalties 20, 100 and 400 that is the best on the test
part, which nobody knows beforehand, and so is the better one of our heads.

QKVSEARCH_DATA=data python benchmarks --only implicit_feedback
(ten minutes, most of it the peers'; peers: pip install '.[bench]')
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, save_npz
from threadpoolctl import threadpool_limits

from benchmarks.defaults.weights_and_scales import play
from benchmarks.support.public_data import (
    data_folder,
    planted,
    read_positives,
    read_purchases,
    read_ratings,
    read_views,
    split,
)
from benchmarks.support.quality import Score, ndcg_of
from benchmarks.support.recommenders import (
    als,
    baselines,
    ease,
    fused,
    implicit,
    implicit_cosine,
    irspack,
    irspack_graph,
    neighbours,
)
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare, timed, with_times
from qkvsearch.models.confidences import Feedback, rating_confidences
from qkvsearch.tables.ratings import infer_scale

TURNS = 5
ML_1M_SHAPE = (6040, 3883)
# Given for this set beforehand, not searched here; ours has irspack's objective, so the same two.
TUNED_IRSPACK: dict[str, Any] = {
    "alpha0": 0.5,
    "reg": 0.006,
    "train_epochs": 10,
    "solver_type": "CG",
}
TUNED_IMPLICIT = {"regularization": 60, "alpha": 5}
EASE_REGS = (400.0, 100.0, 20.0)
LARGE = (70_000, 10_677, 10_000_000)
WIDTHS = (64, 128)


# --- MovieLens-1M as positives ---


def movielens(d: int, turns: int) -> list[Row]:
    """With d components; beside the baselines at 64, which have no components."""
    train, test = movielens_parts()
    systems = [
        *([fused(), neighbours("defaults")] if d == 64 else []),
        als("defaults", d),
        *implicit("defaults", d),
        *irspack("defaults", d),
        als("tuned for this set", d, alpha0=0.5, reg=0.006),
        *implicit("tuned for this set", d, **TUNED_IMPLICIT),
        *irspack("tuned for this set", d, **TUNED_IRSPACK),
        *([*baselines(), *map(ease, EASE_REGS[1:])] if d == 64 else []),
    ]
    task = f"MovieLens-1M as positives, 80/20, {d} components; a fit"
    return compare(task, systems, [train], "NDCG@20", last_ndcg(train, test), turns=turns)


def last_ndcg(train: csr_matrix, test: csr_matrix) -> Callable[[list[Score]], float]:
    return lambda fits: ndcg_of(fits[-1], train, test)


# --- ten million interactions ---


def scale() -> list[Row]:
    matrix = power_law(*LARGE, seed=0)
    return [row for d in WIDTHS for row in per_iteration(matrix, d)]


def per_iteration(matrix: csr_matrix, d: int) -> list[Row]:
    """The time that three more iterations take, a third of it; the shorter of two turns."""
    task = f"{matrix.nnz:,} interactions, power law, {d} components; an iteration"
    short, long = ([als("defaults", d, max_iter=n), *implicit("defaults", d, iterations=n)]
                   for n in (1, 4))  # fmt: skip
    short[0].run(matrix)  # compiles
    taken = [
        [
            (clock(four, matrix) - clock(one, matrix)) / 3
            for one, four in zip(short, long, strict=True)
        ]
        for _turn in range(2)
    ]
    return with_times([Row(task, system.name) for system in short], np.min(taken, axis=0).tolist())


def clock(system: System, matrix: csr_matrix) -> float:
    with threadpool_limits(1, "blas"):
        return timed(lambda: system.run(matrix))[0]


def power_law(n_users: int, n_items: int, n_pairs: int, seed: int) -> csr_matrix:
    """Ones: popularity falls by a power law, activity is lognormal, preferences go by topic."""
    rng = np.random.default_rng(seed)
    popularity = 1 / rng.permutation(np.arange(1, n_items + 1)) ** 0.8
    topic_of = rng.integers(40, size=n_items)
    topics = rng.integers(40, size=n_users)
    activity = rng.lognormal(0, 1.1, n_users)
    matrix = csr_matrix((n_users, n_items), dtype=np.float32)
    while (missing := n_pairs - matrix.nnz) > 0:
        rows, columns = [], []
        for topic in range(40):
            users = np.flatnonzero(topics == topic)
            reached = np.cumsum(popularity * np.where(topic_of == topic, 20, 1))
            count = rng.poisson(activity[users] / activity.sum() * missing * 1.2 + 1)
            rows.append(np.repeat(users, count))
            columns.append(np.searchsorted(reached, rng.random(count.sum()) * reached[-1]))
        pairs = np.concatenate(rows), np.concatenate(columns)
        matrix += csr_matrix((np.ones(len(pairs[0]), np.float32), pairs), shape=matrix.shape)
        matrix.data[:] = 1
    return split(matrix, seed=seed, share=1 - n_pairs / matrix.nnz)[0]


def memory() -> list[Row]:
    """By how much a fit makes a process grow, over the size of the input and the factors."""
    if not Path("/proc/self/status").exists():
        return []
    matrix = power_law(*LARGE, seed=0)
    task = f"{matrix.nnz:,} interactions, power law; peak memory of a fit"
    rows = []
    for d in WIDTHS:
        inputs = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        inputs += 4 * d * sum(matrix.shape)
        growth = fit_alone(matrix, str(d))["added"] / inputs
        system = f"qkvsearch `ImplicitALS`, {d} components"
        rows.append(Row(task, system, "added memory / (input + factors)", growth))
    return rows


def neighbours_of_many(n_users: int, n_items: int) -> list[Row]:
    """Neighbours of large catalogs. On an idle machine, divide the seconds by its cores."""
    if not Path("/proc/self/status").exists():
        return []
    matrix = power_law(n_users, n_items, 10_000_000, seed=0)
    taken = fit_alone(matrix)
    task = f"{matrix.nnz:,} interactions, {n_items:,} items, power law; a fit alone in a process"
    system = "qkvsearch `ItemNeighbours`, defaults"
    gigabytes = Row(task, system, "GB at most", taken["peak"] / 1e9)
    return [gigabytes, Row(task, system, "seconds of processors", taken["seconds"])]


def fit_alone(matrix: csr_matrix, *components: str) -> dict[str, float]:
    """What a fit takes in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrix.npz"
        save_npz(path, matrix, compressed=False)
        command = [sys.executable, "-m", "benchmarks.support.fit_memory", str(path), *components]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


# --- all logs ---


def logs() -> Iterable[tuple[str, csr_matrix, csr_matrix]]:
    """Training and test parts: a fifth of the interactions is for tests. Users with none in
    training are left out, since they are recommended what is popular.
    """
    yield "MovieLens-1M", *movielens_parts()
    for title, matrix in {
        "Steam, purchases": read_purchases(),
        "Steam, hours of play": hours_of_play(),
        "RetailRocket, views": read_views(),
        "MovieLens-100k, likes": likes("ml-100k"),
        "MovieLens latest-small, likes": likes("ml-latest-small"),
        "the sample of films": sample("ratings"),
        "the sample of videos": sample("watches"),
        "made: 5,000 × 4,000, 9 a user": planted(5000, 4000, 9, topics=40, seed=14),
        "made: 6,000 × 12,000, 6 a user": planted(6000, 12000, 6, topics=200, seed=15),
    }.items():
        train, test = split(matrix, seed=16)
        is_known = train.getnnz(axis=1) > 0
        yield title, train[is_known], test[is_known]


def all_logs() -> Iterable[Row]:
    for title, train, test in logs():
        yield from by_defaults(title, train, test)


def by_defaults(title: str, train: csr_matrix, test: csr_matrix) -> Iterable[Row]:
    """A log by defaults, and how far the fusion is from the better one of its heads."""
    systems = [fused(), neighbours("defaults"), als("defaults", 64)]
    systems += [*implicit("defaults", 64), *implicit_cosine(), *irspack_graph()]
    systems += [*baselines(), *map(ease, EASE_REGS[1:])]
    rows = compare(title, systems, [train], "NDCG@20", last_ndcg(train, test))
    quality = {row.system: row.quality or 0.0 for row in rows}
    ours, *heads = list(quality.values())[:3]
    best_ease = max(value for name, value in quality.items() if name.startswith("EASE"))
    yield from (row for row in rows if not row.system.startswith("EASE"))
    yield Row(title, "EASE^R, the best λ", "NDCG@20", best_ease)
    better = "`recommend`, less the better of its heads"
    yield Row(better, title, "difference", ours - max(heads))


def movielens_parts() -> tuple[csr_matrix, csr_matrix]:
    folder = data_folder() / "ml-1m-implicit"
    train, test = (read_positives(folder / f"{p}.txt", ML_1M_SHAPE) for p in ("train", "test"))
    return train, test


def likes(name: str) -> csr_matrix:
    """Confidences of the ratings from the middle up, as a build has them."""
    users, items, ratings = read_ratings(name)
    confidences = rating_confidences(ratings, len(ratings), infer_scale(ratings))
    liked = confidences > 0
    return csr_matrix((confidences[liked], (users[liked], items[liked])))


def hours_of_play() -> csr_matrix:
    """Confidences of the hours that games were played on Steam, as a build has them."""
    log = play()
    return log.matrix(Feedback.of(log).confidences(log.items, log.ratings, log.weights))


def sample(name: str) -> csr_matrix:
    """Who met what in a bundled sample."""
    table = pd.read_csv(Path(__file__).parents[2] / "datasets" / f"{name}.csv")
    users, items = (pd.factorize(table.iloc[:, column])[0] for column in (0, 1))
    return (csr_matrix((np.ones(len(users), np.float32), (users, items))) > 0).astype(np.float32)


PARTS = {
    "ml-1m": partial(movielens, 64, TURNS),
    "ml-1m-256": partial(movielens, 256, 2),
    "scale": scale,
    "memory": memory,
    "neighbours": partial(neighbours_of_many, 200_000, 100_000),
    "logs": all_logs,
}
EXTRA = {"a million items": partial(neighbours_of_many, 500_000, 1_000_000)}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA, peers=["implicit", "irspack"])

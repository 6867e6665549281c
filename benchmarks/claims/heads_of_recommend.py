"""What the heads of `recommend` reach on small logs of ratings, and what they cost.

The small logs are judged by `evaluate recommend` with its defaults: a random fifth of the ratings
is held out, all items are candidates, and the baselines see the same split. The cost is measured on
MovieLens-1M, 6,040 users and 3,706 films, without texts: a whole build, with both heads and the
weights of their fusion, beside one fit of ImplicitALS on the same log; and one `recommend` in an
opened engine, by all heads and by the embeddings alone. The
questions are for 200 users, drawn with a seed.

QKVSEARCH_DATA=data python benchmarks --only heads_of_recommend    (three minutes)
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder, read_ratings
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare

N_USERS, BUILD_TURNS = 200, 3
METRIC = "ndcg@10"


def ratings(title: str, source: str) -> list[Row]:
    task = f"`evaluate recommend`, {title}"
    with qkv.build(new_folder(), str(data_folder() / source), encoder="corpus") as engine:
        report = engine.evaluate_recommend().to_dict()
    judged = {"qkvsearch `recommend`": report["metrics"]}
    judged |= {f"{name} alone": metrics for name, metrics in report["heads"].items()}
    judged |= report["baselines"]
    return [Row(task, name, METRIC, metrics[METRIC])
            for name, metrics in judged.items() if METRIC in metrics]  # fmt: skip


def cost() -> list[Row]:
    users, items, _ = read_ratings("ml-1m")
    log = pd.DataFrame({"user": users, "item": items})
    matrix = csr_matrix((np.ones(len(users), np.float32), (users, items)))
    systems = [
        System("qkvsearch `build`", lambda _: build(log).close()),
        System("a fit of `ImplicitALS` alone", lambda _: qkv.ImplicitALS().fit(matrix)),
    ]
    rows = compare("a build of MovieLens-1M", systems, [None], turns=BUILD_TURNS)
    drawn = np.random.default_rng(0).choice(users.max() + 1, N_USERS, replace=False).tolist()
    with build(log) as engine:
        systems = [
            System("all heads", partial(recommend, engine, None)),
            System("the embeddings alone", partial(recommend, engine, "collaborative")),
        ]
        return rows + compare("one `recommend`, MovieLens-1M", systems, drawn)


def build(log: pd.DataFrame) -> qkv.Engine:
    return qkv.build(new_folder(), interactions=log, encoder="corpus")


def recommend(engine: qkv.Engine, heads: str | None, user: int) -> Any:
    return engine.recommend(user=user, heads=heads)


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-")) / "ws"


PARTS = {
    "ml-100k": partial(ratings, "MovieLens-100k", "ml-100k"),
    "ml-latest-small": partial(ratings, "MovieLens latest-small", "ml-latest-small"),
    "cost": cost,
}

if __name__ == "__main__":
    main(__file__, PARTS)

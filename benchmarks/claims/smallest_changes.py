"""What would have to be gone for a recommendation not to be there, and what it costs to find.

The training part of MovieLens-1M by implicit feedback (`ml-1m-implicit`), 6,040 users, without
texts, with the heads and shares that the build learns. For every 120th user by the length of the
history, and the longest, a set is looked for for each hit: of the best hit alone (k = 1) and of ten
(k = 10). The time is that of finding the sets, after the ranking, by the number of hits. The sets
are then asked for again, as anyone would, by `without` and `exclude`: how many hits are gone, and
how many sets have an item that is not needed.

QKVSEARCH_DATA=data python benchmarks --only smallest_changes    (two minutes)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder, read_positives
from benchmarks.support.results import Row
from benchmarks.support.script import main

STRIDE = 120
DATA = "ml-1m-implicit"


def build() -> qkv.Engine:
    pairs = read_positives(data_folder() / DATA / "train.txt").tocoo()
    log = pd.DataFrame({"user": pairs.row, "item": pairs.col})
    folder = Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-"))
    return qkv.build(folder / "ws", interactions=log, encoder="corpus")


def is_there(engine: qkv.Engine, user: Any, k: int, hit: Any, gone: Sequence[Any]) -> bool:
    """Whether a hit is among the first k where these items are neither liked nor candidates."""
    return hit in [one.id for one in engine.recommend(user=user, k=k, without=gone, exclude=gone)]


def sets_of(k: int) -> list[Row]:
    seconds: list[float] = []
    sizes: list[int] = []
    n_kept, n_needless = 0, 0
    with build() as engine:
        users = sorted((row["interactions"], row["id"]) for row in engine.users.list())
        chosen = [*users[::STRIDE], users[-1]]
        engine.recommend(user=users[0][1], k=k).smallest(0)  # imports
        for _, user in chosen:
            ranking = engine.recommend(user=user, k=k)
            begun = time.perf_counter()
            found = [ranking.smallest(i)["items"] for i in range(len(ranking))]
            seconds.append((time.perf_counter() - begun) / max(len(ranking), 1))
            for hit, gone in zip(ranking, found, strict=True):
                sizes.append(len(gone))
                if not gone:
                    continue
                n_kept += is_there(engine, user, k, hit.id, gone)
                fewer = [[other for other in gone if other != item] for item in gone]
                n_needless += not all(is_there(engine, user, k, hit.id, some) for some in fewer)
    time_task = f"the smallest set of a hit, {DATA}, time a hit"
    *most, longest = seconds
    times = {f"p{100 * share:.0f} of users": np.quantile(most, share) for share in (0.5, 0.95)}
    times[f"a history of {users[-1][0]:,}"] = longest
    usual = next(iter(times.values()))
    rows = [
        Row(time_task, f"k = {k}, {name}", seconds=float(one), ratio=float(one / usual))
        for name, one in times.items()
    ]
    found_sizes = [size for size in sizes if size]
    figures = {
        "a set is found": len(found_sizes) / len(sizes),
        "a set of one item": sizes.count(1) / len(sizes),
        "asked again, the hit is still there": n_kept / len(found_sizes),
        "asked again, an item is not needed": n_needless / len(found_sizes),
    }
    task = f"the smallest sets of {len(sizes):,} hits, {DATA}, k = {k}"
    return rows + [Row(task, name, "share of hits", share) for name, share in figures.items()]


def first() -> list[Row]:
    return sets_of(1)


def ten() -> list[Row]:
    return sets_of(10)


PARTS = {"first": first, "ten": ten}

if __name__ == "__main__":
    main(__file__, PARTS)

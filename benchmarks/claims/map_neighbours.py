"""How many neighbours the map keeps, and what it costs: t-SNE beside two principal components.

The share of the ten items most similar to an item, by the cosine of the main head's keys, that are
among its ten nearest on the map, for 500 items. The seconds are those of the whole first map.

QKVSEARCH_DATA=data python benchmarks --only map_neighbours    (two minutes)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.decomposition import PCA

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.engine.projection import SEED, neighbours_kept


def on_the_map(name: str, build: Callable[[Path], qkv.Engine]) -> list[Row]:
    with TemporaryDirectory() as folder, build(Path(folder, "w")) as engine:
        start = time.perf_counter()
        item_map = engine.map()
        seconds = time.perf_counter() - start
    keys = item_map.keys
    axes = PCA(2, random_state=SEED).fit_transform(keys)
    task = f"{name}, {len(keys):,} items by {item_map.head}"
    metric = "share of ten neighbours kept"
    return [
        Row(task, "the map (t-SNE)", metric, item_map.neighbours_kept, seconds, 1.0),
        Row(task, "two principal components", metric, neighbours_kept(keys, axes)),
    ]


def _movielens(path: Path) -> qkv.Engine:
    return qkv.build(path, data_folder() / "ml-latest-small", encoder="corpus")


def _ted(path: Path) -> qkv.Engine:
    talks = ted("dev")
    columns = qkv.Columns(id="id", title="title", text=talks.text)
    return qkv.build(path, items=talks.items, columns=columns, encoder="corpus")


PARTS = {
    "movielens": partial(on_the_map, "MovieLens latest-small", _movielens),
    "ted": partial(on_the_map, "TED talks", _ted),
}

if __name__ == "__main__":
    main(__file__, PARTS)

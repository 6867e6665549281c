"""The ten best of a million keys in a memory map, beside the bare product and FAISS's flat index.

Keys have 128 dimensions. recall@10 is the share of the exact ten that are found. NumPy, FAISS and
ours have all cores.

python benchmarks --only dense_speed    (two minutes; peer: pip install faiss-cpu)
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.support.dense_search import search_dense
from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare

N, D, K, BATCH, TURNS = 1_000_000, 128, 10, 64, 9
CLUSTERS = 1000
TUNED = 20, 4096


def million() -> Iterator[Row]:
    rng = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        keys = keys_on_disk(Path(folder), rng)
        # One index for both tasks: it holds a copy of the keys.
        index = flat_index(keys) if installed("faiss-cpu") else None
        yield from times("one query", keys, index, vectors(rng, TURNS)[:, None])
        batches = vectors(rng, TURNS * BATCH).reshape(TURNS, BATCH, D)
        yield from times(f"{BATCH} queries", keys, index, batches)
        tracemalloc.start()
        search_dense(batches[0], keys, K)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        task = f"{N:,} keys of {D}, {BATCH} queries; memory"
        yield Row(task, "qkvsearch", "MB beside the keys", peak / 1e6)


def keys_on_disk(folder: Path, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors about centres, written block by block and opened as a memory map."""
    path = folder / "keys.npy"
    keys = np.lib.format.open_memmap(path, "w+", np.float32, (N, D))
    for begin in range(0, N, 50_000):
        keys[begin : begin + 50_000] = vectors(rng, min(50_000, N - begin))
    keys.flush()
    return np.load(path, mmap_mode="r")


def vectors(rng: np.random.Generator, n: int) -> np.ndarray:
    centres = np.random.default_rng(0).standard_normal((CLUSTERS, D), np.float32)
    found = centres[rng.integers(CLUSTERS, size=n)] + rng.standard_normal((n, D), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def times(task: str, keys: np.ndarray, index: Any, inputs: np.ndarray) -> list[Row]:
    exact = [search_dense(queries, keys, K)[0] for queries in inputs]
    systems = [System("qkvsearch", lambda queries: search_dense(queries, keys, K)[0])]
    if inputs.shape[1] == 1:
        systems.append(System("NumPy, the product alone", lambda queries: keys @ queries[0]))
    if index is not None:
        systems.append(System("`faiss` flat", partial(faiss_search, index, faiss_defaults())))
        # With these, which it once had by default, its batches take a ninth of the time on some
        # machines, so that a comparison with the defaults alone would flatter.
        systems.append(
            System("`faiss` flat, by BLAS in blocks", partial(faiss_search, index, TUNED))
        )

    def recall(made: list[Any]) -> float | None:
        if made[0].ndim != 2:
            return None
        pairs = [pair for both in zip(made, exact, strict=True) for pair in zip(*both, strict=True)]
        return float(np.mean([len(np.intersect1d(found, best)) / K for found, best in pairs]))

    systems = [replace(system, prepare=rested) for system in systems]
    size = f"{N:,} keys of {D}, {task}"
    return compare(size, systems, list(inputs), f"recall@{K}", recall, blas_threads=None)


def rested(queries: np.ndarray) -> np.ndarray:
    """A library's idle threads spin for a while, and would be in the way of the next one's."""
    time.sleep(0.3)
    return queries


def flat_index(keys: np.ndarray) -> Any:
    import faiss

    index = faiss.IndexFlatIP(D)
    index.add(np.asarray(keys))
    return index


@cache
def faiss_defaults() -> tuple[int, int]:
    """From how many queries on it uses BLAS, and how many keys it takes at a time."""
    import faiss

    set_up = faiss.cvar
    return set_up.distance_compute_blas_threshold, set_up.distance_compute_blas_database_bs


def faiss_search(index: Any, options: tuple[int, int], queries: np.ndarray) -> np.ndarray:
    import faiss

    set_up = faiss.cvar
    set_up.distance_compute_blas_threshold, set_up.distance_compute_blas_database_bs = options
    return index.search(np.ascontiguousarray(queries), K)[1]


PARTS = {"million": million}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["faiss-cpu"])

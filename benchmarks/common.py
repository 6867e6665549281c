"""What the claims share: data, NDCG, ours and the peers timed turn by turn, rows of the table."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from qkvsearch import __version__
from qkvsearch.data.ids import id_text

if TYPE_CHECKING:
    from qkvsearch.data.ids import Id
    from qkvsearch.data.judgements import Judgements
    from qkvsearch.engine import Engine

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PEERS = ("implicit", "irspack", "scikit-surprise", "bm25s", "torch", "click")
HEADINGS = ("task", "system", "quality", "time", "time / ours")


@dataclass(frozen=True)
class Row:
    """A line of the table. `ratio` is the time over that of the task's first row, ours by default
    settings.
    """

    task: str
    system: str
    metric: str
    quality: float | None
    seconds: float
    ratio: float


def as_it_is(data: Any) -> Any:
    return data


@dataclass(frozen=True)
class System:
    """A contender: `run` is timed, `prepare`, which brings the data into its own form, is not."""

    name: str
    run: Callable[[Any], Any]
    prepare: Callable[[Any], Any] = as_it_is


# --- timing and the table ---


def compare(
    task: str,
    systems: Sequence[System],
    inputs: Sequence[Any],
    metric: str = "",
    judge: Callable[[list[Any]], float] | None = None,
    per: int = 1,
    blas_threads: int | None = 1,
) -> list[Row]:
    """A row a system, ours first: `judge` of what it made of each input, and its median time over
    the inputs, divided by `per`, the number of things in one.
    """
    made, seconds = in_turns(systems, inputs, blas_threads)
    quality = [judge(results) if judge else None for results in made]
    middle = [median(times) / per for times in seconds]
    return [
        Row(task, system.name, metric, score, took, took / middle[0])
        for system, score, took in zip(systems, quality, middle, strict=True)
    ]


def in_turns(
    systems: Sequence[System], inputs: Sequence[Any], blas_threads: int | None = 1
) -> tuple[list[list[Any]], list[list[float]]]:
    """What each system made of each input, and the seconds it took.

    Every input is one turn of all systems, so that a busy moment of the machine hits all alike. A
    turn before the first warms up. One BLAS thread unless told otherwise (None: all), because peers
    with threads of their own ask for that and are slower with more.
    """
    made: list[list[Any]] = [[] for _ in systems]
    seconds: list[list[float]] = [[] for _ in systems]
    for turn, data in enumerate([inputs[0], *inputs]):
        for place, system in enumerate(systems):
            given = system.prepare(data)
            with threadpool_limits(blas_threads, "blas"):
                began = time.perf_counter()
                result = system.run(given)
                took = time.perf_counter() - began
            if turn:
                made[place].append(result)
                seconds[place].append(took)
    return made, seconds


def print_table(claims: Iterable[Callable[[], list[Row]]]) -> None:
    """Markdown: each claim's rows as soon as they are known, then the machine and the versions."""
    print(_line(HEADINGS), _line(["---"] * len(HEADINGS)), sep="\n", flush=True)
    task = ""
    for claim in claims:
        for row in claim():
            print(_line(_cells(row, row.task != task)), flush=True)
            task = row.task
    here = [f"{name} {version(name)}" for name in PEERS if installed(name)]
    print(f"\n{CORES} cores; Python {platform.python_version()}, qkvsearch {__version__}", end="; ")
    print(", ".join(here))
    absent = [name for name in PEERS if not installed(name)]
    if absent:
        print(f"\nNot installed, so left out: {', '.join(absent)}")


def installed(peer: str) -> bool:
    try:
        return bool(version(peer))
    except PackageNotFoundError:
        return False


def _cells(row: Row, is_first: bool) -> list[str]:
    system = f"**{row.system}**" if row.system.startswith("qkvsearch") else row.system
    quality = "" if row.quality is None else f"{row.metric} " + f"{row.quality:.4f}".lstrip("0")
    return [row.task if is_first else "", system, quality, _time(row.seconds), f"{row.ratio:.2f}"]


def _time(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- data ---


def data_folder() -> Path:
    if not os.environ.get("QKVSEARCH_DATA"):
        raise SystemExit("set QKVSEARCH_DATA to the folder that holds ml-100k, ml-1m, ted, …")
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


# --- searching ---


def ask(engine: Engine, heads: list[str], k: int, texts: Iterable[str]) -> list[list[Id]]:
    """The ids of the first k hits of each query, one query after another, as a person asks."""
    found = (engine.search(text, k=k, heads=heads) for text in texts)
    return [[id_text(hit.id) for hit in ranking] for ranking in found]


def mean_over(
    metric: Callable[..., float], k: int, queries: Iterable[str], judgements: Judgements
) -> Callable[[list[Any]], float]:
    """A judge of what `ask` gave in the last turn: the metric at k, averaged over the queries."""
    grades: list[Mapping[str, int]] = [judgements[query] for query in queries]
    return lambda turns: fmean(map(partial(metric, k=k), turns[-1], grades))


# --- recommending ---


def ndcg(users: np.ndarray, items: np.ndarray, train: csr_matrix, test: csr_matrix) -> float:
    """`ndcg_of` user · item."""
    return ndcg_of(lambda rows: users[rows] @ items.T, train, test)


def ndcg_of(score: Callable[[slice], np.ndarray], train: csr_matrix, test: csr_matrix) -> float:
    """NDCG@20 over all items not in `train`, by scores (n, n_items) of n rows; users without test
    items left out.
    """
    k, total, tested = 20, 0.0, 0
    discount = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discount)
    for start in range(0, train.shape[0], 1024):
        block = slice(start, start + 1024)
        scores = score(block)
        scores[train[block].nonzero()] = -np.inf
        top = np.argpartition(-scores, k, axis=1)[:, :k]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(scores, top, 1), axis=1), 1)
        hits = np.take_along_axis(test[block].toarray() > 0, top, axis=1)
        relevant = np.diff(test[block].indptr)
        some = relevant > 0
        total += (hits[some] @ discount / ideal[np.minimum(relevant[some], k) - 1]).sum()
        tested += some.sum()
    return total / tested

"""What a small change of a large workspace costs, and what segments cost a search.

60,000 made items, their words drawn as often as TED talks have them, with 300,000 interactions, and
the static encoder. Times of commands are processor seconds beyond those of `info`, which starts the
process and opens the workspace as they do; megabytes are what the workspace grew by. Searches are
of 200 drawn queries, by turns in one process, and as whole processes.

python benchmarks --only store    (about five minutes)
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.large_log import texts
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare, with_times

ITEMS, USERS, LOG, ADDED, SEGMENTS = 60_000, 20_000, 300_000, 10, 20
QUERIES, TURNS, STARTS, RUNS = 200, 7, 15, 5
MEGABYTES = "MB of disk"


def items(first: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    columns = {
        "id": range(first, first + n),
        "title": texts(n, 3, 12, rng),
        "tags": ["|".join(text.split()) for text in texts(n, 1, 4, rng)],
        "year": rng.integers(1990, 2026, size=n),
    }
    return pd.DataFrame(columns)


def log() -> pd.DataFrame:
    """The more popular an item, the more often it is drawn, by a power of its rank."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1, ITEMS + 1) ** 0.8
    return pd.DataFrame(
        {
            "user": rng.integers(USERS, size=LOG),
            "item": rng.choice(ITEMS, size=LOG, p=shares / shares.sum()),
        }
    )


@cache
def tables() -> Path:
    folder = Path(mkdtemp(prefix="store-"))
    items(0, ITEMS).to_csv(folder / "items.csv", index=False)
    log().to_csv(folder / "log.csv", index=False)
    for number in range(SEGMENTS):
        items(ITEMS + number * ADDED, ADDED).to_csv(folder / f"new-{number}.csv", index=False)
    return folder


def changes() -> list[Row]:
    """A build of all items beside an `add` and a `remove`."""
    folder = tables()
    workspace = folder / "changed"
    shutil.rmtree(workspace, ignore_errors=True)
    given = ["--items", folder / "items.csv", "--interactions", folder / "log.csv"]
    built = run(workspace, "build", *given, "--encoder", "static")
    megabytes = size(workspace)
    started = median(run(workspace, "info") for _ in range(RUNS))
    yes = ["--yes"] if "--yes" in help_of("remove") else []
    found = {
        f"`add` of {ADDED} items": steps(
            workspace, lambda number: ["add", folder / f"new-{number}.csv"]
        ),
        f"`remove` of {ADDED} items": steps(
            workspace,
            lambda number: [
                "remove",
                *yes,
                "--where",
                f"id >= {number * 10} AND id < {number * 10 + 10}",
            ],
        ),
        f"`build` of {ITEMS:,} items": (built, megabytes),
    }
    rows = [
        Row(f"{ITEMS:,} items with static", name, MEGABYTES, grown)
        for name, (_, grown) in found.items()
    ]
    return with_times(rows, [took - started for took, _ in found.values()])


def steps(workspace: Path, command: Callable[[int], list]) -> tuple[float, float]:
    """Median processor seconds and megabytes of a few commands, one after another; the first, for
    which the machine reads the code from its disk, is left out.
    """
    took, grown = [], []
    for number in range(RUNS + 1):
        before = size(workspace)
        took.append(run(workspace, *command(number)))
        grown.append(size(workspace) - before)
    return median(took[1:]), median(grown[1:])


def run(workspace: Path, *words: object) -> float:
    """Processor seconds of a command, those of its threads and of the system for it included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start("-q", "-w", workspace, *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start(*words: object) -> str:
    command = [sys.executable, "-m", "qkvsearch", *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def help_of(command: str) -> str:
    return start(command, "--help")


def size(folder: Path) -> float:
    """Megabytes of all files, each once, however many names it has."""
    files = (file.stat() for file in folder.rglob("*") if file.is_file())
    return sum({found.st_ino: found.st_size for found in files}.values()) / 1e6


@cache
def workspaces() -> tuple[Path, Path]:
    """One with segments, and the same merged."""
    folder = tables()
    segments, merged = folder / "segments", folder / "merged"
    shutil.rmtree(segments, ignore_errors=True)
    shutil.rmtree(merged, ignore_errors=True)
    engine = qkv.build(
        segments, items=folder / "items.csv", interactions=folder / "log.csv", encoder="static"
    )
    for number in range(SEGMENTS):
        engine.add(folder / f"new-{number}.csv")
    engine.close()
    shutil.copytree(segments, merged)
    start("-q", "-w", merged, "compact", "--drop-builds")
    return merged, segments


def searches() -> list[Row]:
    """In one process: queries one after another."""
    merged, segments = (qkv.open(path) for path in workspaces())
    queries = texts(QUERIES, 2, 5, np.random.default_rng(2))
    assert [answers(merged, query) for query in queries] == [
        answers(segments, query) for query in queries
    ]
    systems = [
        System("merged", lambda some: [merged.search(query) for query in some]),
        System(
            f"base and {SEGMENTS} segments", lambda some: [segments.search(query) for query in some]
        ),
    ]
    task = f"a search of {ITEMS:,} items"
    return compare(task, systems, [queries], turns=TURNS, per=QUERIES)


def answers(engine: qkv.Engine, query: str) -> list[dict]:
    return engine.search(query).to_records()


def processes() -> list[Row]:
    """Whole processes, from a cold start of Python."""
    systems = [
        System(name, lambda _, path=path: start("-w", path, "search", "power of the mind"))
        for name, path in zip(
            ("merged", f"base and {SEGMENTS} segments"), workspaces(), strict=True
        )
    ]
    return compare(f"`search` of {ITEMS:,} items", systems, [None], turns=STARTS)


PARTS = {"changes": changes, "searches": searches, "processes": processes}

if __name__ == "__main__":
    os.environ.setdefault("QKVSEARCH_MODELS", str(tables() / "no-models"))
    main(__file__, PARTS)

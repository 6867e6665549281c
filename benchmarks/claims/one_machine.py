"""How far one machine goes: long logs and large catalogs, each built in a process of its own.

Logs are of Parquet, power laws of users and items, 64 components, the corpus encoder on titles of
two words; catalogs have titles of eight words and no log. Memory is the most that the process had,
pages of files included, reading included. Disk is that of the workspace. An iteration is of all
but the first of ten, and its seconds are those of processors, as a busy machine gives them too: on
an idle one divide them by its cores. Opening is a whole process that answers one question.

python benchmarks --only one_machine    (Linux, half an hour; extras by name:
python -m benchmarks.claims.one_machine "100 million" "1 million items"    20 minutes each)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.support.long_log import write_catalog, write_long_log
from benchmarks.support.results import Row
from benchmarks.support.script import main

GIGABYTES, SECONDS = "GB", "seconds"
# Of a log: interactions, users, items.
LOGS = {
    "1 million": (1_000_000, 20_000, 20_000),
    "10 million": (10_000_000, 200_000, 60_000),
    "30 million": (30_000_000, 400_000, 60_000),
}
LONGEST = {"100 million": (100_000_000, 1_000_000, 100_000)}
CATALOGS = {"10 thousand items": 10_000, "100 thousand items": 100_000}
LARGEST = {"1 million items": 1_000_000}
WORDS = 8


def log(n: int, n_users: int, n_items: int) -> list[Row]:
    """A build of a log, and what a person of it is recommended."""
    task = f"{n:,} interactions, {n_users:,} users, {n_items:,} items"
    with TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as place:
        items, rows = Path(place, "items.parquet"), Path(place, "log.parquet")
        write_catalog(items, n_items, 0)
        write_long_log(rows, n, n_users, n_items)
        found, workspace = built(place, items, rows)
        per_pair = found["iteration_work"] / n
        return [
            *of_all(task, found, workspace),
            *rows_of(task, "of it, reading items and log", found["read_peak"], found["read"]),
            Row(task, "an iteration", SECONDS, found["iteration_work"]),
            Row(task, "an iteration, a million interactions", SECONDS, per_pair * 1e6),
            *opened(task, "recommend --user", workspace, ["recommend", "--user", "7"]),
        ]


def catalog(n_items: int) -> list[Row]:
    """A build of a catalog without a log, and a search in it."""
    task = f"{n_items:,} items of {WORDS} words"
    with TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as place:
        items = Path(place, "items.parquet")
        write_catalog(items, n_items, WORDS)
        found, workspace = built(place, items, None)
        return [
            *of_all(task, found, workspace),
            *opened(task, "search", workspace, ["search", "w1f w2a0"]),
        ]


def built(place: str, items: Path, rows: Path | None) -> tuple[dict[str, float], Path]:
    """What the steps took, and where the workspace is."""
    workspace = Path(place, "ws")
    words = [sys.executable, "-m", "benchmarks.support.build_steps", str(workspace), str(items)]
    words += ["corpus", *([str(rows)] if rows else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout), workspace


def of_all(task: str, found: dict[str, float], workspace: Path) -> list[Row]:
    stored = sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    return [
        *rows_of(task, "a build", found["peak"], found["seconds"]),
        Row(task, "its workspace on disk", GIGABYTES, stored / 1e9),
    ]


def opened(task: str, name: str, workspace: Path, asked: Sequence[str]) -> list[Row]:
    """A process that answers one question: memory and wall-clock seconds."""
    words = [sys.executable, "-m", "qkvsearch", "-q", "-w", str(workspace), *asked]
    start = perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(status, words)
    return rows_of(task, name, used.ru_maxrss * 1024, perf_counter() - start)


def rows_of(task: str, name: str, memory: float, seconds: float) -> list[Row]:
    """memory: bytes at the most."""
    return [Row(task, name, GIGABYTES, memory / 1e9), Row(task, name, SECONDS, seconds)]


PARTS = {name: partial(log, *size) for name, size in LOGS.items()} | {
    name: partial(catalog, n) for name, n in CATALOGS.items()
}
EXTRA = {name: partial(log, *size) for name, size in LONGEST.items()} | {
    name: partial(catalog, n) for name, n in LARGEST.items()
}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA, peers=["pyarrow"])

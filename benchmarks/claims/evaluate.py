"""What it takes to judge recommendations by a large log.

The log is made: items with words of TED talks, users of a few topics, popularity by a power of the
rank, with ratings and times. `evaluate recommend` is a whole process with all baselines, its memory
the most that it ever had; the bar is what it may take. Times are processor seconds, those of all
threads together. *before* is commit a7aee2e on the same log, by a workspace of its own: measured
where QKVSEARCH_BEFORE names the Python that has it. Of 60,000 items it was not done after 8
minutes, so that both are compared on 20,000, each by its defaults: ours judges 2,000 users, and
EASE^R knows the 10,000 items that most users met; the version before judges all, with EASE^R of all
items.

python benchmarks --only evaluate    (about five minutes)
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from benchmarks.support.large_log import write_large_log
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import with_times

LARGE, SMALL = (60_000, 60_000, 600_000), (20_000, 20_000, 200_000)
MEMORY = "GB at most"
BAR_SECONDS, BAR_GB = 120.0, 3.0
NOW, BEFORE = sys.executable, os.environ.get("QKVSEARCH_BEFORE")


def large() -> list[Row]:
    """The log that the bar is for."""
    took, gigabytes = evaluated(NOW, built(NOW, LARGE))
    task = f"`evaluate recommend`, {shape(LARGE)}"
    rows = [
        Row(task, "qkvsearch, all baselines", MEMORY, gigabytes),
        Row(task, "the bar", MEMORY, BAR_GB),
    ]
    return with_times(rows, [took, BAR_SECONDS])


def small() -> list[Row]:
    """A log that the version before can judge by."""
    task = f"`evaluate recommend`, {shape(SMALL)}"
    found = [evaluated(python, built(python, SMALL)) for python in versions()]
    rows = [
        Row(task, name, MEMORY, gigabytes)
        for name, (_, gigabytes) in zip(versions().values(), found, strict=True)
    ]
    return with_times(rows, [took for took, _ in found])


def versions() -> dict[str, str]:
    """Pythons by what they are called in a row."""
    return {NOW: "qkvsearch, all baselines"} | ({BEFORE: "before"} if BEFORE else {})


def shape(log: tuple[int, int, int]) -> str:
    return f"{log[0]:,} items × {log[2]:,} interactions"


@cache
def data(log: tuple[int, int, int]) -> tuple[Path, Path]:
    return write_large_log(Path(mkdtemp(prefix="log-")), *log)


@cache
def built(python: str, log: tuple[int, int, int]) -> Path:
    """A workspace of a version's own."""
    items, interactions = data(log)
    path = Path(mkdtemp(prefix="workspace-")) / "ws"
    start(
        *(python, "-m", "qkvsearch", "-q", "-w", path, "build", "--items", items),
        *("--interactions", interactions, "--encoder", "static"),
    )
    return path


def evaluated(python: str, workspace: Path) -> tuple[float, float]:
    """Processor seconds, and the gigabytes that the process had at most."""
    command = [python, "-m", "qkvsearch", "-q", "-w", workspace, "evaluate", "recommend"]
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.DEVNULL,
        env=environment(python),
        cwd=gettempdir(),
    )
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def start(python: str, *words: object) -> str:
    command = [python, *map(str, words)]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=environment(python),
        cwd=gettempdir(),
    )
    return done.stdout


def environment(python: str) -> dict[str, str]:
    """With PYTHONPATH for this version alone, which may be run from its sources; no process finds
    these in the folder that it starts in.
    """
    own = {} if python == NOW else {"PYTHONPATH"}
    return {name: value for name, value in os.environ.items() if name not in own}


PARTS = {"large": large, "small": small}

if __name__ == "__main__":
    main(__file__, PARTS)

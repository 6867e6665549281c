"""What it takes to judge recommendations, and to find whom a user is like, by a large log.

The log is made: items with words of TED talks, users of a few topics, popularity by a power of the
rank, with ratings and times. `evaluate recommend` is a whole process with all baselines, its memory
the most that it ever had; the bar is what it may take. `similar` of users is asked of an opened
workspace, whose users' vectors are in the build; where known items left since, all users are solved
at the first question. Times are processor seconds, those of all threads together. *before* is
commit a7aee2e on the same log, by a workspace of its own: measured where QKVSEARCH_BEFORE names the
Python that has it. Of 60,000 items it was not done after 8 minutes, so that both are compared on
20,000, each by its defaults: ours judges 2,000 users, and EASE^R knows the 10,000 items that most
users met; the version before judges all, with EASE^R of all items.

python benchmarks --only evaluate    (about five minutes)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import gettempdir, mkdtemp

import pandas as pd

from benchmarks.support.large_log import write_large_log
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import with_times

LARGE, SMALL = (60_000, 60_000, 600_000), (20_000, 20_000, 200_000)
MEMORY = "GB at most"
BAR_SECONDS, BAR_GB = 120.0, 3.0
ASKED = 5
NOW, BEFORE = sys.executable, os.environ.get("QKVSEARCH_BEFORE")

# Prints the processor seconds of a few questions, one after another, in whatever version runs it.
ASK = """
import json, sys, time
import qkvsearch
engine = qkvsearch.open(sys.argv[1])
if "remove" in sys.argv:
    counts = engine.models.item_counts
    engine.remove([engine.snapshot.catalog.ids("items")[int(counts.argmax())]])
found = []
for user in json.loads(sys.argv[2]):
    began = time.process_time()
    engine.similar_users(user, k=10)
    found.append(time.process_time() - began)
print(json.dumps(found))
"""


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


def users() -> list[Row]:
    """Whom a user is like, in an opened workspace."""
    task = f"`similar` of users, {LARGE[1]:,} users, one question"
    names = ["qkvsearch", "qkvsearch, the first after known items left"]
    workspace = built(NOW, LARGE, texts=False)
    times = [median(asked(NOW, workspace)), asked(NOW, copied(workspace), "remove")[0]]
    if BEFORE:
        names.append("before")
        times.append(median(asked(BEFORE, built(BEFORE, LARGE, texts=False))))
    return with_times([Row(task, name) for name in names], times)


def versions() -> dict[str, str]:
    """Pythons by what they are called in a row."""
    return {NOW: "qkvsearch, all baselines"} | ({BEFORE: "before"} if BEFORE else {})


def shape(log: tuple[int, int, int]) -> str:
    return f"{log[0]:,} items × {log[2]:,} interactions"


@cache
def data(log: tuple[int, int, int]) -> tuple[Path, Path]:
    return write_large_log(Path(mkdtemp(prefix="log-")), *log)


@cache
def built(python: str, log: tuple[int, int, int], texts: bool = True) -> Path:
    """A workspace of a version's own, without texts that of the log alone."""
    items, interactions = data(log)
    path = Path(mkdtemp(prefix="workspace-")) / "ws"
    given = ["--items", items, "--encoder", "static"] if texts else ["--encoder", "corpus"]
    start(
        *(python, "-m", "qkvsearch", "-q", "-w", path, "build"),
        *("--interactions", interactions, *given),
    )
    return path


def copied(workspace: Path) -> Path:
    copy = Path(mkdtemp(prefix="workspace-")) / "ws"
    subprocess.run(["cp", "-r", workspace, copy], check=True)
    return copy


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


def asked(python: str, workspace: Path, *words: str) -> list[float]:
    """Processor seconds of a few questions; the first of several reads the files: left out."""
    named = pd.read_csv(data(LARGE)[1], nrows=ASKED + 1)["user"].tolist()
    found = json.loads(start(python, "-c", ASK, workspace, json.dumps(named), *words))
    return found if words else found[1:]


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


PARTS = {"large": large, "small": small, "users": users}

if __name__ == "__main__":
    main(__file__, PARTS)

"""What a search takes: alone, beside others and other work, and among a million items.

The queries are the first 200 of TED's dev queries, over 2,550 talks (titles and tags), each asked
once by an engine that has answered five others, so that few of their words are cached. Threads
are compared, and searches beside a process that keeps a core busy, once all queries were asked.
*before* is commit a7aee2e, with a workspace of its own, where QKVSEARCH_BEFORE is its Python. The
encoder alone is sentence-transformers on the same queries. Each version is a process of its own,
with the threads that it takes by itself, turn by turn with the others; a figure is the median of
three turns. A million items have made titles and tags of a real vocabulary; a full scan is the same
engine without int8 keys.

python benchmarks --only search_speed    (five minutes; the part `million` ten)
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

import numpy as np

from benchmarks.support import sentence_peer
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import with_times

NOW, BEFORE = sys.executable, os.environ.get("QKVSEARCH_BEFORE")
TURNS, N_QUERIES = 3, 200
MANY = 1_000_000
THROUGHPUT, TAIL = "throughput over one", "p99 over p50"

# Prints the milliseconds of each query, asked one by one, by four threads, and for some seconds.
ASK = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
import qkvsearch
how, path = sys.argv[1:3]
queries = json.load(open(sys.argv[3], encoding="utf-8"))
engine = qkvsearch.open(path)
def took(query):
    began = time.perf_counter()
    engine.search(query)
    return 1e3 * (time.perf_counter() - began)
for query in queries[:5]:
    took(query)
if how in ("again", "threads"):
    list(map(took, queries))
began = time.perf_counter()
if how == "seconds":
    found = []
    while time.perf_counter() - began < 6:
        found.append(took(queries[len(found) % len(queries)]))
elif how == "threads":
    list(map(took, queries))
    one, began = time.perf_counter() - began, time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(took, queries))
    print(json.dumps({"ms": found, "over one": one / (time.perf_counter() - began)}))
    sys.exit()
else:
    found = list(map(took, queries))
print(json.dumps({"ms": found, "seconds": time.perf_counter() - began}))
"""
PEER = """
import json, sys, time
from benchmarks.support.sentence_peer import sentence_transformer
queries = json.load(open(sys.argv[1], encoding="utf-8"))
model, found = sentence_transformer(), []
for query in [*queries[:5], *queries]:
    began = time.perf_counter()
    model.encode(query)
    found.append(1e3 * (time.perf_counter() - began))
print(json.dumps({"ms": found[5:]}))
"""
BUSY = "while True: sum(range(100_000))"


def talks() -> list[Row]:
    """One search after another."""
    rows: list[Row] = []
    for encoder in ("corpus", "static"):
        times = by_turns({name: ("once", python, encoder) for python, name in versions().items()})
        rows += rows_of(f"a search of 2,550 talks, {encoder}", times)
    if sentence_peer.is_here():
        peer = "encoding the query alone by sentence-transformers"
        times = by_turns({"qkvsearch": ("once", NOW, "minilm"), peer: None})
        rows += rows_of("a search of 2,550 talks, minilm with every head", times)
    return rows


def threads() -> list[Row]:
    """Four threads that ask one engine."""
    task, rows = "four threads on one engine, 2,550 talks, static", []
    for python, name in versions().items():
        found = [asked("threads", python, "static") for _ in range(TURNS)]
        rows.append(Row(task, name, THROUGHPUT, median(one["over one"] for one in found)))
        tails = [np.quantile(one["ms"], 0.99) / np.median(one["ms"]) for one in found]
        rows.append(Row(task, f"{name}, its slowest", TAIL, float(median(tails))))
    return rows


def processes() -> list[Row]:
    """Two processes that ask one workspace, for six seconds each."""
    path, rows = workspace(NOW, "static"), []
    for _ in range(TURNS):
        alone = finished(started("seconds", NOW, path))
        both = [started("seconds", NOW, path) for _ in range(2)]
        found = list(map(finished, both))
        rows.append(sum(map(rate, found)) / rate(alone))
    task = "two processes on one workspace, 2,550 talks, static"
    return [Row(task, "qkvsearch", THROUGHPUT, median(rows))]


def busy() -> list[Row]:
    """Beside a process that keeps one core busy, over alone."""
    rows = []
    for encoder in ("static", "minilm"):
        task = f"beside a busy process, over alone, 2,550 talks, {encoder}"
        middle, high = [], []
        for _ in range(TURNS):
            alone = asked("again", NOW, encoder)["ms"]
            other = subprocess.Popen([sys.executable, "-c", BUSY])
            beside = asked("again", NOW, encoder)["ms"]
            other.kill()
            other.wait()
            middle.append(np.median(beside) / np.median(alone))
            high.append(np.quantile(beside, 0.95) / np.quantile(alone, 0.95))
        rows.append(Row(task, "qkvsearch, median", "over alone", float(median(middle))))
        rows.append(Row(task, "qkvsearch, 95th percentile", "over alone", float(median(high))))
    return rows


def million() -> list[Row]:
    """A million items, by int8 keys and by a full scan."""
    import qkvsearch as qkv
    from qkvsearch.heads.dense import DenseComponent
    from qkvsearch.heads.dense_keys import DenseKeys
    from qkvsearch.tables.columns import Columns

    folder = Path(mkdtemp(prefix="million-"))
    queries = made_items(folder)
    path = folder / "items.csv"
    columns = Columns(text=["title", "tags"])
    qkv.build(folder / "ws", path, columns=columns, encoder="static").close()
    times: dict[str, list[float]] = {}
    answers = {}
    with qkv.open(folder / "ws") as engine:
        for name in ("qkvsearch", "qkvsearch, full scan"):
            if name != "qkvsearch":
                for head in engine.models.dense_heads:
                    stored = engine.models.load(DenseComponent(head))
                    vars(stored)["keys"] = DenseKeys(stored.keys.vectors)
            answers[name], times[name] = timed_answers(engine, queries)
    first, second = answers.values()
    same = sum(one == other for one, other in zip(first, second, strict=True)) / len(queries)
    task = f"a search of {MANY:,} items, static"
    rows = [Row(task, name, "share of the same ten hits", same) for name in times]
    return with_times(rows, [median(of) / 1e3 for of in times.values()])


# --- versions, workspaces and questions ---


def versions() -> dict[str, str]:
    """Pythons by what they are called in a row."""
    return {NOW: "qkvsearch"} | ({BEFORE: "before"} if BEFORE else {})


@cache
def queries_file() -> Path:
    lines = (data_folder() / "ted" / "queries_dev.tsv").read_text("utf-8").splitlines()
    path = Path(mkdtemp(prefix="queries-")) / "queries.json"
    path.write_text(json.dumps([line.split("\t", 1)[1] for line in lines[:N_QUERIES]]), "utf-8")
    return path


@cache
def workspace(python: str, encoder: str) -> Path:
    """The talks, built by a version for itself."""
    path = Path(mkdtemp(prefix="talks-")) / "ws"
    items = data_folder() / "ted" / "talks.csv"
    given = ["--id-column", "id", "--title-column", "title", "--text-columns", "title,tags"]
    command = ["-q", "-w", path, "build", "--items", items, *given, "--encoder", encoder]
    subprocess.run([python, "-m", "qkvsearch", *command], check=True, **surroundings(python))
    return path


def surroundings(python: str) -> dict[str, Any]:
    """Where a version runs, so that it is this one that is imported."""
    ours = {} if python == BEFORE else {"PYTHONPATH": os.pathsep.join(sys.path)}
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {"env": others | ours, "cwd": tempfile.gettempdir(), "stdout": subprocess.PIPE}


def by_turns(
    systems: Mapping[str, tuple[str, str, str] | None],
) -> dict[str, list[float]]:
    """The median milliseconds of a query in each turn, by system; None is the encoder alone."""
    found: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(TURNS):
        for name, how in systems.items():
            one = run(NOW, PEER, queries_file()) if how is None else asked(*how)
            found[name].append(median(one["ms"]))
    return found


def rows_of(task: str, times: Mapping[str, list[float]]) -> list[Row]:
    return with_times(
        [Row(task, name) for name in times], [median(ms) / 1e3 for ms in times.values()]
    )


def asked(how: str, python: str, encoder: str) -> dict:
    return run(python, ASK, how, workspace(python, encoder), queries_file())


def started(how: str, python: str, path: Path) -> subprocess.Popen:
    command = [python, "-c", ASK, how, path, queries_file()]
    return subprocess.Popen(command, text=True, **surroundings(python))


def finished(process: subprocess.Popen) -> dict:
    return json.loads(process.communicate()[0])


def rate(found: dict) -> float:
    return len(found["ms"]) / found["seconds"]


def run(python: str, script: str, *given: object) -> dict:
    command = [python, "-c", script, *map(str, given)]
    return json.loads(subprocess.run(command, check=True, **surroundings(python)).stdout)


def timed_answers(engine, queries: list[str]) -> tuple[list, list[float]]:
    import time

    found, times = [], []
    for query in [*queries[:5], *queries]:
        began = time.perf_counter()
        found.append([hit.id for hit in engine.search(query)])
        times.append(1e3 * (time.perf_counter() - began))
    return found[5:], times[5:]


def made_items(folder: Path, many: int = MANY) -> list[str]:
    """Writes items.csv: words drawn as often as TED's talks have them. Queries of such words come
    back.
    """
    from collections import Counter

    from qkvsearch.text.analysis import words

    text = (data_folder() / "ted" / "talks.csv").read_text("utf-8")
    counts = Counter(words(text))
    vocabulary, shares = np.array(list(counts)), np.array(list(counts.values()), dtype=float)
    rng = np.random.default_rng(0)

    def drawn(n: int) -> str:
        return " ".join(rng.choice(vocabulary, n, p=shares / shares.sum()))

    pool = [drawn(int(n)) for n in rng.integers(3, 9, 200_000)]
    with (folder / "items.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "title", "tags"])
        for number in range(many):
            title, tags = (pool[i] for i in rng.integers(0, len(pool), 2))
            rows.writerow([f"x{number:07d}", f"{title} {tags.split()[0]}", tags])
    return [drawn(int(n)) for n in rng.integers(1, 6, 60)]


PARTS = {"talks": talks, "threads": threads, "processes": processes, "busy": busy}

if __name__ == "__main__":
    main(__file__, PARTS, {"million": million}, peers=["sentence-transformers", "torch"])

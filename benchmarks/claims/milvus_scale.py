"""Keys in Milvus beside keys in the workspace: 100,000 made items, and the talks of TED.

The items have made titles and tags of a real vocabulary, and queries of such words; of the talks
the queries are the first 100 of TED's dev queries. Both workspaces are built by the static encoder,
one with `keys` in a file of Milvus Lite. *found*, *apart* and *weights* are the share of the ten
best hits of the other one that it has among its own ten, the largest difference of the scores of
such hits, and that of their weights, as a share. A search is timed turn by turn once each engine
has answered five others; the first search of a process opens the file and makes its indexes. From
100,000 items on the workspace with its own keys scores by int8 keys first.

python benchmarks --only milvus_scale    (half an hour, most of it writing to Milvus Lite)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

from benchmarks.claims.search_speed import made_items
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import with_times

MANY, N_QUERIES, WARM = 100_000, 100, 5
HERE, THERE = "keys in the workspace", "keys in Milvus Lite"


def made() -> list[Row]:
    """100,000 items."""
    folder = Path(mkdtemp(prefix="milvus-"))
    queries = made_items(folder, MANY)
    return compared(f"{MANY:,} made items, static", folder, folder / "items.csv", queries)


def talks() -> list[Row]:
    """2,550 talks."""
    ted = data_folder() / "ted"
    lines = (ted / "queries_dev.tsv").read_text("utf-8").splitlines()[:N_QUERIES]
    queries = [line.split("\t", 1)[1] for line in lines]
    return compared(
        "2,550 talks, static", Path(mkdtemp(prefix="milvus-")), ted / "talks.csv", queries
    )


def compared(task: str, folder: Path, items: Path, queries: Sequence[str]) -> list[Row]:
    import qkvsearch as qkv

    columns = qkv.Columns(id="id", title="title", text=["title", "tags"])
    took, engines = [], []
    for place in (None, f"milvus:{folder}/keys.db"):
        began = time.perf_counter()
        path = folder / ("there" if place else "here")
        engines.append(qkv.build(path, items, columns=columns, encoder="static", keys=place))
        took.append(time.perf_counter() - began)
    here, there = (
        [{hit.id: hit for hit in engine.search(query)} for query in queries] for engine in engines
    )
    pairs = [(a[id_], b[id_]) for a, b in zip(here, there, strict=True) for id_ in a.keys() & b]
    n_found = len(pairs) / sum(map(len, here))
    apart = max(abs(a.score - b.score) for a, b in pairs)
    weights = max(abs(b.weight / a.weight - 1) for a, b in pairs)
    rows = [
        Row(task, f"{THERE}, found", "local top ten found", n_found),
        Row(task, f"{THERE}, apart", "score difference", apart),
        Row(task, f"{THERE}, weights", "weight difference", weights),
    ]
    built = with_times([Row(f"building {task}", name) for name in (HERE, THERE)], took)
    times = by_turns([engine.search for engine in engines], queries)
    asked = with_times([Row(f"a search of {task}", name) for name in (HERE, THERE)], times)
    for engine in engines:
        engine.close()
    return [*rows, *asked, *built]


def by_turns(searches: Sequence[Callable], queries: Sequence[str]) -> list[float]:
    """The median seconds of a query, by search."""
    found: list[list[float]] = [[] for _ in searches]
    for query in [*queries[:WARM], *queries]:
        for times, search in zip(found, searches, strict=True):
            began = time.perf_counter()
            search(query)
            times.append(time.perf_counter() - began)
    return [median(times[WARM:]) for times in found]


PARTS = {"talks": talks, "made": made}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["pymilvus", "milvus-lite"])

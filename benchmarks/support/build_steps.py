"""Builds a workspace and prints what the steps took, as JSON.

python -m benchmarks.support.build_steps WORKSPACE ITEMS ENCODER [INTERACTIONS]    (Linux)
"""

from __future__ import annotations

import json
import sys
from time import perf_counter, process_time

from benchmarks.support.memory import peak
from qkvsearch.learn.builder import build_workspace
from qkvsearch.store import Workspace
from qkvsearch.tables.sources import read_source

LEARNING = "learning preferences"


def steps(workspace: str, items: str, encoder: str, interactions: str | None = None) -> None:
    start = perf_counter(), process_time()
    dataset = read_source(items=items, interactions=interactions)
    read, read_peak = perf_counter(), peak()
    iterations: list[tuple[float, float]] = []

    def told(stage: str, done: int, _: int) -> None:
        if stage == LEARNING and done:
            iterations.append((perf_counter(), process_time()))

    build_workspace(Workspace(workspace), dataset, encoder=encoder, progress=told)
    n = len(iterations) - 1
    # The first iteration may compile, so that it is left out.
    wall, work = (((iterations[-1][i] - iterations[0][i]) / n if n > 0 else None) for i in range(2))
    found = {
        "read": read - start[0],
        "read_peak": read_peak,
        "iteration": wall,
        "iteration_work": work,
        "seconds": perf_counter() - start[0],
        "work": process_time() - start[1],
        "peak": peak(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    steps(*sys.argv[1:])

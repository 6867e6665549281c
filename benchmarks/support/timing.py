"""Ours and its peers timed turn by turn, and judged by what they made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.support.results import Row

# Whether times are wanted. Without them every input is given once, and nothing warms up.
with_clock = True


def unchanged(data: Any) -> Any:
    return data


def rescored(data: Any) -> Any:
    """A peer's threads spin for a while in wait of more, at the cost of who is next: this waits."""
    time.sleep(0.02)
    return data


@dataclass(frozen=True)
class System:
    """A contender: `run` is timed, `prepare`, which brings the data into its own form, is not."""

    name: str
    run: Callable[[Any], Any]
    prepare: Callable[[Any], Any] = unchanged


def compare(
    task: str,
    systems: Sequence[System],
    inputs: Sequence[Any],
    metric: str = "",
    judge: Callable[[list[Any]], float | None] | None = None,
    *,
    turns: int = 1,
    per: int = 1,
    blas_threads: int | None = 1,
) -> list[Row]:
    """A row a system, ours first: `judge` of what it made of the inputs, and its median time over
    all inputs of all turns, divided by `per`, the number of things in one input.

    Every input is one round of all systems, so that a busy moment of the machine hits all alike. A
    round before the first warms up. One BLAS thread unless told otherwise (None: all), because
    peers with threads of their own ask for that and are slower with more.
    """
    made: list[list[Any]] = [[] for _ in systems]
    seconds: list[list[float]] = [[] for _ in systems]
    rounds = [inputs[0], *(turns * list(inputs))] if with_clock else inputs
    for number, data in enumerate(rounds, start=0 if with_clock else 1):
        for place, system in enumerate(systems):
            given = system.prepare(data)
            with threadpool_limits(blas_threads, "blas"):
                took, result = timed(lambda: system.run(given))  # noqa: B023
            if number:
                made[place] = [*made[place], result][-len(inputs) :]
                seconds[place].append(took)
    rows = [
        Row(task, system.name, metric if judge else "", judge(results) if judge else None)
        for system, results in zip(systems, made, strict=True)
    ]
    return with_times(rows, [median(times) / per for times in seconds])


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that it takes, and its result."""
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def with_times(rows: Sequence[Row], seconds: Sequence[float]) -> list[Row]:
    """The rows of one task with their times, and these over that of the first."""
    return [
        replace(row, seconds=took, ratio=took / seconds[0])
        for row, took in zip(rows, seconds, strict=True)
    ]

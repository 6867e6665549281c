"""Rows of figures, and the files that keep them: a line of JSON a row, benchmarks/results/*.jsonl.

A line has the fields of its `Row`, the script's part that made it, and those of its `Run`. Needs
nothing but Python, so that whoever has the files can render them.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

RESULTS = Path(__file__).parents[1] / "results"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
DIGITS = 6


@dataclass(frozen=True)
class Row:
    """What one system did at one task.

    task: what is done, on which data. quality: in units of `metric`, None where only time is
    measured. seconds: the median time, None where only quality is measured. ratio: `seconds` over
    those of the first row of the task, which is ours by its defaults.
    """

    task: str
    system: str
    metric: str = ""
    quality: float | None = None
    seconds: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Run:
    """When a row was made, on what machine, by which versions."""

    date: str
    cpu: str
    cores: int
    versions: dict[str, str]

    @classmethod
    def here(cls, peers: Iterable[str] = ()) -> Self:
        names = ["qkvsearch", "numpy", *peers]
        installed_ones = {name: version(name) for name in names if installed(name)}
        versions = {"python": platform.python_version(), **installed_ones}
        return cls(datetime.now(UTC).date().isoformat(), _cpu(), CORES, versions)


@dataclass(frozen=True)
class Result:
    """A row, the part of the script that made it, and its run."""

    row: Row
    part: str
    run: Run


def installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def read(script: str, folder: Path = RESULTS) -> list[Result]:
    """The rows of a script, in the order of its parts; none where it was not run."""
    path = folder / f"{script}.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [_result(json.loads(line)) for line in lines]


def keep(
    script: str,
    part: str,
    rows: Iterable[Row],
    run: Run,
    parts: Iterable[str],
    folder: Path = RESULTS,
) -> None:
    """Write the rows of one part in place of those that it made before; other parts stay.

    parts: the script's, in their order. Rows of parts that it has no longer are dropped.
    """
    of_part = {name: [old for old in read(script, folder) if old.part == name] for name in parts}
    of_part[part] = [Result(row, part, run) for row in rows]
    lines = [_line(result) for results in of_part.values() for result in results]
    folder.mkdir(exist_ok=True)
    path = folder / f"{script}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _line(result: Result) -> str:
    record = asdict(result.row) | {"part": result.part} | asdict(result.run)
    shown = {name: _short(value) for name, value in record.items() if value not in (None, "")}
    return json.dumps(shown, ensure_ascii=False)


def _short(value: Any) -> Any:
    """Numbers of six digits: more would tell of noise."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _result(record: dict[str, Any]) -> Result:
    def of(kind: type[Row] | type[Run]) -> Any:
        return kind(**{f.name: record[f.name] for f in fields(kind) if f.name in record})

    return Result(of(Row), record["part"], of(Run))


def _cpu() -> str:
    """The processor's name, by Linux's list of them where there is one."""
    return next(_cpu_names(), "") or platform.processor() or platform.machine()


def _cpu_names() -> Iterator[str]:
    listing = Path("/proc/cpuinfo")
    for line in listing.read_text().splitlines() if listing.is_file() else ():
        if line.startswith("model name"):
            yield line.partition(":")[2].strip()

"""A clock that jumps back and forth between commands: what they do is the same as ever."""

from __future__ import annotations

import datetime
import os
import random
import sys
import time
from pathlib import Path

import qkvsearch
from tests.faults import children, world
from tests.faults.operations import OPERATIONS, cases
from tests.faults.runner import Fault, Trial
from tests.faults.world import copied, observe

STEPS = 8
YEAR = 365 * 24 * 3600.0
JUMPS = (0.0, -1.0, 1.0, -3600.0, 3600.0, -30 * YEAR, 20 * YEAR, -86400.0, 301.0, -301.0)
COMMANDS = (
    "add", "add changed", "remove", "record", "record undo", "learn", "compact", "rollback",
    "build others", "add log",
)  # fmt: skip


class _Shifted:
    """The clocks of this process, moved by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def install(self) -> None:
        seconds, now, now_ns = self.seconds, time.time, time.time_ns
        local, universal, written = time.localtime, time.gmtime, time.strftime
        time.time = lambda: now() + seconds
        time.time_ns = lambda: now_ns() + int(seconds * 1e9)
        time.localtime = lambda at=None: local(time.time() if at is None else at)
        time.gmtime = lambda at=None: universal(time.time() if at is None else at)
        time.strftime = lambda form, at=None: written(form, at or time.localtime())
        real = datetime.datetime

        class Moved(real):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
                return real.now(tz) + datetime.timedelta(seconds=seconds)

            @classmethod
            def utcnow(cls) -> datetime.datetime:
                return real.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(0, seconds)

        datetime.datetime = Moved  # type: ignore[misc]
        for name, module in list(sys.modules.items()):
            if name.startswith("qkvsearch") and getattr(module, "datetime", None) is real:
                module.datetime = Moved  # type: ignore[attr-defined]


def jump(trial: Trial) -> None:
    """The same commands by a steady clock and by one that jumps, with the times of files moved."""
    chance = trial.chance
    known = [name for name in COMMANDS if ("segments", name) in cases()]
    names = [chance.choice(known) for _ in range(STEPS)]
    steady = copied("segments", trial.folder, "steady")
    moved = copied("segments", trial.folder, "moved")
    done: list[str] = []
    for name in names:
        arguments = OPERATIONS[name]()
        first = children.command(steady, arguments)
        seconds = chance.choice(JUMPS) * chance.random() * 2
        move_files(moved, chance)
        second = children.command(moved, arguments, set_up=_Shifted(seconds).install)
        trial.counts["commands by a clock that jumps"] += 1
        done.append(f"{name} at {seconds:+.0f} s")
        said = ", ".join(done)
        if (first.code, bool(first.stderr)) != (second.code, bool(second.stderr)):
            raise Fault(
                f"{said}: {first.code} {first.last_line} and {second.code} {second.last_line}"
            )
        if complaint := world.verify(moved):
            raise Fault(f"{said}: {complaint}")
        one, other = observe(steady), observe(moved)
        if one != other:
            raise Fault(f"{said}: {other.differs(one)}")
        same_builds(steady, moved, said)


def same_builds(steady: Path, moved: Path, said: str) -> None:
    """As many, in the same order, by the same commands."""
    if not hasattr(qkvsearch.Engine, "builds"):
        return
    with qkvsearch.open(steady) as one, qkvsearch.open(moved) as other:
        listed = [
            [
                (row["command"], row["items"], row["current"])
                for row in map(_as_dict, engine.builds())
            ]
            for engine in (one, other)
        ]
    if listed[0] != listed[1]:
        raise Fault(f"{said}: builds {listed[1]} instead of {listed[0]}")


def _as_dict(row: object) -> dict:
    return row if isinstance(row, dict) else vars(row)


def move_files(path: Path, chance: random.Random) -> None:
    """Files get times of their own, of the past and the future."""
    for file in path.rglob("*"):
        if chance.random() < 0.3:
            at = time.time() + chance.choice(JUMPS)
            os.utime(file, (at, at))

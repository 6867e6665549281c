"""Runs the trials of a part in forked processes, each by its own seed, to be run again alone.

A trial that raises is a finding, and so is one that brings its process down or does not end: the
number under which it runs stands in memory that all processes share.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import random
import select
import shutil
import signal
import struct
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# A trial that takes longer than this many seconds counts as one that hangs.
LONGEST = 180
PR_SET_PDEATHSIG = 1
PLACE = struct.Struct("qqd")  # which trial, which of its inputs, since when


class Fault(AssertionError):
    """Something that docs/trust.md promises does not happen."""


@dataclass
class Trial:
    """One trial: its number, its own chance, an empty folder, and what it counts."""

    number: int
    chance: random.Random
    folder: Path
    counts: Counter[str]
    at: Callable[[int], None]  # which of its inputs it has come to


@dataclass(frozen=True)
class Part:
    """Trials of one kind. `share`: each counts as so many of what docs/trust.md counts."""

    name: str
    trial: Callable[[Trial], None]
    trials: int
    workers: int = 2


@dataclass
class Outcome:
    """What became of a part."""

    name: str
    trials: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)


def run_part(part: Part, numbers: list[int], seed: int, most_faults: int) -> Outcome:
    """All trials of a part, in as many processes as it has workers."""
    began, outcome = time.monotonic(), Outcome(part.name)
    waiting = [numbers[k :: part.workers] for k in range(part.workers)]
    workers = [_Worker(part, mine, seed) for mine in waiting if mine]
    while workers and len(outcome.faults) < most_faults:
        select.select([worker.pipe for worker in workers], [], [], 1.0)
        for worker in list(workers):
            worker.read(outcome)
            rest = worker.rest_after_end(outcome)
            if rest is not None:
                workers.remove(worker)
                if rest:
                    workers.append(_Worker(part, rest, seed))
    for worker in workers:
        worker.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


class _Worker:
    """A forked process that runs some of a part's trials and tells of each."""

    def __init__(self, part: Part, numbers: list[int], seed: int) -> None:
        self.numbers, self.part, self.text = numbers, part, b""
        self.place = mmap.mmap(-1, PLACE.size)
        self.place[:] = PLACE.pack(-1, 0, time.time())
        self.pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            code = 1
            with suppress(BaseException):
                os.setpgid(0, 0)
                die_with_parent()
                self._work(seed, writing)
                code = 0
            os._exit(code)
        os.close(writing)
        os.set_blocking(self.pipe, False)

    def _work(self, seed: int, pipe: int) -> None:
        for number in self.numbers:
            told = run_trial(self.part, number, seed, self._note)
            os.write(pipe, json.dumps(told).encode() + b"\n")

    def _note(self, number: int, place: int) -> None:
        self.place[:] = PLACE.pack(number, place, time.time())

    def read(self, outcome: Outcome) -> None:
        with suppress(BlockingIOError):
            while text := os.read(self.pipe, 1 << 16):
                self.text += text
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            told = json.loads(line)
            self.numbers.remove(told["number"])
            outcome.trials += 1
            outcome.counts.update(told["counts"])
            outcome.skipped.update(told["skipped"])
            if told["fault"]:
                outcome.faults.append(told["fault"])
                print("  FAULT", told["fault"], flush=True)

    def rest_after_end(self, outcome: Outcome) -> list[int] | None:
        """None while it runs; then the trials that are left, without the one that ended it."""
        number, place, since = PLACE.unpack(self.place[:])
        hangs = time.time() - since > LONGEST
        if hangs:
            self.stop()
        elif os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            return None
        self.read(outcome)
        os.close(self.pipe)
        if self.numbers and number in self.numbers:
            how = f"does not end in {LONGEST} s" if hangs else "ends the whole process"
            fault = f"{self.part.name}:{number} input {place}: {how}"
            outcome.faults.append(fault)
            print("  FAULT", fault, flush=True)
            self.numbers.remove(number)
        return self.numbers

    def stop(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def die_with_parent() -> None:
    """This process is killed when the one that forked it ends, so that none is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_trial(part: Part, number: int, seed: int, note: Callable[[int, int], None]) -> dict:
    """What a trial counted, and what it found."""
    counts: Counter[str] = Counter()
    note(number, 0)
    folder = Path(tempfile.mkdtemp(prefix=f"{part.name}-{number}-"))
    chance = random.Random(f"{seed} {part.name} {number}")
    fault = ""
    try:
        part.trial(Trial(number, chance, folder, counts, lambda place: note(number, place)))
    except Fault as error:
        fault = f"{part.name}:{number} {error}"
    except Exception as error:
        lines = traceback.format_exc().strip().splitlines()
        where = " ".join(line.strip() for line in lines if line.strip().startswith("File"))[-300:]
        fault = f"{part.name}:{number} {type(error).__name__}: {error} [{where}]"
    if not os.environ.get("FAULTS_KEEP"):
        shutil.rmtree(folder, ignore_errors=True)
    skipped = [name for name in counts if name.startswith("skipped: ")]
    for name in skipped:
        del counts[name]
    return {"number": number, "counts": counts, "fault": fault[:2500], "skipped": skipped}

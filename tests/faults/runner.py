"""Runs the trials of a part in forked processes, each by its own seed, to be run again alone.

A trial that raises is a finding, and so is one that brings its process down or does not end.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

# A trial that takes longer than this many seconds for one of its inputs counts as one that hangs.
LONGEST = 180
PR_SET_PDEATHSIG = 1
FORK = multiprocessing.get_context("fork")


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
    """Trials of one kind."""

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

    def add(self, counts, fault):
        """Add a trial; counts that begin with "skipped: " are kept as texts."""
        self.trials += 1
        self.skipped.update(name for name in counts if name.startswith("skipped: "))
        self.counts.update({name: n for name, n in counts.items() if name not in self.skipped})
        if fault:
            self.faults.append(fault)
            print("  FAULT", fault, flush=True)


def run_part(part, numbers, seed, most_faults):
    """Run trials of a part, each in a process of its own, `part.workers` at a time."""
    began, outcome = time.monotonic(), Outcome(part.name)
    waiting, running = list(numbers), list[_Running]()
    while len(outcome.faults) < most_faults and (waiting or running):
        while waiting and len(running) < part.workers:
            running.append(_Running(part, waiting.pop(0), seed))
        wait([trial.messages for trial in running], 1.0)
        running = [trial for trial in running if not trial.is_over(outcome)]
    for trial in running:
        trial.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


class _Running:
    """A forked process that runs one trial, and sends the input it has come to and its result."""

    def __init__(self, part, number, seed):
        self.name, self.place, self.since = f"{part.name}:{number}", 0, time.monotonic()
        self.messages, sending = FORK.Pipe(duplex=False)
        arguments = (part, number, seed, sending)
        self.process = FORK.Process(target=_run_alone, args=arguments, daemon=True)
        self.process.start()
        sending.close()

    def is_over(self, outcome):
        """Whether it sent its result, or ended without one or hangs, which is a fault."""
        is_alive = self.process.is_alive()
        with suppress(EOFError):
            while self.messages.poll():
                message = self.messages.recv()
                if isinstance(message, tuple):
                    outcome.add(*message)
                    self.process.join()
                    return True
                self.place, self.since = message, time.monotonic()
        hangs = time.monotonic() - self.since > LONGEST
        if is_alive and not hangs:
            return False
        self.stop()
        how = f"does not end in {LONGEST} s" if hangs else "ends the whole process"
        outcome.add(Counter(), f"{self.name} input {self.place}: {how}")
        return True

    def stop(self):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()


def _run_alone(part, number, seed, messages):
    os.setpgid(0, 0)
    die_with_parent()
    messages.send(run_trial(part, number, seed, messages.send))


def die_with_parent():
    """This process is killed when the one that forked it ends, so that none is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_trial(part, number, seed, at):
    """Return what a trial counted, and its fault or an empty text."""
    counts = Counter()
    folder = Path(tempfile.mkdtemp(prefix=f"{part.name}-{number}-"))
    chance = random.Random(f"{seed} {part.name} {number}")
    fault = ""
    try:
        part.trial(Trial(number, chance, folder, counts, at))
    except Fault as error:
        fault = f"{part.name}:{number} {error}"
    except Exception as error:
        lines = traceback.format_exc().strip().splitlines()
        where = " ".join(line.strip() for line in lines if line.strip().startswith("File"))[-300:]
        fault = f"{part.name}:{number} {type(error).__name__}: {error} [{where}]"
    if not os.environ.get("FAULTS_KEEP"):
        shutil.rmtree(folder, ignore_errors=True)
    return counts, fault[:2500]

"""Commands in child processes: forked from this one, which has imported all, or started anew."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import qkvsearch
from qkvsearch._utils.sqlite import Database
from tests.faults.runner import die_with_parent

ROOT = Path(qkvsearch.__file__).resolve().parents[1]
# A command that does not end is killed by the kernel's clock of this many seconds.
LONGEST = 120
# Bytes that a child may say before it is read.
PIPE = 1 << 20
# What a build does with files; after any of them it may be interrupted.
EVENTS = ("open", "os.", "shutil.", "sqlite3.", "fcntl.", "mmap.")


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code, or minus the signal that killed it."""

    code: int
    stderr: str
    seconds: float
    events: int = 0
    stdout: str = ""

    @property
    def last_line(self):
        return (self.stderr.strip().splitlines() or ["(nothing on stderr)"])[-1][:300]


def command(workspace, args, *, kill_after=None, kill_at_event=None, set_up=None):
    """A command of the command line in a forked child; killed after some seconds, or where it does
    something with a file for the n-th time. `set_up` runs in the child before.
    """

    def run():
        from qkvsearch.cli import main

        main(["-q", "-w", str(workspace), *map(str, args)])

    return forked(run, kill_after, kill_at_event, set_up)


def forked(run, kill_after=None, kill_at_event=None, set_up=None):
    """`run` in a forked child. What it says comes through pipes, which are no files: they are not
    limited where files are.
    """
    pipes = [_pipe() for _ in ("stdout", "stderr", "events")]
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(run, [writing for _, writing in pipes], kill_at_event, set_up)
    for _, writing in pipes:
        os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - began
    out, err, events = (_all_of(reading) for reading, _ in pipes)
    return Ran(os.waitstatus_to_exitcode(status), err, seconds, int(events or 0), out)


def _pipe():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE)
    return reading, writing


def _all_of(pipe):
    with open(pipe, "rb") as file:
        return file.read().decode("utf-8", "replace")


def _child(run, pipes, kill_at_event, set_up):
    """Never returns."""
    code = 70
    count = lambda: 0  # noqa: E731
    die_with_parent()
    try:
        for number, pipe in zip((1, 2), pipes, strict=False):
            os.dup2(pipe, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8", closefd=False)
            for number, mode in enumerate("rww")
        )
        signal.alarm(LONGEST)
        count = _count_events(kill_at_event)
        if set_up:
            set_up()
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(pipes[2], str(count()).encode())
        os._exit(code)


def _count_events(kill_at):
    """How many events there were; at the one with this number the process is killed."""
    count = 0

    def happened(event="", _=()):
        nonlocal count
        if event.startswith(EVENTS):
            count += 1  # first: to kill is an event, too
            if count - 1 == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(happened)
    _tell_of_syncs(lambda: happened("os.fsync"))
    return lambda: count


def _tell_of_syncs(happened):
    """What is written to a disk, and what SQLite is told, Python tells of to no hook."""
    fsync, execute = os.fsync, Database.execute

    def told(descriptor):
        happened()
        fsync(descriptor)
        happened()

    def executed(database, *given):
        happened()
        return execute(database, *given)

    os.fsync = told
    Database.execute = executed


def process(workspace, args, *, kill_after=None):
    """The same as a process of its own, as a person starts it."""
    began = time.monotonic()
    words = [sys.executable, "-m", "qkvsearch", "-q", "-w", str(workspace), *map(str, args)]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        cwd=workspace.parent,
    ) as started:
        try:
            out, err = started.communicate(timeout=LONGEST if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            started.kill()
            out, err = started.communicate()
    code, seconds = started.returncode, time.monotonic() - began
    return Ran(code, err.decode("utf-8", "replace"), seconds, 0, out.decode("utf-8", "replace"))

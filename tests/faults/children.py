"""Commands in child processes: forked from this one, which has imported all, or started anew."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import qkvsearch

ROOT = Path(qkvsearch.__file__).resolve().parents[1]
# A command that does not end is killed by the kernel's clock of this many seconds.
LONGEST = 120
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
    def last_line(self) -> str:
        return (self.stderr.strip().splitlines() or ["(nothing on stderr)"])[-1][:300]


def command(
    workspace: Path,
    args: Sequence[str],
    *,
    kill_after: float | None = None,
    kill_at_event: int | None = None,
    set_up: Callable[[], None] | None = None,
    folder: Path | None = None,
) -> Ran:
    """A command of the command line in a forked child; killed after some seconds, or where it does
    something with a file for the n-th time. `set_up` runs in the child before.
    """

    def run() -> None:
        from qkvsearch.cli import main

        main(["-q", "-w", str(workspace), *map(str, args)])

    return forked(run, folder or workspace.parent, kill_after, kill_at_event, set_up)


def forked(
    run: Callable[[], None],
    folder: Path,
    kill_after: float | None = None,
    kill_at_event: int | None = None,
    set_up: Callable[[], None] | None = None,
) -> Ran:
    """`run` in a forked child whose output goes to files in `folder`."""
    streams = [folder / f".{name}-{os.getpid()}" for name in ("stdout", "stderr", "events")]
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(run, streams, kill_at_event, set_up)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - began
    out, err, events = (path.read_text("utf-8", "replace") if path.exists() else "" for path in streams)
    for path in streams:
        path.unlink(missing_ok=True)
    return Ran(os.waitstatus_to_exitcode(status), err, seconds, int(events or 0), out)


def _child(
    run: Callable[[], None],
    streams: list[Path],
    kill_at_event: int | None,
    set_up: Callable[[], None] | None,
) -> None:
    """Never returns."""
    code = 70
    try:
        for number, path in zip((1, 2), streams, strict=False):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.alarm(LONGEST)
        count = _count_events(kill_at_event)
        if set_up:
            set_up()
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1:] * 2)
        sys.stdout.flush()
        sys.stderr.flush()
        number = count()
        streams[2].write_text(str(number))
        os._exit(code)


def _count_events(kill_at: int | None) -> Callable[[], int]:
    """How many events there were; at the one with this number the process is killed."""
    count = 0

    def hook(event: str, _: tuple) -> None:
        nonlocal count
        if event.startswith(EVENTS):
            count += 1  # first: to kill is an event, too
            if count - 1 == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return lambda: count


def process(workspace: Path, args: Sequence[str], *, kill_after: float | None = None) -> Ran:
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

"""Command lines that write to a workspace, and what each makes of the workspaces of `world`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import qkvsearch
from tests.faults import children, world
from tests.faults.runner import Fault
from tests.faults.world import Observed, copied, files, has, observe


@dataclass(frozen=True)
class Operation:
    """A command. `needs`: a command and an option that there must be."""

    name: str
    arguments: Callable[[], list]
    needs: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return has(*(self.needs or (self.arguments()[0],)))


def _yes(*arguments: object) -> list:
    """Without a question, where the command asks one."""
    return [*arguments, "--yes"] if has(str(arguments[0]), "--yes") else [*arguments]


OPERATIONS = {
    one.name: one
    for one in (
        Operation("add", lambda: ["add", files().new]),
        Operation("add changed", lambda: ["add", files().changed]),
        Operation("remove", lambda: _yes("remove", "--where", "year >= 2012")),
        Operation("record", lambda: ["record", "killed", 5, 5]),
        Operation("record file", lambda: ["record", files().more_log]),
        Operation("record undo", lambda: ["record", "--undo"], ("record", "--undo")),
        Operation(
            "build",
            lambda: ["build", "--items", files().items, "--interactions", files().log,
                     "--encoder", "corpus"],
        ),
        Operation("build others", lambda: ["build", files().other_items, "--encoder", "corpus"]),
        Operation("learn", lambda: ["learn"]),
        Operation("compact", lambda: ["compact"]),
        Operation(
            "compact drop",
            lambda: ["compact", "--drop-builds"],
            ("compact", "--drop-builds"),
        ),
        Operation("rollback", lambda: ["rollback"]),
        Operation("forget", lambda: _yes("forget", "u5")),
        Operation("forget recorded", lambda: _yes("forget", "someone"), ("forget",)),
        Operation(
            "add log",
            lambda: ["add", "--interactions", files().more_log],
            ("add", "--interactions"),
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Effect:
    """What a command does to a workspace: how it is before and after, and what that takes."""

    before: Observed
    after: Observed
    seconds: float
    events: int


@cache
def effect(world_name: str, operation: str) -> Effect | None:
    """None where the command has nothing to do in that workspace, and says so."""
    folder = Path(tempfile.mkdtemp(prefix="faults-effect-"))
    arguments = OPERATIONS[operation].arguments()
    for turn in range(2):  # the second time everything is compiled and imported
        path = copied(world_name, folder, f"{world_name}{turn}")
        ran = children.command(path, arguments)
    if ran.code == 1 and ran.stderr.startswith("Error: "):
        return None
    if ran.code:
        raise Fault(f"{operation} on {world_name}: exit {ran.code}: {ran.last_line}")
    if complaint := world.verify(path):
        raise Fault(f"{operation} on {world_name} leaves what does not verify: {complaint}")
    return Effect(observe(world.made(world_name)), observe(path), ran.seconds, ran.events)


# Commands that do not even work in a sound workspace, and how they fail.
broken: list[str] = []


@cache
def cases() -> list[tuple[str, str]]:
    """Every command with every workspace that it does something to."""
    warm_up()
    found = []
    for operation in OPERATIONS.values():
        for name in world.WORLDS if operation.exists else ():
            try:
                if effect(name, operation.name) is not None:
                    found.append((name, operation.name))
            except Fault as error:
                broken.append(str(error))
    return found


def missing() -> list[str]:
    """Commands that there are not."""
    return [one.name for one in OPERATIONS.values() if not one.exists]


@cache
def warm_up() -> None:
    """Import and compile what commands need before processes are forked."""
    import contextlib
    import io

    from qkvsearch.cli import main

    folder = Path(tempfile.mkdtemp(prefix="faults-warm-"))
    path = copied("segments", folder)
    quiet = contextlib.redirect_stderr(io.StringIO())
    with quiet, contextlib.redirect_stdout(io.StringIO()):
        for operation in OPERATIONS.values():
            if operation.exists:
                with contextlib.suppress(SystemExit, Exception):  # `effect` will say
                    main(["-q", "-w", str(path), *map(str, operation.arguments())])
        for arguments in (
            ["info", "--verify"],
            ["search", "rain"],
            ["items", "--where", "year > 1"],
        ):
            with contextlib.suppress(SystemExit):
                main(["-q", "-w", str(path), *arguments])
    with qkvsearch.open(path) as engine:
        engine.info()

"""Command lines that write to a workspace, and what each makes of the workspaces of `world`."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import qkvsearch
from tests.faults import children, world
from tests.faults.runner import Fault
from tests.faults.world import Observed, copied, files, observe

# By name, the words of each: the tables that they name are written when they are first asked for.
OPERATIONS = {
    "add": lambda: ["add", files().new],
    "add changed": lambda: ["add", files().changed],
    "sync": lambda: ["sync", "--yes", files().changed],
    "remove": lambda: ["remove", "--yes", "--where", "year >= 2012"],
    "record": lambda: ["record", "killed", 5, 5],
    "record file": lambda: ["record", files().more_log],
    "record undo": lambda: ["record", "--undo"],
    "build": lambda: ["build", "--items", files().items, "--interactions", files().log,
                      "--encoder", "corpus"],
    "build others": lambda: ["build", files().other_items, "--encoder", "corpus"],
    "learn": lambda: ["learn"],
    "compact": lambda: ["compact"],
    "compact drop": lambda: ["compact", "--drop-builds"],
    "rollback": lambda: ["rollback"],
    "forget": lambda: ["forget", "--yes", "u5"],
    "forget recorded": lambda: ["forget", "--yes", "someone"],
    "add log": lambda: ["add", "--interactions", files().more_log],
}  # fmt: skip


@dataclass(frozen=True)
class Effect:
    """What a command does to a workspace: how it is before and after, and what that takes."""

    before: Observed
    after: Observed
    seconds: float
    events: int


@cache
def effect(world_name, operation):
    """None where the command has nothing to do in that workspace, and says so."""
    folder = Path(tempfile.mkdtemp(prefix="faults-effect-"))
    arguments = OPERATIONS[operation]()
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
broken = []


@cache
def cases():
    """Every command with every workspace that it does something to."""
    warm_up()
    found = []
    for operation in OPERATIONS:
        for name in world.WORLDS:
            try:
                if effect(name, operation) is not None:
                    found.append((name, operation))
            except Fault as error:
                broken.append(str(error))
    return found


@cache
def warm_up():
    """Import and compile what commands need before processes are forked."""
    import contextlib
    import io

    from qkvsearch.cli import main

    folder = Path(tempfile.mkdtemp(prefix="faults-warm-"))
    path = copied("segments", folder)
    quiet = contextlib.redirect_stderr(io.StringIO())
    with quiet, contextlib.redirect_stdout(io.StringIO()):
        for arguments_of in OPERATIONS.values():
            with contextlib.suppress(SystemExit, Exception):  # `effect` will say
                main(["-q", "-w", str(path), *map(str, arguments_of())])
        for arguments in (
            ["info", "--verify"],
            ["search", "rain"],
            ["items", "--where", "year > 1"],
        ):
            with contextlib.suppress(SystemExit):
                main(["-q", "-w", str(path), *arguments])
    with qkvsearch.open(path) as engine:
        engine.info()

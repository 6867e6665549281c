"""Arguments of an engine's methods, and whole command lines."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import random
import sys
from functools import cache
from typing import Any

import click

import qkvsearch
from qkvsearch.cli import COMMANDS, group, main
from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError
from tests.faults import fuzz, world
from tests.faults.fuzz.where import engine, expression
from tests.faults.runner import Fault, Trial

# Questions that answer in milliseconds; a listing is asked like a mapping.
METHODS = ["search", "recommend", "similar", "show", "history", "similar_users", "attend", "head",
           "encode"]  # fmt: skip
LISTINGS = ["items", "users"]
WRITING = ["record", "remove", "rollback", "records", "forget"]
GOOD = {
    "query": "rain river", "user": "u5", "item": 33, "likes": [3], "k": 3, "where": "year > 2000",
    "name": "lexical", "text": "rain river", "texts": "rain river", "rating": 3, "items": [900],
    "id": "nowhere",
}  # fmt: skip


@cache
def parameters(method: str) -> tuple[str, ...]:
    names = tuple(inspect.signature(getattr(Engine, method)).parameters)[1:]
    return tuple(name for name in names if name not in ("progress", "callback"))


def call(chance: random.Random, methods: list[str]) -> tuple[str, dict[str, Any]]:
    """A method and its arguments, one or two of which nobody should give."""
    method = chance.choice(methods)
    names = parameters(method)
    needed = [name for name in names if _is_needed(method, name)]
    given = {name: GOOD[name] for name in needed if name in GOOD}
    if "k" in names:
        given["k"] = 3
    for name in chance.sample(names, min(len(names), chance.randint(1, 2))):
        where = name == "where" and chance.random() < 0.5
        given[name] = expression(chance, 2) if where else fuzz.value(chance)
    for name in set(needed) - given.keys():
        given[name] = fuzz.value(chance)
    return method, given


def _is_needed(method: str, name: str) -> bool:
    found = inspect.signature(getattr(Engine, method)).parameters[name]
    return found.default is inspect.Parameter.empty


def fuzz_methods(trial: Trial) -> None:
    opened = engine()

    def make(chance: random.Random) -> tuple[str, dict[str, Any]]:
        if chance.random() < 0.15:
            return chance.choice(LISTINGS), {"key": fuzz.value(chance)}
        return call(chance, [name for name in METHODS if hasattr(Engine, name)])

    def use(made: tuple[str, dict[str, Any]]) -> None:
        method, given = made
        if method in LISTINGS:
            listed = getattr(opened, method)
            _ = given["key"] in listed
            listed[given["key"]]
        else:
            getattr(opened, method)(**given)

    fuzz.inputs(trial, make, use)


def fuzz_writes(trial: Trial) -> None:
    """What is refused changes nothing."""
    path = world.copied("segments", trial.folder)
    with qkvsearch.open(path) as opened:
        n = opened.n_items

        def use(made: tuple[str, dict[str, Any]]) -> None:
            method, given = made
            if method == "remove":
                given["dry_run"] = True
            getattr(opened, method)(**given)

        there = [name for name in WRITING if hasattr(Engine, name)]
        fuzz.inputs(trial, lambda chance: call(chance, there), use, n=40)
        if opened.n_items != n and "rollback" not in there:
            raise Fault("items have gone")
    if complaint := world.verify(path):
        raise Fault(f"does not verify: {complaint}")


# --- the command line ---

READING = [
    "search", "recommend", "similar", "items", "show", "users", "history", "attend", "info",
    "builds", "records",
]  # fmt: skip
# They change a workspace, which is a copy; `build` goes without, as it takes longer.
CHANGING = ["record", "remove", "rollback", "forget", "add"]


def command_line(chance: random.Random, commands: list[str]) -> list[str]:
    name = chance.choice(commands)
    command = group.get_command(click.Context(group), name)
    assert command
    words: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words += [
                _word(chance, str(parameter.name)) for _ in range(chance.choice([0, 1, 1, 2]))
            ]
    options = [one for one in command.params if isinstance(one, click.Option)]
    for option in chance.sample(options, min(len(options), chance.randint(0, 3))):
        words.append(chance.choice([*option.opts, *option.secondary_opts]))
        if not option.is_flag or chance.random() < 0.03:
            words.append(_word(chance, str(option.name)))
    if chance.random() < 0.05:
        words.insert(0, chance.choice(["--", "-x", "--nothing", "-", "--=", "-kkk"]))
    if chance.random() < 0.02:
        name = fuzz.text(chance, 2)
    # Nothing that would be written to a file of some name.
    return [name, *_without_files(words)]


def _word(chance: random.Random, name: str) -> str:
    roll = chance.random()
    if roll < 0.35:
        return str(GOOD.get(name, chance.choice(["3", "u5", "rain river", "json", "year"])))
    if roll < 0.5 and name == "where":
        return expression(chance, 3)
    if roll < 0.7:
        return str(chance.choice([0, -1, 5, 10**12, 0.5, "nan", "inf", "1e400", "json", "csv"]))
    # The system's own limit: no argument has a zero in it, and bytes come as surrogates.
    return fuzz.text(chance).replace("\0", "0").encode("utf-8", "replace").decode()[:4000]


def _without_files(words: list[str]) -> list[str]:
    found = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        if word in ("-o", "--output", "--to", "--plot", "--all", "--fields-file"):
            skip = True
            continue
        found.append(word)
    return found


def fuzz_commands(trial: Trial) -> None:
    """Exit code 0, 1 or 2, no traceback, and nothing on stderr that steers a terminal."""
    path = world.copied("segments", trial.folder)
    there = [name for name in [*READING, *READING, *CHANGING] if name in COMMANDS]
    os.chdir(trial.folder)

    def use(words: list[str]) -> None:
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in "12"
        )
        former = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
        code: object = 0
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main(["-w", str(path), *words])
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.stdin = former
        err.flush()
        said = err.buffer.getvalue().decode("utf-8", "replace")
        if code not in (0, 1, 2):
            raise Fault(f"{fuzz.shown(words)}: exit {code!r}: {said[-300:]}")
        if "Traceback" in said:
            raise Fault(f"{fuzz.shown(words)}: traceback: {said[-300:]}")
        if steering := [sign for sign in said if _steers(sign)]:
            raise Fault(f"{fuzz.shown(words)}: stderr has {steering[:3]!a}: {ascii(said)[-200:]}")
        if code:
            raise QkvError(said.strip() or "(nothing)")

    fuzz.inputs(trial, lambda chance: command_line(chance, there), use, n=50)
    os.chdir("/")


def _steers(sign: str) -> bool:
    number = ord(sign)
    return (
        (number < 32 and sign not in "\n\t") or 127 <= number < 160 or sign in "\u202e\u2066\u202d"
    )

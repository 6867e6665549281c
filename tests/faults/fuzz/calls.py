"""Whole command lines."""

import contextlib
import io
import os
import sys

import click

from qkvsearch.cli import COMMANDS, group, main
from qkvsearch.errors import QkvError
from tests.faults import fuzz, world
from tests.faults.fuzz.where import expression
from tests.faults.runner import Fault

GOOD = {
    "query": "rain river", "user": "u5", "item": 33, "likes": [3], "k": 3, "where": "year > 2000",
    "name": "lexical", "text": "rain river", "texts": "rain river", "rating": 3, "items": [900],
    "id": "nowhere",
}  # fmt: skip


READING = [
    "search", "recommend", "similar", "items", "show", "users", "history", "attend", "info",
    "builds", "records",
]  # fmt: skip
# They change a workspace, which is a copy; `build` goes without, as it takes longer.
CHANGING = ["record", "remove", "rollback", "forget", "add"]
# They would write to a file of any name.
WRITING = {"-o", "--to", "--all"}


def command_line(chance, commands):
    name = chance.choice(commands)
    command = group.get_command(click.Context(group), name)
    assert command
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words += [
                _word(chance, str(parameter.name)) for _ in range(chance.choice([0, 1, 1, 2]))
            ]
    options = [
        one for one in command.params if isinstance(one, click.Option) and not WRITING & {*one.opts}
    ]
    for option in chance.sample(options, min(len(options), chance.randint(0, 3))):
        words.append(chance.choice([*option.opts, *option.secondary_opts]))
        if not option.is_flag or chance.random() < 0.03:
            words.append(_word(chance, str(option.name)))
    if chance.random() < 0.05:
        words.insert(0, chance.choice(["--", "-x", "--nothing", "-", "--=", "-kkk"]))
    if chance.random() < 0.02:
        name = fuzz.text(chance, 2)
    return [name, *words]


def _word(chance, name):
    roll = chance.random()
    if roll < 0.35:
        return str(GOOD.get(name, chance.choice(["3", "u5", "rain river", "json", "year"])))
    if roll < 0.5 and name == "where":
        return expression(chance, 3)
    if roll < 0.7:
        return str(chance.choice([0, -1, 5, 10**12, 0.5, "nan", "inf", "1e400", "json", "csv"]))
    # The system's own limit: no argument has a zero in it, and bytes come as surrogates.
    return fuzz.text(chance).replace("\0", "0").encode("utf-8", "replace").decode()[:4000]


def fuzz_commands(trial):
    """Exit code 0, 1 or 2, no traceback, and nothing on stderr that steers a terminal."""
    path = world.copied("segments", trial.folder)
    there = [name for name in [*READING, *READING, *CHANGING] if name in COMMANDS]
    os.chdir(trial.folder)

    def use(words):
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in "12"
        )
        former = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
        code = 0
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


def _steers(sign):
    number = ord(sign)
    return (
        (number < 32 and sign not in "\n\t") or 127 <= number < 160 or sign in "\u202e\u2066\u202d"
    )

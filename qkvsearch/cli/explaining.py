"""`--explain` and `--explain full`, which three commands share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import click

OPTION = "--explain"
# In plain words, or every part of a score.
PLAIN, FULL = HOW = ("plain", "full")


class ExplainedCommand(click.Command):
    """A command whose `--explain` may stand alone: of the words that follow it, only `full` and
    `plain` are its value.

    Click takes any next word for the value of such an option; in `search --explain jacket` that is
    the query.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_value(args))


def with_value(args: list[str]) -> list[str]:
    """Arguments in which each `--explain` has its value. After `--` there are no more options.

    >>> with_value(["--explain", "full", "moon"]), with_value(["--explain", "moon", "full"])
    (['--explain', 'full', 'moon'], ['--explain=plain', 'moon', 'full'])
    """
    end = args.index("--") if "--" in args else len(args)
    alone = [
        word == OPTION and following not in HOW for word, following in pairwise([*args[:end], ""])
    ]
    given = [
        f"{OPTION}={PLAIN}" if is_alone else word
        for word, is_alone in zip(args[:end], alone, strict=True)
    ]
    return [*given, *args[end:]]


def explain_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--explain [full]` with this help; None where it is not given."""
    return click.option(OPTION, type=click.Choice(HOW), metavar="[full]", help=text)

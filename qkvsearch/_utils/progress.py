"""The callbacks by which long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

# Called as (name of the step, amount done, amount in all).
Progress = Callable[[str, int, int], None]
# An estimator's: called as (iterations done, iterations in all).
Callback = Callable[[int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """A `Progress` that nobody hears."""


def part_of(progress: Progress | None, before: int, total: int) -> Progress:
    """A `Progress` for a part of a step of which `before` is done already, `total` in all.

    >>> part_of(print, 4, 9)("reading", 2, 3)
    reading 6 9
    """

    def told(stage: str, done: int, _: int) -> None:
        (progress or silent)(stage, before + done, total)

    return told

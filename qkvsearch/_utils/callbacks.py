"""Callbacks by which long work reports its progress."""

from collections.abc import Callable

# Called as (name of the step, amount done, total amount).
Progress = Callable[[str, int, int], None]
# An estimator's callback, called as (iterations done, number of iterations).
Callback = Callable[[int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Ignore a progress report."""


def part_of(progress: Progress | None, before: int, total: int) -> Progress:
    """Return a `Progress` for a part of a step, of which `before` of `total` is done already.

    >>> part_of(print, 4, 9)("reading", 2, 3)
    reading 6 9
    """

    def report(stage: str, done: int, _: int) -> None:
        (progress or silent)(stage, before + done, total)

    return report

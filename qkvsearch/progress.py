"""The callbacks by which long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

# Called as (name of the step, amount done, amount in all).
Progress = Callable[[str, int, int], None]
# An estimator's: called as (iterations done, iterations in all).
Callback = Callable[[int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """A `Progress` that nobody hears."""

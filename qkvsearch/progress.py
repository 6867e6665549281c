"""How long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

# Called as (what is done, how much is done, how much there is).
Progress = Callable[[str, int, int], None]
# That of an estimator: called as (iterations done, iterations in all).
Callback = Callable[[int, int], None]

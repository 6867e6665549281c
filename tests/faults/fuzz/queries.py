"""Text queries: words, operators, typos and signs of every script, in any order."""

from __future__ import annotations

import random
from functools import cache

import qkvsearch
from qkvsearch.engine import Engine
from tests.faults import fuzz, world
from tests.faults.runner import Trial

OPERATORS = [
    '"', "-", "*", "^2", "^", ":", "title:", "year:", "tags:", "id:", "yaer:", "--", '-"', '"-',
    "“", "”", "^0", "^99.99", "year:1990..2000", "year:..", "..", "+", "#", "/", "'", "’", "~",
]  # fmt: skip


def query(chance: random.Random) -> str:
    """A few pieces, glued or with blanks between them; some mistyped; one in a hundred is long."""
    n = chance.randint(0, 8) if chance.random() < 0.99 else chance.randint(100, 600)
    pieces = [piece(chance) for _ in range(n)]
    return chance.choice(["", " ", " ", "  "]).join(pieces)


def piece(chance: random.Random) -> str:
    kind = chance.randrange(8)
    if kind <= 2:
        return chance.choice(world.WORDS)
    if kind <= 4:
        return chance.choice(OPERATORS)
    if kind == 5:
        word = list(chance.choice(world.WORDS))
        chance.shuffle(word)
        return "".join(word)
    if kind == 6:
        first = chance.randrange(0x20, 0x11000)
        return "".join(chr(first + chance.randrange(64)) for _ in range(chance.randint(1, 4)))
    return fuzz.text(chance, 2)


@cache
def engine() -> Engine:
    return qkvsearch.open(world.made("segments"))


def fuzz_queries(trial: Trial) -> None:
    """With one of the ways to ask, each time."""
    opened, chance = engine(), trial.chance

    def use(text: object) -> None:
        options = chance.choice(
            [{}, {"prefix": True}, {"explain": True}, {"snippet": True}, {"facets": "year"},
             {"heads": ["lexical"]}, {"anyway": True}, {"fusion": "ranks"}]
        )  # fmt: skip
        ranking = opened.search(text, k=3, **options)  # type: ignore[arg-type]
        for place in range(len(ranking)):
            parts = [part.value for part in ranking.explain(place)]
            assert abs(sum(parts) - ranking[place].score) <= 1e-4 * max(1, sum(map(abs, parts)))

    fuzz.inputs(trial, query, use)

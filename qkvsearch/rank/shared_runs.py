"""What two texts in a script without spaces have in common: whole runs, and not single characters.

Encoders read Chinese character by character, and two long texts have many of these by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qkvsearch.heads.single_units import PARTICLES
from qkvsearch.heads.unit_phrases import overlap, units_of
from qkvsearch.text.analysis import HAS_UNSPACED, Analyzer

# Between runs, and in none of them.
BREAK = "\n"


def shared_runs(texts: Sequence[str], others: Sequence[str], analyzer: Analyzer) -> list[str]:
    """Return the longest runs of two units and more that texts and other ones have, each once, in
    the order of the texts. Particles at their ends do not count.

    >>> shared_runs(["李连杰的新电影"], ["电影《英雄》, 李连杰主演"], Analyzer())
    ['李连杰', '电影']
    """
    in_others = BREAK.join("".join(run) for run in _runs(others, analyzer))
    found: dict[str, None] = {}
    for run in _runs(texts, analyzer):
        start = 0
        while start < len(run):
            end = start + 1
            while end < len(run) and "".join(run[start : end + 1]) in in_others:
                end += 1
            shared = _without_particles(run[start:end])
            if len(shared) > 1:
                found["".join(shared)] = None
            start = end
    return list(found)


def _runs(texts: Sequence[str], analyzer: Analyzer) -> Iterator[list[str]]:
    """Yield the units of each run in a script without spaces."""
    for text in texts:
        run: list[str] = []
        before: Sequence[str] = ()
        for token in analyzer.tokens(text):
            own = units_of(token.text)
            is_next = overlap(before, own)
            if not is_next and run:
                yield run
                run = []
            if HAS_UNSPACED(token.text):
                run = [*run, own[1]] if is_next else list(own)
            before = own
        if run:
            yield run


def _without_particles(run: Sequence[str]) -> Sequence[str]:
    """Return a run without particles at its ends."""
    start, end = 0, len(run)
    while start < end and run[start] in PARTICLES:
        start += 1
    while start < end and run[end - 1] in PARTICLES:
        end -= 1
    return run[start:end]

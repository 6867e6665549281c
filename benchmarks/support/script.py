"""What all scripts share: run the parts, print their tables, keep their rows.

A part is a function without arguments that gives `Row`s. A script has them by name in `PARTS`, and
in `EXTRA` those that are run only where they are named, because they take long.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.support import timing
from benchmarks.support.results import Row, Run, installed, keep
from benchmarks.support.tables import tables

Part = Callable[[], Iterable[Row]]


def main(
    file: str,
    parts: Mapping[str, Part],
    extra: Mapping[str, Part] | None = None,
    peers: Iterable[str] = (),
) -> None:
    """The command line of the script `file`. peers: packages whose versions belong to the rows."""
    known = {**parts, **(extra or {})}
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(known)}; all unless named")
    parser.add_argument("--no-times", action="store_true", help="keep the qualities alone, as a "
                        "busy machine has them too")  # fmt: skip
    chosen = parser.parse_args()
    if unknown := set(chosen.part) - set(known):
        parser.error(f"no part {unknown.pop()!r}; there are {', '.join(known)}")
    peers = list(peers)
    if absent := [peer for peer in peers if not installed(peer)]:
        print(f"Not installed, so left out: {', '.join(absent)}", file=sys.stderr)
    run = Run.here(peers)
    timing.with_clock = not chosen.no_times
    for name in chosen.part or parts:
        rows = list(known[name]())
        if chosen.no_times:
            untimed = (replace(row, seconds=None, ratio=None) for row in rows)
            rows = [row for row in untimed if row.quality is not None]
        if rows:
            keep(Path(file).stem, name, rows, run, known)
            print(tables(rows), end="\n\n", flush=True)

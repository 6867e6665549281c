"""What the columns of the files were taken for, a line each, as `build` and `info` show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from qkvsearch.cli.render import GAP, terminal_width, to_table

Record = Mapping[str, Any]
HEADINGS = ("role", "type", "empty", "example", "changed")
LAYOUT = ("left", "left", "left", "right", "left", "left")
IN_FULL = ("wrap", "left", "left", "right", "wrap", "wrap")
# With the interactions' own, and what else `build` says, so many lines fit on a screen.
MOST_SHOWN = 9
CUT = "…"
LONGEST_NAME, LONGEST_EXAMPLE = 18, 16
# With less room than that for the last column, it and the examples are left to -v.
LEAST_CHANGED = 12


def columns_text(items: Sequence[Record], log: Sequence[Record], verbose: bool = False) -> str:
    """A table for the items and one for the interactions, as wide as the terminal at most. Columns
    that do not fit are summed up, and long cells cut, unless `verbose`.
    """
    return _table("items", items, verbose) + _table("interactions", log, verbose)


def _table(kind: str, columns: Sequence[Record], verbose: bool) -> str:
    if not columns:
        return ""
    shown = columns if verbose else _most_important(columns)
    rows, headings = [_row(column) for column in shown], [kind, *HEADINGS]
    if not verbose:
        rows, headings = _cut(rows, headings)
    layout = (IN_FULL if verbose else LAYOUT)[: len(headings)]
    table = to_table(list(zip(headings, layout, strict=True)), rows)
    return table + _summed_up([column for column in columns if column not in shown])


def _most_important(columns: Sequence[Record]) -> list[Record]:
    """In their order, as many as there is room for: those with a role first, then those that lost
    cells.
    """

    def importance(place: int) -> tuple[bool, bool, int]:
        column = columns[place]
        return not column["role"], not any(map(_is_loss, column["changed"])), place

    places = sorted(range(len(columns)), key=importance)[:MOST_SHOWN]
    return [columns[place] for place in sorted(places)]


def _row(column: Record) -> list[str]:
    changes = sorted(
        column["changed"].items(), key=lambda change: (not _is_loss(change[0]), -change[1])
    )
    return [
        column["name"],
        column["role"],
        column["type"],
        _percent(column["empty"]),
        column["example"],
        ", ".join(f"{what} {count:,}" for what, count in changes),
    ]


def _is_loss(change: str) -> bool:
    return change.startswith(("emptied", "ambiguous"))


def _percent(share: float) -> str:
    """Whole percents, but neither 0 nor 100 where that is not all."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def _cut(rows: list[list[str]], headings: list[str]) -> tuple[list[list[str]], list[str]]:
    """Long cells to what fits in one line, and in a narrow window without the last two columns;
    the headings say where there is more.
    """
    from rich.cells import cell_len

    whole = [*map(tuple, rows)]
    for row in rows:
        row[0], row[4] = _shortened(row[0], LONGEST_NAME), _shortened(row[4], LONGEST_EXAMPLE)
    widths = [max(map(cell_len, cells)) for cells in zip(headings, *rows, strict=True)]
    room = terminal_width() - sum(widths[:5]) - GAP * 5
    if room < min(widths[5], LEAST_CHANGED):
        room = terminal_width() - sum(widths[1:4]) - GAP * 3
        narrow = [[_shortened(row[0], max(room, 1)), *row[1:4]] for row in rows]
        more = f"{headings[0]} (-v for more)"
        return narrow, [more if len(more) <= room else headings[0], *headings[1:4]]
    for row in rows:
        row[5] = _shortened(row[5], room)
    if [*map(tuple, rows)] != whole:
        headings[5] += " (-v in full)" if room >= len("changed (-v in full)") else " (-v)"
    return rows, headings


def _shortened(text: str, longest: int) -> str:
    """In one line, of so many columns of the terminal."""
    from rich.cells import cell_len, set_cell_size

    text = " ".join(text.split())
    if cell_len(text) <= longest:
        return text
    return set_cell_size(text, longest - 1).rstrip(" ,") + CUT


def _summed_up(columns: Sequence[Record]) -> str:
    if not columns:
        return ""
    types = Counter(column["type"] for column in columns)
    listed = ", ".join(f"{count:,} {type_}" for type_, count in types.most_common())
    return f"and {len(columns):,} more columns: {listed} (-v shows them)\n"

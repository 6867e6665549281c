"""The parts of a step that show numbers: matrices and tables as tables, curves as SVG."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from qkvsearch.lessons.drawings.svg import kind_class, line, text
from qkvsearch.lessons.exports.document import ROLE_NAMES
from qkvsearch.lessons.markup import Html, element, grid, joined, mathematics
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Curve, Matrix, Role, ShownTable

# How many shades a weight's background comes in; the style sheet has as many.
SHADES = 10
# Of a curve's drawing, in its own units: the whole.
WIDE = 480
HIGH = 200
# The margins, for its numbers.
LEFT = 64
BELOW = 32
ABOVE = 12


def swatch(role: Role) -> Html:
    """Return a role's colour; its name is always beside it."""
    return element("span", class_="swatch", data_role=role, aria_hidden="true")


def matrix(part: Matrix, note: str = "", **attributes: str) -> Html:
    """Return a matrix as a table. note: how it was computed. attributes: of the table."""
    caption = element(
        "caption",
        swatch(part.role),
        element("span", mathematics(part.name), class_="name"),
        " ",
        element("span", say(ROLE_NAMES[part.role]), class_="role"),
        *([" ", element("span", mathematics(note), class_="note")] if note else []),
    )
    per_row = _row_symbols(part)
    headings = [*part.columns, *([say("in symbols")] if per_row is not None else [])]
    written = [element("td", mathematics(symbol), class_="symbol") for symbol in per_row or ()]
    rows = [(label, [*_cells(part, i), *written[i : i + 1]]) for i, label in enumerate(part.rows)]
    table = grid(caption, ["", *headings], rows, (), **attributes)
    return _figure("matrix", table, data_role=part.role)


def table(part: ShownTable) -> Html:
    """Return words and numbers under headings; the first column names its row."""
    rows = [(shown(first), cells_of(others, part.kinds)) for first, *others in part.rows]
    caption = element("caption", element("span", mathematics(part.caption), class_="name"))
    entries = (entry for row in part.rows for entry in enumerate(row))
    numeric = {j for j, entry in entries if j and not isinstance(entry, str)}
    return _figure("table", grid(caption, part.columns, rows, numeric))


def cells_of(entries: Iterable[str | float], kinds: Sequence[str] = ()) -> list[Html]:
    """Return the cells of a row, words as they are and numbers with all their digits.

    kinds: words that stand behind the colour that they have in drawings.
    """
    colours = {
        kind: element("span", class_=f"swatch {kind_class(k)}", aria_hidden="true")
        for k, kind in enumerate(kinds)
    }
    return [
        element("td", colours.get(entry, ""), mathematics(entry))
        if isinstance(entry, str)
        else element("td", shown(entry), class_="number", data_value=float(entry))
        for entry in entries
    ]


def curve(part: Curve, place: str) -> Html:
    """Draw a line over 0, 1, 2, …, and describe it in words. place: a part of ids, unique."""
    values = np.asarray(part.values, dtype=float)
    finite = values[np.isfinite(values)]
    least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    x = LEFT + (WIDE - LEFT - 8) * np.arange(len(values)) / max(len(values) - 1, 1)
    # A level line lies in the middle.
    share = (values - least) / (most - least) if most > least else np.full_like(values, 0.5)
    y = HIGH - BELOW - (HIGH - BELOW - ABOVE) * share
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True) if np.isfinite(b))
    alternative = say(
        "{name} over {x}, {n} values: from {first} to {last}, between {least} and {most}.",
        name=part.name,
        x=part.x,
        n=len(values),
        first=values[0] if len(values) else np.nan,
        last=values[-1] if len(values) else np.nan,
        least=least,
        most=most,
    )
    drawing = element(
        "svg",
        element("title", alternative, id=f"{place}-title"),
        line(LEFT, ABOVE, LEFT, HIGH - BELOW, class_="axis"),
        line(LEFT, HIGH - BELOW, WIDE - 8, HIGH - BELOW, class_="axis"),
        text(LEFT - 8, ABOVE + 4, shown(most), "end"),
        text(LEFT - 8, HIGH - BELOW + 4, shown(least), "end") if most > least else "",
        text(LEFT, HIGH - 10, "0"),
        text(WIDE - 8, HIGH - 10, f"{part.x}: {max(len(values) - 1, 0)}", "end"),
        element("polyline", points=points, class_="line"),
        viewBox=f"0 0 {WIDE} {HIGH}",
        role="img",
        aria_labelledby=f"{place}-title",
    )
    caption = element(
        "figcaption",
        element("span", part.name, class_="name"),
        " ",
        element("span", alternative, class_="note", aria_hidden="true"),
    )
    return element("figure", caption, drawing, class_="curve")


def heat(number: float) -> int:
    """Return the shade of a weight, 0 to SHADES.

    >>> heat(0.5), heat(0.25), heat(-1.0), heat(7.0), heat(float("nan"))
    (5, 3, 0, 10, 0)
    """
    # Python's `round` goes to the even shade from the middle of two, the script's does not.
    return math.floor(SHADES * min(max(number, 0.0), 1.0) + 0.5) if np.isfinite(number) else 0


def _cells(part: Matrix, i: int) -> Iterable[Html]:
    symbols = part.symbols if _row_symbols(part) is None else None
    for j, number in enumerate(np.asarray(part.array, dtype=float)[i]):
        is_hidden = part.visible is not None and not part.visible[i][j]
        with part.in_its_decimals():
            written: list[str] = [element("span", shown(number), class_="value")]
        if is_hidden:
            written += [" ", element("span", say("hidden"), class_="unseen")]
        if symbols is not None and (symbol := _symbol(symbols, part, i, j)):
            written += [" ", element("span", mathematics(symbol), class_="symbol")]
        yield element(
            "td",
            *written,
            class_="hides" if is_hidden else None,
            data_value=number,
            data_heat=heat(number) if part.role == "weights" else None,
        )


def _row_symbols(part: Matrix) -> list[str] | None:
    """Return the symbols of whole rows, or None where each cell has its own."""
    if part.symbols is None or part.symbols.ndim == 2:
        return None
    return [str(symbol) for symbol in part.symbols]


def _symbol(symbols: np.ndarray, part: Matrix, i: int, j: int) -> str:
    """Return a cell's symbol; that of a vector is at its first number."""
    each = max(len(part.columns) // symbols.shape[1], 1)
    return "" if j % each else str(symbols[i, j // each])


def _figure(kind: str, inner: Html, **attributes: str) -> Html:
    return element("div", element("div", inner, class_="scroll"), class_=kind, **attributes)


def side_by_side(matrices: Sequence[Html]) -> Html:
    """Place matrices side by side, as many to a line as fit."""
    return element("div", joined(matrices, "\n"), class_="matrices")

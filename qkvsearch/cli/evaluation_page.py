"""An evaluation as a page: its pictures, the figures in tables, in one file without a network.

The pictures are those of `Evaluation.plot`, each drawn as narrow as a phone, with colours that
follow the reader's light or dark screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qkvsearch.cli.page import page, section, table
from qkvsearch.evaluation.pictures.figure import draw_bare, to_bytes
from qkvsearch.evaluation.pictures.palette import NAMES
from qkvsearch.lessons.markup import Html, element, joined
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch.evaluation.pictures.panel import Panel
    from qkvsearch.evaluation.results import Evaluation

# The drawing of an SVG file, without its declarations, its maker and its size in points.
DRAWING = re.compile(r'<svg[^>]* (viewBox="[^"]*")[^>]*>(.*)</svg>', re.DOTALL)
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
# Where an SVG names one of its elements, or refers to one.
NAME = re.compile(r'( id="|url\(#|href="#)')
COLOUR = re.compile("|".join(NAMES))


def to_page(evaluation: Evaluation) -> str:
    """Write a whole page of HTML."""
    panels = [_section(panel, number) for number, panel in enumerate(evaluation.panels())]
    pictures = element("div", "\n", joined(panels, "\n"), "\n", class_="panels")
    sentences = [*evaluation.sentences(), *evaluation.notes]
    introduction = [element("p", evaluation.headline(), class_="quiet")]
    introduction += [element("p", sentence) for sentence in sentences]
    body = [pictures, *_examples(evaluation), _all_figures(evaluation)]
    return page(evaluation.title, introduction, body)


def _section(panel: Panel, number: int) -> Html:
    """Return a panel as a section: its title, its picture, and its figures."""
    title = f"panel-{number}"
    note = [element("p", panel.note, class_="quiet")] if panel.note else []
    figures = table(*_figures(panel), label=panel.title)
    heading = element("h2", panel.title, id=title)
    return element(
        "section", heading, _picture(panel, number), *note, figures, aria_labelledby=title
    )


def _picture(panel: Panel, number: int) -> Html:
    """Return a panel as an SVG element. number: keeps the names of its elements apart from those
    of other pictures of the page.
    """
    svg = to_bytes(draw_bare(panel), "svg", transparent=True).decode()
    drawing = DRAWING.search(svg)
    assert drawing is not None
    view_box, inner = drawing.groups()
    inner = METADATA.sub("", inner)
    inner = NAME.sub(rf"\g<1>picture-{number}-", inner)
    inner = COLOUR.sub(lambda colour: f"var({NAMES[colour.group()]})", inner)
    label = element("title", f"{panel.title}; the table below has the figures")
    namespace = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    return Html(f'<svg {namespace} {view_box} role="img">{label}{inner}</svg>')


def _figures(panel: Panel) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of the table of a panel, a row for each group."""
    headings = [panel.group_axis, *(series.name for series in panel.series)]
    with_intervals = [series.name for series in panel.series if any(series.intervals)]
    if with_intervals:
        headings.append(f"95% interval of {with_intervals[0]}")
    if panel.counts:
        headings.append(panel.counted)
    rows = []
    for group, name in enumerate(panel.groups):
        row = [name, *(panel.shown(series.values[group]) for series in panel.series)]
        if with_intervals:
            row.append(_interval(panel, group))
        if panel.counts:
            row.append(f"{panel.counts[group]:,}")
        rows.append(row)
    return headings, rows


def _interval(panel: Panel, group: int) -> str:
    """Return the interval of the first series that has one."""
    intervals = (series.interval(group) for series in panel.series)
    found = next((interval for interval in intervals if interval is not None), None)
    if found is None:
        return ""
    low, high = map(panel.shown, found)
    return f"{low.removesuffix('%')}–{high}"


def _examples(evaluation: Evaluation) -> Iterator[Html]:
    """Yield a table of single cases to look at, if there are any."""
    rows = evaluation.examples()
    if not rows:
        return
    headings = [name.replace("_", " ") for name in rows[0]]
    cells = [[_cell(value) for value in row.values()] for row in rows]
    title = "To look at"
    yield section(title, "examples", table(headings, cells, label=title, of_words=True))


def _cell(value: Any) -> str:
    """Return a value of an example, which may be a text of the catalog."""
    return "–" if value is None else in_one_line(str(value))


def _all_figures(evaluation: Evaluation) -> Html:
    """Return a table of all metrics of all systems."""
    names = list(evaluation.metrics)
    rows = [
        [system, *(f"{metrics[name]:.4f}" if name in metrics else "" for name in names)]
        for system, metrics in evaluation.systems().items()
    ]
    title = "All figures"
    return section(title, "all-figures", table(["", *names], rows, label=title))

"""A page of HTML in one file, without a network and without scripts: its frame and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from qkvsearch.evaluation.base_page import with_base
from qkvsearch.lessons.markup import Html, element, joined

FILES = Path(__file__).parent


def page(title: str, introduction: Iterable[str], body: Iterable[str]) -> str:
    """Return a whole page, with colours that follow the reader's light or dark screen."""
    return Template((FILES / "page.html").read_text(encoding="utf-8")).substitute(
        title=joined([title]),
        style=with_base((FILES / "page.css").read_text(encoding="utf-8")),
        introduction=joined(introduction, "\n"),
        body=joined(body, "\n"),
    )


def section(title: str, name: str, *content: str) -> Html:
    """Return a section as wide as the page. name: of its heading, which no other has."""
    heading = element("h2", title, id=name)
    return element("section", heading, *content, class_="all", aria_labelledby=name)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    label: str,
    of_words: bool = False,
) -> Html:
    """Return a table in a frame that scrolls where the window is narrower.

    of_words: whether the cells are texts, whose lines may break, instead of figures.
    """
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    return _framed(headings, body, label, "words" if of_words else None)


def records(headings: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> Html:
    """Return a table of texts, whose rows are lists on a phone: a line for each cell that is not
    empty, with its heading before it.
    """
    body = [
        element(
            "tr",
            element("th", first, scope="row"),
            *(
                element("td", cell, data_heading=heading, class_=None if cell else "none")
                for heading, cell in zip(headings[1:], cells, strict=True)
            ),
        )
        for first, *cells in rows
    ]
    return _framed(headings, body, label, "records")


def _framed(headings: Sequence[str], body: Iterable[Html], label: str, kind: str | None) -> Html:
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    whole = element("table", element("thead", head), element("tbody", *body), class_=kind)
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=label)

"""HTML from Python: elements whose text is escaped, and the little markup that paragraphs use."""

import re
from collections.abc import Container, Iterable
from html import escape

VOID = ("input", "br")
# `code` or *emphasis*, which neither begins nor ends with a space.
MARKS = re.compile(r"`([^`]+)`|\*(\S|\S[^*]*\S)\*")
# What is written above the line: e^5.92.
ABOVE = re.compile(r"(?<=\be)\^(−?\d+(?:\.\d+)?)")
# What is written below the line: W_Q, d_k, S_ab.
BELOW = re.compile(r"(?<=\bS)_([\w,]+)|(?<=\w)_(\w)(?!\w)")


class Html(str):
    """Text that is HTML already; any other is escaped where it becomes part of an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | bool | None) -> Html:
    """Return an element. Attributes of None or False are left out; True writes the name alone.

    `class_` is class, `data_value` data-value.

    >>> element("td", "a < b", class_="cell", data_value=0.5, hidden=False)
    '<td class="cell" data-value="0.5">a &lt; b</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[str], between: str = "") -> Html:
    """Join texts and elements."""
    safe = (child if isinstance(child, Html) else escape(child, quote=False) for child in children)
    return Html(between.join(safe))


def grid(
    caption: Html,
    headings: Iterable[str],
    rows: Iterable[tuple[str, Iterable[Html]]],
    numeric: Container[int] = (),
    **attributes: str,
) -> Html:
    """Return a table with headings of columns and rows.

    numeric: the columns of numbers, whose headings end where the numbers do.
    """
    head = [
        element("th", mathematics(label), scope="col", class_="number" if j in numeric else None)
        if label
        else element("td")
        for j, label in enumerate(headings)
    ]
    body = [
        element("tr", element("th", mathematics(label), scope="row"), *cells)
        for label, cells in rows
    ]
    columns = element("thead", element("tr", *head))
    return element("table", caption, columns, element("tbody", *body), **attributes)


def prose(text: str) -> Html:
    """Return a paragraph's text with its marks as elements.

    >>> prose("*Every* `x` is < 1")
    '<em>Every</em> <code>x</code> is &lt; 1'
    """
    # Code, emphasis and what is between them come in turns.
    pieces = MARKS.split(text)
    children: list[str] = [mathematics(pieces[0])]
    for code, emphasis, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        children.append(element("code", code) if code else element("em", mathematics(emphasis)))
        children.append(mathematics(after))
    return joined(children)


def mathematics(text: str) -> Html:
    """Return the text with its subscripts, and the powers of e, as elements.

    >>> mathematics("X·W_Q, S_ab·b_V, w_query, e^5.92")
    'X·W<sub>Q</sub>, S<sub>ab</sub>·b<sub>V</sub>, w_query, e<sup>5.92</sup>'
    """
    before, *powers = ABOVE.split(text)
    written = [_with_subscripts(before)]
    for exponent, after in zip(powers[::2], powers[1::2], strict=True):
        written += [element("sup", exponent), _with_subscripts(after)]
    return joined(written)


def _with_subscripts(text: str) -> Html:
    pieces = BELOW.split(text)
    children: list[str] = [pieces[0]]
    for several, one, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        children += [element("sub", several or one), after]
    return joined(children)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'

"""Drawings as SVG, by what they draw; and each alone, as a picture that needs no page."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkvsearch.lessons.drawings import Arrows, Descent, Drawing, Flow, Heads
from qkvsearch.lessons.exports.page.drawings.arrows import arrows
from qkvsearch.lessons.exports.page.drawings.descent import descent
from qkvsearch.lessons.exports.page.drawings.flow import flow
from qkvsearch.lessons.exports.page.drawings.heads import heads
from qkvsearch.lessons.exports.page.markup import Html

FILES = Path(__file__).parent.parent
# What a picture alone takes of the page's style.
STYLES = ("colours.css", "drawings.css")

DRAWN: dict[type, Callable[[Any, str], list[Html]]] = {
    Arrows: arrows,
    Descent: descent,
    Flow: flow,
    Heads: heads,
}


def pictures(drawing: Drawing, place: str) -> list[Html]:
    """The drawing's SVGs, each with its text. place: a part of their ids, unique in the page."""
    return DRAWN[type(drawing)](drawing, place)


def alone(picture: Html) -> str:
    """An SVG file of the picture, with its own style: light or dark as the reader's paper is."""
    style = "".join((FILES / name).read_text(encoding="utf-8") for name in STYLES)
    # A style sheet is no markup, and what ends one could stand in none of ours.
    inner = picture.replace(">", f">\n<style>{style}</style>", 1)
    return inner.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" class="drawing" ', 1)


def as_address(picture: Html) -> str:
    """The picture as an address that holds it."""
    coded = base64.b64encode(alone(picture).encode("utf-8")).decode("ascii")
    return f"data:image/svg+xml;base64,{coded}"

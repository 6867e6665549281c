"""Attention within a text as a file: a page whose heads can be chosen, or one picture."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from qkvsearch.errors import QkvError, need
from qkvsearch.lessons.drawings import AttendedText, Heads
from qkvsearch.lessons.drawings.attention_lines import (
    LEFT,
    LINE_WIDTH,
    MIN_WEIGHT,
    RIGHT,
    ROW,
    TOP,
    WIDE,
)
from qkvsearch.lessons.drawings.svg import cut
from qkvsearch.lessons.exports.page.alone import alone
from qkvsearch.lessons.exports.page.drawings import alone as picture_alone
from qkvsearch.lessons.exports.page.drawings import drawing
from qkvsearch.lessons.markup import element, joined
from qkvsearch.lessons.messages import say
from qkvsearch.text.encoded_text import AttentionMap, EncodedText

# Decimals of the weights that the page's script has.
DECIMALS = 4
# Pixels of a PNG for a unit of the drawing.
SCALE = 3
TYPE = 13
INK, QUIET, LINES = (35, 39, 45), (87, 93, 102), (21, 154, 166)
# Fonts of common systems, for what the font that Pillow brings does not have.
FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "msyh.ttc",
    "PingFang.ttc",
    "STHeiti Light.ttc",
    "Arial Unicode.ttf",
)
NO_CHARACTER = "\uffff"


def to_page(reading: EncodedText, text: str, layer: int | None, head: int | None) -> str:
    """Write a page that shows what each word of a text attends to, layer by layer.

    layer and head: shown first. Without a head that is the mean of each layer's heads, and all
    heads follow. Raises `QkvError` where they do not exist.
    """
    reading.map(layer, head)  # which checks them
    layer = len(reading.weights) - 1 if layer is None else layer
    figures = []
    if head is None:
        means = reading.weights.mean(axis=1, keepdims=True)
        called = [say("mean over heads")] if reading.has_layers else []
        title = say("What each word attends to")
        figures.append(_heads("mean", title, reading.tokens, means, layer, names=called))
    if reading.has_layers:
        every = say("All heads"), reading.tokens, reading.weights, layer, head or 0
        figures.append(_heads("heads", *every))
    shown = [drawing(figure, "attended") for figure in figures]
    content = element("main", element("h1", text), joined(shown, "\n"))
    return alone("attended", text, content, styles=["alone.css"])


def _heads(
    name: str,
    caption: str,
    tokens: list[str],
    weights: np.ndarray,
    layer: int,
    head: int = 0,
    names: Sequence[str] = (),
) -> Heads:
    text = AttendedText(_labels(tokens), np.round(weights, DECIMALS))
    return Heads(name, caption, [text], layer, head, names=names)


def _labels(tokens: list[str]) -> list[str]:
    return [cut(token, LEFT - TYPE / 2) for token in tokens]


def to_svg(shown: AttentionMap, caption: str) -> str:
    """Write one map as an SVG file: lines between words, as thick as their weights."""
    text = AttendedText(_labels(shown.tokens), shown.weights[None, None])
    (picture,) = Heads("attended", caption, [text], word=None).pictures("attended")
    return picture_alone(picture)


def to_png(shown: AttentionMap) -> bytes:
    """Draw one map as a PNG file, like the SVG. Raises `QkvError` without Pillow, and where no font
    here has all characters.
    """
    image = need("PIL.Image", "encoders", "A PNG", name="Pillow")
    draws = need("PIL.ImageDraw", "encoders", "A PNG", name="Pillow")
    words = _labels(shown.tokens)
    heads = say("attends"), say("attended to")
    font = _font("".join([*words, *heads]))
    size = (WIDE * SCALE, round((TOP + ROW * len(words)) * SCALE))
    picture = image.new("RGB", size, "white")
    draw = draws.Draw(picture)
    for i, j in sorted(np.argwhere(shown.weights >= MIN_WEIGHT), key=lambda at: shown.weights[*at]):
        weight = float(shown.weights[i, j])
        width = max(round((0.5 + LINE_WIDTH * weight) * SCALE), 1)
        draw.line(_curve(i, j), fill=_faded(LINES, 0.15 + 0.85 * min(weight, 1)), width=width)
    places = ((LEFT, "rm"), (RIGHT, "lm"))
    for (x, anchor), head in zip(places, heads, strict=True):
        draw.text((x * SCALE, 10 * SCALE), head, fill=QUIET, font=font, anchor=anchor)
        for i, word in enumerate(words):
            at = (x * SCALE, _height(i) * SCALE)
            draw.text(at, word, fill=INK, font=font, anchor=anchor)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _height(place: int) -> float:
    return TOP + ROW * place - 4


def _curve(i: int, j: int) -> list[tuple[float, float]]:
    """Return points of the line from a word to another, level at both ends."""
    t = np.linspace(0, 1, 49)
    start, end, half = LEFT + 6, RIGHT - 6, (LEFT + RIGHT) / 2
    ends, middles = (1 - t) ** 3, 3 * t * (1 - t)
    x = ends * start + middles * half + t**3 * end
    y = (ends + middles * (1 - t)) * _height(i) + (middles * t + t**3) * _height(j)
    return list(zip((x * SCALE).tolist(), (y * SCALE).tolist(), strict=True))


def _faded(colour: tuple[int, ...], opacity: float) -> tuple[int, ...]:
    """Return a colour as it is on white."""
    return tuple(round(255 - opacity * (255 - part)) for part in colour)


def _font(text: str) -> Any:
    """Return a font that has all characters of a text. Raises `QkvError` where there is none."""
    fonts = need("PIL.ImageFont", "encoders", "A PNG", name="Pillow")
    characters = {character for character in text if not character.isspace()}
    fewest = characters
    for name in (None, *FONTS):
        try:
            size = TYPE * SCALE
            font = fonts.load_default(size) if name is None else fonts.truetype(name, size)
        except OSError:  # not on this machine
            continue
        missing = {one for one in characters if _drawn(font, one) == _drawn(font, NO_CHARACTER)}
        if not missing:
            return font
        fewest = min(fewest, missing, key=len)
    raise QkvError(
        f"no font on this machine has {', '.join(sorted(fewest)[:5])}: write a .svg or .html file, "
        "which is drawn in the reader's fonts"
    )


def _drawn(font: Any, character: str) -> bytes:
    return bytes(font.getmask(character))

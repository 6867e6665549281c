"""What drawings are made of: an SVG with its words, lines, texts; and how wide a text is."""

from rich.cells import cell_len

from qkvsearch.lessons.markup import Html, element, joined

# Of a letter, in parts of the size of its type; a Chinese character takes two.
LETTER = 0.56
SIZE = 13
# Of the numbers of values, so many have a colour of their own.
N_KINDS = 6


def picture(
    width: float,
    height: float,
    place: str,
    title: str,
    told: str,
    *inner: Html,
    early: float | None = None,
) -> Html:
    """Return an SVG with a title and what it shows in words.

    place: a part of its ids, unique. early: its height before its last stage, if that is less; the
    page's script cuts it there.
    """
    return element(
        "svg",
        element("title", title, id=f"{place}-title"),
        element("desc", told, id=f"{place}-desc"),
        joined(inner, "\n"),
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{place}-title {place}-desc",
        data_early=None if early is None else number(early),
    )


def number(value: float) -> str:
    """Write a coordinate to a tenth of a unit.

    >>> number(3), number(0.26), number(-0.01)
    ('3', '0.3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def kind_class(kind: int) -> str:
    """Return the class of what has the colour of a number of the values."""
    return f"kind-{kind % N_KINDS}"


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: str) -> Html:
    return element("text", words, x=number(x), y=number(y), text_anchor=anchor, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str | None) -> Html:
    return element("line", x1=number(x1), y1=number(y1), x2=number(x2), y2=number(y2), **attributes)


def rect(x: float, y: float, width: float, height: float, **attributes: str | None) -> Html:
    return element(
        "rect",
        x=number(x),
        y=number(y),
        width=number(width),
        height=number(height),
        **attributes,
    )


def curve(x1: float, y1: float, x2: float, y2: float, **attributes: str | None) -> Html:
    """Return a curve between two points, level at both ends."""
    half = (x1 + x2) / 2
    ends = [number(v) for v in (x1, y1, half, y1, half, y2, x2, y2)]
    d = "M{} {}C{} {} {} {} {} {}".format(*ends)
    return element("path", d=d, **attributes)


def wide(words: str, size: float = SIZE) -> float:
    """Estimate the width of a text."""
    return cell_len(words) * LETTER * size


def cut(words: str, room: float, size: float = SIZE) -> str:
    """Cut a text to the available width.

    >>> cut("a long name", 40)
    'a lo…'
    """
    if wide(words, size) <= room:
        return words
    while words and wide(f"{words}…", size) > room:
        words = words[:-1]
    return f"{words}…"

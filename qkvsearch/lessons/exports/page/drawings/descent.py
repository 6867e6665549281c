"""The map of gradient descent as SVG, and below it the loss, step by step."""

from collections.abc import Iterator

import numpy as np

from qkvsearch.lessons.drawings.descent import Descent
from qkvsearch.lessons.exports.page.drawings.shapes import line, number, picture, rect, text
from qkvsearch.lessons.exports.page.markup import Html, element
from qkvsearch.lessons.messages import say, shown

# The map is a square; the loss has as wide a picture, lower.
WIDE, EDGE, LOW = 360, 10, 150
LEFT, BELOW, ABOVE = 44, 24, 14


def descent(part: Descent, place: str) -> list[Html]:
    """The map with the way that everyone went, and the loss."""
    scale = (WIDE / 2 - EDGE) / part.size
    both = [(part.users, part.user_names, "query"), (part.items, part.item_names, "key")]
    inner = [
        line(EDGE, WIDE / 2, WIDE - EDGE, WIDE / 2, class_="axis"),
        line(WIDE / 2, EDGE, WIDE / 2, WIDE - EDGE, class_="axis"),
    ]
    for ways, _, role in both:
        on_paper = WIDE / 2 + scale * ways * [1, -1]
        inner += [_way(on_paper[:, k], role) for k in range(ways.shape[1])]
    labels: list[Html] = []
    points: list[Html] = []
    for ways, names, role in both:
        on_paper = WIDE / 2 + scale * ways[-1] * [1, -1]
        for k, (at, name) in enumerate(zip(on_paper, names, strict=True)):
            labels.append(_name(at, str(name), role, k))
            points.append(_point(at, role, k))
    # No name covers a point.
    inner += [*labels, *points, text(EDGE, 14, say("● users   ■ films"), class_="side")]
    title = say("{caption}: the map", caption=part.caption)
    mapped = picture(WIDE, WIDE, f"{place}-map", title, part.told, *inner)
    return [mapped, _losses(part, f"{place}-loss")]


def _way(places: np.ndarray, role: str) -> Html:
    points = " ".join(f"{number(x)},{number(y)}" for x, y in places)
    return element("polyline", points=points, class_="way", data_role=role, fill="none")


def _name(at: np.ndarray, name: str, role: str, k: int) -> Html:
    """Where there is room for it."""
    is_right = at[0] < WIDE * 0.72
    x = at[0] + (10 if is_right else -10)
    anchor = "start" if is_right else "end"
    return text(x, at[1] + 4, name, anchor, class_="point-name", data_name=f"{role} {k}")


def _point(at: np.ndarray, role: str, k: int) -> Html:
    """A user is round, a film square."""
    return element(
        "g",
        element("circle", r="6") if role == "query" else rect(-6, -6, 12, 12, rx="2"),
        class_="point",
        data_role=role,
        data_point=f"{role} {k}",
        transform=f"translate({number(at[0])} {number(at[1])})",
    )


def _losses(part: Descent, place: str) -> Html:
    points = " ".join(f"{number(x)},{number(y)}" for x, y in _curve(part.losses, part.steps))
    *_, (x, y) = _curve(part.losses, part.steps)
    inner = [
        line(LEFT, ABOVE, LEFT, LOW - BELOW, class_="axis"),
        line(LEFT, LOW - BELOW, WIDE - EDGE, LOW - BELOW, class_="axis"),
        text(LEFT - 6, ABOVE + 6, shown(round(part.losses[0], 2)), "end", class_="side"),
        text(LEFT - 6, LOW - BELOW, "0", "end", class_="side"),
        text(LEFT, LOW - 6, say("loss"), class_="side"),
        text(WIDE - EDGE, LOW - 6, say("step {n}", n=part.steps), "end", class_="side"),
        element("polyline", points=points, class_="losses", fill="none"),
        element("circle", cx=number(x), cy=number(y), r="5", class_="now"),
    ]
    title = say("{caption}: the loss", caption=part.caption)
    return picture(WIDE, LOW, place, title, part.told, *inner)


def _curve(losses: np.ndarray, steps: int) -> Iterator[tuple[float, float]]:
    """Where the loss of each step lies, 0 on the axis."""
    wide, high = WIDE - EDGE - LEFT, LOW - BELOW - ABOVE
    for k, loss in enumerate(losses):
        yield LEFT + wide * k / steps, LOW - BELOW - high * min(float(loss / losses[0]), 1.1)

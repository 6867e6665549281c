"""A map on which embeddings of users and items are learned by gradient descent, and the loss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.svg import line, number, picture, rect, text, wide
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say, shown

# The map is a square; the loss has as wide a picture, lower.
WIDE, EDGE, LOW = 360, 10, 150
LEFT, BELOW, ABOVE = 44, 24, 14
# How much larger the map is than what was walked on it.
MARGIN = 1.15


@dataclass(frozen=True, eq=False)
class Descent(Drawing):
    """The way of gradient descent in two dimensions.

    name: one word, unique in its lesson. ratings (n, m), NaN for a gap. users (k, n, 2) and items
    (k, m, 2): where they were after every `every`-th step, the first before any. losses (steps +
    1): of each step. rate, middle, penalty: of the loss and the walk, as the lesson has them.
    """

    name: str
    caption: str
    ratings: np.ndarray
    users: np.ndarray
    items: np.ndarray
    losses: np.ndarray
    every: int
    rate: float
    middle: float
    penalty: float
    user_names: Sequence[str]
    item_names: Sequence[str]

    @property
    def steps(self) -> int:
        return len(self.losses) - 1

    @property
    def size(self) -> float:
        """The map goes from minus this to this, both ways."""
        return MARGIN * float(np.abs(np.concatenate([self.users, self.items], axis=1)).max())

    @property
    def predictions(self) -> np.ndarray:
        """(n, m), after the last step."""
        return self.middle + self.users[-1] @ self.items[-1].T

    @property
    def told(self) -> str:
        best = [self.item_names[j] for j in self.predictions.argmax(axis=1)]
        pairs = say("; ").join(
            say("{user} → {item}", user=user, item=item)
            for user, item in zip(self.user_names, best, strict=True)
        )
        return say(
            "In {steps} steps the loss falls from {first} to {last}. The highest prediction of "
            "each user: {found}.",
            steps=self.steps,
            first=self.losses[0],
            last=self.losses[-1],
            found=pairs,
        )

    @property
    def tables(self) -> list[NumberTable]:
        names = [*self.user_names, *self.item_names]
        places = np.vstack([self.users[-1], self.items[-1]])
        rows: list[list[str | float]] = [
            [name, *map(float, place)] for name, place in zip(names, places, strict=True)
        ]
        now: list[str | float] = [say("now"), float(self.steps), float(self.losses[-1])]
        headings = [say("name"), say("first number"), say("second number")]
        return [(headings, rows), ([say("walk"), say("step"), say("loss")], [now])]

    def numbers(self) -> dict[str, Any]:
        return {
            "ratings": self.ratings,
            "users": self.users[0],
            "items": self.items[0],
            "user_names": list(self.user_names),
            "item_names": list(self.item_names),
            "steps": self.steps,
            "rate": self.rate,
            "middle": self.middle,
            "penalty": self.penalty,
            "size": self.size,
            "loss": float(self.losses[0]),
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the map with everyone's way, and the loss."""
        scale = (WIDE / 2 - EDGE) / self.size
        both = [(self.users, self.user_names, "query"), (self.items, self.item_names, "key")]
        inner = [
            line(EDGE, WIDE / 2, WIDE - EDGE, WIDE / 2, class_="axis"),
            line(WIDE / 2, EDGE, WIDE / 2, WIDE - EDGE, class_="axis"),
        ]
        for ways, _, role in both:
            on_paper = WIDE / 2 + scale * ways * [1, -1]
            inner += [_way(on_paper[:, k], role) for k in range(ways.shape[1])]
        ends = WIDE / 2 + scale * np.vstack([self.users[-1], self.items[-1]]) * [1, -1]
        all_names = [*map(str, [*self.user_names, *self.item_names])]
        keys = [(role, k) for _, names, role in both for k in range(len(names))]
        labels = [
            text(x, y, name, class_="point-name", data_name=f"{role} {k}")
            for (x, y), name, (role, k) in zip(
                names_beside(ends, all_names), all_names, keys, strict=True
            )
        ]
        points = [_point(at, role, k) for at, (role, k) in zip(ends, keys, strict=True)]
        # No name covers a point.
        inner += [*labels, *points, text(EDGE, 14, say("● users   ■ films"), class_="side")]
        title = say("{caption}: the map", caption=self.caption)
        mapped = picture(WIDE, WIDE, f"{place}-map", title, self.told, *inner)
        return [mapped, _losses(self, f"{place}-loss")]


# --- the SVG ---


def _way(places: np.ndarray, role: str) -> Html:
    points = " ".join(f"{number(x)},{number(y)}" for x, y in places)
    return element("polyline", points=points, class_="way", data_role=role, fill="none")


def names_beside(points: np.ndarray, names: Sequence[str]) -> list[tuple[float, float]]:
    """Return where each name begins: beside its point, and on no other name or point if it fits.

    points (n, 2).
    """
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in points]
    begins = []
    for (x, y), name in zip(points, names, strict=True):
        width = wide(name)
        right, middle, left = x + 10, x - width / 2, x - 10 - width
        spots = [(right, y + 4), (left, y + 4), (middle, y - 10), (middle, y + 19)]
        spots += [(right, y - 6), (left, y - 6), (right, y + 15), (left, y + 15)]
        boxes = [(x1, base - 11, x1 + width, base + 3) for x1, base in spots]
        free = [k for k, box in enumerate(boxes) if _is_free(box, taken)]
        best = free[0] if free else 0
        begins.append(spots[best])
        taken.append(boxes[best])
    return begins


def _is_free(box: tuple[float, ...], taken: Sequence[tuple[float, ...]]) -> bool:
    """Whether a box lies on the map and overlaps none of the others."""
    x1, y1, x2, y2 = box
    apart = (x1 >= c or x2 <= a or y1 >= d or y2 <= b for a, b, c, d in taken)
    return x1 >= 0 and x2 <= WIDE and all(apart)


def _point(at: np.ndarray, role: str, k: int) -> Html:
    """Return a circle for a user, a square for a film."""
    return element(
        "g",
        element("circle", r="6") if role == "query" else rect(-6, -6, 12, 12, rx="2"),
        class_="point",
        data_role=role,
        data_point=f"{role} {k}",
        transform=f"translate({number(at[0])} {number(at[1])})",
    )


def _losses(part: Descent, place: str) -> Html:
    curve = list(_curve(part.losses, part.steps))
    points, (x, y) = " ".join(f"{number(x)},{number(y)}" for x, y in curve), curve[-1]
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
    """Yield the position of each step's loss, 0 on the axis."""
    wide, high = WIDE - EDGE - LEFT, LOW - BELOW - ABOVE
    for k, loss in enumerate(losses):
        yield LEFT + wide * k / steps, LOW - BELOW - high * min(float(loss / losses[0]), 1.1)

"""A map on which embeddings of users and items are learned: gradient descent, a step at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.messages import say

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
        found: np.ndarray = self.middle + self.users[-1] @ self.items[-1].T
        return found

    @property
    def told(self) -> str:
        best = [self.item_names[j] for j in self.predictions.argmax(axis=1)]
        found = say("; ").join(
            say("{user} → {item}", user=user, item=item)
            for user, item in zip(self.user_names, best, strict=True)
        )
        return say(
            "In {steps} steps the loss falls from {first} to {last}. The highest prediction of "
            "each user: {found}.",
            steps=self.steps,
            first=self.losses[0],
            last=self.losses[-1],
            found=found,
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

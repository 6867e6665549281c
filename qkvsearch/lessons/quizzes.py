"""Questions whose answers were computed with the lesson, and how an answer is judged."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.messages import say, shown

NUMBER = re.compile(r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+−]?\d+)?(?:\s*/\s*\d+\.?\d*)?(?:\s*%)?")
# Between the entries of a list, in either language.
SEPARATORS = re.compile(r"[\s,;，、；]+")


@dataclass(frozen=True)
class Quiz:
    """A question with one right answer.

    name: "masks.1", the same in every language. answer: a number, numbers (n,) in order, a choice
    (its number in `choices`, from 0), or a set of words (frozenset) such as the cells that become
    0. tolerance: how far a number may be off. worked: the step that leads to the answer.
    """

    name: str
    question: str
    answer: float | Sequence[float] | frozenset[str]
    worked: str
    choices: Sequence[str] = ()
    tolerance: float = 0.01

    def is_right(self, given: str) -> bool:
        """Whether a typed answer is right. Fractions, percent and either language's commas count.

        >>> Quiz("a.1", "1/3 of 100%?", 1 / 3, "").is_right("33.3%")
        True
        >>> Quiz("a.2", "Which cells?", frozenset({"aD", "bD"}), "").is_right("bd, ad")
        True
        """
        given = given.strip()
        if self.choices:
            return self._chosen(given) == self.answer
        if isinstance(self.answer, frozenset):
            words = {word.casefold() for word in SEPARATORS.split(given) if word}
            words -= {say("none").casefold()}
            return words == {word.casefold() for word in self.answer}
        numbers = [as_number(text) for text in NUMBER.findall(given)]
        wanted = np.atleast_1d(np.asarray(self.answer, dtype=float))
        return len(numbers) == len(wanted) and bool(
            np.all(np.abs(np.array(numbers) - wanted) <= self.tolerance)
        )

    def _chosen(self, given: str) -> int | None:
        """By number, from 1 as it is shown, by letter, or in full."""
        for place, choice in enumerate(self.choices):
            names = (str(place + 1), "abcdefgh"[place], choice.casefold())
            if given.casefold().rstrip(").") in names:
                return place
        return None

    @property
    def solution(self) -> str:
        """The right answer, as a person reads it."""
        if self.choices:
            return self.choices[int(self.answer)]  # type: ignore[arg-type]
        if isinstance(self.answer, frozenset):
            return " ".join(sorted(self.answer, key=str.casefold)) or say("none")
        return shown(self.answer)

    def to_record(self) -> dict[str, Any]:
        """As JSON holds it."""
        answer: Any = self.answer
        if isinstance(answer, frozenset):
            answer = sorted(answer)
        elif np.ndim(answer):
            answer = [float(entry) for entry in answer]
        return {
            "name": self.name,
            "question": self.question,
            "choices": list(self.choices),
            "answer": answer,
            "tolerance": self.tolerance,
            "worked": self.worked,
        }


def as_number(text: str) -> float:
    """What a person means by it.

    >>> as_number("−1.5"), as_number("1/4"), as_number("25%"), as_number("1/0")
    (-1.5, 0.25, 0.25, nan)
    """
    share = 0.01 if text.endswith("%") else 1.0
    top, _, bottom = text.rstrip("%").replace("−", "-").partition("/")
    below = float(bottom) if bottom else 1.0
    return share * float(top) / below if below else math.nan

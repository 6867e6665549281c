"""Questions whose answers were computed with the lesson, and how an answer is judged."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch.lessons.messages import plain, say, shown

NUMBER = re.compile(
    r"[-+−]?(?:∞|(?<![a-z])(?:inf(?:inity)?|nan)(?![a-z])"
    r"|(?:\d+\.?\d*|\.\d+)(?:e[-+−]?\d+)?(?:\s*/\s*\d+\.?\d*)?(?:\s*%)?)",
    re.IGNORECASE,
)
# Between the entries of a list, in either language.
SEPARATORS = re.compile(r"[\s,;、]+|(?<=[a-z\d])和(?=[a-z\d])", re.IGNORECASE)
AND = {"and", "和"}
DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![.,]?\d)")
# The letters, digits and signs of a Chinese keyboard, as wide as a character.
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


@dataclass(frozen=True)
class Quiz:
    """A question with one right answer."""

    # Such as "masks.1", the same in every language.
    name: str
    question: str
    # A number, numbers (n,) in order, a choice (its number in `choices`, from 0), or a set of words
    # such as the cells that become 0.
    answer: float | Sequence[float] | frozenset[str]
    # The step that leads to the answer.
    worked: str
    choices: Sequence[str] = ()
    # How far a number may be off.
    tolerance: float = 0.01
    # What each choice shows about whoever chose it, "" for the right one.
    misconceptions: Sequence[str] = ()
    # Typical wrong answers, each with what it shows.
    slips: Sequence[tuple[str, str]] = ()
    # Whether it asks to apply the idea to something that the lesson does not show.
    is_transfer: bool = False

    def is_right(self, given: str) -> bool:
        """Whether a typed answer is right. Fractions, percent and either language's commas count.

        A comma is a decimal one where there are too many numbers otherwise: 0,25 for 0.25.

        >>> Quiz("a.1", "1/3 of 100%?", 1 / 3, "").is_right("33.3%")
        True
        >>> Quiz("a.2", "Which cells?", frozenset({"aD", "bD"}), "").is_right("bd, ad")
        True
        """
        given = narrow(given.strip())
        if self.choices:
            return self._chosen(given) == self.answer
        if isinstance(self.answer, frozenset):
            asked = {narrow(word).casefold() for word in self.answer}
            words = {word.casefold() for word in SEPARATORS.split(given) if word}
            # Any of these may be a token, too.
            return words - ({say("none").casefold()} | AND - asked) == asked
        right = np.atleast_1d(np.asarray(self.answer, dtype=float))
        numbers = read_numbers(given, len(right))
        # Infinities are near themselves alone, and so is NaN.
        return len(numbers) == len(right) and np.allclose(
            numbers, right, rtol=0, atol=self.tolerance, equal_nan=True
        )

    def complaint(self, given: str) -> str:
        """Return why this cannot be an answer, so that it does not count as wrong; "" if it can.

        >>> Quiz("a.1", "?", 0.25, "").complaint("zero")
        'Type a number, such as 1/4 or 25%.'
        """
        given = narrow(given.strip())
        if self.choices:
            if self._chosen(given) is not None:
                return ""
            return say("Type the number of a choice, 1 to {n}.", n=len(self.choices))
        if isinstance(self.answer, frozenset):
            is_word = any(char.isalnum() for char in given)
            return "" if is_word or not self.answer else say("Name the tokens, or type: none.")
        n = np.size(self.answer)
        n_numbers = len(read_numbers(given, n))
        if n_numbers and (n == 1 or n_numbers == n):
            return ""
        if n == 1:
            return say("Type a number, such as 1/4 or 25%.")
        return say("Type {n} numbers, apart by spaces.", n=n)

    def hint(self, given: str) -> str:
        """Return what is wrong about a wrong answer, without what would be right."""
        for wrong, shows in self.wrong_answers:
            if replace(self, answer=wrong).is_right(given):
                return shows
        if self.choices:
            return say("It is another one.")
        if isinstance(self.answer, frozenset):
            asked = {narrow(word).casefold() for word in self.answer}
            words = {word.casefold() for word in SEPARATORS.split(narrow(given)) if word} - AND
            return say(
                "Of what you name {right} belong there; {missing} are missing.",
                right=len(words & asked),
                missing=len(asked - words),
            )
        right = np.atleast_1d(np.asarray(self.answer, dtype=float))
        numbers = read_numbers(given, len(right))
        if len(right) == 1 and len(numbers) == 1:
            return say("That is too much.") if numbers[0] > right[0] else say("That is too little.")
        near = np.isclose(numbers, right, rtol=0, atol=self.tolerance, equal_nan=True)
        return say("{right} of {n} numbers are right.", right=int(near.sum()), n=len(right))

    @property
    def wrong_answers(self) -> list[tuple[Any, str]]:
        """Typical wrong answers in the form of the right one, each with what it shows."""
        if self.choices:
            return [(n, shows) for n, shows in enumerate(self.misconceptions) if shows]
        if isinstance(self.answer, frozenset):
            return [(frozenset(words.split()), shows) for words, shows in self.slips]
        n = np.size(self.answer)
        return [(read_numbers(text, n), shows) for text, shows in self.slips]

    def _chosen(self, given: str) -> int | None:
        """Return the index of a choice given by number (from 1) or in full. A letter is none: no
        choice is shown with one, and b and q are keys elsewhere in a lesson.
        """
        given = given.casefold()
        texts = [narrow(choice).casefold() for choice in self.choices]
        if given in texts:  # which may end in what follows a number, as in "2)"
            return texts.index(given)
        for place, text in enumerate(texts):
            if given.rstrip(").") in (str(place + 1), text):
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
        """Return it as JSON; an answer that JSON has no number for is "inf", "-inf" or "nan"."""
        if isinstance(self.answer, frozenset):
            answer = sorted(self.answer)
        else:
            answer = np.asarray(self.answer, dtype=float).tolist()
        return {
            "name": self.name,
            "question": self.question,
            "choices": list(self.choices),
            "answer": plain(answer),
            "tolerance": self.tolerance,
            "worked": self.worked,
            "misconceptions": list(self.misconceptions),
            "is_transfer": self.is_transfer,
        }


def read_numbers(given: str, n: int = 1) -> list[float]:
    """Return the numbers in a typed text; commas are decimal if there are not n otherwise.

    >>> read_numbers("1/4, 25%", 2), read_numbers("0,25"), read_numbers("zero")
    ([0.25, 0.25], [0.25], [])
    """
    given = narrow(given)
    texts = NUMBER.findall(given)
    if len(texts) != n:
        texts = NUMBER.findall(DECIMAL_COMMA.sub(r"\1.\2", given))
    return [as_number(text) for text in texts]


def narrow(text: str) -> str:
    """Return full-width letters, digits and signs as ASCII; a small ² stays as it is.

    >>> narrow("Ｃ，０．５％")
    'C,0.5%'
    """
    return text.translate(FULL_WIDTH)


def as_number(text: str) -> float:
    """Parse a number as a person writes it.

    >>> as_number("−1.5"), as_number("1/4"), as_number("25%"), as_number("1/0"), as_number("−∞")
    (-1.5, 0.25, 0.25, nan, -inf)
    """
    share = 0.01 if text.endswith("%") else 1.0
    top, _, bottom = text.rstrip("%").replace("−", "-").replace("∞", "inf").partition("/")
    below = float(bottom) if bottom else 1.0
    return share * float(top) / below if below else math.nan

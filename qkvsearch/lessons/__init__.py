"""The course: ten lessons that slow the engine down to a step at a time.

A lesson is a module with `TITLE`, `GOAL` and `MINUTES`, and `lesson(given)`, which computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from qkvsearch.errors import QkvError, suggest
from qkvsearch.lessons.messages import LANGUAGES, language, say
from qkvsearch.lessons.parts import Given, Lesson

__all__ = ["LANGUAGES", "LESSONS", "Given", "Outline", "language", "lesson", "outline"]

# In the order in which they build on one another.
LESSONS = (
    "embeddings",
    "dot-product",
    "recommender",
    "search",
    "softmax",
    "translation",
    "self-attention",
    "masks",
    "context",
    "learning",
)


@dataclass(frozen=True)
class Outline:
    """A lesson's line in the list of the course."""

    name: str
    number: int
    title: str
    goal: str
    minutes: int


def lesson(name: str, given: Given | None = None) -> Lesson:
    """The lesson, computed now, in the language that is spoken. Raises `QkvError` for an unknown
    name, or where what is given does not fit the lesson.

    >>> lesson("masks").showing(54).title
    'Padding'
    """
    found: Lesson = _module(name).lesson(given or Given())
    return found


def outline() -> Iterator[Outline]:
    """The course, lesson by lesson, without computing any."""
    for number, name in enumerate(LESSONS, start=1):
        module = _module(name)
        title, goal = say(module.TITLE), say(module.GOAL)
        yield Outline(name, number, title, goal, module.MINUTES)


def _module(name: str) -> ModuleType:
    if name not in LESSONS:
        there = ", ".join(LESSONS)
        raise QkvError(f"no lesson {name!r}{suggest(name, list(LESSONS))} (there are {there})")
    return import_module(f"qkvsearch.lessons.course.{name.replace('-', '_')}")

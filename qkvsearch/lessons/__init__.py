"""The course: lessons that slow the engine down to a step at a time.

A lesson is a folder in `course`: its module has `TITLE`, `GOAL`, `MINUTES`, `FURTHER`
where some of them are for steps beyond its core, `TAKES` where it can use something of the
reader's own (names of fields of `Given`), and `lesson(given)`, which computes its steps and its
quizzes. To add one: a folder, its name in `LESSONS`, and its `GUIDANCE`.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from types import ModuleType

from qkvsearch.errors import QkvError, suggest
from qkvsearch.lessons.messages import LANGUAGES, language, say
from qkvsearch.lessons.own_numbers import refuse
from qkvsearch.lessons.parts import Given, Lesson, Outline

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
    "heads",
    "block",
    "learning",
)


def lesson(name: str, given: Given | None = None) -> Lesson:
    """The lesson, computed now, in the language that is spoken. Raises `QkvError` for an unknown
    name, or where what is given does not fit the lesson.

    >>> lesson("masks").showing(54).title
    'Padding'
    """
    module, given = _module(name), given or Given()
    refuse(given, name, *getattr(module, "TAKES", ()))
    steps, quizzes = module.lesson(given)
    quizzes = [replace(quiz, name=f"{name}.{n}") for n, quiz in enumerate(quizzes, start=1)]
    return Lesson(**vars(_outline(name, module)), steps=steps, quizzes=quizzes)


def outline() -> Iterator[Outline]:
    """The course, lesson by lesson, without computing any."""
    return (_outline(name, _module(name)) for name in LESSONS)


def _outline(name: str, module: ModuleType) -> Outline:
    number = LESSONS.index(name) + 1
    further = getattr(module, "FURTHER", 0)
    return Outline(
        name, number, say(module.TITLE), say(module.GOAL), module.MINUTES, further=further
    )


def _module(name: str) -> ModuleType:
    if name not in LESSONS:
        there = ", ".join(LESSONS)
        raise QkvError(f"no lesson {name!r}{suggest(name, list(LESSONS))} (there are {there})")
    return import_module(f"qkvsearch.lessons.course.{name.replace('-', '_')}")

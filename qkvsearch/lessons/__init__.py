"""The course: lessons that slow the engine down to a step at a time.

A lesson is a folder `NN-name` with a document in each language, `en.md` and `zh.md`, which `source`
reads and `runner` runs; what takes more than a few lines to compute is in `compute`. To add one,
add a folder.

Some lessons are still modules in `course`: each has `TITLE`, `GOAL`, `MINUTES`, `FURTHER`, `TAKES`
(names of fields of `Given`), and `lesson(given)`, which computes its steps and its quizzes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

from qkvsearch.errors import QkvError, suggest
from qkvsearch.lessons.instructor import GUIDANCE, Guidance
from qkvsearch.lessons.messages import LANGUAGES, language, say, spoken
from qkvsearch.lessons.own_numbers import refuse
from qkvsearch.lessons.parts import Given, Lesson, Outline
from qkvsearch.lessons.runner import run
from qkvsearch.lessons.source import Source, folders, read

__all__ = ["LANGUAGES", "LESSONS", "Given", "Outline", "guidance", "language", "lesson", "outline"]

# Those that are no documents yet, by their numbers.
NUMBERS = {
    "recommender": 3,
    "translation": 6,
    "masks": 8,
    "context": 9,
    "learning": 12,
} | {name: int(folder.name[:2]) for name, folder in folders().items()}
# In the order in which they build on one another.
LESSONS = tuple(sorted(NUMBERS, key=NUMBERS.__getitem__))


def lesson(
    name: str, given: Given | None = None, changes: Mapping[str, Any] | None = None
) -> Lesson:
    """The lesson, computed now, in the language that is spoken. Raises `QkvError` for an unknown
    name, or where what is given does not fit the lesson.

    changes: values in place of those of a document's setup, by name.

    >>> lesson("masks").showing(54).title
    'Padding'
    """
    given = given or Given()
    if name in folders():
        source = read(folders()[name], spoken())
        refuse(given, name, *source.fields.get("takes", "").split())
        steps, quizzes = run(source, given, changes)
        quizzes = [replace(quiz, name=f"{name}.{n}") for n, quiz in enumerate(quizzes, start=1)]
        return Lesson(**vars(_outline_of(source, name)), steps=steps, quizzes=quizzes)
    module = _module(name)
    refuse(given, name, *getattr(module, "TAKES", ()))
    steps, quizzes = module.lesson(given)
    quizzes = [replace(quiz, name=f"{name}.{n}") for n, quiz in enumerate(quizzes, start=1)]
    return Lesson(**vars(_outline(name, module)), steps=steps, quizzes=quizzes)


def outline() -> Iterator[Outline]:
    """The course, lesson by lesson, without computing any."""
    for name in LESSONS:
        if name in folders():
            yield _outline_of(read(folders()[name], spoken()), name)
        else:
            yield _outline(name, _module(name))


def guidance(name: str) -> Guidance:
    """What whoever teaches the lesson should know."""
    if name in folders():
        fields = read(folders()[name], spoken()).fields
        return Guidance(fields["wrong"], fields["ask"], fields["answer"])
    return Guidance(*map(say, GUIDANCE[name]))


def _outline_of(source: Source, name: str) -> Outline:
    fields, number = source.fields, NUMBERS[name]
    further = int(fields.get("further", 0))
    return Outline(
        name, number, fields["title"], fields["goal"], int(fields["minutes"]), further=further
    )


def _outline(name: str, module: ModuleType) -> Outline:
    number = NUMBERS[name]
    further = getattr(module, "FURTHER", 0)
    return Outline(
        name, number, say(module.TITLE), say(module.GOAL), module.MINUTES, further=further
    )


def _module(name: str) -> ModuleType:
    if name not in LESSONS:
        there = ", ".join(LESSONS)
        raise QkvError(f"no lesson {name!r}{suggest(name, list(LESSONS))} (there are {there})")
    return import_module(f"qkvsearch.lessons.course.{name.replace('-', '_')}")

"""The course: lessons that slow the engine down to a step at a time.

A lesson is a folder `NN-name` with a document in each language, such as `en.md`, which `parser`
reads and `runner` runs. What takes more than a few lines to compute is in `compute`. To add a
lesson, add a folder.
"""

from collections.abc import Iterator
from dataclasses import replace

from qkvsearch._utils.spoken import LANGUAGES
from qkvsearch.errors import QkvError, suggest
from qkvsearch.lessons.messages import language, spoken
from qkvsearch.lessons.own_numbers import refuse
from qkvsearch.lessons.parser import LessonDocument, folders, read
from qkvsearch.lessons.parts import Given, Guidance, Lesson, Outline
from qkvsearch.lessons.runner import run

__all__ = ["LANGUAGES", "LESSONS", "Given", "Outline", "guidance", "language", "lesson", "outline"]

FOLDERS = folders()
# In the order in which they build on one another.
LESSONS = tuple(FOLDERS)
# Without what the lessons leave out, and without the questions before and after the course.
COURSE_LESSONS = tuple(name for name in LESSONS if name not in ("appendix", "check"))


def lesson(name: str, given: Given | None = None) -> Lesson:
    """Compute a lesson in the language that is spoken. Raises `QkvError` for an unknown name, or
    where what is given does not fit the lesson.

    >>> lesson("masks").showing(54).title
    'Padding'
    """
    source = _source(name)
    if given is None:
        given = Given()
    refuse(given, name, *source.fields.get("takes", "").split())
    steps, quizzes = run(source, given)
    quizzes = [replace(quiz, name=f"{name}.{n}") for n, quiz in enumerate(quizzes, start=1)]
    explain = source.fields.get("explain", "")
    is_paged = source.fields.get("paged") == "yes"
    return Lesson(
        **vars(_outline(name)), steps=steps, quizzes=quizzes, explain=explain, is_paged=is_paged
    )


def outline() -> Iterator[Outline]:
    """Outline the course, lesson by lesson, without computing any."""
    return map(_outline, LESSONS)


def guidance(name: str) -> Guidance:
    """Return what a teacher should know about the lesson."""
    fields = _source(name).fields
    return Guidance(fields["wrong"], fields["ask"], fields["answer"])


def _outline(name: str) -> Outline:
    fields = _source(name).fields
    number = int(FOLDERS[name].name[:2])  # of "05-softmax": 5
    return Outline(name, number, fields["title"], fields["goal"], int(fields["minutes"]))


def _source(name: str) -> LessonDocument:
    if name not in FOLDERS:
        available = ", ".join(LESSONS)
        raise QkvError(f"no lesson {name!r}{suggest(name, list(LESSONS))} (there are {available})")
    return read(FOLDERS[name], spoken())

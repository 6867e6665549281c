"""How long a lesson takes: counted, so that what the course says of its times can be held to it."""

import re
from collections.abc import Iterable

from qkvsearch.lessons.parts import Curve, Formula, Lesson, Matrix, Part, Step, Table, Text
from qkvsearch.lessons.workbench import Workbench

WORD = re.compile(r"[^\W\d_]{2,}")
# English read to be understood, by someone whose first language it may not be.
WORDS_A_MINUTE = 120
# Of what is looked at, tried and answered.
MATRIX, TRY, QUESTION = 1 / 6, 1.0, 3 / 4


def minutes(lesson: Lesson) -> float:
    """Of a lesson in English: its words read, its matrices looked at, its workbenches and drawings
    tried, its questions answered.
    """
    return sum(map(step_minutes, lesson.steps)) + QUESTION * len(lesson.quizzes)


def step_minutes(step: Step) -> float:
    """Of one step."""
    return sum(map(_of_part, step.parts)) + _words([step.title])


def _of_part(part: Part) -> float:
    match part:
        case Text() | Formula():
            return _words([part.text])
        case Table():
            cells = [cell for row in part.rows for cell in row if isinstance(cell, str)]
            return _words([part.caption, *part.columns, *cells]) + MATRIX
        case Matrix() | Curve():
            return _words([part.name]) + MATRIX
        case Workbench():
            return _words([part.caption]) + TRY
    return TRY


def _words(texts: Iterable[str]) -> float:
    return sum(len(WORD.findall(text)) for text in texts) / WORDS_A_MINUTE

"""A file of a class's answers, judged: who answered what, and whether it is right."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from qkvsearch.errors import DataError, UnknownIdError, suggest
from qkvsearch.lessons import LESSONS, lesson
from qkvsearch.lessons.parts import Given
from qkvsearch.lessons.quizzes import Quiz

COLUMNS = ("student", "quiz", "answer")
DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Answer:
    """What someone answered. student: None where the file names nobody. place: where it stands.

    Raises `DataError` for an answer to no quiz.
    """

    student: str | None
    quiz: str
    given: str
    place: str

    def __post_init__(self) -> None:
        # A phone begins a line with a capital.
        object.__setattr__(self, "quiz", self.quiz.strip().casefold())
        if not self.quiz:
            raise DataError(f"{self.place}: the quiz is missing")

    @property
    def lesson(self) -> str:
        return self.quiz.rpartition(".")[0]


@dataclass(frozen=True)
class GradedAnswer:
    """An answer beside the quiz that it belongs to."""

    answer: Answer
    quiz: Quiz

    @property
    def is_right(self) -> bool:
        return self.quiz.is_right(self.answer.given)

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON; the right answer is a number, numbers, words, or the choice's text.

        Numbers that JSON lacks are the words "inf", "-inf" and "nan".
        """
        choices = self.quiz.choices
        right = self.quiz.solution if choices else self.quiz.to_record()["answer"]
        return {
            "student": self.answer.student,
            "quiz": self.quiz.name,
            "given": self.answer.given,
            "right": self.is_right,
            "answer": right,
            "worked": self.quiz.worked,
        }


def read_answers(path: Path) -> list[Answer]:
    """Read the answers of a CSV file (columns student, quiz, answer; no student: one person's). Of
    repeated ones the last counts. Raises `DataError`, with the file and the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: cannot read: it is no text in UTF-8") from None
    except OSError as error:
        raise DataError(f"{path}: cannot read: {error.strerror}") from None
    answers = list(_of_csv(path, text))
    if not answers:
        raise DataError(f"{path}: there are no answers in it")
    return list({(answer.student, answer.quiz): answer for answer in answers}.values())


def judge(
    answers: Sequence[Answer], only: str | None = None, given: Given | None = None
) -> list[GradedAnswer]:
    """Pair each answer with its quiz, in the order of the answers; compute the lessons they need.

    only: the name of a lesson; answers to others' quizzes are left out. given: as for `lesson`.
    Raises `UnknownIdError`, with near matches, for a quiz that there is not.
    """
    if only is not None:
        others = set(LESSONS) - {only}
        answers = [answer for answer in answers if answer.lesson not in others]
        if not answers:
            raise DataError(f"none of the answers is about the lesson {only}")
    asked = {answer.lesson for answer in answers}
    meant = asked.union(*(get_close_matches(word, LESSONS) for word in asked - set(LESSONS)))
    needed = [name for name in LESSONS if name in ({only} if only else meant)]
    quizzes = {quiz.name: quiz for name in needed for quiz in lesson(name, given).quizzes}
    for answer in answers:
        if answer.quiz not in quizzes:
            there = suggest(answer.quiz, list(quizzes)) or "; they are called masks.1, masks.2, …"
            raise UnknownIdError(f"{answer.place}: no quiz {answer.quiz!r}{there}")
    return [GradedAnswer(answer, quizzes[answer.quiz]) for answer in answers]


def totals(judged: Iterable[GradedAnswer]) -> dict[str | None, tuple[int, int]]:
    """Count each student's right answers and all answers."""
    counts: dict[str | None, tuple[int, int]] = {}
    for one in judged:
        right, all_ = counts.get(one.answer.student, (0, 0))
        counts[one.answer.student] = right + one.is_right, all_ + 1
    return counts


def _of_csv(path: Path, text: str) -> Iterable[Answer]:
    header = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None
    if not rows:
        return
    names = [name.strip().casefold() for name in rows[0][1]]
    for name in COLUMNS[1:]:
        if name not in names:
            raise DataError(
                f"{path}: no column {name!r}{suggest(name, names)} (it has: {', '.join(names)}; it "
                "needs quiz and answer, and may have student)"
            )
    for line, row in rows[1:]:
        if len(row) > len(names):
            raise DataError(
                f"{path}, line {line}: {len(row)} cells under {len(names)} headings; put an answer "
                f"with {delimiter!r} in it in double quotes"
            )
        cells = dict(zip(names, (cell.strip() for cell in row), strict=False))
        quiz, given = cells.get("quiz", ""), cells.get("answer", "")
        yield Answer(cells.get("student") or None, quiz, given, f"{path}, line {line}")

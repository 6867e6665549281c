"""Questions in the terminal: asked and judged where someone answers, else printed with answers."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.text import Text

from qkvsearch._utils.files import write_file
from qkvsearch.cli.lesson.view import bold, paragraph, prose, title
from qkvsearch.cli.render import rendered, to_table, write_text
from qkvsearch.lessons.answers import GradedAnswer
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.terminal import printable

INDENT = 3
TRIES = 2


def ask(quizzes: Sequence[Quiz], save: Path | None = None) -> None:
    """Ask one after another, and tell how many were right. After a wrong answer there is a hint and
    a second try, then the step that leads to the right one. What is no answer does not count; Enter
    alone gives up. Raises `click.Abort` where the person stops.

    save: ask once, without hints and answers, and write what was answered to this CSV file.
    """
    n_right, answers = 0, [("quiz", "answer")]
    for number, quiz in enumerate(quizzes, start=1):
        number_of = say("Question {number} of {n}", number=number, n=len(quizzes))
        write_text(f"\n{_heading(number_of)}{rendered(_question(quiz))}")
        if save is not None:
            answers.append((quiz.name, _answered(quiz)))
        elif _tried(quiz):
            n_right += 1
            write_text(_heading(say("Right.")))
        else:
            write_text(_heading(say("Not quite: it is {answer}.", answer=quiz.solution)))
            write_text(prose(quiz.worked))
    if save is not None:
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows(answers)
        write_file(save, written.getvalue().encode())
        command = f"`qkvsearch teach --answers {save}`"
        write_text(f"\n{prose(say('Kept. {command} marks the answers.', command=command))}")
    else:
        write_text(f"\n{prose(total(None, n_right, len(quizzes)))}")


def _answered(quiz: Quiz) -> str:
    """Ask until what is typed can be an answer; Enter alone gives none."""
    while (given := prompt(say("Your answer:"))) and (complaint := quiz.complaint(given)):
        write_text(prose(complaint))
    return given


def _tried(quiz: Quiz) -> bool:
    """Whether one of `TRIES` answers is right."""
    for tries in range(1, TRIES + 1):
        given = _answered(quiz)
        if quiz.is_right(given):
            return True
        if not given or tries == TRIES:
            break
        write_text(prose(say("Not yet. {hint} Try once more.", hint=quiz.hint(given))))
    return False


def printed(quizzes: Sequence[Quiz]) -> str:
    """Return the questions, and below them the answers with their worked solutions."""
    firsts = [(quiz, f"{number}. ") for number, quiz in enumerate(quizzes, start=1)]
    asked = [rendered(_question(quiz, first)) for quiz, first in firsts]
    answered = [prose(f"{quiz.solution} — {quiz.worked}", INDENT, first) for quiz, first in firsts]
    return "".join(
        [title(say("Questions"), "─"), *asked, f"\n{title(say('Answers'), '─')}", *answered]
    )


def prompt(text: str) -> str:
    """Read a line that the person types, "" for Enter alone. Raises `click.Abort` if they stop."""
    return click.prompt(text, default="", show_default=False, prompt_suffix=" ").strip()


def _question(quiz: Quiz, first: str = "") -> Iterator[Text]:
    yield paragraph(quiz.question, len(first), first)
    for place, choice in enumerate(quiz.choices, start=1):
        yield paragraph(choice, 2 * INDENT, f"{' ' * INDENT}{place}) ")


def _heading(text: str) -> str:
    return rendered([bold(text)])


# --- a file of answers ---


def judged_text(judged: Sequence[GradedAnswer]) -> str:
    """List the answers, a line each; below, the worked solutions of those that someone missed."""
    has_names = any(one.answer.student is not None for one in judged)
    columns = [(say("student"), "wrap"), (say("quiz"), "left"), (say("given"), "wrap")]
    columns += [("", "left"), (say("answer"), "wrap")]
    rows = [
        [
            one.answer.student or "",
            one.quiz.name,
            one.answer.given,
            say("right") if one.is_right else say("wrong"),
            one.quiz.solution,
        ]
        for one in judged
    ]
    table = to_table(columns, rows) if has_names else to_table(columns[1:], [r[1:] for r in rows])
    missed = {one.quiz.name: one.quiz for one in judged if not one.is_right}
    worked = [prose(quiz.worked, INDENT, f"{name}: ") for name, quiz in missed.items()]
    return "\n".join([table, "".join(worked)]) if worked else table


def total(student: str | None, n_right: int, n: int) -> str:
    """Return how many of someone's answers are right."""
    score = say("{right} of {n} right.", right=n_right, n=n)
    return score if student is None else f"{printable(student)}: {score}"

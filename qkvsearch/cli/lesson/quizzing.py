"""Questions in the terminal: asked and judged where someone answers, else printed with answers."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.text import Text

from qkvsearch._utils.files import write_file
from qkvsearch.cli.lesson.view import bold, paragraph, prose, title
from qkvsearch.cli.render import write_text
from qkvsearch.cli.text_table import rendered
from qkvsearch.errors import DataError, quantity
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Lesson
from qkvsearch.lessons.quizzes import Quiz

INDENT = 3
TRIES = 2
# What is typed instead of an answer, or instead of Enter.
STOP = {"q", "quit"}
BACK = {"b", "back"}


class Stopped(Exception):
    """The person has read enough for now."""


def ask(lesson: Lesson, save: Path | None = None) -> None:
    """Ask a lesson's questions one after another, and tell how many were right.

    After a wrong answer there is a hint and a second try, then the step that leads to the right
    one. What is no answer does not count; Enter alone gives up. Raises `Stopped` where the person
    types q, and `click.Abort` where they stop by Ctrl-C.

    save: ask once, without hints and answers, and for a sentence of the person's own; write what
    was answered, and whether it is right, to this CSV file after the last question.
    """
    n_right = 0
    quizzes = lesson.quizzes
    answers: list[tuple[Quiz, str]] = []
    for number, quiz in enumerate(quizzes, start=1):
        number_of = say("Question {number} of {n}", number=number, n=len(quizzes))
        write_text(f"\n{_heading(number_of)}{rendered(_question(quiz))}")
        if save is not None:
            answers.append((quiz, _answered(quiz, save)))
        elif _tried(quiz):
            n_right += 1
            write_text(_heading(say("Right.")))
        else:
            write_text(_heading(say("Not quite: it is {answer}.", answer=quiz.solution)))
            write_text(prose(quiz.worked))
    if save is not None:
        sentence = _sentence(lesson.explain, save) if lesson.explain else ""
        write_text("\n")
        _keep(lesson, answers, sentence, save)
    else:
        score = say("{right} of {n} right.", right=n_right, n=len(quizzes))
        write_text(f"\n{prose(score)}")


def keep_lines(lesson: Lesson, lines: Sequence[str], save: Path) -> None:
    """Write the answers of a file to a CSV file: a line for each question, empty for none.

    Where the lesson asks for a sentence of the person's own, one more line may be that. Raises
    `DataError` where there are more or fewer, or a line cannot be an answer.
    """
    quizzes = lesson.quizzes
    given = [line.strip() for line in lines]
    most = len(quizzes) + bool(lesson.explain)
    while len(given) > most and not given[-1]:
        given.pop()
    if not len(quizzes) <= len(given) <= most:
        sentence = ", and one for the sentence of your own" if lesson.explain else ""
        raise DataError(
            f"stdin has {quantity(len(given), 'line')}, but there are {len(quizzes)} questions; "
            f"give a line for each, an empty one for no answer{sentence}"
        )
    sentence = given.pop() if len(given) > len(quizzes) else ""
    for n, (quiz, answer) in enumerate(zip(quizzes, given, strict=True), start=1):
        if answer and (complaint := quiz.complaint(answer)):
            raise DataError(f"stdin, line {n}, {quiz.name}: {answer!r}: {complaint}")
    _keep(lesson, list(zip(quizzes, given, strict=True)), sentence, save)


def _keep(lesson: Lesson, answers: Sequence[tuple[Quiz, str]], sentence: str, save: Path) -> None:
    """Write what was answered, and whether it is right, to a CSV file, and say so.

    The sentence is compared with nothing, so it is neither right nor wrong.
    """
    rows = [("quiz", "answer", "right")]
    rows += [(quiz.name, given, "yes" if quiz.is_right(given) else "no") for quiz, given in answers]
    if lesson.explain:
        rows.append((f"{lesson.name}.explain", sentence, ""))
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    write_file(save, written.getvalue().encode())
    write_text(prose(say("The answers are in {file}.", file=str(save))))


def explain_back(explain: str) -> str:
    """Return what a sentence of the person's own is asked for with."""
    return f"{_heading(say('Explain it back'))}{prose(explain)}"


def _sentence(explain: str, save: Path) -> str:
    """Ask for a sentence of the person's own; Enter alone gives none. Raises `Stopped`."""
    kept = say("Nothing compares it: it is kept for your teacher. Enter alone leaves it out.")
    write_text(f"\n{explain_back(explain)}{prose(kept)}")
    given = prompt(say("Your sentence, or q to leave:"))
    if given.casefold() in STOP:
        _say_unsaved(save)
        raise Stopped
    return given


def _say_unsaved(save: Path) -> None:
    write_text(prose(say("{file} is not written: some questions are left.", file=str(save))))


def _answered(quiz: Quiz, save: Path | None = None) -> str:
    """Ask until what is typed can be an answer; Enter alone gives none. Raises `Stopped`."""
    while given := prompt(say("Your answer, or q to leave:")):
        key = "" if _is_asked_for(quiz, given) else given.casefold()
        if key in STOP:
            if save is not None:
                _say_unsaved(save)
            raise Stopped
        if key in BACK:
            write_text(prose(say("There is no way back from a question. Type an answer.")))
        elif complaint := quiz.complaint(given):
            write_text(prose(complaint))
        else:
            break
    return given


def _is_asked_for(quiz: Quiz, given: str) -> bool:
    """Return whether a token that is asked for has this name, as q and b may have."""
    return isinstance(quiz.answer, frozenset) and given.casefold() in {
        word.casefold() for word in quiz.answer
    }


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

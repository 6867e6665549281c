"""`qkvsearch teach`: the course in twelve lessons, its quizzes, and their answers judged."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, document_options
from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from qkvsearch.lessons import Given, Lesson

FILE = click.Path(dir_okay=False, path_type=Path)
MASKS = ("none", "padding", "look-ahead", "both", "causal")
FIELDS = ("name", "number", "title", "goal", "minutes", "further", "done", "step")
JUDGED = ("student", "quiz", "given", "right", "answer", "worked")
PLOTTED = (".png", ".svg")
# Options that bring something of the reader's own: the fields of `Given`.
OWN = ("inputs", "w_query", "w_key", "w_value", "mask", "sentence", "encoder")


@dataclass(frozen=True)
class Asked:
    """Which part of the course is wanted, and of it what."""

    lesson: str | None
    step: int | None
    all_: bool
    list_: bool
    no_quiz: bool
    predict: bool
    instructor: bool
    answers: Path | None
    plot: Path | None

    def __post_init__(self) -> None:
        chosen = {"LESSON": self.lesson, "--all": self.all_, "--list": self.list_}
        named = [name for name, value in chosen.items() if value]
        if len(named) > 1:
            raise click.UsageError(f"{' and '.join(named)}: give one of them")
        if self.step is not None and self.lesson is None:
            raise click.UsageError("--step N is of a lesson: teach LESSON --step N")
        if self.plot is not None and not (self.lesson or self.all_):
            raise click.UsageError("--plot draws a lesson: teach LESSON --plot FILE")
        if self.plot is not None and self.plot.suffix.lower() not in PLOTTED:
            raise click.BadParameter(f"a plot is {' or '.join(PLOTTED)}", param_hint="--plot")
        if self.instructor and (self.list_ or self.step or not (self.lesson or self.all_)):
            raise click.UsageError("--instructor goes with a whole LESSON or --all")
        if self.answers is not None and (self.list_ or self.all_ or self.step or self.plot):
            raise click.UsageError("--answers goes with a LESSON or alone")


@click.command(short_help="Learn attention step by step, with numbers of your own.")
@click.argument("lesson", required=False)
@click.option("--list", "list_", is_flag=True, help="List the lessons, their goals and times.")
@click.option("--step", type=int, metavar="N", help="One step of the lesson alone, from 1.")
@click.option("--all", "all_", is_flag=True, help="All twelve lessons, one after another.")
@click.option("--no-quiz", is_flag=True, help="Leave the questions out.")
@click.option("--predict", is_flag=True, help="Ask for a number of each step before it is shown.")
@click.option(
    "--digits",
    type=click.IntRange(0, 12),
    default=2,
    show_default=True,
    help="Decimals of the numbers that are shown; JSON has all of them.",
)
@click.option(
    "--instructor", is_flag=True, help="The instructor's edition: what goes wrong, what to ask."
)
@click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    help="English or Chinese.  [default: zh where the system speaks it, else en]",
)
@click.option("--input", "inputs", type=FILE, help="Your own inputs: a row of numbers for each.")
@click.option("--wq", "w_query", type=FILE, help="Your own matrix that makes the queries.")
@click.option("--wk", "w_key", type=FILE, help="Your own matrix that makes the keys.")
@click.option("--wv", "w_value", type=FILE, help="Your own matrix that makes the values.")
@click.option(
    "--mask",
    type=click.Choice(MASKS),
    help="Hide nothing, the padding, what comes later (also called causal), or both.",
)
@click.option("--sentence", metavar="TEXT", help="A sentence of your own, where a lesson has one.")
@click.option("--encoder", help="Which encoder reads it: minilm, static or a model's folder.")
@click.option(
    "--answers", type=FILE, help="Judge a file of answers: CSV of student, quiz, answer, or JSON."
)
@click.option("--plot", type=FILE, help="Draw the lesson's weights and curves: .png or .svg.")
@document_options
def teach(output: Output, lang: str | None, digits: int, **asked: Any) -> None:
    """Learn attention from its numbers: a course of twelve lessons, from embeddings to
    transformers.

    Alone it shows the course and which lessons are done. A lesson has steps and ends with
    questions; on a terminal it waits for Enter between steps, goes back (b), judges your answers
    and goes on where you left it, elsewhere it prints everything. Every number is computed as you
    read. A lesson with --format html is a page
    whose matrices can be edited, with --format ipynb a notebook.

    \b
    Examples:
      qkvsearch teach
      qkvsearch teach masks --step 4
      qkvsearch teach self-attention --input x.csv --mask causal
      qkvsearch teach --all --format html -o course.html
      qkvsearch teach --answers class.csv --format json
    """
    import numpy as np

    from qkvsearch.lessons import language
    from qkvsearch.lessons.messages import decimals

    own = {name: asked.pop(name) for name in OWN}
    what = Asked(**{**asked, "lesson": _name(asked["lesson"])})
    if what.lesson is None and any(value is not None for value in own.values()):
        raise click.UsageError("matrices, masks and sentences of your own go with a LESSON")
    # Where one's own numbers are too large for exp, ∞ and NaN say so.
    with language(lang or _spoken()), decimals(digits), np.errstate(all="ignore"):
        if what.answers is not None:
            _judge(what.answers, what.lesson, _given(own), output)
        elif what.lesson is None and not what.all_:
            _outline(what, output)
        else:
            _lessons(what, _given(own), output)


def _spoken() -> str:
    """The language that the environment asks for, in the order of gettext."""
    names = (os.environ.get(name) for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, names), "").startswith("zh") else "en"


def _name(lesson: str | None) -> str | None:
    """A lesson may be called by its number, too."""
    from qkvsearch.lessons import LESSONS

    numbered = {str(number): name for number, name in enumerate(LESSONS, start=1)}
    return lesson and numbered.get(lesson.lstrip("0"), lesson)


def _given(own: dict[str, Any]) -> Given:
    from qkvsearch.lessons import Given
    from qkvsearch.lessons.own_numbers import read_matrix

    read = {name: read_matrix(value) for name, value in own.items() if isinstance(value, Path)}
    mask = "look-ahead" if own.get("mask") == "causal" else own.get("mask")
    return Given(**{**own, **read, "mask": mask})


# --- the outline ---


def _outline(what: Asked, output: Output) -> None:
    from qkvsearch.cli.lesson.outline import goals_table, outline_page
    from qkvsearch.lessons import outline, progress

    done, places = progress.done(), progress.places()
    rows = [
        {**vars(line), "done": line.name in done, "step": places.get(line.name)}
        for line in outline()
    ]
    following = progress.following()
    is_list = what.list_ or output.format != "table"
    as_text = goals_table if is_list else partial(outline_page, following=following)
    output.write(rows, lambda: as_text(rows), FIELDS)
    if not is_list and output.path is None and following is not None:
        from qkvsearch.cli.lesson.reading import is_interactive, offer

        if is_interactive() and (typed := offer(following)):
            _lessons(replace(what, lesson=_name(typed)), _given({}), output)


# --- lessons ---


def _lessons(what: Asked, given: Given, output: Output) -> None:
    from qkvsearch.cli.lesson.forms import forms
    from qkvsearch.cli.lesson.reading import is_interactive, read, remember
    from qkvsearch.lessons import LESSONS, lesson

    names = LESSONS if what.lesson is None else (what.lesson,)
    is_text = output.format == "table" and output.path is None
    is_whole, quizzes = what.step is None, not what.no_quiz
    computed = (_only(lesson(name, given), what.step) for name in names)
    if is_text and is_interactive() and what.plot is None and not what.instructor:
        read(computed, quizzes, is_whole=is_whole, predict=what.predict)
        return
    found = list(computed)
    if what.plot is not None:
        from qkvsearch.cli.lesson.plot import write_plot

        write_plot(what.plot, found)
    output.write_document(
        forms(
            found,
            quizzes,
            is_step=not is_whole,
            is_array=what.all_,
            instructor=what.instructor,
        )
    )
    if what.plot is not None:
        settings().say(f"Wrote {what.plot}.")
    if is_text and is_whole and what.lesson is not None:
        remember(what.lesson)


def _only(lesson: Lesson, step: int | None) -> Lesson:
    """The lesson's one step, without questions; None is the whole lesson."""
    if step is None:
        return lesson
    if not 1 <= step <= len(lesson.steps):
        raise QkvError(
            f"no step {step} in the lesson {lesson.name}: it has steps 1 to {len(lesson.steps)}"
        )
    one = lesson.steps[step - 1 : step]
    return replace(lesson, steps=one, quizzes=[], first=step, n_steps=len(lesson.steps))


# --- answers ---


def _judge(path: Path, only: str | None, given: Given, output: Output) -> None:
    from qkvsearch.cli.lesson.quizzing import judged_text, total
    from qkvsearch.lessons.answers import judge, read_answers, totals

    judged = judge(read_answers(path), only, given)
    output.write([one.to_record() for one in judged], lambda: judged_text(judged), JUDGED)
    for student, (right, n) in totals(judged).items():
        settings().say(total(student, right, n))

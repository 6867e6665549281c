"""`qkvsearch teach`: a course of fourteen lessons, with quizzes that it marks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.spoken import LANGUAGES, ORIGINAL
from qkvsearch.cli.commands import command
from qkvsearch.cli.render import Output, document_options, to_json
from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from qkvsearch.lessons import Given, Lesson

FILE = click.Path(dir_okay=False, path_type=Path)
MASKS = ("none", "padding", "look-ahead", "both", "causal")
FIELDS = ("name", "number", "title", "goal", "minutes", "done", "step")
# Options with the reader's own inputs: the fields of `Given`.
OWN_INPUTS = ("inputs", "w_query", "w_key", "w_value", "mask", "sentence", "encoder")


@dataclass(frozen=True)
class Request:
    """The options that choose lessons, steps and output."""

    lesson: str | None
    step: int | None
    all_: bool
    list_: bool
    no_quiz: bool
    instructor: bool
    save: Path | None

    def __post_init__(self) -> None:
        chosen = {"LESSON": self.lesson, "--all": self.all_, "--list": self.list_}
        options = [name for name, value in chosen.items() if value]
        if len(options) > 1:
            raise click.UsageError(f"{' and '.join(options)}: give one of them")
        if self.step is not None and self.lesson is None:
            raise click.UsageError("--step N needs a lesson: teach LESSON --step N")
        if self.save is not None and (self.lesson is None or self.no_quiz):
            raise click.UsageError("--save keeps answers to a lesson's questions: teach LESSON")
        if self.instructor and (self.list_ or self.step or not (self.lesson or self.all_)):
            raise click.UsageError("--instructor goes with a whole LESSON or --all")


@command(short_help="Learn attention step by step, with numbers of your own.")
@click.argument("lesson", required=False)
@click.option("--list", "list_", is_flag=True, help="List the lessons, their goals and times.")
@click.option("--step", type=int, metavar="N", help="Only this step of the lesson, from 1.")
@click.option("--all", "all_", is_flag=True, help="Show all lessons, without appendix and check.")
@click.option("--no-quiz", is_flag=True, help="Leave out the questions.")
@click.option(
    "--digits",
    type=click.IntRange(0, 12),
    default=2,
    show_default=True,
    help="Decimals of displayed numbers; JSON has all of them.",
)
@click.option(
    "--instructor",
    is_flag=True,
    help="Instructor's edition: common mistakes, and questions to ask.",
)
@click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES)),
    help=f"{' or '.join(each.english_name for each in LANGUAGES.values())}.  "
    f"[default: the system's, else {ORIGINAL}]",
)
@click.option(
    "--input",
    "inputs",
    type=FILE,
    help="Your own inputs: a row of numbers for each, which may begin with its name.",
)
@click.option("--wq", "w_query", type=FILE, help="Your own matrix for the queries.")
@click.option("--wk", "w_key", type=FILE, help="Your own matrix for the keys.")
@click.option("--wv", "w_value", type=FILE, help="Your own matrix for the values.")
@click.option(
    "--mask",
    type=click.Choice(MASKS),
    help="Mask nothing, the padding, later words (also called causal), or both.",
)
@click.option("--sentence", metavar="TEXT", help="Your own sentence, for lessons with one.")
@click.option(
    "--encoder", help="The encoder of the sentence: minilm, e5, static or a model's folder."
)
@click.option(
    "--save",
    type=FILE,
    help="Ask once, without hints; write what you answered, and whether it is right, to a CSV, and "
    "a sentence of your own. Without a terminal, read the answers from stdin, a line each.",
)
@document_options
def teach(output: Output, lang: str | None, digits: int, **options: Any) -> None:
    """Learn attention from its numbers: a course of fourteen lessons. The first shows the
    whole idea in ten minutes; the others go from embeddings to transformers.

    Without a LESSON it shows the course and which lessons are done. A lesson has steps and ends
    with questions. On a terminal it waits for Enter between steps, goes back (b), marks your
    answers and continues where you left off; elsewhere it prints everything. Every number is
    computed as you read. With --format html a lesson is a page with editable matrices, with
    --format slides the same step by step for a projector (→ goes on), with --format ipynb a
    notebook.

    \b
    Examples:
      qkvsearch teach
      qkvsearch teach check --save before.csv
      qkvsearch teach masks --step 4
      qkvsearch teach self-attention --input x.csv --mask causal
      qkvsearch teach --all --format html -o course.html
      qkvsearch teach masks --format slides -o masks.html
    """
    import numpy as np

    from qkvsearch.lessons import language
    from qkvsearch.lessons.messages import decimals

    own = {name: options.pop(name) for name in OWN_INPUTS}
    request = Request(**{**options, "lesson": _name(options["lesson"])})
    if request.lesson is None and any(value is not None for value in own.values()):
        raise click.UsageError("your own matrices, masks and sentences need a LESSON")
    # Numbers that are too large for exp give ∞ and NaN.
    with language(lang or _spoken()), decimals(digits), np.errstate(all="ignore"):
        if request.lesson is None and not request.all_:
            _outline(request, output)
        else:
            _lessons(request, _given(own), output)


def _spoken() -> str:
    """Return the language of the environment, by the first variable that gettext would read."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            code = re.split("[^a-z]", value, maxsplit=1)[0]  # of "zh_CN.UTF-8": "zh"
            return code if code in LANGUAGES else ORIGINAL
    return ORIGINAL


def _name(lesson: str | None) -> str | None:
    """Return the name of a lesson that may be given by its number."""
    from qkvsearch.lessons import outline

    if lesson is None:
        return None
    by_number = {str(line.number): line.name for line in outline()}
    number = lesson.lstrip("0") or "0"
    return by_number.get(number, lesson)


def _given(own: dict[str, Any]) -> Given:
    from qkvsearch.lessons import Given
    from qkvsearch.lessons.own_numbers import read_matrix, read_named_rows

    read: dict[str, Any] = {}
    for name, value in own.items():
        if name == "inputs" and value is not None:
            read["names"], read["inputs"] = read_named_rows(value)
        elif isinstance(value, Path):
            read[name] = read_matrix(value)
    mask = "look-ahead" if own.get("mask") == "causal" else own.get("mask")
    return Given(**{**own, **read, "mask": mask})


# --- the outline ---


def _outline(request: Request, output: Output) -> None:
    from qkvsearch.cli.lesson.view import goals_table, outline_page
    from qkvsearch.lessons import outline, progress

    done, places = progress.done(), progress.places()
    rows = [
        {**vars(line), "done": line.name in done, "step": places.get(line.name)}
        for line in outline()
    ]
    following = progress.following()
    is_list = request.list_ or output.format != "table"
    as_text = goals_table if is_list else partial(outline_page, following=following)
    output.write(rows, lambda: as_text(rows), FIELDS)
    if not is_list and output.path is None and following is not None:
        from qkvsearch.cli.lesson.reading import is_interactive, offer

        if is_interactive() and (typed := offer(following)):
            _lessons(replace(request, lesson=_name(typed)), _given({}), output)


# --- lessons ---


def _forms(
    lessons: Sequence[Lesson],
    quizzes: bool,
    *,
    is_step: bool,
    is_array: bool,
    instructor: bool = False,
) -> dict[str, Callable[[], str]]:
    """Return by format the function that makes the text. is_step: whether it is a single step.

    instructor: the instructor's edition, as Markdown alone. is_array: JSON is an array of the
    lessons, else the first one's object.
    """

    from qkvsearch.cli.lesson.quizzing import explain_back, printed
    from qkvsearch.cli.lesson.view import heading, step_blocks
    from qkvsearch.lessons.exports.document import to_document
    from qkvsearch.lessons.exports.markdown import to_instructors_edition, to_markdown
    from qkvsearch.lessons.exports.notebook import to_notebook
    from qkvsearch.lessons.exports.page import to_page
    from qkvsearch.lessons.exports.page.slides import to_slides

    if instructor:
        edition = partial(to_instructors_edition, lessons)
        return {"table": edition, "markdown": edition}

    def as_json() -> str:
        documents = [to_document(lesson, quizzes) for lesson in lessons]
        return to_json(documents if is_array else documents[0])

    def blocks() -> Iterator[str]:
        for lesson in lessons:
            explained: set[str] = set()
            yield heading(lesson)
            for index in range(len(lesson.steps)):
                yield from (text for _, text in step_blocks(lesson, index, explained))
            if lesson.explain and not is_step:
                yield explain_back(lesson.explain)
            if quizzes and lesson.quizzes:
                yield printed(lesson.quizzes)

    by_format = {
        "table": lambda: "\n".join(blocks()),
        "json": as_json,
        "markdown": lambda: to_markdown(lessons, quizzes),
        "html": lambda: to_page(lessons, quizzes),
        "slides": lambda: to_slides(lessons, quizzes),
    }
    # A notebook's cells go on with what the steps before computed.
    return by_format if is_step else {**by_format, "ipynb": lambda: to_notebook(lessons, quizzes)}


def _lessons(request: Request, given: Given, output: Output) -> None:
    from qkvsearch.cli.lesson.reading import is_interactive, read, remember
    from qkvsearch.lessons import COURSE_LESSONS, lesson

    names = COURSE_LESSONS if request.lesson is None else (request.lesson,)
    is_text = output.format == "table" and output.path is None
    is_whole = request.step is None
    quizzes = not request.no_quiz
    computed = (_only(lesson(name, given), request.step) for name in names)
    if is_text and is_interactive() and not request.instructor:
        read(computed, quizzes, is_whole=is_whole, save=request.save)
        return
    lessons = list(computed)
    if request.save is not None:
        _keep_answers(lessons[0], request.save, is_text)
        return
    output.write_document(
        _forms(
            lessons,
            quizzes,
            is_step=not is_whole,
            is_array=request.all_,
            instructor=request.instructor,
        )
    )
    if is_text and is_whole and request.lesson is not None:
        remember(request.lesson)


def _keep_answers(lesson: Lesson, save: Path, is_text: bool) -> None:
    """Write the answers of stdin to a file, without a terminal."""
    from qkvsearch.cli.lesson.quizzing import keep_lines

    if not is_text or sys.stdin.isatty():
        raise click.UsageError(
            "--save asks questions at a terminal, or reads answers from stdin, a line each; leave "
            "out --format and -o"
        )
    keep_lines(lesson, sys.stdin.read().splitlines(), save)


def _only(lesson: Lesson, step: int | None) -> Lesson:
    """Return the lesson with only this step, without questions; None for the whole lesson."""
    if step is None:
        return lesson
    if not 1 <= step <= len(lesson.steps):
        raise QkvError(
            f"no step {step} in the lesson {lesson.name}: it has steps 1 to {len(lesson.steps)}"
        )
    steps = lesson.steps[step - 1 : step]
    return replace(lesson, steps=steps, quizzes=[], first=step, n_steps=len(lesson.steps))

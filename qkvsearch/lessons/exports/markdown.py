"""Lessons as Markdown: tables for matrices, formulas as code, answers in a section at the end."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from qkvsearch.lessons import guidance
from qkvsearch.lessons.drawings import Drawing
from qkvsearch.lessons.exports.document import COURSE, ROLE_NAMES, compared_weights
from qkvsearch.lessons.exports.page.drawings import as_address
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Curve, Formula, Lesson, Matrix, ShownTable, Step, Switch, Text
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

# Points of a curve that a table holds.
MAX_POINTS = 9
# A picture that stands in the text.
PICTURE = re.compile(r"\]\((data:image/svg\+xml;base64,[\w+/=]+)\)")
CODE = re.compile(r"(`[^`]*`)")


def to_markdown(lessons: Sequence[Lesson], quizzes: bool = True) -> str:
    """Write lessons one after another, in the current language.

    quizzes: with each lesson's questions, and all answers at the end.

    >>> from qkvsearch.lessons import lesson
    >>> text = to_markdown([lesson("self-attention")])
    >>> text.splitlines()[2]
    '## 7. Self-attention in eight steps'
    """
    blocks = [f"# {say(COURSE)}"]
    for lesson in lessons:
        blocks.append(heading(lesson))
        blocks += [with_code(one, n) for n, one in enumerate(lesson.steps, lesson.first)]
        if lesson.explain:
            blocks.append(explain_back(lesson))
        if quizzes and lesson.quizzes:
            blocks.append(questions(lesson.quizzes))
    if quizzes and any(lesson.quizzes for lesson in lessons):
        blocks.append(answers(lessons))
    return gathered("\n\n".join(blocks)) + "\n"


def to_instructors_edition(lessons: Sequence[Lesson]) -> str:
    """Write lessons with a common mistake, a question to ask, and all answers."""
    blocks = [f"# {say(COURSE)}: {say('the instructor’s edition')}"]
    for lesson in lessons:
        guide = guidance(lesson.name)
        notes = [
            f"- **{say('Goes wrong:')}** {guide.wrong}",
            f"- **{say('Ask:')}** {guide.ask}",
            f"- **{say('Answer:')}** {guide.answer}",
        ]
        blocks += [heading(lesson), "\n".join(notes)]
        blocks += [step(one, n) for n, one in enumerate(lesson.steps, lesson.first)]
        if lesson.explain:
            blocks.append(explain_back(lesson))
        blocks.append(f"### {say('Questions')}")
        for quiz in lesson.quizzes:
            answer = f"{_prose(quiz.solution)} — {_prose(quiz.worked)}"
            blocks += [_question(quiz), f"**{say('Answer:')}** {answer}"]
    return "\n\n".join(blocks) + "\n"


def goal_and_time(lesson: Lesson) -> str:
    """Return the lesson's goal, and how long it takes."""
    return say("{goal} About {minutes} minutes.", goal=lesson.goal, minutes=lesson.minutes)


def heading(lesson: Lesson) -> str:
    about = goal_and_time(lesson)
    return f"## {lesson.number}. {_prose(lesson.title)}\n\n{_prose(about)}"


def step(shown_step: Step, number: int) -> str:
    title = f"### {number}. {_prose(shown_step.title)}"
    return "\n\n".join([title, *map(part, shown_step.parts)])


def with_code(shown_step: Step, number: int) -> str:
    """Write a step, and the code that computed it, which also runs alone."""
    text = step(shown_step, number)
    return f"{text}\n\n```python\n{shown_step.code.source}\n```" if shown_step.code else text


def gathered(text: str) -> str:
    """Move the pictures to the end of the text."""
    pictures: list[str] = []

    def named(match: re.Match[str]) -> str:
        pictures.append(f"[drawing-{len(pictures) + 1}]: {match[1]}")
        return f"][drawing-{len(pictures)}]"

    short = PICTURE.sub(named, text).rstrip("\n")
    if not pictures:
        return short
    return "\n".join([short, "", *pictures])


def explain_back(lesson: Lesson) -> str:
    """Write what the reader says back in a sentence of their own."""
    return f"### {say('Explain it back')}\n\n{_prose(lesson.explain)}"


def questions(quizzes: Sequence[Quiz]) -> str:
    return "\n\n".join([f"### {say('Questions')}", *map(_question, quizzes)])


def answers(lessons: Sequence[Lesson]) -> str:
    lines = [
        f"- **{quiz.name}** {_prose(quiz.solution)} — {_prose(quiz.worked)}"
        for lesson in lessons
        for quiz in lesson.quizzes
    ]
    return "\n".join([f"## {say('Answers')}", "", *lines])


def part(part: Any) -> str:
    """Write one part of a step, without a line at its end."""
    match part:
        case Text():
            return _prose(part.text)
        case Formula():
            return f"```text\n{part.text}\n```"
        case Matrix():
            return "\n\n".join(_matrix(part))
        case ShownTable():
            columns = enumerate(zip(*part.rows, strict=True))
            words = [j for j, cells in columns if any(isinstance(cell, str) for cell in cells)]
            rows = [[shown(cell) for cell in row] for row in part.rows]
            return f"**{_prose(part.caption)}**\n\n{table(part.columns, rows, words)}"
        case Curve():
            at = np.unique(np.linspace(0, len(part.values) - 1, MAX_POINTS).round().astype(int))
            rows = [[shown(place), shown(part.values[place])] for place in at]
            return f"**{_prose(part.name)}**\n\n{table([part.x, part.name], rows, [])}"
        case Workbench():
            compared = [line for matrix in compared_weights(part) for line in _matrix(matrix)]
            return "\n\n".join([*compared, f"> **{say('Try it.')}** {_prose(part.caption)}"])
        case Switch():
            lines = [f"**{_prose(part.caption)}**"]
            for setting in part.settings:
                named = say("*{setting}*: {note}", setting=setting.name, note=setting.note)
                lines += [_prose(named), *_matrix(setting.matrix)]
            return "\n\n".join(lines)
        case Drawing():
            return "\n\n".join([f"**{_prose(part.caption)}**", *_pictures(part)])
    raise TypeError(f"a lesson has no part of type {type(part).__name__}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int]) -> str:
    """Write a table whose columns line up in a terminal, too. words: the left-aligned columns."""
    written = [[_cell(text) for text in row] for row in (columns, *rows)]
    widths = [max(3, *map(cell_len, column)) for column in zip(*written, strict=True)]
    rule = ["-" * w if j in words else "-" * (w - 1) + ":" for j, w in enumerate(widths)]
    lines = []
    for row in (written[0], rule, *written[1:]):
        cells = [_padded(cell, widths[j], j in words) for j, cell in enumerate(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _matrix(matrix: Matrix) -> Iterator[str]:
    """Yield its name and role, its numbers, and its symbols where it has some."""
    rows, columns = matrix.array.shape
    role = say(ROLE_NAMES[matrix.role])
    yield f"**{_prose(matrix.name)}** ({role}, {rows} × {columns})"
    hidden = np.zeros((rows, columns), bool) if matrix.visible is None else ~matrix.visible
    with matrix.in_its_decimals():
        numbers = [[shown(value) for value in row] for row in matrix.array]
    cells = [
        [f"{number} ✕" if gone else number for number, gone in zip(*row, strict=True)]
        for row in zip(numbers, hidden, strict=True)
    ]
    yield _labelled(matrix.rows, matrix.columns, cells)
    if hidden.any():
        yield say("✕: hidden.")
    if matrix.symbols is not None:
        written = matrix.symbols.reshape(rows, -1)
        above = matrix.columns if written.shape[1] == columns else [say("in symbols")]
        yield _labelled(matrix.rows, above, written.tolist())


def _pictures(drawing: Drawing) -> Iterator[str]:
    """Yield each image, and what it shows in words."""
    told = drawing.told.replace("[", "(").replace("]", ")").replace("\n", " ")
    for place, picture in enumerate(drawing.pictures(drawing.name)):
        words = told if place == 0 else drawing.name
        yield f"![{_prose(words)}]({as_address(picture)})"
    yield _prose(drawing.told)


def _labelled(rows: Sequence[str], columns: Sequence[str], cells: list[list[str]]) -> str:
    lines = [[label, *line] for label, line in zip(rows, cells, strict=True)]
    return table(["", *columns], lines, [0])


def _question(quiz: Quiz) -> str:
    lines = [f"**{quiz.name}** {_prose(quiz.question)}"]
    if quiz.choices:
        lines.append("")
        lines += [f"{n}. {_prose(choice)}" for n, choice in enumerate(quiz.choices, start=1)]
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Escape angle brackets, so that <PAD> is no tag."""
    return "".join(
        piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in CODE.split(text)
    )


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("\n", " ")


def _padded(text: str, width: int, left: bool) -> str:
    space = " " * (width - cell_len(text))
    return text + space if left else space + text

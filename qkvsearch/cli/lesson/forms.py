"""A lesson in each format that it comes in, made in `lessons.exports`, and as a picture."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.files import write_file
from qkvsearch.cli.attention_plot import CELL, draw_matrix, drawn, side_by_side
from qkvsearch.cli.lesson.quizzing import printed
from qkvsearch.cli.lesson.view import heading, step_blocks
from qkvsearch.cli.render import to_json
from qkvsearch.errors import QkvError
from qkvsearch.lessons.exports.document import to_document
from qkvsearch.lessons.exports.markdown import to_instructors_edition, to_markdown
from qkvsearch.lessons.exports.notebook import to_notebook
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Curve, Lesson, Matrix
from qkvsearch.terminal import printable

ABREAST = 3
# Inches of a picture besides its cells, and a curve's width and height.
MARGIN, CURVE = 1.6, (4.0, 3.0)


def forms(
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

    if instructor:
        edition = partial(to_instructors_edition, lessons)
        return {"table": edition, "markdown": edition}

    def as_json() -> str:
        documents = [to_document(lesson, quizzes) for lesson in lessons]
        return to_json(documents if is_array else documents[0])

    by_format = {
        "table": lambda: "\n".join(_blocks(lessons, quizzes)),
        "json": as_json,
        "markdown": lambda: to_markdown(lessons, quizzes),
        "html": lambda: to_page(lessons, quizzes),
    }
    # A notebook's cells go on with what the steps before computed.
    return by_format if is_step else {**by_format, "ipynb": lambda: to_notebook(lessons, quizzes)}


def _blocks(lessons: Sequence[Lesson], quizzes: bool) -> Iterator[str]:
    """Yield all blocks at once, for a pipe or a file."""
    for lesson in lessons:
        explained: set[str] = set()
        yield heading(lesson)
        for place in range(len(lesson.steps)):
            yield from (text for _, text in step_blocks(lesson, place, explained))
        if quizzes and lesson.quizzes:
            yield printed(lesson.quizzes)


# --- a picture ---


def write_plot(path: Path, lessons: Sequence[Lesson]) -> None:
    """Plot the weights and curves of the lessons, or all matrices if there are neither.

    Raises `QkvError` where there is nothing to draw, the file cannot be written, or matplotlib is
    not installed.
    """
    parts = [part for lesson in lessons for step in lesson.steps for part in step.parts]
    matrices = [part for part in parts if isinstance(part, Matrix)]
    weights = [part for part in matrices if part.role == "weights"]
    curves = [part for part in parts if isinstance(part, Curve)]
    shown_parts: Sequence[Matrix | Curve] = matrices
    if weights or curves:
        shown_parts = [*weights, *curves]
    if not shown_parts:
        raise QkvError(f"{path}: no matrix and no curve to draw here")
    title = ", ".join(lesson.title for lesson in lessons)
    instead = "--format html needs nothing"
    write_file(path, drawn(path, lambda figure: _draw(figure, shown_parts, title), title, instead))


def _draw(figure: Any, parts: Sequence[Matrix | Curve], title: str) -> None:
    each = tuple(np.array([_inches(part) for part in parts]).max(axis=0))
    all_axes = side_by_side(figure, len(parts), min(len(parts), ABREAST), each, (0, 0.5))
    for axes, part in zip(all_axes, parts, strict=True):
        if isinstance(part, Matrix):
            _draw_matrix(axes, part)
        else:
            axes.plot(range(len(part.values)), part.values)
            axes.set_xlabel(printable(part.x), parse_math=False)
        axes.set_title(printable(part.name), fontsize=10, parse_math=False, wrap=True)
    figure.suptitle(printable(title), parse_math=False, wrap=True)


def _inches(part: Matrix | Curve) -> tuple[float, float]:
    if isinstance(part, Curve):
        return CURVE
    n_rows, n_columns = part.array.shape
    return max(MARGIN + CELL * n_columns, 3.0), max(MARGIN + CELL * n_rows, 2.4)


def _draw_matrix(axes: Any, matrix: Matrix) -> None:
    """Draw larger numbers darker and hidden cells grey. Weights all go from 0 to 1."""
    hidden = ~np.isfinite(matrix.array)
    if matrix.visible is not None:
        hidden |= ~np.asarray(matrix.visible)
    values = np.ma.masked_array(matrix.array, hidden)
    is_map = matrix.role == "weights" and bool((values.filled(0.0) <= 1).all())
    low, high = (0.0, 1.0) if is_map else (float(values.min()), float(values.max()))
    turned = 90 if max(map(len, matrix.columns), default=0) > 2 else 0
    draw_matrix(
        axes,
        values,
        (matrix.rows, matrix.columns),
        lambda value: shown(round(value, 2)),
        limits=(low, high),
        turned=turned,
        size=7,
    )

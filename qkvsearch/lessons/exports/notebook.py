"""Lessons as a Jupyter notebook: the text of each step, and a cell that computes it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from qkvsearch.lessons.exports import markdown
from qkvsearch.lessons.exports.document import COURSE
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Lesson, Step
from qkvsearch.lessons.workbench import Workbench


def to_notebook(lessons: Sequence[Lesson], quizzes: bool = True) -> str:
    """Write a notebook (nbformat 4.5, JSON) of the lessons, in the current language.

    Its cells run from top to bottom where qkvsearch is installed. Their ids say where they stand:
    "masks-4-code" computes step 4 of the masks, "masks-4-try-1" is its first workbench.
    https://nbformat.readthedocs.io/en/latest/format_description.html
    """
    cells = list(_cells(lessons, quizzes))
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _cells(lessons: Sequence[Lesson], quizzes: bool) -> Iterator[dict[str, Any]]:
    how = say("Run the cells from top to bottom; the kernel's Python needs qkvsearch.")
    yield _text("course", f"# {say(COURSE)}\n\n{how}")
    for lesson in lessons:
        yield _text(lesson.name, markdown.heading(lesson))
        for n, step in enumerate(lesson.steps, start=1):
            yield from _step_cells(step, n, f"{lesson.name}-{n}")
        if lesson.explain:
            yield _text(f"{lesson.name}-explain", markdown.explain_back(lesson))
        if quizzes and lesson.quizzes:
            yield _text(f"{lesson.name}-questions", markdown.questions(lesson.quizzes))
    if quizzes and any(lesson.quizzes for lesson in lessons):
        yield _text("answers", markdown.answers(lessons))


def _step_cells(step: Step, number: int, place: str) -> Iterator[dict[str, Any]]:
    yield _text(place, markdown.gathered(markdown.step(step, number)))
    if step.code:
        yield _code(f"{place}-code", step.code.source)
    benches = [part for part in step.parts if isinstance(part, Workbench)]
    for n, bench in enumerate(benches, start=1):
        yield _code(f"{place}-try-{n}", _to_try(bench))


def _to_try(bench: Workbench) -> str:
    """Write the workbench as code to edit; it shows the last thing that is computed."""
    matrices = "".join(
        f"        {name!r}: np.array({array.tolist()!r}),\n"
        for name, array in bench.matrices.items()
    )
    others = ", ".join(repr(name) for name in bench.masks if name != bench.mask)
    comment = f"  # or {others}" if others else ""
    mask = f"    mask={bench.mask!r},{comment}\n"
    options = "".join(
        f"    {name}={getattr(bench, name)!r},\n"
        for name in ("padded", "scale", "temperature", "normalize")
    )
    return (
        "import numpy as np\nfrom qkvsearch.lessons.workbench import Workbench\n\n"
        f"workbench = Workbench(\n    {bench.name!r},\n    {bench.caption!r},\n"
        f"    matrices={{\n{matrices}    }},\n"
        f"    rows={list(bench.rows)!r},\n    columns={list(bench.columns)!r},\n"
        f"{mask}{options})\nworkbench.steps()"
    )


def _text(place: str, source: str) -> dict[str, Any]:
    return _cell("markdown", place, source)


def _code(place: str, source: str) -> dict[str, Any]:
    return _cell("code", place, source, execution_count=None, outputs=[])


def _cell(kind: str, place: str, source: str, **more: Any) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    return {"cell_type": kind, "id": place, "metadata": {}, **more, "source": lines}

"""A lesson as plain data: what `--format json` prints, and what the page holds."""

from typing import Any

from qkvsearch.lessons.drawings import Drawing
from qkvsearch.lessons.messages import mark, plain, say
from qkvsearch.lessons.parts import (
    Curve,
    Formula,
    Lesson,
    Matrix,
    Role,
    ShownTable,
    Step,
    Switch,
    Text,
)
from qkvsearch.lessons.workbench import Workbench, mask_of

COURSE = mark("Attention, step by step")
# What a matrix is, in words: a colour never stands alone.
ROLE_NAMES: dict[Role, str] = {
    "input": mark("input"),
    "weight": mark("weight matrix"),
    "key": mark("key"),
    "query": mark("query"),
    "value": mark("value"),
    "score": mark("score"),
    "weights": mark("weights"),
    "weighted": mark("weighted value"),
    "output": mark("output"),
}
MASK_NAMES = {
    "none": mark("no mask"),
    "padding": mark("padding"),
    "look-ahead": mark("look-ahead"),
    "both": mark("both: padding and look-ahead"),
}


def compared_weights(bench: Workbench) -> list[Matrix]:
    """Return a workbench's weights under each of the masks that it compares."""
    labels = list(bench.rows), list(bench.columns)
    return [
        Matrix(
            say(MASK_NAMES[mask]),
            bench.steps(mask=mask)["weights"],
            *labels,
            "weights",
            visible=mask_of(mask, len(bench.rows), len(bench.columns), bench.padded),
        )
        for mask in bench.compared
    ]


def to_document(lesson: Lesson, quizzes: bool = True) -> dict[str, Any]:
    """Return a lesson as JSON, in the current language.

    Every part has a `kind`. Numbers are unrounded; "inf", "-inf" and "nan" are words, as JSON has
    no such numbers, and `float` reads them. A matrix's symbols are as many to a row as there are:
    one a cell, or one for the whole row. quizzes: with the questions and their answers.

    >>> from qkvsearch.lessons import lesson
    >>> document = to_document(lesson("self-attention"))
    >>> document["steps"][4]["parts"][2]["values"][0]
    [0.06337893833303762, 0.4683105308334812, 0.4683105308334812]
    """
    return {
        "name": lesson.name,
        "number": lesson.number,
        "title": lesson.title,
        "goal": lesson.goal,
        "minutes": lesson.minutes,
        "steps": [_step(step) for step in lesson.steps],
        "explain": lesson.explain,
        "quizzes": [quiz.to_record() for quiz in lesson.quizzes] if quizzes else [],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "title": step.title,
        "points": list(step.points),
        "parts": [_part(part) for part in step.parts],
        "code": step.code.source if step.code else "",
    }


def _part(part: Any) -> dict[str, Any]:
    match part:
        case Text() | Formula():
            return {"kind": type(part).__name__.lower(), "text": part.text}
        case Matrix():
            return _matrix(part)
        case ShownTable():
            rows = [[plain(cell) for cell in row] for row in part.rows]
            columns = list(part.columns)
            return {"kind": "table", "caption": part.caption, "columns": columns, "rows": rows}
        case Curve():
            return {"kind": "curve", "name": part.name, "x": part.x, "values": plain(part.values)}
        case Workbench():
            return _workbench(part)
        case Switch():
            settings = [
                {"name": one.name, "matrix": _matrix(one.matrix), "note": one.note}
                for one in part.settings
            ]
            about = {"name": part.name, "caption": part.caption}
            return {"kind": "switch", **about, "settings": settings}
        case Drawing():
            about = {"name": part.name, "caption": part.caption, "told": part.told}
            return {"kind": type(part).__name__.lower(), **about, **plain(part.numbers())}
    raise TypeError(f"a lesson has no part of type {type(part).__name__}")


def _matrix(matrix: Matrix) -> dict[str, Any]:
    symbols, visible = matrix.symbols, matrix.visible
    return {
        "kind": "matrix",
        "name": matrix.name,
        "role": matrix.role,
        "role_name": say(ROLE_NAMES[matrix.role]),
        "rows": list(matrix.rows),
        "columns": list(matrix.columns),
        "values": plain(matrix.array),
        "symbols": None if symbols is None else symbols.reshape(len(symbols), -1).tolist(),
        "visible": None if visible is None else visible.tolist(),
    }


def _workbench(bench: Workbench) -> dict[str, Any]:
    return {
        "kind": "workbench",
        **plain(vars(bench)),
        "rows": list(bench.rows),
        "columns": list(bench.columns),
        "widths": plain(bench.widths or {}),
        "compared": [_matrix(matrix) for matrix in compared_weights(bench)],
    }

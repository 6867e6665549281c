"""The code of a step: a function's own source, which was run to get what the step shows.

`ran` and `called` run a function and keep its source, `given` only names inputs; `codes` writes the
cells of a lesson, each of which runs after those before it.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from types import ModuleType
from typing import Any

import numpy as np

COURSE = "qkvsearch.lessons.course"
NUMPY = {"np": "import numpy as np"}
NOT_FINITE = re.compile(r"\b(nan|inf)\b")


@dataclass(frozen=True, eq=False)
class Cell:
    """Code that ran.

    needs: what its lines refer to, as source, by name: imports, constants, functions. inputs: its
    variables by name. lines: the last one is an expression. value: what that expression gave.
    left: which names have which value afterwards.
    """

    needs: Mapping[str, str]
    inputs: Mapping[str, Any]
    lines: str
    value: Any
    left: Mapping[str, Any]

    def text(self, known: dict[str, Any] | None = None) -> str:
        """The cell, without what is `known` from the cells before; `known` learns what it adds."""
        known = {} if known is None else known
        needs = {n: source for n, source in self.needs.items() if not same(known.get(n), source)}
        inputs = {n: value for n, value in self.inputs.items() if not same(known.get(n), value)}
        # Whatever else a line assigns is no longer what it was.
        for node in ast.walk(ast.parse(self.lines)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                known.pop(node.id, None)
        known |= needs | inputs | dict(self.left)
        functions = "".join(f"{source}\n\n" for source in needs.values() if "\n" in source)
        # Imports first, then constants.
        others = sorted((source for source in needs.values() if "\n" not in source), key=_rank)
        assigned = [f"{name} = {literal(value)}" for name, value in inputs.items()]
        head = "".join(f"{line}\n" for line in others)
        gap = "\n" if head and functions else ""
        return head + gap + functions + "\n".join([*assigned, self.lines])


def ran(function: Callable[..., Any], **inputs: Any) -> tuple[Cell, Any]:
    """Return the function's body as a cell, its inputs as variables, and what it returned."""
    tree, source = _parsed(function)
    body = tree.body[1:] if ast.get_docstring(tree) else tree.body
    lines = dedent("\n".join(source.splitlines()[body[0].lineno - 1 :])).splitlines()
    last = body[-1].lineno - body[0].lineno
    lines[last] = lines[last].removeprefix("return ")
    value, shown = function(**inputs), body[-1].value
    left = {}
    if isinstance(shown, ast.Name):
        left = {shown.id: value}
    elif isinstance(shown, ast.Tuple):
        left = {e.id: v for e, v in zip(shown.elts, value, strict=True) if isinstance(e, ast.Name)}
    return Cell(_needs(body, function, inputs), inputs, "\n".join(lines), value, left), value


def given(**inputs: Any) -> Cell:
    """Inputs as variables; the last one is shown."""
    *_, last = inputs
    return Cell(NUMPY, inputs, last, inputs[last], {})


def called(function: Callable[..., Any], **inputs: Any) -> tuple[Cell, Any]:
    """The function, defined, and a call of it with the inputs as variables; what it returned."""
    tree, source = _parsed(function)
    needs = {**_needs([tree], function, {}), function.__name__: source}
    ordered = [name for name in inspect.signature(function).parameters if name in inputs]
    lines = f"{function.__name__}({', '.join(ordered)})"
    value = function(**inputs)
    return Cell(needs, inputs, lines, value, {}), value


def codes(cells: Iterable[Any]) -> list[str]:
    """What to run in this order, each without what those before it did; "" where there is none."""
    known: dict[str, Any] = {}
    return [cell.text(known) if cell else "" for cell in cells]


def same(a: Any, b: Any) -> bool:
    """Whether both are the same source, or the same numbers but for rounding."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        is_alike = a.shape == b.shape and a.dtype.kind == b.dtype.kind
        return is_alike and bool(np.allclose(a, b, rtol=1e-9, atol=0, equal_nan=True))
    return type(a) is type(b) and bool(a == b)


def literal(value: Any) -> str:
    """The value as Python writes it: an array, a number, a string, or a list or dict of these.

    >>> literal(np.array([1.0, np.nan])), literal("a")
    ('np.array([1.0, np.nan])', "'a'")
    """
    if isinstance(value, np.ndarray):
        numbers = NOT_FINITE.sub(r"np.\1", repr(value.tolist()))
        return f"np.array({numbers})"
    ast.literal_eval(repr(value))  # raises where code could not say it
    return repr(value)


# --- what a function refers to ---


def _needs(
    nodes: Iterable[ast.stmt], function: Callable[..., Any], inputs: Mapping[str, Any]
) -> dict[str, str]:
    module = sys.modules[function.__module__]
    found = NUMPY if any(isinstance(value, np.ndarray) for value in inputs.values()) else {}
    names = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {function.__name__}
    own.update(inspect.signature(function).parameters)
    for name in dict.fromkeys(n.id for n in names):
        if name in vars(module) and name not in own:
            found = found | _bound(name, vars(module)[name], module)
    return found


def _bound(name: str, value: Any, module: ModuleType) -> dict[str, str]:
    """How the name gets its value: by an import, a function of the course, or an assignment."""
    if getattr(value, "__module__", "").startswith(COURSE):
        tree, source = _parsed(value)
        return {**_needs([tree], value, {}), name: source}
    if name in _imports(module):
        return {name: _imports(module)[name]}
    return {**(NUMPY if isinstance(value, np.ndarray) else {}), name: f"{name} = {literal(value)}"}


@cache
def _imports(module: ModuleType) -> dict[str, str]:
    """The module's imports by the name that each binds, but for those of other lessons."""
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name: ast.unparse(ast.Import([a])) for a in node.names}
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith(COURSE):
            alone = ((a, ast.ImportFrom(node.module, [a], 0)) for a in node.names)
            found |= {a.asname or a.name: ast.unparse(one) for a, one in alone}
    return found


def _rank(line: str) -> tuple[bool, bool]:
    return not line.startswith("import "), not line.startswith("from ")


def _parsed(function: Callable[..., Any]) -> tuple[Any, str]:
    """The definition's node, and its source, flush left."""
    source = dedent(inspect.getsource(function)).rstrip()
    return ast.parse(source).body[0], source

"""Runs the document of a lesson: executes its code, fills its slots, and builds its blocks.

Each shown fence of Python runs as it is shown: with the imports and the values that it needs
written in front, in a namespace of its own. So it also runs when it is pasted alone.
"""

import ast
import dis
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from string import Formatter
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from qkvsearch._utils.python_syntax import parsing_python
from qkvsearch.errors import DataError, QkvError
from qkvsearch.lessons.drawings import Arrows, Flow, Heads, Total, Turning
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parser import Block, LessonDocument
from qkvsearch.lessons.parts import (
    Code,
    Curve,
    Formula,
    Given,
    Matrix,
    Part,
    Setting,
    ShownTable,
    Step,
    Switch,
    Text,
)
from qkvsearch.lessons.quizzes import Quiz

LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
STORES = {"STORE_NAME", "STORE_GLOBAL"}
NOT_FINITE = re.compile(r"\b(nan|inf)\b")
USUAL_TYPES = ("float64", "int64", "bool")
# Fields of text that hold several labels, with " | " between them.
LISTS = {"rows", "columns", "labels", "axes", "names", "dot_labels", "options", "notes"}
DRAWINGS = {
    "arrows": Arrows,
    "flow": Flow,
    "heads": Heads,
    "total": Total,
    "turning": Turning,
}


def run(source: LessonDocument, given: Given) -> tuple[list[Step], list[Quiz]]:
    """Compute the steps and questions of a document. Raises `DataError`, with the line, for what
    cannot be computed.
    """
    with np.errstate(all="ignore"):  # a reader's numbers may be too large for exp
        return _LessonRun(source, given).result()


@dataclass
class Names:
    """What code has defined so far, and how to write it in front of other code."""

    values: dict[str, Any]
    # By name: the module that it is imported from, "" for none, and what is imported.
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    # By name: the source.
    functions: dict[str, str] = field(default_factory=dict)

    def execute(self, code: str) -> None:
        """Run code that is not shown."""
        exec(compile(code, "lesson", "exec"), self.values)
        self._learn(code)

    def execute_alone(self, code: str) -> Code:
        """Run code in a namespace of its own, after the lines that it needs; keep what it defines.

        Raises `ValueError` where its last line is no expression.
        """
        text = self.prelude(code) + code
        space: dict[str, Any] = {}
        tree = _parsed(text)
        last = tree.body.pop()
        if not isinstance(last, ast.Expr):
            raise ValueError("end with an expression, the value to show")
        exec(compile(tree, "lesson", "exec"), space)
        value = eval(compile(ast.Expression(last.value), "lesson", "eval"), space)
        self._learn(code)
        self.values.update({name: space[name] for name in names_of(code)[1] if name in space})
        return Code(text, value)

    def prelude(self, code: str) -> str:
        """Write the imports, functions and values that the code needs, as lines in front of it."""
        imports: dict[str, tuple[str, str]] = {}
        functions: list[str] = []
        assigned: dict[str, str] = {}
        needed, _ = names_of(code)
        for name in needed:  # grows while it is read
            if name in self.imports:
                imports[name] = self.imports[name]
            elif name in self.functions:
                function = self.functions[name]
                # Before the functions that call it.
                functions.insert(0, function)
                needed_by_it, _ = names_of(function)
                needed += [other for other in needed_by_it if other not in needed]
            elif name in self.values:
                assigned[name] = f"{name} = {literal(self.values[name], name)}"
                if "np." in assigned[name]:
                    imports["np"] = ("", "numpy as np")
        lines = _import_lines(imports.values())
        if functions:
            lines += [f"\n\n{function}\n\n" for function in functions]
        elif assigned and any(line.startswith("from ") for line in lines):
            lines.append("")
        lines += assigned.values()
        return "".join(f"{line}\n" for line in lines)

    def _learn(self, code: str) -> None:
        """Note how to write again what these statements defined."""
        for node in _parsed(code).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", "")
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (module, ast.unparse(alias))
            elif isinstance(node, ast.FunctionDef):
                self.functions[node.name] = ast.get_source_segment(code, node) or ""
            else:
                for name in names_of(ast.unparse(node))[1]:
                    self.imports.pop(name, None)
                    self.functions.pop(name, None)


def _import_lines(imports: Iterable[tuple[str, str]]) -> list[str]:
    """Return imports as lines of code. imports: modules, "" for none, with what they import."""
    plain = []
    by_module: dict[str, list[str]] = {}
    for module, what in imports:
        if module:
            by_module.setdefault(module, []).append(what)
        else:
            plain.append(f"import {what}")
    named = [f"from {module} import {', '.join(sorted(by_module[module]))}" for module in by_module]
    return sorted(plain) + sorted(named)


def _parsed(code: str) -> ast.Module:
    with parsing_python:
        return ast.parse(code)


def names_of(code: str) -> tuple[list[str], list[str]]:
    """Return the global names that the code needs from elsewhere, and those that it assigns."""
    needed: dict[str, None] = {}
    stored: dict[str, None] = {}
    for node in _parsed(code).body:
        compiled = compile(ast.Module([node], []), "lesson", "exec")
        loads, stores = _instructions(compiled, LOADS), _instructions(compiled, STORES)
        needed |= dict.fromkeys(name for name in loads if name not in stored)
        stored |= dict.fromkeys(stores)
    return list(needed), list(stored)


def literal(value: Any, name: str = "value") -> str:
    """Write a value as Python code: an array, a number, a string, or a list or dict of these.

    >>> literal(np.array([1.0, np.nan])), literal("a"), literal([np.float64(0.5)])
    ('np.array([1.0, np.nan])', "'a'", '[0.5]')
    """
    if isinstance(value, np.ndarray):
        numbers = NOT_FINITE.sub(r"np.\1", repr(value.tolist()))
        is_usual = value.dtype.name in USUAL_TYPES or value.dtype.kind == "U"
        if is_usual:
            return f"np.array({numbers})"
        return f"np.array({numbers}, dtype=np.{value.dtype.name})"
    if isinstance(value, np.generic):
        return literal(value.item(), name)
    if isinstance(value, dict):
        pairs = (f"{literal(k, name)}: {literal(v, name)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        inner = ", ".join(literal(entry, name) for entry in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, str | int | bool | None):
        return repr(value)
    if isinstance(value, float):
        return NOT_FINITE.sub(r"np.\1", repr(value))
    raise ValueError(f"`{name}` is a {type(value).__name__}, which code cannot write: import it")


@dataclass
class _LessonRun:
    """A document as it is run, from the top to its end."""

    source: LessonDocument
    given: Given

    def __post_init__(self) -> None:
        self.names = Names({"np": np, "given": self.given}, {"np": ("", "numpy as np")})
        self.steps: list[Step] = []
        self.quizzes: list[Quiz] = []

    def result(self) -> tuple[list[Step], list[Quiz]]:
        """Compute the steps and the questions, from the top of the document to its end."""
        setup, *steps = _sections(self.source.blocks)
        for block in setup:
            with self._located(block):
                self._set_up(block)
        for heading, *blocks in steps:
            with self._located(heading):
                is_there = self._holds(heading)
            if is_there:
                self.steps.append(self._step(heading, blocks))
        return self.steps, self.quizzes

    def _set_up(self, block: Block) -> None:
        """Run the setup: words in the reader's language, and code that is not shown."""
        if block.kind == "words":
            for name, text in block.texts.items():
                filled = self._filled(text)
                is_list = " | " in filled
                self.names.values[name] = filled.split(" | ") if is_list else filled
        elif block.kind == "python":
            self.names.execute(block.text)
        else:
            raise ValueError("before the first heading there are only `words` and `python`")

    def _step(self, heading: Block, blocks: Sequence[Block]) -> Step:
        parts: list[Part] = []
        values: dict[str, Any] = {}
        code: Code | None = None
        for block in blocks:
            with self._located(block):
                if not self._holds(block):
                    continue
                if block.kind == "python":
                    if "hidden" in block.flags:
                        self.names.execute(block.text)
                    elif code is not None:
                        raise ValueError("a step shows one fence of Python; mark others `hidden`")
                    else:
                        code = self.names.execute_alone(block.text)
                    _, stored = names_of(block.text)
                    values.update({name: self.names.values[name] for name in stored})
                elif block.kind == "words":
                    self._set_up(block)
                elif block.kind == "question":
                    self.quizzes.append(self._question(block))
                else:
                    built = self._built(block)
                    parts += built
                    if block.kind == "matrix":
                        values.setdefault(block.name, built[0].array)  # type: ignore[union-attr]
        with self._located(heading):
            title = self._filled(heading.text)
        shown_values = {
            name: value
            for name, value in values.items()
            if not isinstance(value, ModuleType | FunctionType)
        }
        return Step(title, parts, heading.points, shown_values, code)

    def _holds(self, block: Block) -> bool:
        """Whether the conditions of a block hold: `when = …`, or `if:name` of a fence of Python."""
        if "when" in block.expressions:
            return bool(self._evaluated(block.expressions["when"]))
        for flag in block.flags:
            condition, _, name = flag.partition(":")
            if condition in ("if", "unless"):
                return bool(self.names.values[name]) == (condition == "if")
        return True

    def _built(self, block: Block) -> list[Part]:
        if block.kind == "prose":
            return [Text(self._filled(block.text))]
        if block.kind == "formula":
            return [Formula(self._filled(block.text), block.name, _key(block))]
        fields = self._fields(block)
        if block.kind == "paragraph":
            return [Text(fields["text"], block.name)]
        if block.kind in DRAWINGS:
            return [DRAWINGS[block.kind](name=block.name, **fields)]
        match block.kind:
            case "matrix":
                return [_matrix(fields)]
            case "table":
                rows = [[_plain(cell) for cell in row] for row in fields["rows"]]
                return [ShownTable(**{**fields, "rows": rows})]
            case "curve":
                values = np.asarray(fields["values"])
                return [Curve(fields["caption"], fields["x"], values)]
            case "switch":
                return [_switch(block.name, fields)]
            case "workbench":
                return [replace(fields.pop("bench"), name=block.name, **fields)]
        raise ValueError(f"there is no fence `{block.kind}`")

    def _question(self, block: Block) -> Quiz:
        """Build a question.

        An item is a choice, `- text | misconception`, or a typical wrong number,
        `~ number | misconception`.
        """
        fields = self._fields(block)
        choices: list[tuple[str, str]] = []
        slips: list[tuple[str, str]] = []
        for item in block.items:
            mark, written = item[0], self._filled(item[2:])
            # Of the right choice nothing stands behind the last bar.
            answered, _, misconception = f"{written} ".partition(" | ")
            entries = choices if mark == "-" else slips
            entries.append((answered.strip(), misconception.strip()))
        if not choices:  # those that an expression makes have no misconceptions
            choices = [(str(text), "") for text in fields.get("choices", ())]
        answer = fields["answer"]
        if not isinstance(answer, frozenset):
            answer = np.asarray(answer, dtype=float).tolist()
        return Quiz(
            name="",  # which `lesson` gives it
            question=fields["ask"],
            answer=answer,
            worked=fields["worked"],
            choices=tuple(text for text, _ in choices),
            tolerance=fields.get("tolerance", 0.01),
            misconceptions=tuple(misconception for _, misconception in choices),
            slips=tuple(slips),
            is_transfer="transfer" in block.flags,
        )

    def _fields(self, block: Block) -> dict[str, Any]:
        """Return a fence's fields: expressions evaluated, texts with their slots filled."""
        values: dict[str, Any] = {}
        for name, expression in block.expressions.items():
            if name != "when":
                values[name] = self._evaluated(expression)
        for name, text in block.texts.items():
            filled = self._filled(text).strip()
            values[name] = filled.split(" | ") if name in LISTS else filled
        return values

    def _evaluated(self, expression: str) -> Any:
        return eval(f"({expression}\n)", self.names.values)

    def _filled(self, text: str) -> str:
        """Fill the text's {slots}: `{x}` as the course writes numbers, `{x:.2f}` as asked."""
        filled = []
        for before, slot, spec, _ in Formatter().parse(text):
            filled.append(before)
            if slot is None:
                continue
            value = self._evaluated(slot)
            if spec:
                filled.append(format(value, spec).replace("-", "−"))
            else:
                filled.append(shown(value))
        return "".join(filled)

    @contextmanager
    def _located(self, block: Block) -> Iterator[None]:
        """Say in which line an error occurred; what the reader brought has messages of its own."""
        try:
            yield
        except QkvError:
            raise
        except Exception as error:
            what = f"{block.kind} {block.name}".strip()
            raise DataError(
                f"{self.source.path}, line {block.line}, {what}: {type(error).__name__}: {error}"
            ) from error


def _sections(blocks: Iterable[Block]) -> list[list[Block]]:
    """Divide blocks at the headings. The first section is what is before the first heading."""
    sections: list[list[Block]] = [[]]
    for block in blocks:
        if block.kind == "heading":
            sections.append([])
        sections[-1].append(block)
    return sections


def _matrix(fields: dict[str, Any]) -> Matrix:
    """Build a matrix from `step`, a step of a trace, or from an array with labels and a role."""
    caption = fields.pop("caption")
    if "step" in fields:
        return Matrix.of(fields.pop("step"), caption, **fields)
    fields["array"] = np.atleast_2d(np.asarray(fields["array"]))
    return Matrix(caption, **fields)


def _key(block: Block) -> int:
    """Return the place of the key that a formula of a stage is about: its flag `key:2`."""
    for flag in block.flags:
        name, _, number = flag.partition(":")
        if name == "key":
            return int(number)
    return 0


def _switch(name: str, fields: dict[str, Any]) -> Switch:
    """Build a switch from its options, and as many notes and arrays of one shape.

    `matrix` names the matrix; labels and a role are those of a matrix.
    """
    caption, matrix = fields.pop("caption"), fields.pop("matrix")
    given = zip(fields.pop("options"), fields.pop("arrays"), fields.pop("notes"), strict=True)
    settings = [
        Setting(option, _matrix({**fields, "caption": matrix, "array": array}), note)
        for option, array, note in given
    ]
    return Switch(name, caption, settings)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _instructions(code: CodeType, kinds: set[str]) -> list[str]:
    """Return the names in these instructions of the code and of the functions in it."""
    names = [str(i.argval) for i in dis.get_instructions(code) if i.opname in kinds]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _instructions(constant, kinds)
    return names

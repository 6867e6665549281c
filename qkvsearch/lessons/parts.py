"""What a lesson is made of: steps, and in them texts, formulas, matrices, tables and the like.

Parts hold what was computed, unrounded; how they look is decided where they are shown.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from qkvsearch.attention.trace import TraceStep
from qkvsearch.lessons.drawings import Drawing
from qkvsearch.lessons.messages import decimals, digits
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import MaskName, Workbench

# What a matrix is to the computation. Each role has a colour, and a name beside it always.
Role = Literal[
    "input",
    "weight",
    "key",
    "query",
    "value",
    "score",
    "weights",
    "weighted",
    "output",
]
# Of the steps of a trace.
ROLES: dict[str, Role] = {
    "inputs": "input",
    "w_query": "weight",
    "w_key": "weight",
    "w_value": "weight",
    "queries": "query",
    "keys": "key",
    "values": "value",
    "scores": "score",
    "scaled": "score",
    "capped": "score",
    "masked": "score",
    "weights": "weights",
    "weighted": "weighted",
    "outputs": "output",
}


@dataclass(frozen=True, eq=False)
class Given:
    """What the reader brought: numbers of their own, a sentence, an encoder's name.

    inputs (n, d_in), w_query, w_key (d_in, d), w_value (d_in, dv), each None for the lesson's own.
    names: of the rows of the inputs (n,), None for letters.
    mask: in place of the lesson's. sentence, and which encoder reads it; None for the lesson's.
    What is no character in a sentence (half a pair of UTF-16) becomes U+FFFD.
    """

    inputs: np.ndarray | None = None
    names: Sequence[str] | None = None
    w_query: np.ndarray | None = None
    w_key: np.ndarray | None = None
    w_value: np.ndarray | None = None
    mask: MaskName | None = None
    sentence: str | None = None
    encoder: str | None = None

    def __post_init__(self) -> None:
        # A shell hands over bytes that are no UTF-8 as such halves; a page cannot be written so.
        if self.sentence is not None:
            read = self.sentence.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            object.__setattr__(self, "sentence", read)


@dataclass(frozen=True)
class Text:
    """A paragraph; *so* is emphasis and `so` is code.

    stage: what it is said of, a stage of the flow before it in its step; a page shows it there.
    """

    text: str
    stage: str = ""


@dataclass(frozen=True)
class Formula:
    """A line of mathematics, in plain letters.

    stage: as in a `Text`. key: the place of the key whose number it computes.
    """

    text: str
    stage: str = ""
    key: int = 0


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers with a name, a role, and a label for each row and column.

    array (rows, columns). symbols: how each cell is written, (rows, columns) of str, or None.
    visible: bool (rows, columns), False where a mask hides the cell, or None. n_decimals: with how
    many decimals its numbers are written at least, where the usual ones hide that rows add up.
    """

    name: str
    array: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    role: Role
    symbols: np.ndarray | None = None
    visible: np.ndarray | None = None
    n_decimals: int = 0

    def in_its_decimals(self) -> AbstractContextManager[None]:
        """Write the numbers in this context with its decimals."""
        return decimals(max(self.n_decimals, digits()))

    @classmethod
    def of(
        cls, step: TraceStep, name: str, symbols: bool = False, visible: np.ndarray | None = None
    ) -> "Matrix":
        """Return a step of a trace as a matrix; the vectors of weighted values are side by side.

        visible: bool (rows, columns), the mask that the step was computed under. A symbol of the
        outputs is a whole row's, so it stands in the first column.
        """
        array = np.asarray(step.array)
        columns: Sequence[str] = step.columns
        if array.ndim == 3:
            columns = [f"{c}{j + 1}" for c in columns for j in range(array.shape[2])]
            array = array.reshape(len(array), -1)
        written = step.symbols.astype(str) if symbols else None
        return cls(name, array, step.rows, columns, ROLES[step.name], written, visible)


@dataclass(frozen=True)
class ShownTable:
    """Rows of words and numbers under headings.

    kinds: words that have a colour in the lesson's drawings, in the order of those colours.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    kinds: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity that changes: values (n,) over 0, 1, 2, …; `x` names what is counted."""

    name: str
    x: str
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Setting:
    """One of the settings of a switch: what it is called, the matrix that it gives, and a note."""

    name: str
    matrix: Matrix
    note: str


@dataclass(frozen=True)
class Switch:
    """A change for the reader to make: settings of which one is shown at a time.

    name: one word, unique in its lesson. caption: what is changed.
    """

    name: str
    caption: str
    settings: Sequence[Setting]


Part = Text | Formula | Matrix | ShownTable | Curve | Workbench | Switch | Drawing


@dataclass(frozen=True, eq=False)
class Code:
    """Code that ran as it is shown, and the value of its last line."""

    source: str
    value: Any


@dataclass(frozen=True, eq=False)
class Step:
    """One idea: a title, its parts in order, and which points of the course it shows.

    computed: the values that its code assigned, by name. code: the lines of Python that are
    shown, or None; their values are in `computed`, too.
    """

    title: str
    parts: Sequence[Part]
    points: tuple[int, ...] = ()
    computed: dict[str, Any] = field(default_factory=dict)
    code: Code | None = None


@dataclass(frozen=True)
class Outline:
    """A lesson's line in the list of the course.

    name: what the command line calls it. minutes: how long it takes.
    """

    name: str
    number: int
    title: str
    goal: str
    minutes: int


@dataclass(frozen=True)
class Guidance:
    """Notes for a teacher: a common misconception with what is so, a question for the class, and
    its answer."""

    wrong: str
    ask: str
    answer: str


@dataclass(frozen=True, eq=False)
class Lesson(Outline):
    """A lesson, computed: steps counted from 1, and quizzes whose answers came with them.

    explain: what the reader says back in a sentence of their own, "" where nothing is asked.
    is_paged: whether a page that can shows one step at a time.
    first: the number of its first step, and n_steps, of all that it has, where only some are here.
    """

    steps: Sequence[Step]
    quizzes: Sequence[Quiz]
    explain: str = field(default="", kw_only=True)
    is_paged: bool = field(default=False, kw_only=True)
    first: int = field(default=1, kw_only=True)
    n_steps: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if not self.n_steps:
            object.__setattr__(self, "n_steps", len(self.steps))

    def showing(self, point: int) -> Step:
        """Return the first step that shows this point. Raises KeyError if none does."""
        for step in self.steps:
            if point in step.points:
                return step
        raise KeyError(f"no step of {self.name} shows point {point}")

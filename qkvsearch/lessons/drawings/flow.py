"""A drawing of attention: scores, mask, softmax, and what flows from the values to the outputs.

It is the same drawing for a search, a recommendation and a translation; only the labels change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.attention.trace import Trace, trace
from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.messages import mark, say, shown
from qkvsearch.lessons.workbench import MaskName, Workbench, mask_of

# The steps that it goes through, each with what it does.
STAGES = {
    "scores": "Q·Kᵀ",
    "scaled": "÷ √d",
    "masked": mark("mask"),
    "weights": "softmax",
    "outputs": "· V",
}


@dataclass(frozen=True, eq=False)
class Flow(Drawing):
    """Every query against every key, and what flows from the values to each query's output.

    name: one word, unique in its lesson. bench: the matrices, their labels, and the masks to
    choose from; without values the drawing ends with the scores. asks, asked: what a query and a
    key are here, such as "user" and "film". seen: bool (L, S), False where a key is hidden
    whatever mask is chosen; None hides nothing.
    """

    name: str
    caption: str
    bench: Workbench
    asks: str
    asked: str
    seen: np.ndarray | None = None

    @property
    def has_values(self) -> bool:
        return "values" in self.bench.matrices or "w_value" in self.bench.matrices

    @property
    def columns(self) -> Sequence[str]:
        return self.bench.rows if self.bench.is_projected else self.bench.columns

    @property
    def stages(self) -> list[str]:
        """Those of STAGES in which something happens."""
        if not self.has_values:
            return ["scores"]
        left_out = set() if self.factor != 1 else {"scaled"}
        if self.visible().all() and len(self.bench.masks) == 1:
            left_out.add("masked")
        return [stage for stage in STAGES if stage not in left_out]

    @property
    def factor(self) -> float:
        """What the scores are multiplied by."""
        wide = self.bench.matrices["w_query" if self.bench.is_projected else "queries"].shape[1]
        return (self.bench.scale or wide**-0.5) / self.bench.temperature

    def visible(self, mask: MaskName | None = None) -> np.ndarray:
        """bool (L, S), True = may attend, under this mask or the one to begin with."""
        L, S = len(self.bench.rows), len(self.columns)
        seen = np.ones((L, S), dtype=bool) if self.seen is None else self.seen
        found = mask_of(mask or self.bench.mask, L, S, self.bench.padded)
        return seen if found is None else seen & found

    def trace(self, mask: MaskName | None = None) -> Trace:
        """The engine's record of the computation, from queries, keys and values on."""
        given = self.bench.steps()
        values = given["values"] if self.has_values else given["keys"]
        with np.errstate(all="ignore"):
            return trace(
                given["queries"],
                given["keys"],
                values,
                query_labels=self.bench.rows,
                key_labels=self.columns,
                mask=self.visible(mask),
                scale=self.factor,
                normalize=self.bench.normalize,
            )

    def steps(self, mask: MaskName | None = None) -> dict[str, np.ndarray]:
        """The arrays of `stages`, by their names, and the queries, keys and values before them."""
        found = self.trace(mask)
        names = ["queries", "keys", *(["values"] if self.has_values else []), *self.stages]
        return {name: np.asarray(found[name].array) for name in names}

    @property
    def told(self) -> str:
        """What the drawing shows, in words."""
        steps = self.steps()
        rows, columns = list(self.bench.rows), list(self.columns)
        if not self.has_values:
            best = np.nan_to_num(steps["scores"]).argmax(axis=1)
            found = self._said(rows, columns, best, steps["scores"])
            return say("The largest score of each {asks}: {found}.", asks=self.asks, found=found)
        best = np.nan_to_num(steps["weights"]).argmax(axis=1)
        found = self._said(rows, columns, best, steps["weights"])
        return say(
            "The largest weight of each {asks}: {found}.",
            asks=self.asks,
            asked=self.asked,
            found=found,
        )

    @staticmethod
    def _said(rows: list[str], columns: list[str], best: np.ndarray, array: np.ndarray) -> str:
        pairs = zip(rows, best, strict=True)
        each = [
            say("{row} → {column} {number}", row=row, column=columns[j], number=array[i, j])
            for i, (row, j) in enumerate(pairs)
        ]
        return say("; ").join(each)

    @property
    def tables(self) -> list[NumberTable]:
        """All that is drawn: a row for each pair of a query and a key, then the outputs."""
        steps = self.steps()
        names = [stage for stage in self.stages if stage != "outputs"]
        headings = [self.asks, self.asked, *(say(NUMBERS[name]) for name in names)]
        pairs: list[list[str | float]] = [
            [row, column, *(float(steps[name][i, j]) for name in names)]
            for i, j, row, column in self._pairs()
        ]
        if not self.has_values:
            return [(headings, pairs)]
        outputs = steps["outputs"]
        wide = [say("output {n}", n=n + 1) for n in range(outputs.shape[1])]
        rows: list[list[str | float]] = [
            [str(row), *map(float, output)]
            for row, output in zip(self.bench.rows, outputs, strict=True)
        ]
        return [(headings, pairs), ([self.asks, *wide], rows)]

    def _pairs(self) -> Iterator[tuple[int, int, str, str]]:
        for i, row in enumerate(self.bench.rows):
            for j, column in enumerate(self.columns):
                yield i, j, str(row), str(column)

    def numbers(self) -> dict[str, Any]:
        """What the page's script computes from."""
        steps, bench = self.steps(), self.bench
        return {
            "queries": steps["queries"],
            "keys": steps["keys"],
            "values": steps.get("values"),
            "rows": list(bench.rows),
            "columns": list(self.columns),
            "seen": None if self.seen is None else self.seen.tolist(),
            "mask": bench.mask,
            "padded": bench.padded,
            "scale": self.factor * bench.temperature,
            "temperature": bench.temperature,
            "normalize": bench.normalize,
            "stages": self.stages,
        }


# The numbers of a stage, as a heading says it.
NUMBERS = {
    "scores": mark("score"),
    "scaled": mark("scaled score"),
    "masked": mark("masked score"),
    "weights": mark("weight"),
}


def cell_text(number: float) -> str:
    """A number as a cell of the drawing has room for it.

    >>> cell_text(0.12345), cell_text(-12.0), cell_text(float("-inf"))
    ('0.12', '−12', '−∞')
    """
    if not np.isfinite(number):
        return shown(number)
    rounded = round(number, 2 if abs(number) < 100 else 0)
    return shown(rounded)

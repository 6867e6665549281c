"""The type of a catalog's column, decided from all its cells, and the cells as that type."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pandas as pd

from qkvsearch.data.columns.dates import read_dates
from qkvsearch.data.columns.facts import ColumnFacts, ColumnType
from qkvsearch.data.columns.html import without_html
from qkvsearch.data.columns.lists import read_lists, read_told_lists
from qkvsearch.data.columns.numbers import read_numbers
from qkvsearch.data.columns.reading import Reading, say_nothing
from qkvsearch.data.columns.yes_no import read_yes_no

# Of the cells that say something, at most this share may be emptied for not fitting.
MOST_UNFIT = 0.05
LEAST_FITTING = 2
# Of the cells that were emptied, so many are named.
MOST_NAMED = 3


@dataclass
class TypedColumn:
    """cells: int, float or text with gaps, as many as were read. changed: what was done to how many
    of them. unfit: bool, True for those that were emptied for not fitting. convention: as in
    `Reading`.
    """

    type: ColumnType
    cells: pd.Series
    unfit: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    changed: Counter[str] = field(default_factory=Counter)
    convention: str = ""

    def facts(self, name: str, role: str, stored: str) -> ColumnFacts:
        """What is kept of it; name: its owner's for it, stored: the workspace's."""
        return ColumnFacts(
            name=name,
            role=role,
            type=self.type,
            changed=dict(self.changed),
            stored="" if stored == name else stored,
            convention=self.convention,
        ).of_cells(self.cells)

    def name_blanks(self, ids: pd.Series) -> None:
        """Of titles: one that is empty is the item's id."""
        blank = self.cells.isna()
        self.cells = self.cells.where(~blank, ids)
        self.changed += Counter({"empty: the id instead": int(blank.sum())})

    def emptied(self, name: str, texts: pd.Series, ids: pd.Series) -> list[str]:
        """A note on the cells that did not fit, if any did not; `texts` is what they were."""
        if not self.unfit.any():
            return []
        cells = islice(zip(texts[self.unfit], ids[self.unfit], strict=True), MOST_NAMED)
        named = ", ".join(f"{cell!r} (id {id_})" for cell, id_ in cells)
        count = int(self.unfit.sum())
        return [
            f"column {name}: {count:,} of {len(texts):,} cells emptied, for they are no "
            f"{self.type}: {named}"
        ]


def typed(
    column: pd.Series,
    told: ColumnType | None = None,
    *,
    searched: bool = False,
    convention: str = "",
) -> TypedColumn:
    """A column of text with gaps as the type told, else as the first one that nearly all its cells
    are of. A column that search reads is a list or text. convention: how the cells were read that
    the column had before, for what can be read in two ways.

    >>> typed(pd.Series(["$5", "N/A", "7"])).cells.tolist()
    [5, <NA>, 7]
    """
    codes, distinct = pd.factorize(column)
    texts = pd.Series(distinct, dtype=object)
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    clean = without_html(texts)
    reading, changed = _text(clean), Counter[str]()
    for type_ in _candidates(told, searched):
        nothing = say_nothing(clean, words=type_ != "list")
        found = _read(type_, clean[~nothing], counts[~nothing], told is not None, convention)
        if found is not None:
            reading = found
            break
    values = reading.values.reindex(texts.index)
    for what, cells in reading.changed.items():
        changed[what] += int(counts[reading.values.index[cells]].sum())
    unfit = np.zeros(len(texts), dtype=bool)
    if reading.type != "text":
        for text, count in zip(clean[nothing].str.strip(), counts[nothing], strict=True):
            changed[f"{text} emptied"] += int(count)
        unfit = values.isna().to_numpy(bool) & ~nothing
        changed[f"emptied: no {reading.type}"] = int(counts[unfit].sum())
    changed["HTML removed"] = int(counts[(clean != texts).to_numpy(bool)].sum())
    return TypedColumn(
        type=reading.type,
        cells=values.reindex(codes).set_axis(column.index).rename(column.name),
        unfit=np.append(unfit, False)[codes],
        changed=+changed,
        convention=reading.convention,
    )


def _candidates(told: ColumnType | None, searched: bool) -> list[ColumnType]:
    if told is not None:
        return [] if told == "text" else [told]
    return ["list"] if searched else ["number", "date", "yes/no", "list"]


def _read(
    type_: ColumnType, texts: pd.Series, counts: np.ndarray, told: bool, convention: str
) -> Reading | None:
    """The cells as a type; None where they are not of it and nobody told that they are."""
    if texts.empty and not told:
        return None
    if type_ == "list":
        return (read_told_lists if told else read_lists)(texts, counts)
    if type_ == "number":
        reading = read_numbers(texts, counts, convention)
    elif type_ == "date":
        reading = read_dates(texts, convention)
    else:
        reading = read_yes_no(texts)
    return reading if told or _fits(reading, counts) else None


def _fits(reading: Reading, counts: np.ndarray) -> bool:
    if reading.doubts:
        return False
    fitting, n_cells = counts[reading.fits].sum(), counts.sum()
    few_unfit = fitting >= LEAST_FITTING and n_cells - fitting <= MOST_UNFIT * n_cells
    return bool(fitting == n_cells or few_unfit)


def _text(texts: pd.Series) -> Reading:
    return Reading("text", texts.where(texts != ""))

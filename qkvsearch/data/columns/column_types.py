"""The type of a catalog's column, decided from all its cells, and the cells as that type."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pandas as pd

from qkvsearch.data.columns.dates import read_dates
from qkvsearch.data.columns.facts import ColumnFacts, ColumnType, Reading, say_nothing
from qkvsearch.data.columns.html import without_html
from qkvsearch.data.columns.lists import read_lists, read_told_lists
from qkvsearch.data.columns.numbers import read_numbers
from qkvsearch.terminal import shorten

# Of the cells that say something, at most this share may be emptied for not fitting.
MOST_UNFIT = 0.05
LEAST_FITTING = 2
# The first that nearly all cells are of; in columns that search reads, the last.
INFERRED: list[ColumnType] = ["number", "date", "yes/no", "list"]
SAMPLE = 1000
# Of the cells that were emptied, so many are named.
MOST_NAMED = 3

# Signs of one currency each, and its code where that stands beside the sign in tables.
CURRENCY_SIGNS = "$€£¥₹₽₩₺₪"
CODE_SIGNS = {"USD": "$", "US$": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}


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
        count, named = int(self.unfit.sum()), self.named_unfit(texts, ids)
        return [
            f"column {name}: {count:,} of {len(texts):,} cells emptied, for they are no "
            f"{self.type}: {named}"
        ]

    def mixed_currencies(self, name: str) -> list[str]:
        """A note on amounts of several currencies in one column, if there are any."""
        removed = [what.removesuffix(" removed") for what in self.changed]
        signs = {CODE_SIGNS.get(sign.upper(), sign) for sign in removed} & set(CURRENCY_SIGNS)
        listed = ", ".join(sorted(signs, key=CURRENCY_SIGNS.index))
        return [f"column {name}: amounts in {listed} are compared as bare numbers"] * (
            len(signs) > 1
        )

    def named_unfit(self, texts: pd.Series, ids: pd.Series) -> str:
        """Some of the cells that did not fit, with the ids of their rows."""
        cells = islice(zip(texts[self.unfit], ids[self.unfit], strict=True), MOST_NAMED)
        return ", ".join(f"{shorten(cell)!r} (id {shorten(id_)})" for cell, id_ in cells)


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
    found = typed_distinct(texts, counts, told, searched=searched, convention=convention)
    return replace(
        found,
        cells=found.cells.reindex(codes).set_axis(column.index).rename(column.name),
        unfit=np.append(found.unfit, False)[codes],
    )


def typed_distinct(
    texts: pd.Series,
    counts: np.ndarray,
    told: ColumnType | None = None,
    *,
    searched: bool = False,
    convention: str = "",
) -> TypedColumn:
    """The same of the distinct texts of a column, objects (m,), and how many cells have each (m,);
    cells and `unfit` are of them.
    """
    clean = without_html(texts)
    reading, nothing, changed = _decided(clean, counts, told, searched, convention)
    values = reading.values.reindex(texts.index)
    unfit = values.isna().to_numpy(bool) & ~nothing & (reading.type != "text")
    for what, cells in reading.changed.items():
        changed[what] += int(counts[reading.values.index[cells]].sum())
    for text, count in zip(clean[nothing].str.strip(), counts[nothing], strict=True):
        changed[f"{text} emptied"] += int(count)
    changed[f"emptied: no {reading.type}"] += int(counts[unfit].sum())
    changed["HTML removed"] += int(counts[(clean != texts).to_numpy(bool)].sum())
    return TypedColumn(reading.type, values, unfit, +changed, reading.convention)


def _decided(
    texts: pd.Series, counts: np.ndarray, told: ColumnType | None, searched: bool, convention: str
) -> tuple[Reading, np.ndarray, Counter[str]]:
    """How the distinct cells are read, which of them say that there is nothing (bool), and what
    kept a column text that is nearly of another type.
    """
    kept: Counter[str] = Counter()
    nothing = np.zeros(len(texts), dtype=bool)
    candidates = [told] if told else INFERRED[-1:] if searched else INFERRED
    for type_ in candidates:
        if type_ == "text":
            break
        nothing = say_nothing(texts, words=type_ != "list")
        cells, n_cells = texts[~nothing], counts[~nothing]
        if told:
            return _read(type_, cells, n_cells, convention, told=True), nothing, kept
        if cells.empty or _is_hopeless(type_, cells, n_cells):
            continue
        reading = _read(type_, cells, n_cells, convention)
        if _fits(reading, n_cells):
            return reading, nothing, kept
        kept = kept or _kept_from(reading, cells, n_cells)
        if kept and reading.doubts:
            break
    return Reading("text", texts.where(texts != "")), np.zeros(len(texts), dtype=bool), kept


def _read(
    type_: ColumnType,
    texts: pd.Series,
    counts: np.ndarray,
    convention: str = "",
    told: bool = False,
) -> Reading:
    if type_ == "number":
        return read_numbers(texts, counts, convention)
    if type_ == "date":
        return read_dates(texts, convention)
    if type_ == "yes/no":
        return read_yes_no(texts)
    return read_told_lists(texts, counts, convention) if told else read_lists(texts, counts)


def _is_hopeless(type_: ColumnType, texts: pd.Series, counts: np.ndarray) -> bool:
    """Whether not even half of many cells, drawn at random, are of a type: to read them all takes
    long, and of cells that nearly all fit, such a sample does not come.
    """
    if type_ == "list" or len(texts) <= SAMPLE:
        return False
    drawn = np.random.default_rng(0).choice(len(texts), SAMPLE, p=counts / counts.sum())
    places, n_drawn = np.unique(drawn, return_counts=True)
    fits = _read(type_, texts.iloc[places], n_drawn).fits
    return bool(n_drawn[fits].sum() < SAMPLE / 2)


def _fits(reading: Reading, counts: np.ndarray) -> bool:
    fitting, n_cells = counts[reading.fits].sum(), counts.sum()
    few_unfit = fitting >= LEAST_FITTING and n_cells - fitting <= MOST_UNFIT * n_cells
    return bool(not reading.doubts and (fitting == n_cells or few_unfit))


def _kept_from(reading: Reading, texts: pd.Series, counts: np.ndarray) -> Counter[str]:
    """What kept a column from being of numbers or dates that at least half of its cells are, and
    how many cells.
    """
    fitting, n_cells = int(counts[reading.fits].sum()), int(counts.sum())
    if reading.type not in ("number", "date") or 2 * fitting < n_cells:
        return Counter()
    if reading.doubts:
        return Counter({f"kept as text: {reading.doubts}": fitting})
    example = shorten(texts[~reading.fits].iloc[0].strip())
    return Counter({f"kept as text: no {reading.type}, such as {example!r}": n_cells - fitting})


YES = frozenset(
    "true yes y ja j oui o si sí s sim sì tak да evet kyllä igen ναι 是 有 はい 1".split()
)
NO = frozenset(
    "false no n nein non nee não nao nei nej nie нет ei nem όχι 否 无 無 いいえ 0".split()
)


def read_yes_no(texts: pd.Series) -> Reading:
    """The distinct cells `texts` as 1 and 0.

    A single letter or digit, or one answer throughout, may be anything: that is doubted.

    >>> read_yes_no(pd.Series(["Yes", "no", "maybe"])).values.tolist()
    [1, 0, <NA>]
    """
    said = texts.str.strip().str.casefold()
    values = said.map(dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0)).astype("Int64")
    found = said[values.notna()]
    reading = Reading("yes/no", values)
    if (found.str.len() == 1).all() and values.nunique() < 2:
        reading.doubts = "one letter throughout"
    elif found.isin(["0", "1"]).any():
        reading.doubts = "numbers"
    reading.change("yes and no to 1 and 0", ~said.isin(["0", "1"]).to_numpy(bool))
    return reading

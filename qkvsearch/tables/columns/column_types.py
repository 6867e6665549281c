"""The type of a catalog's column, decided from all its cells, and the cells as that type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pandas as pd

from qkvsearch._utils.folding import fold
from qkvsearch.errors import Count, quantity
from qkvsearch.tables.columns.dates import read_dates
from qkvsearch.tables.columns.facts import (
    CELL_WORDS,
    NO,
    YES,
    ColumnFacts,
    ColumnType,
    ParsedCells,
    are_missing,
)
from qkvsearch.tables.columns.html import without_html
from qkvsearch.tables.columns.lists import read_lists, read_requested_lists
from qkvsearch.tables.columns.numbers import PERCENT_REMOVED, read_numbers
from qkvsearch.terminal import shorten

# At most this share of the filled cells may be emptied because they do not fit.
MAX_UNFIT = 0.05
MIN_FITTING = 2
# The first type that nearly all cells have is taken; a searched column is a list or text.
INFERRED: list[ColumnType] = ["number", "date", "yes/no", "list"]
SAMPLE = 1000
# Emptied cells that a note names.
MAX_EXAMPLES = 3
CODES = frozenset(CELL_WORDS["codes"])
# The codes that are yes and no in one language.
CODE_PAIRS = [frozenset(pair) for pair in CELL_WORDS["code_pairs"]]
# Signs of currencies, and codes that tables use for the same currency.
CURRENCY_SIGNS = "$€£¥₹₽₩₺₪"
CODE_SIGNS = {"USD": "$", "US$": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}


@dataclass
class TypedColumn:
    """A column as its type.

    cells: int, float or text with gaps. unfit: which cells were emptied because they do not fit,
    bool. changed: how many cells were changed, by the kind of change. convention: as in
    `ParsedCells`.
    """

    type: ColumnType
    cells: pd.Series
    unfit: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    changed: Counter[str] = field(default_factory=Counter)
    convention: str = ""

    def facts(self, name: str, role: str, stored: str) -> ColumnFacts:
        """Return the facts to store. name: the column in the file; stored: in the workspace."""
        return ColumnFacts(
            name=name,
            role=role,
            type=self.type,
            changed=dict(self.changed),
            stored="" if stored == name else stored,
            convention=self.convention,
        ).of_cells(self.cells)

    def name_blanks(self, ids: pd.Series) -> None:
        """Replace empty titles by the ids of the items."""
        blank = self.cells.isna()
        self.cells = self.cells.where(~blank, ids)
        self.changed += Counter({"empty: the id instead": int(blank.sum())})

    def emptied(self, name: str, texts: pd.Series, ids: pd.Series) -> list[str]:
        """Return a note on the cells that did not fit, if any; texts: the cells as they were."""
        if not self.unfit.any():
            return []
        n_unfit = Count(int(self.unfit.sum()))
        cells = quantity(len(texts), "cell")
        return [
            f"column {name}: {n_unfit} of {cells} emptied, for {n_unfit:it is|they are} no "
            f"{self.type}: {self.examples_of_unfit(texts, ids)}"
        ]

    def mixed_currencies(self, name: str) -> list[str]:
        """Return a note on amounts in several currencies, if there are any."""
        removed = [what.removesuffix(" removed") for what in self.changed]
        signs = {CODE_SIGNS.get(sign.upper(), sign) for sign in removed} & set(CURRENCY_SIGNS)
        listed = ", ".join(sorted(signs, key=CURRENCY_SIGNS.index))
        return [f"column {name}: amounts in {listed} are compared as bare numbers"] * (
            len(signs) > 1
        )

    def mixed_percentages(self, name: str) -> list[str]:
        """Return a note where some numbers have a percent sign and others none, if any."""
        n_percent, n_numbers = self.changed[PERCENT_REMOVED], self._n_numbers()
        if not 0 < n_percent < n_numbers:
            return []
        numbers = quantity(n_numbers, "number")
        return [
            f"column {name}: {n_percent:,} of {numbers} have a percent sign; 10% is read as 10, "
            "and 0.1 as 0.1"
        ]

    def other_percentages(self, name: str, before: Mapping[str, int]) -> list[str]:
        """Return a note where numbers with a percent sign are added to those without, or the
        reverse. before: the changes of the cells of the workspace.
        """
        had_percent, has_percent = PERCENT_REMOVED in before, PERCENT_REMOVED in self.changed
        if had_percent == has_percent or not self._n_numbers():
            return []
        there, here = ("with", "without") if had_percent else ("without", "with")
        return [
            f"column {name}: its numbers are {here} a percent sign, and those of the workspace "
            f"{there} one; 10% is read as 10, and 0.1 as 0.1"
        ]

    def _n_numbers(self) -> int:
        """Return how many cells are numbers that a percent sign would change."""
        return int((self.cells.fillna(0) != 0).sum()) if self.type == "number" else 0

    def examples_of_unfit(self, texts: pd.Series, ids: pd.Series) -> str:
        """Return some of the cells that did not fit, with the ids of their rows."""
        cells = islice(zip(texts[self.unfit], ids[self.unfit], strict=True), MAX_EXAMPLES)
        return ", ".join(f"{shorten(cell)!r} (id {shorten(id_)})" for cell, id_ in cells)


def typed(
    column: pd.Series,
    requested: ColumnType | None = None,
    *,
    searched: bool = False,
    convention: str = "",
) -> TypedColumn:
    """Convert a column of text with gaps to the requested type, or to the first one that nearly all
    of its cells have. A searched column is a list or text. convention: as in `ParsedCells`.

    >>> typed(pd.Series(["$5", "N/A", "7"])).cells.tolist()
    [5, <NA>, 7]
    """
    codes, distinct = pd.factorize(column)
    texts = pd.Series(distinct, dtype=object)
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    distinct_cells = typed_distinct(
        texts, counts, requested, searched=searched, convention=convention
    )
    return replace(
        distinct_cells,
        cells=distinct_cells.cells.reindex(codes).set_axis(column.index).rename(column.name),
        unfit=np.append(distinct_cells.unfit, False)[codes],
    )


def typed_distinct(
    texts: pd.Series,
    counts: np.ndarray,
    requested: ColumnType | None = None,
    *,
    searched: bool = False,
    convention: str = "",
) -> TypedColumn:
    """Convert the distinct texts of a column, objects (m,), of which `counts` (m,) cells each have
    one. The cells of the result are the distinct ones.
    """
    clean = without_html(texts)
    parsed, missing, changed = _decide(clean, counts, requested, searched, convention)
    values = parsed.values.reindex(texts.index)
    unfit = values.isna().to_numpy(bool) & ~missing & (parsed.type != "text")
    for what, cells in parsed.changed.items():
        changed[what] += int(counts[parsed.values.index[cells]].sum())
    for text, count in zip(clean[missing].str.strip(), counts[missing], strict=True):
        changed[f"{text} emptied"] += int(count)
    changed[f"emptied: no {parsed.type}"] += int(counts[unfit].sum())
    changed["HTML removed"] += int(counts[(clean != texts).to_numpy(bool)].sum())
    return TypedColumn(parsed.type, values, unfit, +changed, parsed.convention)


def _decide(
    texts: pd.Series,
    counts: np.ndarray,
    requested: ColumnType | None,
    searched: bool,
    convention: str,
) -> tuple[ParsedCells, np.ndarray, Counter[str]]:
    """Return the cells as the type that is taken, which of them stand for an empty cell (bool), and
    why a column is text that is nearly of another type.
    """
    reason: Counter[str] = Counter()
    missing = np.zeros(len(texts), dtype=bool)
    candidates = [requested] if requested else INFERRED[-1:] if searched else INFERRED
    for type_ in candidates:
        if type_ == "text":
            break
        missing = are_missing(texts, words=type_ != "list")
        cells, n_cells = texts[~missing], counts[~missing]
        if requested:
            return _read(type_, cells, n_cells, convention, requested=True), missing, reason
        if cells.empty or _is_hopeless(type_, cells, n_cells):
            continue
        parsed = _read(type_, cells, n_cells, convention)
        if _fits(parsed, n_cells):
            return parsed, missing, reason
        reason = reason or _reason_against(parsed, cells, n_cells)
        if reason and parsed.doubts:
            break
    return ParsedCells("text", texts.where(texts != "")), np.zeros(len(texts), dtype=bool), reason


def _read(
    type_: ColumnType,
    texts: pd.Series,
    counts: np.ndarray,
    convention: str = "",
    requested: bool = False,
) -> ParsedCells:
    if type_ == "number":
        return read_numbers(texts, counts, convention)
    if type_ == "date":
        return read_dates(texts, convention)
    if type_ == "yes/no":
        return read_yes_no(texts, counts)
    return (
        read_requested_lists(texts, counts, convention) if requested else read_lists(texts, counts)
    )


def _is_hopeless(type_: ColumnType, texts: pd.Series, counts: np.ndarray) -> bool:
    """Return whether fewer than half of a random sample of many cells fit a type. Parsing them all
    takes long, and no column that nearly fits gives such a sample.
    """
    if type_ == "list" or len(texts) <= SAMPLE:
        return False
    drawn = np.random.default_rng(0).choice(len(texts), SAMPLE, p=counts / counts.sum())
    rows, n_drawn = np.unique(drawn, return_counts=True)
    fits = _read(type_, texts.iloc[rows], n_drawn).fits
    return bool(n_drawn[fits].sum() < SAMPLE / 2)


def _fits(parsed: ParsedCells, counts: np.ndarray) -> bool:
    fitting, n_cells = counts[parsed.fits].sum(), counts.sum()
    few_unfit = fitting >= MIN_FITTING and n_cells - fitting <= MAX_UNFIT * n_cells
    return bool(not parsed.doubts and (fitting == n_cells or few_unfit))


def _reason_against(parsed: ParsedCells, texts: pd.Series, counts: np.ndarray) -> Counter[str]:
    """Return why a column is not of a type that at least half of its cells have, and the number of
    cells. Lists, and words other than yes and no, are ordinary text.
    """
    fitting, n_cells = int(counts[parsed.fits].sum()), int(counts.sum())
    if parsed.type == "list" or 2 * fitting < n_cells:
        return Counter()
    if parsed.doubts:
        return Counter({f"kept as text: {parsed.doubts}": fitting})
    if parsed.type == "yes/no":
        return Counter()
    example = shorten(texts[~parsed.fits].iloc[0].strip())
    return Counter({f"kept as text: no {parsed.type}, such as {example!r}": n_cells - fitting})


def read_yes_no(texts: pd.Series, counts: np.ndarray) -> ParsedCells:
    """Parse the distinct cells `texts`, of which there are `counts` (m,) each, as 1 and 0. Doubts
    say where they may mean something else.

    >>> read_yes_no(pd.Series(["Yes", "no", "maybe"]), np.ones(3)).values.tolist()
    [1, 0, <NA>]
    """
    stripped = texts.str.strip()
    words = stripped.map(fold)
    values = words.map(dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0)).astype("Int64")
    parsed = ParsedCells("yes/no", values)
    parsed.doubts = _doubts_about_answers(stripped, parsed, counts)
    parsed.change("yes and no to 1 and 0", ~words.isin(["0", "1"]).to_numpy(bool))
    return parsed


def _doubts_about_answers(stripped: pd.Series, parsed: ParsedCells, counts: np.ndarray) -> str:
    """Return why words that are yes or no may be no answers; "" where nothing speaks for that."""
    answers = stripped[parsed.fits]
    if answers.empty:
        return ""
    has_both = parsed.values.nunique() == 2
    if (answers.str.len() == 1).all() and not has_both:
        return "one letter throughout"
    if _may_be_codes(answers):
        shown = " and ".join(answers.sort_values().unique()[:2])
        return f"{shown} may be codes; set the type to yes/no if they are answers"
    if answers.isin(["0", "1"]).any():
        return "numbers"
    # One answer and a few other words: one of these may be the other answer, which must not be
    # emptied. With many other words the column is text anyway.
    others = stripped[~parsed.fits]
    n_others = counts[~parsed.fits].sum()
    if not has_both and 0 < n_others <= MAX_UNFIT * counts.sum():
        answer, other = shorten(answers.iloc[0]), shorten(others.iloc[0])
        return f"beside {answer!r} there is {other!r}; set the type to yes/no to empty such cells"
    return ""


def _may_be_codes(answers: pd.Series) -> bool:
    """Return whether yes and no may be codes: of languages, countries or points of the compass.

    >>> _may_be_codes(pd.Series(["SI", "NO"])), _may_be_codes(pd.Series(["Si", "No"]))
    (True, False)
    >>> _may_be_codes(pd.Series(["Si", "No", "Da"])), _may_be_codes(pd.Series(list("NOSY")))
    (True, True)
    """
    words = answers.str.casefold()
    spelled = frozenset(words)
    if words.str.fullmatch("[a-z]{1,2}").all():
        # Several letters for yes, or for no, are no answers of one language.
        letters = {word for word in spelled if len(word) == 1}
        n_yes = len(letters & YES)
        if n_yes > 1 or len(letters) - n_yes > 1:
            return True
    if not words.isin(CODES).all():
        return False
    if (answers.str.isupper() | answers.str.islower()).all():
        return True
    # Capitalized words are answers where they are those of one language.
    return not any(spelled <= pair for pair in CODE_PAIRS)

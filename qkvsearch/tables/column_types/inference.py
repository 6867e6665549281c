"""The type of a catalog's column, decided from all its cells, and the cells as that type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd

from qkvsearch.errors import Count, quantity
from qkvsearch.tables.column_facts import PRICES, ColumnFacts, ParsedCells, are_missing
from qkvsearch.tables.column_types import TEXT, TYPES, ColumnType, type_named
from qkvsearch.tables.column_types.column_type import MAX_UNFIT
from qkvsearch.tables.columns import NAMES, folded, words_of
from qkvsearch.tables.columns.html import without_html
from qkvsearch.tables.columns.line_breaks import BREAKS, with_line_breaks
from qkvsearch.tables.columns.numbers import PERCENT_REMOVED, removed
from qkvsearch.tables.columns.tidy import tidied
from qkvsearch.tables.columns.uncertain_dates import CIRCA_READ, may_tell_dates
from qkvsearch.tables.columns.units import unit_of_header, without_unit
from qkvsearch.tables.date_spans import UNCERTAIN
from qkvsearch.terminal import shorten

MIN_FITTING = 2
SAMPLE = 1000
# Characters of a number, a date or an answer.
LONGEST_VALUE = 1000
# A year before our era as ISO 8601 writes it, which is a number as well.
MINUS_YEAR = r"\s*-0\d{3}\s*$"
# Emptied cells that a note names.
MAX_EXAMPLES = 3
# The change of texts that are tidied.
SPACES = "spaces or decomposed letters"
# Signs of currencies, and codes that tables use for the same currency.
CURRENCY_SIGNS = "$€£¥₹₽₩₺₪"
CODE_SIGNS = {"USD": "$", "US$": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}
# Words of the names of columns of amounts. Those without spaces may be the end of a longer one.
AMOUNTS = PRICES | set(map(folded, NAMES["whole"]["rating"]))
UNSPACED_AMOUNTS = tuple(word for word in AMOUNTS if word >= "\u2e80")
# The change of an empty title.
NAMED_BY_ID = "empty: the id instead"


@dataclass
class TypedColumn:
    """A column as its type.

    cells: int, float or text with gaps. unfit: which cells were emptied because they do not fit,
    bool. changed: how many cells were changed, by the kind of change. convention: as in
    `ParsedCells`. original: what the cells that are not shown as they were in the file were there,
    None for all others; None for the column where there is no such cell. unit: of numbers.
    """

    type: str
    cells: pd.Series
    unfit: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    changed: Counter[str] = field(default_factory=Counter)
    convention: str = ""
    original: pd.Series | None = None
    unit: str = ""

    def facts(self, name: str, role: str, stored: str) -> ColumnFacts:
        """Return the facts to store. name: the column in the file; stored: in the workspace."""
        return ColumnFacts(
            name=name,
            role=role,
            type=self.type,
            changed=dict(self.changed),
            stored="" if stored == name else stored,
            convention=self.convention,
            unit=self.unit,
        ).of_cells(self.cells)

    def name_blanks(self, ids: pd.Series) -> None:
        """Replace empty titles by the ids of the items."""
        blank = self.cells.isna()
        self.cells = self.cells.where(~blank, ids)
        self.changed += Counter({NAMED_BY_ID: int(blank.sum())})

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

    def circa(self, name: str) -> list[str]:
        """Return a note on how circa was read, if there is any."""
        n_circa = self.changed[CIRCA_READ]
        return [f"column {name}: {CIRCA_READ} in {quantity(n_circa, 'cell')}"] if n_circa else []

    def mixed_currencies(self, name: str) -> list[str]:
        """Return a note on amounts in several currencies, if there are any."""
        removed = [what.removesuffix(" removed") for what in self.changed]
        signs = {CODE_SIGNS.get(sign.upper(), sign) for sign in removed} & set(CURRENCY_SIGNS)
        if len(signs) < 2:
            return []
        listed = ", ".join(sorted(signs, key=CURRENCY_SIGNS.index))
        return [f"column {name}: amounts in {listed} are compared as bare numbers"]

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

    def without_unit(self, name: str) -> list[str]:
        """Return a note where some numbers have the unit of the column and others none, if any."""
        n_with, n_numbers = self.changed[removed(self.unit)], self._n_numbers()
        if not 0 < n_with < n_numbers:
            return []
        n_without = n_numbers - n_with
        return [
            f"column {name}: {n_without:,} of {quantity(n_numbers, 'number')} have no unit, and "
            f"are read as {self.unit}"
        ]

    def other_unit(self, name: str, unit: str) -> list[str]:
        """Return a note where numbers with a unit are added to those without. unit: of the numbers
        of the workspace.
        """
        if unit or not self.unit or not self._n_numbers():
            return []
        return [
            f"column {name}: its numbers are in {self.unit}, and those of the workspace have no "
            "unit"
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
    requested: str | None = None,
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
        texts,
        counts,
        requested,
        searched=searched,
        convention=convention,
        is_amount=_is_amount(str(column.name)),
        header_unit=unit_of_header(str(column.name)),
    )
    original = distinct_cells.original
    if original is not None:
        original = original.reindex(codes).set_axis(column.index)
    return replace(
        distinct_cells,
        cells=distinct_cells.cells.reindex(codes).set_axis(column.index).rename(column.name),
        unfit=np.append(distinct_cells.unfit, False)[codes],
        original=original,
    )


def typed_distinct(
    texts: pd.Series,
    counts: np.ndarray,
    requested: str | None = None,
    *,
    searched: bool = False,
    convention: str = "",
    is_amount: bool = False,
    header_unit: str = "",
) -> TypedColumn:
    """Convert the distinct texts of a column, objects (m,), of which `counts` (m,) cells each have
    one. The cells of the result are the distinct ones. is_amount: the column is named as a price
    or a rating. header_unit: the unit in its name.
    """
    spelled = tidied(texts)
    broken = with_line_breaks(spelled)
    clean = without_html(broken)
    decide = partial(
        _decide,
        counts=counts,
        requested=requested,
        searched=searched,
        convention=convention,
        is_amount=is_amount,
    )
    parsed, missing, changed = decide(clean)
    if header_unit and requested in (None, "number") and not parsed.unit:
        parsed, missing, changed = _in_header_unit(clean, header_unit, decide) or (
            parsed,
            missing,
            changed,
        )
    values = parsed.values.reindex(texts.index)
    unfit = values.isna().to_numpy(bool) & ~missing
    if parsed.type == TEXT.name:  # any cell is text
        unfit = np.zeros(len(texts), dtype=bool)
    for what, cells in parsed.changed.items():
        changed[what] += int(counts[parsed.values.index[cells]].sum())
    for text, count in zip(clean[missing].str.strip(), counts[missing], strict=True):
        changed[f"{text} emptied"] += int(count)
    changed[f"emptied: no {parsed.type}"] += int(counts[unfit].sum())
    changed["HTML removed"] += int(counts[(clean != broken).to_numpy(bool)].sum())
    changed[BREAKS] += int(counts[(broken != spelled).to_numpy(bool)].sum())
    if type_named(parsed.type).is_text:
        changed[SPACES] += int(counts[(spelled != texts).to_numpy(bool)].sum())
    original = _originals(spelled, clean, values, type_named(parsed.type))
    return TypedColumn(
        parsed.type, values, unfit, +changed, parsed.convention, original, parsed.unit
    )


# The cells as a type, which of them stand for an empty cell, and why they are text.
Decision = tuple[ParsedCells, np.ndarray, Counter[str]]


def _in_header_unit(
    texts: pd.Series, unit: str, decide: Callable[[pd.Series], Decision]
) -> Decision | None:
    """Return cells as numbers where some have the unit that the name of the column has, too; None
    where none has it, or the others are no numbers. decide: of texts without the unit.
    """
    bare = texts.map(partial(without_unit, unit=unit))
    has_unit = (bare != texts).to_numpy(bool)
    if not has_unit.any():
        return None
    parsed, missing, changed = decide(bare)
    if parsed.type != "number":
        return None
    parsed.change(removed(unit), has_unit[~missing])
    parsed.convention = f"{parsed.convention} {unit}"
    parsed.unit = unit
    return parsed, missing, changed


def _is_amount(name: str) -> bool:
    """Return whether a column is named as a price or a rating. Chinese words have no spaces around
    them.

    >>> _is_amount("avg_rating"), _is_amount("豆瓣评分"), _is_amount("Section")
    (True, True, False)
    """
    return any(
        word in AMOUNTS or (not word.isascii() and word.endswith(UNSPACED_AMOUNTS))
        for word in words_of(name)
    )


def _originals(
    texts: pd.Series, clean: pd.Series, values: pd.Series, column_type: ColumnType
) -> pd.Series | None:
    """Return the texts of the cells that are not shown as they were written, None for all others;
    None where there is no such cell. clean: the texts without HTML.
    """
    if column_type is TEXT and clean is texts:
        return None
    is_filled = values.notna().to_numpy(bool)
    originals: list[str | None] = []
    for text, cell, has_cell in zip(texts, values, is_filled, strict=True):
        is_kept = not column_type.is_as_written(text, cell) if has_cell else text != ""
        originals.append(text if is_kept else None)
    if not any(originals):
        return None
    return pd.Series(originals, index=texts.index, dtype=object)


def _decide(
    texts: pd.Series,
    counts: np.ndarray,
    requested: str | None,
    searched: bool,
    convention: str,
    is_amount: bool,
) -> tuple[ParsedCells, np.ndarray, Counter[str]]:
    """Return the cells as the type that is taken, which of them stand for an empty cell (bool), and
    why a column is text that is nearly of another type.
    """
    if requested == TEXT.name:
        return _as_text(texts, counts)
    if requested is not None:
        column_type = type_named(requested)
        missing = are_missing(texts, words=column_type.word_is_missing)
        parsed = column_type.read_requested(texts[~missing], counts[~missing], convention)
        return parsed, missing, Counter()
    reason: Counter[str] = Counter()
    is_prose = _are_long(texts, counts)
    for column_type in TYPES:
        if column_type is TEXT:
            break
        if (searched or is_prose) and not column_type.is_text:
            continue
        missing = are_missing(texts, words=column_type.word_is_missing)
        cells, n_cells = texts[~missing], counts[~missing]
        if cells.empty or _is_hopeless(column_type, cells, n_cells):
            continue
        parsed = column_type.read(cells, n_cells, convention)
        if (dates := _uncertain_dates(parsed, cells, n_cells)) is not None:
            return dates, missing, Counter()
        if not is_amount:
            parsed.doubts = parsed.doubts or parsed.doubts_unless_amount
        if _fits(parsed, n_cells):
            return parsed, missing, reason
        reason = reason or _reason_against(parsed, cells, n_cells)
        if reason and parsed.doubts:
            break
    parsed, missing, _ = _as_text(texts, counts)
    return parsed, missing, reason


def _are_long(texts: pd.Series, counts: np.ndarray) -> bool:
    """Return whether most cells are longer than any number, date or answer."""
    is_long = texts.str.len().to_numpy() > LONGEST_VALUE
    return bool(2 * counts[is_long].sum() > counts.sum())


def _uncertain_dates(
    parsed: ParsedCells, texts: pd.Series, counts: np.ndarray
) -> ParsedCells | None:
    """Return cells as dates where they are years with uncertain dates among them, and were read as
    numbers; None for all others. Some dates among many years must not be emptied as no numbers.
    """
    if parsed.type != "number" or (parsed.fits.all() and not parsed.doubts):
        return None
    others = texts[~parsed.fits]
    if parsed.doubts:  # -0499 is a code as well
        others = texts[~parsed.fits | texts.str.match(MINUS_YEAR)]
    if not any(map(may_tell_dates, others[:SAMPLE])):
        return None
    dates = type_named("date").read(texts, counts)
    is_uncertain = dates.convention.startswith(UNCERTAIN)
    return dates if is_uncertain and _fits(dates, counts) else None


def _as_text(texts: pd.Series, counts: np.ndarray) -> tuple[ParsedCells, np.ndarray, Counter[str]]:
    """Return the cells as text, where none stands for an empty one."""
    return TEXT.read(texts, counts), np.zeros(len(texts), dtype=bool), Counter()


def _is_hopeless(column_type: ColumnType, texts: pd.Series, counts: np.ndarray) -> bool:
    """Return whether no cell is of a type, or fewer than half of a random sample of many. Parsing
    them all takes long, and no column that nearly fits gives such a sample.
    """
    if not any(map(column_type.may_be, texts)):
        return True
    if column_type.is_text or len(texts) <= SAMPLE:
        return False
    drawn = np.random.default_rng(0).choice(len(texts), SAMPLE, p=counts / counts.sum())
    rows, n_drawn = np.unique(drawn, return_counts=True)
    fits = column_type.read(texts.iloc[rows], n_drawn).fits
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
    column_type = type_named(parsed.type)
    if column_type.is_text or 2 * fitting < n_cells:
        return Counter()
    if parsed.doubts:
        return Counter({f"kept as text: {parsed.doubts}": fitting})
    if not column_type.explains_misfits:
        return Counter()
    example = shorten(texts[~parsed.fits].iloc[0].strip())
    return Counter({f"kept as text: no {parsed.type}, such as {example!r}": n_cells - fitting})

"""Cells of text to numbers: currencies, percent, signs, thousands and decimal separators."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import compress
from typing import NamedTuple

import numpy as np
import pandas as pd

from qkvsearch.tables.column_facts import CELL_WORDS, CURRENCY_SYMBOLS, ParsedCells
from qkvsearch.tables.columns.number_codes import (
    EXPONENTS,
    LEADING_ZERO,
    LEADING_ZERO_OF_DECIMAL,
    SEVERAL_DOTS,
    TENTHS,
    ZEROS,
    code_with_exponent,
    equal_tenths,
)
from qkvsearch.tables.columns.units import (
    DECADE,
    MAX_UNITS,
    MIXED,
    column_unit,
    measure,
    multiplies,
    unit_name,
)

SIGNS = dict.fromkeys("\u2212\u2012\u2013\u2014\ufe63\uff0d", "-") | {"\uff0b": "+"}
SPACES = dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u3000\t", " ")
APOSTROPHES = dict.fromkeys("\u2019\u02bc\uff07`\u00b4", "'")
# Full-width signs of East Asia, and those of Arabic, whose decimal sign separates nothing else.
ARABIC_DECIMAL = "\u066b"
SEPARATORS = {"\uff0e": ".", ARABIC_DECIMAL: ".", "\uff0c": ",", "\u060c": ",", "\u066c": "'"}
PERCENTS = dict.fromkeys("\uff05\ufe6a\u066a", "%")
BRACKETS = {"\uff08": "(", "\uff09": ")"}
CURRENCIES = {"￥": "¥", "＄": "$", "￡": "£", "￠": "¢", "￦": "₩"}
# Marks of the direction of writing, which some programs put around numbers.
DIRECTIONS = dict.fromkeys("\u200e\u200f\u061c", "")
ONE_SPELLING = str.maketrans(
    SIGNS | SPACES | APOSTROPHES | SEPARATORS | PERCENTS | BRACKETS | CURRENCIES | DIRECTIONS
)
# A digit of another script, such as those of Arabic.
OTHER_DIGIT = re.compile(r"[^\D0-9]")

CODE_OR_WORD = "|".join([*CELL_WORDS["currencies"], *CELL_WORDS["currency_words"]])
CURRENCY = rf"(?:[A-Z]{{0,3}}[{CURRENCY_SYMBOLS}]|(?:{CODE_OR_WORD})(?![a-z]))"
NUMBER = re.compile(
    rf"""(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{CURRENCY})?\s*(?P<late>[-+])?\s*
    (?P<digits>[0-9.,](?:[0-9.,' ]*[0-9])?[.,]?)(?P<power>e[-+]?[0-9]+)?(?:(?<=[.,])-{{1,2}})?
    \s*(?P<percent>%)?\s*(?P<after>{CURRENCY})?\s*(?P<close>\))?""",
    re.IGNORECASE | re.VERBOSE,
)
PLAIN = re.compile(r"(?P<sign>[-+]?)(?P<digits>[0-9]+(?:\.[0-9]*)?)(?P<power>(?:[eE][-+]?[0-9]+)?)")
# What the digits tell of the decimal separator: there is none (whole), it may be one of thousands
# as well (either), it is a dot, it is a comma.
SHAPES = re.compile(
    r"""(?P<whole>[0-9]+|[0-9]{1,3}(?:[ '][0-9]{3})+)
    |(?P<either>[1-9][0-9]{0,2}[.,][0-9]{3})
    |(?P<dot>[0-9]+\.[0-9]*|\.[0-9]+|[0-9]{1,3}(?:[ '][0-9]{3})+\.[0-9]*
        |[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}\.[0-9]*|[0-9]{1,3}(?:,[0-9]{2,3})+,[0-9]{3})
    |(?P<comma>[0-9]+,[0-9]*|,[0-9]+|[0-9]{1,3}(?:[ '][0-9]{3})+,[0-9]*
        |[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*|[0-9]{1,3}(?:\.[0-9]{3}){2,})""",
    re.VERBOSE,
)
PHONE = re.compile(r"\+[0-9]{8,}|[0-9]{3}(?: [0-9]{3}){2,}")
WHOLE = re.compile(r"-?[0-9]+")
TO_DOT = {".": str.maketrans("", "", ", '"), ",": str.maketrans(",", ".", ". '")}


class NumberCell(NamedTuple):
    """A cell that may be a number. shape: the group of `SHAPES` that fits, "" for no number."""

    shape: str
    digits: str
    power: str = ""
    negative: bool = False
    currency: str = ""
    percent: bool = False
    brackets: bool = False
    unit: str = ""
    has_remark: bool = False

    def separator(self, decimal: str) -> str:
        """Return the decimal separator: `decimal` where the digits do not tell."""
        return {"dot": ".", "comma": ","}.get(self.shape, decimal)

    def has_thousands(self, decimal: str) -> bool:
        """Return whether there are separators of thousands among the digits."""
        others = {".": ", '", ",": ". '"}[self.separator(decimal)]
        return any(sign in self.digits for sign in others)

    def has_comma(self, decimal: str) -> bool:
        """Return whether decimals follow a comma."""
        return self.separator(decimal) == "," and bool(re.search(",[0-9]", self.digits))

    def text(self, decimal: str) -> str:
        """Return the number as Python writes it."""
        digits = self.digits.translate(TO_DOT[self.separator(decimal)])
        sign = "-" if self.negative else ""
        return sign + digits + self.power


PERCENT_REMOVED = "% removed"


def removed(sign: str) -> str:
    """Return the name of the change by which numbers lose a unit or a sign.

    >>> removed("oz")
    'oz removed'
    """
    return f"{sign} removed"


# A longer cell is no number, unless it has digits alone.
MAX_LENGTH = 64
NO_NUMBER = NumberCell("", "")


def read_numbers(texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
    """Parse the distinct cells `texts`, of which there are `counts`, as numbers.

    Most cells tell their decimal separator. One that does not, such as 1.234, is read as most of
    those are, else by `convention`, "." or ",". Without both, a comma separates thousands, and a
    dot does in amounts of money.

    Letters behind a number are its unit, which all amounts of a column have in common; numbers
    without a unit are read as if they had it. `convention` ends in the unit of earlier cells.

    >>> read_numbers(pd.Series(["$1,299.00", "66,80 €", "(5)"]), np.ones(3)).values.tolist()
    [1299.0, 66.8, -5.0]
    >>> amounts = read_numbers(pd.Series(["117分钟", "96 分钟"]), np.ones(2))
    >>> amounts.values.tolist(), amounts.unit
    ([117, 96], '分钟')
    """
    convention, _, known_unit = convention.partition(" ")
    cells = [_cell(text) for text in texts]
    if not known_unit:
        cells = _without_decades(texts, cells)
    cells, unit, mixed = _with_one_unit(cells, counts, known_unit)
    shapes = np.array([cell.shape for cell in cells], dtype=object)
    dots, commas = counts[shapes == "dot"].sum(), counts[shapes == "comma"].sum()
    either = shapes == "either"
    decimal = _decimal(dots, commas, list(compress(cells, either)), cells, convention)
    written = pd.Series([cell.text(decimal) for cell in cells], index=texts.index, dtype=object)
    values, doubts = _values(written, shapes != "")
    doubts = doubts or mixed or _doubts(texts, cells, counts)
    parsed = ParsedCells("number", values, doubts=doubts)
    parsed.doubts_unless_amount = _doubts_about_decimals(texts, cells, counts)
    convention_here = decimal if set(shapes) & {"either", "dot", "comma"} else ""
    parsed.convention = f"{convention_here} {unit}".rstrip()
    parsed.unit = unit
    _note_changes(parsed, cells, decimal, unit)
    if either.any() and bool(dots) == bool(commas) and not (dots == commas and convention):
        first = int(either.argmax())
        example = f"{texts.iloc[first].strip()} read as {values.iloc[first]:g}"
        parsed.change(f"ambiguous: {example}", either)
    return parsed


def written_number(text: str, convention: str) -> str:
    """Return a number as Python writes it, read as a column with this convention reads its cells;
    "" for a text that is no number there.

    >>> written_number("1.299,00 €", ","), written_number("2,5 kg", ", kg"), written_number("x", "")
    ('1299.00', '2.5', '')
    """
    decimal, _, unit = convention.partition(" ")
    cell = _cell(text)
    has_other_unit = bool(cell.unit) and unit_name(cell.unit) != unit
    return "" if not cell.shape or has_other_unit else cell.text(decimal or ".")


def _cell(text: str) -> NumberCell:
    plain = PLAIN.fullmatch(text)
    if plain:
        sign, digits, power = plain.groups()
        return NumberCell(_shape(digits), digits, power, sign == "-")
    spelled = _spelled(text) if len(text) <= MAX_LENGTH else ""
    match = NUMBER.fullmatch(spelled)
    if match is None:
        return _measured(spelled)
    if (
        bool(match["open"]) != bool(match["close"])
        or (match["before"] and match["after"])
        or (match["sign"] and match["late"])
        or not (shape := _shape(match["digits"]))
    ):
        return NO_NUMBER
    if shape == "either" and ARABIC_DECIMAL in text:
        shape = "dot"
    has_brackets = bool(match["open"])
    has_minus = "-" in (match["sign"], match["late"])
    return NumberCell(
        shape=shape,
        digits=match["digits"],
        power=match["power"] or "",
        negative=has_minus != has_brackets,
        currency=match["before"] or match["after"] or "",
        percent=bool(match["percent"]),
        brackets=has_brackets,
    )


def _measured(text: str) -> NumberCell:
    """Read a number with letters behind it, which may be a unit."""
    amount = measure(text)
    if amount is None:
        return NO_NUMBER
    number = _cell(amount.number)
    if not number.shape or number.power:
        return NO_NUMBER
    return number._replace(unit=amount.unit, has_remark=amount.has_remark)


def _with_one_unit(
    cells: list[NumberCell], counts: np.ndarray, known: str
) -> tuple[list[NumberCell], str, str]:
    """Return the cells without those that are no amounts in the unit of the column, that unit, and
    why the column is no column of amounts: "" unless there are several units.

    The unit is `known` if any, else what most amounts have. Where fewer than half of the numbers
    have letters behind them, these are no unit, and the numbers alone count. Numbers without a unit
    are amounts as well, unless it multiplies, as K does.
    """
    written: dict[str, int] = {}
    for cell, count in zip(cells, counts, strict=True):
        if cell.unit:
            written[cell.unit] = written.get(cell.unit, 0) + int(count)
    if not written and not multiplies(known):
        return cells, known, ""
    n_numbers = sum(int(n) for cell, n in zip(cells, counts, strict=True) if cell.shape)
    names = {unit_name(unit) for unit in written}
    is_unit = bool(known) or (2 * sum(written.values()) >= n_numbers and len(names) <= MAX_UNITS)
    if not is_unit:
        return [NO_NUMBER if cell.unit else cell for cell in cells], "", ""
    unit, mixed = (known, "") if known else column_unit(written)
    is_other = {spelled: unit_name(spelled) != unit_name(unit) for spelled in written} | {"": False}
    if multiplies(unit) and any(cell.shape and not cell.unit for cell in cells):
        is_other[""] = True
        mixed = mixed or f"{MIXED}: {unit}, and numbers without it"
    return [NO_NUMBER if is_other[cell.unit] else cell for cell in cells], unit, mixed


def _without_decades(texts: pd.Series, cells: list[NumberCell]) -> list[NumberCell]:
    """Return the cells without the 80s and 90s, where these are all that has a unit: 80s beside 45s
    are seconds.
    """
    with_unit = [text for text, cell in zip(texts, cells, strict=True) if cell.unit]
    if not with_unit or not all(map(DECADE.fullmatch, with_unit)):
        return cells
    return [NO_NUMBER if cell.unit else cell for cell in cells]


def _spelled(text: str) -> str:
    """Return a cell with ASCII digits and one spelling of each sign.

    >>> _spelled("١٬٢٩٩٫٠٠"), _spelled("￥５９．５")
    ("1'299.00", '¥59.5')
    """
    spelled = text.translate(ONE_SPELLING).strip()
    if spelled.isascii():
        return spelled
    return OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), spelled)


def _shape(digits: str) -> str:
    match = SHAPES.fullmatch(digits)
    return (match.lastgroup or "") if match else ""


def _decimal(
    dots: int, commas: int, either: list[NumberCell], cells: list[NumberCell], convention: str
) -> str:
    """Return the decimal separator of cells that do not tell."""
    if dots != commas:
        return "." if dots > commas else ","
    if convention:
        return convention
    only_dots = bool(either) and not any("," in cell.digits for cell in either)
    return "," if only_dots and any(cell.currency for cell in cells) else "."


def _values(written: pd.Series, is_number: np.ndarray) -> tuple[pd.Series, str]:
    """Return the numbers, whole ones exactly, and why they may be codes instead."""
    floats = pd.Series(np.nan, index=written.index)
    floats[is_number] = [float(text) for text in written[is_number]]
    floats = floats.where(np.isfinite(floats))
    long = written[(floats.abs() >= 2**53) & written.str.fullmatch(WHOLE).astype(bool)]
    if len(long):
        whole = written[floats.notna()]
        if all(WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63 for text in whole):
            return whole.map(int).astype("Int64").reindex(written.index), ""
        if any(int(float(text)) != int(text) for text in long):
            return floats, "long codes, whose last digits a number would lose"
    return stored_numbers(floats), ""


def stored_numbers(cells: pd.Series) -> pd.Series:
    """Return numbers with gaps as whole numbers if all are, else as floats.

    >>> stored_numbers(pd.Series([1.0, None, 3], dtype=object)).tolist()
    [1, <NA>, 3]
    >>> stored_numbers(pd.Series([0.5, pd.NA], dtype=object)).tolist()
    [0.5, nan]
    """
    if pd.api.types.is_integer_dtype(cells.dtype):  # above 2⁵³ floats would lose digits
        return cells.astype("Int64")
    if cells.dtype == object:
        cells = cells.where(cells.notna(), None)  # pd.NA is no float
        if all(isinstance(cell, int) for cell in cells.dropna()):
            return cells.astype("Int64")
    floats = cells.astype(float)
    is_whole = (floats.dropna() % 1 == 0).all() and floats.abs().max() < 2**53
    return floats.astype("Int64") if is_whole else floats


def _doubts(texts: pd.Series, cells: list[NumberCell], counts: np.ndarray) -> str:
    """Return why the cells may be codes that look like numbers, or ""."""
    if any(LEADING_ZERO.fullmatch(cell.digits) for cell in cells):
        return ZEROS
    phones = [bool(PHONE.fullmatch(text.strip())) for text in texts]
    versions = [
        not cell.shape and bool(SEVERAL_DOTS.fullmatch(text))
        for text, cell in zip(texts, cells, strict=True)
    ]
    if counts[phones].sum() > counts.sum() / 2:
        return "telephone numbers"
    if counts[versions].sum() > counts.sum() / 100:
        return "codes with several dots"
    example = code_with_exponent(
        text.strip() for text, cell in zip(texts, cells, strict=True) if cell.power
    )
    return EXPONENTS.format(example=example) if example else ""


def _doubts_about_decimals(texts: pd.Series, cells: list[NumberCell], counts: np.ndarray) -> str:
    """Return why numbers with decimals may be codes, unless they are amounts, or ""."""
    if any(cell.currency or cell.percent or cell.unit for cell in cells):
        return ""
    decimals = {
        text.strip()
        for text, cell in zip(texts, cells, strict=True)
        if cell.shape in ("dot", "either")
    }
    short, long = equal_tenths(decimals)
    if long:
        return TENTHS.format(short=short, long=long)
    has_zero = [bool(LEADING_ZERO_OF_DECIMAL.fullmatch(cell.digits)) for cell in cells]
    return ZEROS if counts[has_zero].sum() > counts.sum() / 100 else ""


def _note_changes(parsed: ParsedCells, cells: list[NumberCell], decimal: str, unit: str) -> None:
    parsed.change(removed(unit), [bool(cell.unit) for cell in cells])
    for currency in dict.fromkeys(cell.currency for cell in cells if cell.currency):
        parsed.change(f"{currency} removed", [cell.currency == currency for cell in cells])
    changes: dict[str, Callable[[NumberCell], bool]] = {
        PERCENT_REMOVED: lambda cell: cell.percent,
        "parentheses read as minus": lambda cell: cell.brackets,
        "remarks in brackets removed": lambda cell: cell.has_remark,
        "separators removed": lambda cell: cell.has_thousands(decimal),
        "decimal comma read": lambda cell: cell.has_comma(decimal),
        "leading zeros removed": lambda cell: bool(LEADING_ZERO.fullmatch(cell.digits)),
    }
    for what, is_so in changes.items():
        parsed.change(what, list(map(is_so, cells)))

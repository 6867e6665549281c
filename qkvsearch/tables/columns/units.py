"""The unit of a column of amounts: oz of "12 oz", 分钟 of "117分钟"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from qkvsearch.tables.column_facts import CELL_WORDS

# A number, and letters or a sign behind it. Two words at most are a unit: sq ft, fl. oz.
WORD = r"[^\W\d_]{1,14}"
SIGN = "[\"'\u2032\u2033\u201d°]"
UNIT = rf"°?{WORD}\.?(?:[ /·-]{WORD}\.?)?[23²³]?|{SIGN}"
# A remark in brackets behind the unit: 106分钟(香港), 12 oz (340 g).
REMARK = r"(?P<remark>\s*[(\[][^()\[\]]{1,40}[)\]])?"
MEASURE = re.compile(rf"(?P<number>[-+]?\s*[0-9.,][0-9.,' ]*?)[ -]?(?P<unit>{UNIT}){REMARK}")
# 19th and 2nd are no amounts, and neither are times of day and dates: 3 pm, 500 BCE, 19th century.
ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![^\W\d_])", re.IGNORECASE)
NO_UNITS = frozenset(CELL_WORDS["no_units"])
# Letters behind a year, which make a date of it: 1890s, 1994年.
BEHIND_YEARS = frozenset(("s", "'s", "年"))
YEAR = re.compile(r"[12][0-9]{3}")
# The 80s and '90s are decades, where no other number of the column has such an s.
DECADE = re.compile(r"\s*['\u2019]?[0-9]0['\u2019]?s\s*", re.IGNORECASE)
# Different spellings of one unit, the first of which is its name here.
SPELLINGS = {word: words[0] for words in CELL_WORDS["units"] for word in words}
# In capital letters these are another unit: m and M, mW and MW.
CASE_MATTERS = frozenset(("m", "mw"))
# Other letters alone and without a space are a part of a code: room 101a, house 12B.
DEGREES = frozenset("CF")
# These multiply: 950 beside 1.2K is 950, and not 950 thousand.
MULTIPLES = frozenset(CELL_WORDS["multiples"])
# A column with more units has none: "12 Angry Men" is a title.
MAX_UNITS = 6
MIXED = "mixed units"


class Measure(NamedTuple):
    """A cell that is a number with letters behind it, as they are written. has_remark: a remark in
    brackets follows.
    """

    number: str
    unit: str
    has_remark: bool = False


def measure(text: str) -> Measure | None:
    """Return the number and the unit of a cell, None for a cell that is no amount.

    >>> measure("12 fl. oz"), measure("117分钟(香港)").unit, measure("19th"), measure("1890s")
    (Measure(number='12', unit='fl. oz', has_remark=False), '分钟', None, None)
    """
    match = MEASURE.fullmatch(text)
    if match is None:
        return None
    number, unit = match["number"].strip(), match["unit"]
    folded = unit.casefold().rstrip(".")
    is_date = folded in NO_UNITS or (folded in BEHIND_YEARS and YEAR.fullmatch(number))
    is_joined = match["number"][-1:].isdigit() and match.end("number") == match.start("unit")
    if is_joined and _is_letter_of_code(unit):
        return None
    if is_date or ORDINAL.match(unit) or any(word in NO_UNITS for word in folded.split()):
        return None
    return Measure(number, unit, match["remark"] is not None)


def _is_letter_of_code(unit: str) -> bool:
    """Return whether a letter directly behind a number is no unit that is known.

    >>> [_is_letter_of_code(unit) for unit in ("a", "g", "K", "C", "mm")]
    [True, False, False, False, False]
    """
    is_known = unit.casefold() in SPELLINGS or unit in DEGREES or multiplies(unit)
    return len(unit) == 1 and unit.isascii() and unit.isalpha() and not is_known


def unit_name(unit: str) -> str:
    """Return one name for the spellings of a unit, which may be plural or abbreviated.

    >>> [unit_name(unit) for unit in ("Min.", "minutes", "分钟", "Seasons", "MW", "mW")]
    ['min', 'min', 'min', 'season', 'MW', 'mw']
    """
    folded = unit.casefold().rstrip(".").replace(". ", " ")
    if folded in CASE_MATTERS and unit[0].isupper():
        return unit
    known = SPELLINGS.get(folded)
    if known is not None:
        return known
    return folded.removesuffix("s") if folded.isascii() and len(folded) > 3 else folded


IN_HEADER = re.compile(rf"[(\[]\s*(?P<unit>{UNIT})\s*[)\]]\s*$|[_ ](?P<word>[^\W\d_]+)$")


def unit_of_header(header: str) -> str:
    """Return the unit that the name of a column ends in, or "".

    >>> unit_of_header("Height (cm)"), unit_of_header("weight_kg"), unit_of_header("Price (new)")
    ('cm', 'kg', 'new')
    >>> unit_of_header("Height"), unit_of_header("shoe size")
    ('', '')
    """
    match = IN_HEADER.search(header.strip())
    if match is None:
        return ""
    if match["unit"]:
        return match["unit"]
    return match["word"] if match["word"].casefold() in SPELLINGS else ""


def without_unit(text: str, unit: str) -> str:
    """Return a number without this unit, in any spelling; any other text as it is.

    >>> without_unit("31 cm", "cm"), without_unit("12 in", "cm"), without_unit("31", "cm")
    ('31', '12 in', '31')
    """
    amount = measure(text.strip())
    if amount is None or amount.has_remark or unit_name(amount.unit) != unit_name(unit):
        return text
    return amount.number


def multiplies(unit: str) -> bool:
    """Return whether a unit is a number, such as a thousand. `m` may be metres, and `M` a million.

    >>> multiplies("K"), multiplies("M"), multiplies("万"), multiplies("m")
    (True, True, True, False)
    """
    return unit in ("M", "B") or unit.casefold().rstrip(".") in MULTIPLES


def column_unit(counts: Mapping[str, int]) -> tuple[str, str]:
    """Return the most common unit of a column, as it is mostly written, and why the column is no
    column of amounts, or "".

    counts: how many cells have each unit as it is written.

    >>> column_unit({"min": 3, "min.": 1}), column_unit({"kg": 2, "oz": 1})
    (('min', ''), ('kg', 'mixed units: kg, oz'))
    """
    by_name: Counter[str] = Counter()
    for unit, n in counts.items():
        by_name[unit_name(unit)] += n
    name = by_name.most_common(1)[0][0]
    spelled = max((unit for unit in counts if unit_name(unit) == name), key=lambda u: counts[u])
    if len(by_name) == 1:
        return spelled, ""
    return spelled, f"{MIXED}: {', '.join(_first_of_each(counts))}"


def _first_of_each(units: Iterable[str]) -> list[str]:
    """Return a spelling of each unit, in the order of the units."""
    spelled: dict[str, str] = {}
    for unit in units:
        spelled.setdefault(unit_name(unit), unit)
    return list(spelled.values())

"""Which cells that could be read as numbers are codes: article numbers, versions, accessions."""

from __future__ import annotations

import re
from collections.abc import Iterable

LEADING_ZERO = re.compile(r"0[0-9]+")
LEADING_ZERO_OF_DECIMAL = re.compile(r"0[0-9]+\.[0-9]+")
SEVERAL_DOTS = re.compile(r"v?[0-9]+(?:\.[0-9]+){2,}.*")
# A computer that writes an exponent gives it a sign, or the digits a point: 1e+20, 1.5E3.
EXPONENT = re.compile(r"[0-9]+[eE][0-9]+")
TENTH = re.compile(r"[0-9]+\.[0-9]*[1-9]")
# A text that is a number, or would be one but for such a sign.
LIKE_A_NUMBER = re.compile(r"v?[0-9]+(?:\.[0-9]+)*(?:[eE][0-9]+)?")

ZEROS = "codes with leading zeros"
EXPONENTS = "codes, such as {example}, which is no exponent"
TENTHS = "codes, for {short} and {long} differ"


def code_with_exponent(texts: Iterable[str]) -> str:
    """Return the first cell that would be read as an exponent and has neither point nor sign.

    >>> code_with_exponent(["17", "12E9"]), code_with_exponent(["1.5e3", "1e+3"])
    ('12E9', '')
    """
    return next((text for text in texts if EXPONENT.fullmatch(text)), "")


def equal_tenths(texts: Iterable[str]) -> tuple[str, str]:
    """Return the first two cells that differ, and would be equal as numbers: 3.1 and 3.10.

    >>> equal_tenths(["3.1", "3.2", "3.10"]), equal_tenths(["3.10", "3.00", "3"])
    (('3.1', '3.10'), ('', ''))
    """
    distinct = set(texts)
    pairs = ((text, f"{text}0") for text in distinct if TENTH.fullmatch(text))
    return min((pair for pair in pairs if pair[1] in distinct), default=("", ""))


def are_number_codes(texts: Iterable[str]) -> bool:
    """Return whether texts that are like numbers are codes, though each alone may be a number.

    >>> [are_number_codes(texts) for texts in (["3.1", "3.10"], ["1E3"], ["007", "8"], ["3.1"])]
    [True, True, True, False]
    """
    distinct = set(texts)
    return bool(
        any(map(LEADING_ZERO.match, distinct))
        or any(map(SEVERAL_DOTS.fullmatch, distinct))
        or code_with_exponent(distinct)
        or all(equal_tenths(distinct))
    )

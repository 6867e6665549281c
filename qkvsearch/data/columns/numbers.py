"""Cells of text to numbers: currencies, percent, signs, thousands and decimal separators."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from qkvsearch.data.columns.reading import Reading

SIGNS = dict.fromkeys("\u2212\u2012\u2013\u2014\ufe63\uff0d", "-") | {"\uff0b": "+"}
SPACES = dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u3000\t", " ")
APOSTROPHES = dict.fromkeys("\u2019\u02bc\uff07`\u00b4", "'")
FULL_WIDTH = {chr(0xFF10 + digit): str(digit) for digit in range(10)}
ONE_SPELLING = str.maketrans(SIGNS | SPACES | APOSTROPHES | FULL_WIDTH)

SYMBOLS = "$¢£¤¥₠-⃀﷼฿֏؋₿"
CODES = (
    "AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HRK HUF IDR ILS INR "
    "ISK JPY KES KRW KWD KZT MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RMB RON RSD RUB SAR "
    "SEK SGD THB TND TRY TWD UAH USD UYU VND ZAR"
)
WORDS = r"euros? dollars? kr\.? zł kč ft fr\.? sfr\.? rs\.? lei лв\.? руб\.? р\. 元 円 원 tl"
CURRENCY = (
    rf"(?:[A-Z]{{0,3}}[{SYMBOLS}]|(?:{'|'.join(CODES.split())}|{'|'.join(WORDS.split())})(?![a-z]))"
)
NUMBER = re.compile(
    rf"""(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{CURRENCY})?\s*(?P<late>[-+])?\s*
    (?P<digits>[0-9.,](?:[0-9.,' ]*[0-9])?[.,]?)(?P<power>e[-+]?[0-9]+)?(?:(?<=[.,])-{{1,2}})?
    \s*(?P<percent>%)?\s*(?P<after>{CURRENCY})?\s*(?P<close>\))?""",
    re.IGNORECASE | re.VERBOSE,
)
PLAIN = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
GROUPED = r"[0-9]{1,3}(?:[ '][0-9]{3})+(?:[.,][0-9]*)?"  # by blanks or apostrophes
DECIMAL_DOT = r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}\.[0-9]*|[0-9]{1,3}(?:,[0-9]{2,3})+,[0-9]{3}"
DECIMAL_COMMA = r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*|[0-9]{1,3}(?:\.[0-9]{3}){2,}"
EITHER = r"[1-9][0-9]{0,2}[.,][0-9]{3}"  # a thousand, or a number with three decimals
ONE_DOT, ONE_COMMA = r"[0-9]*\.[0-9]*", r"[0-9]*,[0-9]*"
VERSION = r"v?[0-9]+(?:\.[0-9]+){2,}.*"
PHONE = r"\+[0-9]{8,}|[0-9]{3}(?: [0-9]{3}){2,}"


def read_numbers(texts: pd.Series, counts: np.ndarray, convention: str = "") -> Reading:
    """The distinct cells `texts`, of which there are `counts`, as numbers.

    A cell that tells its decimal separator is read by it. For one that does not, such as 1.234,
    the majority of those decides; then `convention`, "." or ","; and without that a comma stands
    before thousands, and a dot as well where there are amounts of money.

    >>> read_numbers(pd.Series(["$1,299.00", "66,80 €", "(5)"]), np.ones(3)).values.tolist()
    [1299.0, 66.8, -5.0]
    """
    parts = _parts(texts)
    digits = parts["digits"]
    tells_dot, tells_comma, either = _separators(digits)
    money = (parts["before"] != "") | (parts["after"] != "")
    dots, commas = counts[tells_dot].sum(), counts[tells_comma].sum()
    decimal = _decimal(dots, commas, digits[either], bool(money.any()), convention)
    comma = tells_comma | (either if decimal == "," else False)
    bare = digits.str.replace(r"[ ']", "", regex=True)
    cleaned = bare.str.replace(",", "", regex=False)
    cleaned[comma] = (
        bare[comma].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    )
    values, doubts = _values(parts, cleaned)
    reading = Reading("number", values, doubts=doubts or _doubts(texts, digits, counts))
    reading.convention = decimal if dots or commas or either.any() else ""
    _note_changes(reading, parts, comma, bare, cleaned)
    if either.any() and bool(dots) == bool(commas):
        first = texts[either].iloc[0].strip()
        reading.change(f"ambiguous: {first} read as {values[either].iloc[0]:g}", either)
    return reading


def stored_numbers(cells: pd.Series) -> pd.Series:
    """Numbers with gaps as whole numbers where all are, else as floats.

    >>> stored_numbers(pd.Series([1.0, None, 3], dtype=object)).tolist()
    [1, <NA>, 3]
    """
    there = cells.dropna()
    if all(isinstance(cell, int) for cell in there):
        return cells.where(cells.notna(), None).astype("Int64")
    floats = cells.astype(float)
    is_whole = (floats.dropna() % 1 == 0).all() and floats.abs().max() < 2**53
    return floats.astype("Int64") if is_whole else floats


def _parts(texts: pd.Series) -> pd.DataFrame:
    """sign, currency before, digits, power, percent and currency after; digits are blank where a
    cell is no number.
    """
    spelled = texts.str.translate(ONE_SPELLING).str.strip()
    names = list(NUMBER.groupindex)
    found = [
        match.groups("") if match else [""] * len(names) for match in map(NUMBER.fullmatch, spelled)
    ]
    parts = pd.DataFrame(found, index=texts.index, columns=names, dtype=object)
    odd = (parts["open"] == "") != (parts["close"] == "")
    odd |= (parts["before"] != "") & (parts["after"] != "")
    odd |= (parts["sign"] != "") & (parts["late"] != "")
    valid = parts["digits"].str.fullmatch(
        "|".join(["[0-9]+", GROUPED, DECIMAL_DOT, DECIMAL_COMMA, ONE_DOT, ONE_COMMA])
    )
    parts.loc[odd | ~valid.astype(bool), "digits"] = ""
    return parts


def _separators(digits: pd.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which cells tell that a dot is the decimal separator, which that a comma is, and which have
    one separator that can be of either kind.
    """
    either = _match(digits, EITHER)
    grouped = _match(digits, GROUPED)
    last = digits.str.replace(r"[^.,]", "", regex=True).str[-1:].fillna("")
    alone = (_match(digits, ONE_DOT) | _match(digits, ONE_COMMA) | grouped) & ~either
    dot = _match(digits, DECIMAL_DOT) | alone & (last == ".").to_numpy()
    comma = _match(digits, DECIMAL_COMMA) | alone & (last == ",").to_numpy()
    return dot, comma, either


def _decimal(dots: int, commas: int, either: pd.Series, money: bool, convention: str) -> str:
    if dots != commas:
        return "." if dots > commas else ","
    if convention:
        return convention
    only_dots = not either.empty and not either.str.contains(",").any()
    return "," if only_dots and money else "."


def _values(parts: pd.DataFrame, cleaned: pd.Series) -> tuple[pd.Series, str]:
    """Numbers, whole ones exactly; and why they may be codes instead."""
    negative = ((parts["sign"] == "-") | (parts["late"] == "-")) ^ (parts["open"] == "(")
    signed = np.where(negative, "-", "") + cleaned + parts["power"]
    floats = pd.to_numeric(signed, errors="coerce").astype(float)
    floats = floats.where(np.isfinite(floats))
    there = floats.notna()
    whole = signed[there & signed.str.fullmatch(r"-?[0-9]+").astype(bool)]
    long = whole[floats[whole.index].abs() >= 2**53]
    fits = all(-(2**63) <= int(text) < 2**63 for text in long)
    if len(long) and fits and len(whole) == there.sum():
        return whole.map(int).astype("Int64").reindex(cleaned.index), ""
    doubts = ""
    if any(int(float(text)) != int(text) for text in long):
        doubts = "long codes, whose last digits a number would lose"
    return stored_numbers(floats), doubts


def _doubts(texts: pd.Series, digits: pd.Series, counts: np.ndarray) -> str:
    """Why the cells may be names that look like numbers."""
    if _match(digits, r"0[0-9]+").any():
        return "codes with leading zeros"
    spelled = texts.str.translate(ONE_SPELLING).str.strip()
    if counts[_match(spelled, PHONE)].sum() > counts[digits != ""].sum() / 2:
        return "telephone numbers"
    if counts[_match(spelled, VERSION) & (digits == "").to_numpy()].sum() > counts.sum() / 100:
        return "version numbers"
    return ""


def _note_changes(
    reading: Reading, parts: pd.DataFrame, comma: np.ndarray, bare: pd.Series, cleaned: pd.Series
) -> None:
    currency = parts["before"] + parts["after"]
    for symbol in currency[currency != ""].unique():
        reading.change(f"{symbol} removed", currency == symbol)
    reading.change("% removed", parts["percent"] != "")
    reading.change("parentheses read as minus", parts["open"] != "")
    shorter = cleaned.str.len() < parts["digits"].str.len()
    reading.change("separators removed", shorter)
    reading.change("decimal comma read", comma & bare.str.contains(",[0-9]").to_numpy(bool))
    reading.change("leading zeros removed", _match(parts["digits"], r"0[0-9]+"))


def _match(texts: pd.Series, pattern: str) -> np.ndarray:
    return texts.str.fullmatch(pattern).to_numpy(bool)

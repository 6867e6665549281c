"""Cells of text to lists of entries, with one separator throughout."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from qkvsearch.data.columns.facts import LIST_SEPARATOR, Reading

QUOTED = re.compile(r"^(['\"])(.*)\1$")
SEPARATORS = "|;,"
# Of the entries, at most this share is longer than that.
LONGEST_ENTRY, MOST_LONG = 60, 0.01
SAMPLE = 1000
# Of the cells that say something, at least this share has more than one entry.
LEAST_SHARE = 0.05
# How often an entry stands in the distinct cells on average, where prose has such signs as well.
LEAST_REPEATED = {"|": 0.0, ";": 1.2, ",": 2.0}
# Or of the cells with several entries, up to so many, this share has those of another cell in it.
LEAST_NESTED, MOST_NESTED = 0.5, 8
# Python parses a list into 200 times as many bytes, so that longer ones are read as JSON alone.
LONGEST_PYTHON = 100_000


def read_lists(texts: pd.Series, counts: np.ndarray) -> Reading:
    """The distinct cells `texts`, of which there are `counts`, as entries joined by "|"; all are
    missing where no separator makes lists of them.

    JSON arrays are lists, too. A comma stands in prose, in names and in places as well: its parts
    are entries where they are short, recur in other cells, and are not as many in every cell.

    >>> read_lists(pd.Series(["Rain | Snow", "Snow"]), np.ones(2)).values.tolist()
    ['Rain|Snow', 'Snow']
    """
    entries = _arrays(texts)
    if entries is not None:
        return _reading(texts, entries, "array to list")
    some = texts.iloc[:: max(1, len(texts) // SAMPLE)]
    for separator in SEPARATORS:
        if (
            _share_long(_split(some, separator)) > 5 * MOST_LONG
        ):  # prose: to split it all takes long
            continue
        entries = _split(texts, separator)
        if _are_lists(entries, counts, separator):
            return _by(separator, texts, entries)
    return Reading("list", pd.Series(None, index=texts.index, dtype=object))


def read_told_lists(texts: pd.Series, counts: np.ndarray, convention: str = "") -> Reading:
    """The same where the owner says so: by "|" if any cell has one, else by the separator that
    the column had before (`convention`), else by the one that most cells have.
    """
    entries = _arrays(texts)
    if entries is not None:
        return _reading(texts, entries, "array to list")
    usual = max(SEPARATORS, key=lambda sign: counts[_has(texts, sign)].sum())
    separator = LIST_SEPARATOR if _has(texts, LIST_SEPARATOR).any() else convention or usual
    return _by(separator, texts, _split(texts, separator))


def _by(separator: str, texts: pd.Series, entries: pd.Series) -> Reading:
    is_stored = separator == LIST_SEPARATOR
    what = "entries trimmed" if is_stored else f"separator {separator} to {LIST_SEPARATOR}"
    reading = _reading(texts, entries, what)
    reading.convention = separator
    return reading


def _has(texts: pd.Series, separator: str) -> np.ndarray:
    return texts.str.contains(separator, regex=False).to_numpy(bool)


def _split(texts: pd.Series, separator: str) -> pd.Series:
    return texts.map(lambda text: _trimmed(text.split(separator)))


def _trimmed(entries: Iterable[object]) -> list[str]:
    """Without blanks and quotes around them, and without blank ones."""
    bare = (QUOTED.sub(r"\2", str(entry).strip()).strip() for entry in entries)
    return [entry for entry in bare if entry]


def _arrays(texts: pd.Series) -> pd.Series | None:
    """Entries of lists as JSON or Python writes them, missing where a cell is none; None where
    hardly any cell looks like one.
    """
    looks = texts.str.fullmatch(r"\s*\[.*\]\s*", flags=re.DOTALL).astype(bool)
    if looks.mean() < 0.5:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a backslash that Python does not know
        warnings.simplefilter("ignore", DeprecationWarning)
        return texts[looks].map(_array).reindex(texts.index)


def _array(text: str) -> list[str] | None:
    for parse in (json.loads, ast.literal_eval)[: 1 if len(text) > LONGEST_PYTHON else 2]:
        try:
            found = parse(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if all(isinstance(entry, str | int | float) for entry in found):
            return _trimmed(found)
    return None


def _are_lists(entries: pd.Series, counts: np.ndarray, separator: str) -> bool:
    numbers = entries.str.len().to_numpy(np.int64)
    several = numbers > 1
    share = counts[several].sum() / counts.sum()
    if share < LEAST_SHARE or (several.sum() < 2 and share < 0.5):
        return False
    if _share_long(entries) > MOST_LONG:
        return False
    if separator == LIST_SEPARATOR:
        return True
    each = entries.explode().dropna()
    if each.str.contains(LIST_SEPARATOR, regex=False).any() or len(set(numbers)) < 2:
        return False
    recur = len(each) >= LEAST_REPEATED[separator] * each.nunique()
    return recur or _share_nested(entries) >= LEAST_NESTED


def _share_nested(entries: pd.Series) -> float:
    """Of the cells with several entries, the share that has all entries of another cell and more,
    as "Outdoor, Rain" beside "Outdoor": names and places are not taken apart elsewhere.
    """
    cells = {frozenset(cell) for cell in entries if cell}
    several = [cell for cell in cells if 1 < len(cell) <= MOST_NESTED]
    nested = sum(
        any(frozenset(part) in cells for n in range(1, len(cell)) for part in combinations(cell, n))
        for cell in several
    )
    return nested / len(several) if several else 0.0


def _share_long(entries: pd.Series) -> float:
    each = entries.explode().dropna()
    return float((each.str.len() > LONGEST_ENTRY).mean()) if len(each) else 0.0


def _reading(texts: pd.Series, entries: pd.Series, what: str) -> Reading:
    found = entries.dropna()
    joined = found.map(
        lambda cell: LIST_SEPARATOR.join(part.replace(LIST_SEPARATOR, "/") for part in cell)
    )
    values = joined.where(joined != "").reindex(texts.index)
    reading = Reading("list", values)
    reading.change(what, (values != texts).to_numpy(bool))
    return reading

"""Cells of text to lists of entries, with one separator throughout."""

from __future__ import annotations

import ast
import json
import re

import numpy as np
import pandas as pd

from qkvsearch.data.columns.reading import Reading

JOINED_BY = "|"
SEPARATORS = "|;,"
LONGEST_ENTRY = 60
# Of the cells that say something, at least this share has more than one entry.
LEAST_SHARE = 0.05
# How often an entry stands in the distinct cells on average, where prose has such signs as well.
LEAST_REPEATED = {"|": 0.0, ";": 1.2, ",": 2.0}


def read_lists(texts: pd.Series, counts: np.ndarray) -> Reading | None:
    """The distinct cells `texts`, of which there are `counts`, as entries joined by "|"; None
    where no separator makes lists of them.

    JSON arrays are lists, too. A comma stands in prose, in names and in places as well: its parts
    are entries where they are short, recur in other cells, and are not as many in every cell.

    >>> read_lists(pd.Series(["Rain | Snow", "Snow"]), np.ones(2)).values.tolist()
    ['Rain|Snow', 'Snow']
    """
    entries = _arrays(texts)
    if entries is not None:
        return _reading(texts, entries, "array to list")
    for separator in SEPARATORS:
        entries = _split(texts, separator)
        if _are_lists(entries, counts, separator):
            changed = "" if separator == JOINED_BY else f"separator {separator} to {JOINED_BY}"
            return _reading(texts, entries, changed)
    return None


def read_told_lists(texts: pd.Series, counts: np.ndarray) -> Reading:
    """The same where the owner says so: by the separator that most cells have."""
    entries = _arrays(texts)
    if entries is not None:
        return _reading(texts, entries, "array to list")
    separator = max(SEPARATORS, key=lambda sign: counts[_has(texts, sign)].sum())
    return _reading(texts, _split(texts, separator), f"separator {separator} to {JOINED_BY}")


def _has(texts: pd.Series, separator: str) -> np.ndarray:
    return texts.str.contains(separator, regex=False).to_numpy(bool)


def _split(texts: pd.Series, separator: str) -> pd.Series:
    parts = texts.str.split(separator, regex=False)
    return parts.map(lambda cell: [entry.strip() for entry in cell if entry.strip()])


def _arrays(texts: pd.Series) -> pd.Series | None:
    """Entries where every cell is a list as JSON or Python writes it, else None."""
    if not texts.str.fullmatch(r"\s*\[.*\]\s*", flags=re.DOTALL).all():
        return None
    entries = texts.map(_array)
    return None if entries.isna().any() else entries


def _array(text: str) -> list[str] | None:
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if all(isinstance(entry, str | int | float) for entry in found):
            return [str(entry).strip() for entry in found if str(entry).strip()]
    return None


def _are_lists(entries: pd.Series, counts: np.ndarray, separator: str) -> bool:
    numbers = entries.str.len().to_numpy(np.int64)
    several = numbers > 1
    share = counts[several].sum() / counts.sum()
    if share < LEAST_SHARE or (several.sum() < 2 and share < 0.5):
        return False
    each = entries.explode().dropna()
    if (each.str.len() > LONGEST_ENTRY).mean() > 0.01:
        return False
    if separator == JOINED_BY:
        return True
    if each.str.contains(JOINED_BY, regex=False).any() or len(set(numbers)) < 2:
        return False
    return len(each) >= LEAST_REPEATED[separator] * each.nunique()


def _reading(texts: pd.Series, entries: pd.Series, what: str) -> Reading:
    joined = entries.map(lambda cell: JOINED_BY.join(part.replace(JOINED_BY, "/") for part in cell))
    reading = Reading("list", joined.where(joined != ""))
    if what:
        reading.change(what, (joined != texts).to_numpy(bool) & (entries.str.len() > 1).to_numpy())
    else:
        reading.change("entries trimmed", (joined != texts).to_numpy(bool))
    return reading

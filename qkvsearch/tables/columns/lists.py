"""Cells of text to lists of entries, with one separator in the whole column."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.python_syntax import parsing_python
from qkvsearch.tables.column_facts import LIST_SEPARATOR, ParsedCells

QUOTED = re.compile(r"^(['\"])(.*)\1$")
# Tried in this order. Titles and names have an unspaced stroke: AC/DC.
SEPARATORS = ("|", ";", "；", ",", "，", "、", " / ")
# Characters of a long entry, and the largest share of the entries that are.
LONG_ENTRY, MAX_LONG = 60, 0.01
# So many cells, and of each so many characters, tell whether a column is prose.
SAMPLE, BEGINNING = 1000, 2000
# At least this share of the cells has more than one entry.
MIN_SHARE = 0.05
# The lowest average number of distinct cells that an entry is in. Prose has ; and , as well, and
# names have the others.
MIN_REPEATED = {"|": 0.0, ";": 1.2, "；": 1.2}
MIN_REPEATED_BY_OTHERS = 2.0
# Or the lowest share of the cells with up to so many entries that contain all entries of another.
MIN_NESTED, MAX_NESTED = 0.5, 8
# Characters of a list that Python parses, into 200 times as many bytes; longer ones are JSON.
MAX_PYTHON = 100_000


def read_lists(texts: pd.Series, counts: np.ndarray) -> ParsedCells:
    """Parse the distinct cells `texts`, of which there are `counts`, to entries joined by "|"; all
    are missing where no separator makes lists of them.

    JSON arrays are lists, too. Commas, 、 and " / " occur in prose, names and places as well: the
    texts between them are entries if they are short, recur in other cells, and differ in number.

    >>> read_lists(pd.Series(["Rain | Snow", "Snow"]), np.ones(2)).values.tolist()
    ['Rain|Snow', 'Snow']
    """
    entries = _arrays(texts)
    if entries is not None:
        return _parsed_lists(texts, entries, "array to list")
    sample = texts.iloc[:: max(1, len(texts) // SAMPLE)].str.slice(stop=BEGINNING)
    for separator in SEPARATORS:
        if counts[_has(texts, separator)].sum() < MIN_SHARE * counts.sum():
            continue  # too few cells would have several entries
        if _share_long(_split(sample, separator)) > 5 * MAX_LONG:
            continue  # prose: splitting all of it takes long
        entries = _split(texts, separator)
        if _are_lists(entries, counts, separator):
            return _by_separator(separator, texts, entries)
    return ParsedCells("list", pd.Series(None, index=texts.index, dtype=object))


def read_requested_lists(texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
    """Parse the cells of a column that the owner says are lists: by "|" if any cell has one, else
    by the separator that the column had before (`convention`), else by the most common one.
    """
    entries = _arrays(texts)
    if entries is not None:
        return _parsed_lists(texts, entries, "array to list")
    usual = max(SEPARATORS, key=lambda sign: counts[_has(texts, sign)].sum())
    separator = LIST_SEPARATOR if _has(texts, LIST_SEPARATOR).any() else convention or usual
    return _by_separator(separator, texts, _split(texts, separator))


def _by_separator(separator: str, texts: pd.Series, entries: pd.Series) -> ParsedCells:
    is_stored = separator == LIST_SEPARATOR
    shown = separator.strip()
    what = "entries trimmed" if is_stored else f"separator {shown} to {LIST_SEPARATOR}"
    parsed = _parsed_lists(texts, entries, what)
    parsed.convention = separator
    return parsed


def _has(texts: pd.Series, separator: str) -> np.ndarray:
    return texts.str.contains(separator, regex=False).to_numpy(bool)


def _split(texts: pd.Series, separator: str) -> pd.Series:
    return texts.map(lambda text: _entries(text, separator))


def _entries(text: str, separator: str) -> list[str]:
    """Return the entries of a cell, which is an array or is split at a separator.

    >>> _entries("a, b", ","), _entries('["a", "b"]', ",")
    (['a', 'b'], ['a', 'b'])
    """
    bare = text.strip()
    array = _array(bare) if bare.startswith("[") and bare.endswith("]") else None
    return _trimmed(text.split(separator)) if array is None else array


def _trimmed(entries: Iterable[object]) -> list[str]:
    """Return entries without blanks and quotes around them, and without blank ones."""
    bare = (_unquoted(str(entry).strip()) for entry in entries)
    return [entry for entry in bare if entry]


def _unquoted(entry: str) -> str:
    # Most have none, and a pattern takes longer than a look at the first character.
    return QUOTED.sub(r"\2", entry).strip() if entry[:1] in ("'", '"') else entry


def _arrays(texts: pd.Series) -> pd.Series | None:
    """Parse lists in JSON or Python; None where fewer than half of the cells are one."""
    looks = texts.str.fullmatch(r"\s*\[.*\]\s*", flags=re.DOTALL).astype(bool)
    if looks.mean() < 0.5:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a backslash that Python does not know
        warnings.simplefilter("ignore", DeprecationWarning)
        return texts[looks].map(_array).reindex(texts.index)


def _array(text: str) -> list[str] | None:
    is_long = len(text) > MAX_PYTHON
    parsers: list[Callable[[str], Any]] = [json.loads]
    if not is_long:
        parsers.append(_python_literal)
    for parse in parsers:
        try:
            array = parse(text.strip())
            if all(isinstance(entry, str | int | float) for entry in array):
                return _trimmed(array)
        # Python writes no number of more than 4,300 digits, and no object with a list as a key.
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _python_literal(text: str) -> Any:
    with parsing_python:
        return ast.literal_eval(text)


def _are_lists(entries: pd.Series, counts: np.ndarray, separator: str) -> bool:
    numbers = entries.str.len().to_numpy(np.int64)
    several = numbers > 1
    share = counts[several].sum() / counts.sum()
    if share < MIN_SHARE or (several.sum() < 2 and share < 0.5):
        return False
    if _share_long(entries) > MAX_LONG:
        return False
    if separator == LIST_SEPARATOR:
        return True
    each = entries.explode().dropna()
    if each.str.contains(LIST_SEPARATOR, regex=False).any() or len(set(numbers)) < 2:
        return False
    min_repeated = MIN_REPEATED.get(separator, MIN_REPEATED_BY_OTHERS)
    recur = len(each) >= min_repeated * each.nunique()
    return recur or _share_nested(entries) >= MIN_NESTED


def _share_nested(entries: pd.Series) -> float:
    """Return the share of the cells with several entries that contain all entries of another cell,
    as "Outdoor, Rain" and "Outdoor": names and places do not.
    """
    cells = {frozenset(cell) for cell in entries if cell}
    several = [cell for cell in cells if 1 < len(cell) <= MAX_NESTED]
    nested = sum(
        any(frozenset(few) in cells for n in range(1, len(cell)) for few in combinations(cell, n))
        for cell in several
    )
    return nested / len(several) if several else 0.0


def _share_long(entries: pd.Series) -> float:
    each = entries.explode().dropna()
    return float((each.str.len() > LONG_ENTRY).mean()) if len(each) else 0.0


def _parsed_lists(texts: pd.Series, entries: pd.Series, what: str) -> ParsedCells:
    joined = entries.dropna().map(
        lambda cell: LIST_SEPARATOR.join(entry.replace(LIST_SEPARATOR, "/") for entry in cell)
    )
    values = joined.where(joined != "").reindex(texts.index)
    parsed = ParsedCells("list", values)
    parsed.change(what, (values != texts).to_numpy(bool))
    return parsed

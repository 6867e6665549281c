"""Ids, article numbers and other codes: found as they are written, in upper or lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.data.ids import id_text
from qkvsearch.text.analysis import Token, fold

if TYPE_CHECKING:
    import pandas as pd

    from qkvsearch.data.catalog import Catalog

# One word with a digit that means nothing but the thing that it names: no year, count or other
# small number, and nothing as short as "4k" or "mp3".
CODE = re.compile(r"(?=\S*\d)(?!(?:0|[1-9]\d{0,4})$)\S{4,64}")
DIGIT = re.compile(r"\d").search
LONGEST = 64
# Of a column's cells: how many are codes, and how many differ, at the least.
CODES, DIFFERENT = 0.9, 0.5
# Dates differ from row to row, too, and a list is no code.
NO_CODE = r"\d{4}-\d\d-\d\d.*|.*\|.*"
# Whole numbers below are counts and amounts, not the 8 to 14 digits of a bar code.
LEAST_NUMBER = 10_000_000
# Signs around a word that may not belong to it.
AROUND = ".,;:!?()[]{}<>\"'`«»“”‘’"


def code_columns(catalog: Catalog) -> list[str]:
    """The columns that nearly always hold a code, and nearly never the same one, by the names that
    they have in the frame.
    """
    return [name for name in catalog.frame.columns[1:] if _holds_codes(catalog.frame[name])]


def code_terms(catalog: Catalog, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Terms (n,), sorted UTF-8, and the row of the item that each belongs to, int64 (n,).

    They are all ids, and what is a code of the cells of these columns.
    """
    pairs = _folded(catalog.ids.texts, range(len(catalog)))
    pairs = pairs.union(*(cell_codes(catalog.frame[name]) for name in columns))
    ordered = sorted(pairs)
    found = np.array([term for term, _ in ordered], dtype=bytes)
    return found, np.array([row for _, row in ordered], dtype=np.int64)


def cell_codes(column: pd.Series) -> set[tuple[bytes, int]]:
    """What is a code of the cells of a column: its term, UTF-8, and its row."""
    cells = _texts(column)
    cells = cells[_are_codes(cells)]
    return _folded(cells.tolist(), cells.index.tolist())


def codes_in(text: str, is_known: Callable[[str], bool]) -> list[Token]:
    """The words of a query that are codes of items, each once, as typed or without the signs around
    it; every term is for `is_known` to know.

    >>> known = {"ab-12/34", "2001"}
    >>> [token.term for token in codes_in("is (AB-12/34) in 2001?", known.__contains__)]
    ['ab-12/34']
    """
    found: dict[str, Token] = {}
    if not DIGIT(fold(text)):
        return []
    for word in text.split():
        for spelled in (word, word.strip(AROUND)):
            term = fold(spelled)
            if CODE.fullmatch(term) and is_known(term):
                found.setdefault(term, Token(word, term))
                break
    return list(found.values())


def without_codes(text: str, codes: Sequence[Token]) -> str:
    """A query without these words and without long numbers; as it was where it has none.

    >>> without_codes("case for 4006381 from 1999", [])
    'case for from 1999'
    """
    if not (codes or DIGIT(text)):
        return text
    typed = {token.text for token in codes}
    words = text.split()
    rest = [word for word in words if word not in typed and not _is_long_number(word)]
    return text if len(rest) == len(words) else " ".join(rest)


def whole_as_id(text: str, is_known: Callable[[str], bool]) -> Token | None:
    """A query that is an id as a whole, although no code: the number 12, or "kettle"."""
    whole = " ".join(text.split())
    term = fold(whole)
    return Token(whole, term) if term and len(term) <= LONGEST and is_known(term) else None


def _is_long_number(word: str) -> bool:
    bare = word.strip(AROUND)
    return bare.isdecimal() and CODE.fullmatch(bare) is not None


def _holds_codes(column: pd.Series) -> bool:
    cells = column.dropna()
    if cells.dtype.kind == "f" or cells.empty:
        return False
    if cells.dtype.kind in "iu" and cells.min() < LEAST_NUMBER:
        return False
    texts = _texts(cells)
    return bool(_are_codes(texts).mean() >= CODES and texts.nunique() > DIFFERENT * len(texts))


def _texts(column: pd.Series) -> pd.Series:
    """The cells that are there; a whole number is without a point even beside gaps."""
    cells = column.dropna()
    return cells.map(id_text).astype(object) if cells.dtype.kind == "f" else cells.astype(str)


def _are_codes(cells: pd.Series) -> pd.Series:
    found: pd.Series = cells.str.fullmatch(CODE) & ~cells.str.fullmatch(NO_CODE)
    return found.astype(bool)


def _folded(texts: Iterable[str], rows: Iterable[int]) -> set[tuple[bytes, int]]:
    terms = (fold(" ".join(text.split())) for text in texts)
    return {
        (term.encode(), row) for term, row in zip(terms, rows, strict=True)
        if 0 < len(term) <= LONGEST
    }  # fmt: skip

"""Product codes: ids, article numbers and the like, which match as a whole in any case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch.tables.columns.searched import (
    CODE,
    are_codes,
    are_like_numbers,
    entries_of,
    holds_codes,
)
from qkvsearch.text.analysis import Token

if TYPE_CHECKING:
    import pandas as pd

    from qkvsearch.tables.catalog import Catalog

DIGIT = re.compile(r"\d").search
MAX_LENGTH = 64
# Punctuation around a word that may not belong to it.
PUNCTUATION = ".,;:!?()[]{}<>\"'`«»“”‘’"


def code_columns(catalog: Catalog) -> list[str]:
    """Return the columns in which nearly all cells are codes, and most are distinct."""
    return [name for name in catalog.frame.columns[1:] if holds_codes(catalog.frame[name])]


def code_terms(catalog: Catalog, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and codes of columns: terms (n,), sorted UTF-8, and their items' rows, int64."""
    pairs = _folded(catalog.ids.texts, range(len(catalog)))
    pairs = pairs.union(*(cell_codes(catalog.frame[name]) for name in columns))
    ordered = sorted(pairs)
    terms = np.array([term for term, _ in ordered], dtype=bytes)
    return terms, np.array([row for _, row in ordered], dtype=np.int64)


def cell_codes(column: pd.Series) -> set[tuple[bytes, int]]:
    """Return the codes among the cells of a column of codes: (UTF-8 term, row) pairs.

    What is like a number, such as 3.10, is a code there too.
    """
    entries = entries_of(column)
    entries = entries[are_codes(entries) | are_like_numbers(entries)]
    return _folded(entries.tolist(), entries.index.tolist())


def code_forms(text: str) -> list[str]:
    """Return what a cell is looked up by: the folded text, and a code without its dashes.

    >>> code_forms("AB-1042"), code_forms("Kettle-Blue"), code_forms("1-2")
    (['ab-1042', 'ab1042'], ['kettle-blue'], ['1-2'])
    """
    term = fold(" ".join(text.split()))
    bare = term.replace("-", "")
    return [term, bare] if bare != term and CODE.fullmatch(bare) else [term]


def codes_in(text: str, is_known: Callable[[str], bool]) -> list[Token]:
    """Return the distinct words of a query that are codes of items, perhaps without punctuation
    around them, and with other dashes or none.

    is_known: whether an item has the code.

    >>> known = {"ab-12/34", "2001"}
    >>> [token.term for token in codes_in("is (AB-12/34) in 2001?", known.__contains__)]
    ['ab-12/34']
    >>> [token.term for token in codes_in("AB12–34", {"ab1234"}.__contains__)]
    ['ab1234']
    """
    codes: dict[str, Token] = {}
    if not DIGIT(fold(text)):
        return []
    for word in text.split():
        forms = [*code_forms(word), *code_forms(word.strip(PUNCTUATION))]
        known = (form for form in forms if CODE.fullmatch(form) and is_known(form))
        term = next(known, None)
        if term is not None:
            codes.setdefault(term, Token(word, term))
    return list(codes.values())


def without_codes(text: str, codes: Sequence[Token]) -> str:
    """Remove codes and long numbers from a query; return it unchanged if it has none.

    >>> without_codes("case for 4006381 from 1999", [])
    'case for from 1999'
    """
    if not (codes or DIGIT(text)):
        return text
    code_words = {token.text for token in codes}
    words = text.split()
    rest = [word for word in words if word not in code_words and not _is_long_number(word)]
    return text if len(rest) == len(words) else " ".join(rest)


def whole_as_id(text: str, is_known: Callable[[str], bool]) -> Token | None:
    """Return the token of a query that is an id as a whole, even one like 12 or "kettle"."""
    whole = " ".join(text.split())
    term = fold(whole)
    return Token(whole, term) if term and len(term) <= MAX_LENGTH and is_known(term) else None


def _is_long_number(word: str) -> bool:
    bare = word.strip(PUNCTUATION)
    return bare.isdecimal() and CODE.fullmatch(bare) is not None


def _folded(texts: Iterable[str], rows: Iterable[int]) -> set[tuple[bytes, int]]:
    return {
        (form.encode(), row)
        for text, row in zip(texts, rows, strict=True)
        for form in code_forms(text)
        if 0 < len(form) <= MAX_LENGTH
    }

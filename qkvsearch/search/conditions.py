"""Which items a query's operators leave: "a phrase", -word, field:word, word*."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.data.catalog_columns import StoredColumn
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.data.ids import id_text
from qkvsearch.index import StoredModels
from qkvsearch.query.language import Clause
from qkvsearch.storage import StoredCatalog
from qkvsearch.text.analysis import HAS_CJK, MAX_CACHED_TEXT, Analyzer, fold, resolve_code

YES = frozenset(["yes", "true", "1", "y"])


@dataclass(frozen=True)
class Conditions:
    """mask: bool (n_items,), True where all of them hold; None where there are none. notes: what no
    item has.
    """

    mask: np.ndarray | None
    notes: Sequence[str] = ()

    @classmethod
    def of(
        cls, clauses: Sequence[Clause], models: StoredModels, catalog: StoredCatalog
    ) -> Conditions:
        """What these clauses demand, one after the other."""
        conditions = [clause for clause in clauses if clause.is_condition]
        if not conditions:
            return cls(None)
        reader = _ConditionReader(models, catalog)
        every = np.ones(models.n_items, dtype=bool)
        mask, notes = every, []
        has_text = len(conditions) < len(clauses)
        for clause in conditions:
            pause()
            holds = reader.holds(clause, mask)
            if clause.excluded:
                holds = mask & ~holds
            elif not holds.any() and (mask is every or not reader.holds(clause, every).any()):
                notes.append(f"No item has {clause}.")
                if has_text and clause.kind == "phrase" and clause.is_plain:
                    notes[-1] += " Its words were searched without the quotation marks."
                    continue
            mask = holds
            if not mask.any():
                break
        if not mask.any() and not notes:
            notes.append("No item has all of this.")
        return cls(None if mask is every else mask, notes)

    def apply(self, mask: np.ndarray) -> np.ndarray:
        """Return which items of `mask`, bool (n_items,), meet all conditions."""
        return mask if self.mask is None else mask & self.mask


@dataclass(frozen=True)
class _ConditionReader:
    models: StoredModels
    catalog: StoredCatalog

    def holds(self, clause: Clause, items: np.ndarray) -> np.ndarray:
        """bool (n_items,): which of these items have what the clause says, without its minus."""
        if not clause.field:
            return self._in_texts(clause, items, None)
        column = self._column(clause)
        if column.stored in self._searched:
            return self._in_texts(clause, items, self._searched.index(column.stored))
        # Of the cells of a column that search does not read.
        fits = _cell_test(clause, column, self.models.analyzer)
        return self.catalog.column_cells(column.stored).holds(fits, items)

    @property
    def _searched(self) -> list[str]:
        return list(self.models.snapshot.facts["text_columns"])

    def _column(self, clause: Clause) -> StoredColumn:
        return self.catalog.catalog_columns.find(clause.field)

    def _in_texts(self, clause: Clause, items: np.ndarray, column: int | None) -> np.ndarray:
        """Of all that search reads, or of one column of it."""
        index = self.models.words
        if clause.kind == "prefix":
            return self._beginning(clause.text, items, column)
        tokens = resolve_code(
            self.models.analyzer.tokens(clause.text), self.models.lexical_keys.has
        )
        terms = [token.term for token in tokens]
        candidates = self._with_all(terms, items)
        if len(terms) < 2 and column is None:
            return candidates
        if any(len(term) == 1 and HAS_CJK(term) for term in terms):
            candidates = items
        return index.with_phrase(terms, candidates, column)

    def _beginning(self, text: str, items: np.ndarray, column: int | None) -> np.ndarray:
        tokens = self.models.analyzer.tokens(text)
        *whole, last = [token.text for token in tokens] or [fold(text)]
        before = [token.term for token in tokens[: len(whole)]]
        candidates = self._with_all(before, items) if before else items
        return self.models.words.with_beginning(before, last, candidates, column)

    def _with_all(self, terms: Sequence[str], items: np.ndarray) -> np.ndarray:
        """bool (n_items,): which of these items have all of these terms, wherever."""
        found = items & bool(terms)
        for term in set(terms):
            has = np.zeros_like(found)
            has[self.models.lexical_keys.postings(term)[0]] = True
            found &= has
        return found


def _cell_test(clause: Clause, column: StoredColumn, analyzer: Analyzer) -> Callable[[Any], bool]:
    """Whether a cell is what the clause says, as the type of its column has it."""
    wanted = fold(clause.text)
    begins = clause.kind == "prefix"
    if column.type == "yes/no":
        return lambda cell: bool(cell) == (wanted in YES)
    if column.type == "number" and not begins:
        return _number_test(clause.text)
    if column.type in ("date", "number") or column.role == "id":
        # A year names all its days; an id is named whole.
        as_far = begins or column.type == "date"
        return lambda cell: fold(id_text(cell))[: len(wanted) if as_far else None] == wanted
    words = _terms(clause.text, analyzer)

    def has(entry: Any) -> bool:
        return _entry_has(str(entry), words, wanted, begins, analyzer)

    if column.type == "list":
        return lambda cell: any(map(has, str(cell).split(LIST_SEPARATOR)))
    return has


def _entry_has(
    entry: str, words: Sequence[str], wanted: str, begins: bool, analyzer: Analyzer
) -> bool:
    """Whether a text has these words one behind the other, or else this text within it."""
    if begins:
        folded = fold(entry)
        return any(word.startswith(wanted) for word in [folded, *folded.split()])
    if not words:
        return wanted == fold(entry)
    own = _terms(entry, analyzer)
    if words[0] not in own:
        return False
    places = range(len(own) - len(words) + 1)
    return any(own[i : i + len(words)] == words for i in places)


def _terms(entry: str, analyzer: Analyzer) -> tuple[str, ...]:
    """The terms of a text. Several conditions read the same cells, so those of short ones are
    cached.
    """
    read = _cached_terms if len(entry) <= MAX_CACHED_TEXT else _cached_terms.__wrapped__
    return read(entry, analyzer)


@lru_cache(maxsize=1 << 15)
def _cached_terms(entry: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(token.term for token in analyzer.tokens(entry))


COMPARED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def _number_test(text: str) -> Callable[[Any], bool]:
    """Equal to a number, within `1990..1999`, or as `>=1990` says."""
    sign = next((sign for sign in COMPARED if text.startswith(sign)), "")
    low, dots, high = text.removeprefix(sign).partition("..")
    try:
        least = float(low) if low else -np.inf
        most = (float(high) if high else np.inf) if dots else least
    except ValueError:
        return lambda cell: False
    if sign:
        return lambda cell: bool(COMPARED[sign](cell, least))
    return lambda cell: least <= cell <= most

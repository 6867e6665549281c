"""The conditions of a query's operators: "a phrase", -word, field:word, word*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.query_language import Clause, is_sign
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.column_types.column_type import Range
from qkvsearch.tables.column_types.number import COMPARISONS, NumberType
from qkvsearch.tables.ids import id_text
from qkvsearch.text.analysis import MAX_CACHED_TEXT, Analyzer, is_unit, resolve_code


@dataclass(frozen=True)
class Conditions:
    """The conditions of a query."""

    # bool (n_items,), the items that meet all of them; None without conditions.
    mask: np.ndarray | None
    # Notes on conditions that no item meets.
    notes: Sequence[str] = ()
    # Notes on ranges that were read in another way than they were typed.
    read: Sequence[str] = ()

    @classmethod
    def of(
        cls, clauses: Sequence[Clause], models: StoredModels, catalog: StoredCatalog
    ) -> Conditions:
        """Apply the clauses one after the other.

        A phrase that no item has is no condition where the query has other text: its words rank
        the results instead.
        """
        conditions = [clause for clause in clauses if clause.is_condition]
        has_text = len(conditions) < len(clauses)
        reader = _ConditionReader(models, catalog)
        mask: np.ndarray | None = None
        notes: list[str] = []
        read: list[str] = []
        for typed in conditions:
            pause()
            clause, note = reader.as_stored(typed)
            if note:
                read.append(note)
            matches = reader.matches(clause, mask)
            if not clause.excluded and not matches.any() and not reader.has_match(clause, mask):
                note = f"No item has {typed}{reader.why_none(clause)}."
                if has_text and clause.kind == "phrase" and clause.is_plain:
                    notes.append(f"{note} Its words were searched without the quotation marks.")
                    continue
                notes.append(note)
            mask = matches
            if not mask.any():
                break
        if mask is not None and not mask.any() and not notes:
            notes.append("No item has all of this.")
        return cls(mask, notes, read)

    @property
    def finds_any(self) -> bool:
        """Whether any item meets all conditions."""
        return self.mask is None or bool(self.mask.any())

    def apply(self, mask: np.ndarray) -> np.ndarray:
        """Return which items of `mask`, bool (n_items,), meet all conditions."""
        return mask if self.mask is None else mask & self.mask


def note_on_order(asked: str, read: str) -> str:
    """Return the note on a range that was asked for with its larger end first."""
    return f"{asked} was read as {read}: the smaller end comes first."


def note_on_words(asked: str, column: StoredColumn) -> str:
    """Return the note on a range that was asked of a column without an order."""
    noun = type_named(column.type).noun
    return f"{asked} was read as words: column {column.name!r} is {noun}, and has no ranges."


def _is_range_of_numbers(text: str) -> bool:
    """Return whether a text is a range with a digit at an end, such as 1..3 and ..20.

    >>> [_is_range_of_numbers(text) for text in ("1..3", "..20", "2kg..", "to..", "3")]
    [True, True, True, False, False]
    """
    return Range.of(text) is not None and any(map(str.isdecimal, text))


@dataclass(frozen=True)
class _ConditionReader:
    models: StoredModels
    catalog: StoredCatalog

    def as_stored(self, clause: Clause) -> tuple[Clause, str]:
        """Return a clause whose value is written as cells are stored, the smaller end of a range
        first, and a note on a range that is another one then, or none at all.
        """
        if not clause.field or clause.kind != "text":
            return clause, ""
        column = self._column(clause)
        column_type = type_named(column.type)
        stored = column_type.as_stored(clause.text, column.convention)
        in_order = column_type.in_order(stored)
        read = replace(clause, text=in_order)
        if in_order != stored:
            return read, note_on_order(str(clause), str(read))
        if not column_type.is_ordered and _is_range_of_numbers(clause.text):
            return read, note_on_words(str(clause), column)
        return read, ""

    def matches(self, clause: Clause, items: np.ndarray | None) -> np.ndarray:
        """Return which of these items, None for all, meet a clause, bool (n_items,)."""
        if items is None:
            items = np.ones(self.models.n_items, dtype=bool)
        matches = self._matches(clause, items)
        return items & ~matches if clause.excluded else matches

    def has_match(self, clause: Clause, tried: np.ndarray | None) -> bool:
        """Return whether any item of the catalog meets a clause. tried: items that do not."""
        return tried is not None and bool(self.matches(clause, None).any())

    def _matches(self, clause: Clause, items: np.ndarray) -> np.ndarray:
        """Return which of these items match a clause, its minus aside, bool (n_items,)."""
        if not clause.field:
            return self._in_texts(clause, items, None)
        column = self._column(clause)
        # No index has signs, such as a tick: the cells are read for these.
        is_searched = column.stored in self._searched and not is_sign(clause.text)
        if not is_searched:
            return self._in_cells(clause, items, column)
        in_texts = self._in_texts(clause, items, self._searched.index(column.stored))
        if not type_named(column.type).loses_words:
            return in_texts
        # A date is compared: `made:1895` is in `c. 1890`.
        return in_texts | self._in_cells(clause, items, column)

    def _in_cells(self, clause: Clause, items: np.ndarray, column: StoredColumn) -> np.ndarray:
        """Return which of these items have a cell that matches, bool (n_items,)."""
        is_match = _cell_test(clause, column, self.models.analyzer)
        matches = self.catalog.values.cells(column.stored).holds(is_match, items)
        if column.stored in self.catalog.varying:
            for row, cell in self.catalog.variants([column.stored]):
                matches[row] |= items[row] and cell is not None and is_match(cell)
        return matches

    def why_none(self, clause: Clause) -> str:
        """Return why no item can match: a comparison needs a column of numbers. "" otherwise."""
        if not clause.field or not clause.text.startswith(tuple(COMPARISONS)):
            return ""
        column = self._column(clause)
        column_type = type_named(column.type)
        if isinstance(column_type, NumberType):
            return ""
        return f": column {column.name!r} is {column_type.noun}, and only numbers are compared"

    @property
    def _searched(self) -> list[str]:
        return list(self.models.snapshot.facts["text_columns"])

    def _column(self, clause: Clause) -> StoredColumn:
        return self.catalog.catalog_columns.find(clause.field)

    def _in_texts(self, clause: Clause, items: np.ndarray, column: int | None) -> np.ndarray:
        """Return which of these items match in the searched columns, or in one of them.

        column: the number of a searched column; None for all.
        """
        index = self.models.words
        if clause.kind == "prefix":
            return self._with_prefix(clause.text, items, column)
        tokens = resolve_code(
            self.models.analyzer.tokens(clause.text), self.models.lexical_keys.has
        )
        terms = [token.term for token in tokens]
        candidates = self._with_all(terms, items)
        if len(terms) < 2 and column is None:
            return candidates
        # A single unit matches all words that contain it, and these have terms of their own.
        if any(map(is_unit, terms)):
            candidates = items
        return index.with_phrase(terms, candidates, column)

    def _with_prefix(self, text: str, items: np.ndarray, column: int | None) -> np.ndarray:
        tokens = self.models.analyzer.tokens(text)
        *whole, last = [token.text for token in tokens] or [fold(text)]
        before = [token.term for token in tokens[: len(whole)]]
        candidates = self._with_all(before, items) if before else items
        return self.models.words.with_phrase_prefix(before, last, candidates, column)

    def _with_all(self, terms: Sequence[str], items: np.ndarray) -> np.ndarray:
        """Return which of these items have all of these terms in any column, bool (n_items,)."""
        if not terms:
            return np.zeros_like(items)
        mask = items.copy()
        for term in set(terms):
            has_term = np.zeros_like(mask)
            has_term[self.models.lexical_keys.postings(term)[0]] = True
            mask &= has_term
        return mask


def _cell_test(clause: Clause, column: StoredColumn, analyzer: Analyzer) -> Callable[[Any], bool]:
    """Return the test of whether a cell matches a clause, by the type of its column."""
    is_prefix = clause.kind == "prefix"
    column_type = type_named(column.type)
    test = column_type.test(clause.text, is_prefix)
    if test is not None:
        return test
    text = fold(clause.text)
    if column.role == "id":  # an id must be complete
        length = len(text) if is_prefix else None
        return lambda cell: fold(id_text(cell))[:length] == text
    words = _terms(clause.text, analyzer)

    def has_text(cell: Any) -> bool:
        entries = column_type.entries(cell)
        return any(_entry_has(entry, words, text, is_prefix, analyzer) for entry in entries)

    return has_text


def _entry_has(
    entry: str, words: Sequence[str], text: str, is_prefix: bool, analyzer: Analyzer
) -> bool:
    """Return whether an entry has these words one behind the other, or a word with this prefix."""
    if is_prefix:
        folded = fold(entry)
        return any(word.startswith(text) for word in [folded, *folded.split()])
    if not words:
        return text == fold(entry)
    entry_words = _terms(entry, analyzer)
    if words[0] not in entry_words:
        return False
    starts = range(len(entry_words) - len(words) + 1)
    return any(entry_words[i : i + len(words)] == words for i in starts)


def _terms(entry: str, analyzer: Analyzer) -> tuple[str, ...]:
    """Return the terms of a text. Those of short texts are cached: several conditions read the same
    cells.
    """
    if len(entry) > MAX_CACHED_TEXT:
        return _cached_terms.__wrapped__(entry, analyzer)
    return _cached_terms(entry, analyzer)


@lru_cache(maxsize=1 << 15)
def _cached_terms(entry: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(token.term for token in analyzer.tokens(entry))

"""Notes on a query: what was changed in it, what no item has, and what may be meant instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.errors import Count
from qkvsearch.heads.single_units import PARTICLES
from qkvsearch.heads.unit_phrases import unknown_runs
from qkvsearch.rank.conditions import Conditions
from qkvsearch.rank.date_hints import has_years, ranges_of_years
from qkvsearch.rank.expansion import MAX_EXPANSION
from qkvsearch.rank.query import MAX_SYNONYM_WORDS, Query, QueryReader
from qkvsearch.rank.query_language import MAX_OPERATORS, Clause
from qkvsearch.tables.catalog_columns import StoredColumn, underscored
from qkvsearch.tables.column_types import type_named
from qkvsearch.text.analysis import HAS_UNSPACED

NO_TEXTS = (
    "These items have no texts to search. Build with a file of items that has a column of texts, "
    "such as titles (`items`)."
)
STOP_WORDS_ALONE = "These words are too common to be searched for alone."
# How many unknown names of columns get a suggestion.
MAX_FIELD_NAMES = 6
# How many columns of dates are suggested for the years that a query names.
MAX_DATE_COLUMNS = 2
# Text that looks like a condition on a column.
FIELD_TYPED = re.compile(r"(?<![^\s-])(\w+):(\w+)")
# In longer queries most words may be missing.
MAX_WORDS = 6
# The digits of the largest integer of 64 bits. Python refuses to read thousands of digits.
MAX_DIGITS = 19
LENGTH_OF_YEAR = 4


def query_notes(query: Query, reader: QueryReader) -> list[str]:
    """Return the notes on a query for the user."""
    if not reader.models.snapshot.facts["text_columns"]:
        return [] if query.lookup.codes.tokens else [NO_TEXTS]
    unknown = _unknown_words(query, reader)
    # A query none of whose words is in a text gets another note.
    missing = unknown if len(unknown) < len({token.text for token in query.lookup.tokens}) else []
    hints = _unsearched(query, unknown, reader) if unknown else {}
    notes = [change.note for change in query.understood.changes if change.note]
    nowhere = [f"“{query.as_typed(word)}”" for word in missing if word not in hints]
    nowhere += [f"“{run}”" for run in _unknown_runs(query, reader)]
    if nowhere:
        notes.append(f"No text has {', '.join(nowhere)}.")
    notes += hints.values()
    if query.is_too_common:
        notes.append(STOP_WORDS_ALONE)
    notes += query.understood.conditions.read
    notes += query.understood.conditions.notes
    notes += _suggestions(query, reader, missing)
    notes += _ignored(query, reader)
    return notes


def _unsearched(query: Query, unknown: Sequence[str], reader: QueryReader) -> dict[str, str]:
    """Return a note for each word that no text has but a column that is not searched has."""
    searched = reader.models.snapshot.facts["text_columns"]
    notes: dict[str, str] = {}
    columns = [
        column
        for column in reader.catalog.catalog_columns
        if type_named(column.type).is_text and column.stored not in (*searched, "id")
    ]
    for word in unknown:
        form, typed = fold(word), query.as_typed(word)
        escaped = re.escape(form)
        whole_word = re.compile(rf"{escaped}(?<!\w{escaped})(?!\w)")
        for column in columns:
            pause()
            cells = reader.catalog.values.folded(column.stored)
            if cells is None:
                notes[word] = f"No searched text has “{typed}”."
            # `in` is fast, and most columns do not have the word.
            elif form in cells and whole_word.search(cells) and _is_found(word, column, reader):
                operator = ""
                if column.name.isidentifier():
                    operator = f"{column.name}:{typed} asks for it, and "
                notes[word] = (
                    f"No searched text has “{typed}”, but column {column.name}, which is not "
                    f"searched, has: {operator}a build with `text_columns` searches it."
                )
                break
    return notes


def _is_found(word: str, column: StoredColumn, reader: QueryReader) -> bool:
    """Return whether `column:word` finds an item: 94.1 is no piece of the code 94.1.5."""
    clause = Clause(word, field=column.name)
    return Conditions.of([clause], reader.models, reader.catalog).finds_any


def _unknown_words(query: Query, reader: QueryReader) -> list[str]:
    """Return the words of a short query that no searched text has."""
    words = {token.text: token for token in query.lookup.tokens}
    if len(words) > MAX_WORDS:
        return []
    keys = reader.models.lexical_keys
    # Codes are no words, and conditions have notes of their own.
    codes = _codes(query, reader)
    noted = {
        fold(word)
        for clause in query.typed.clauses
        if clause.is_condition
        for word in clause.text.split()
    }
    return [
        text
        for text, token in words.items()
        if not keys.has(token.term)
        and not HAS_UNSPACED(text)
        and text not in noted
        and text not in codes
    ]


def _unknown_runs(query: Query, reader: QueryReader) -> list[str]:
    """Return the parts of a short query that no text has, in scripts without spaces, as they were
    typed.
    """
    tokens, keys = query.lookup.tokens, reader.models.lexical_keys
    if len(tokens) > MAX_WORDS or not any(keys.has(token.term) for token in tokens):
        return []
    runs = [run.strip("".join(PARTICLES)) for run in unknown_runs(keys, tokens)]
    return [_as_typed(run, query) for run in runs if len(run) > 1]


def _as_typed(run: str, query: Query) -> str:
    """Return the characters that were typed for folded ones: 別姬 for 别姬."""
    typed = query.typed.text
    pieces = (typed[start : start + len(run)] for start in range(len(typed)))
    return next((piece for piece in pieces if fold(piece) == run), run)


def _codes(query: Query, reader: QueryReader) -> set[str]:
    """Return the codes of items that a query has, such as 06.16.2, and the words in them."""
    codes = {fold(token.text) for token in query.lookup.codes.tokens}
    tokens = {token.text for code in codes for token in reader.models.analyzer.tokens(code)}
    return codes | tokens | {piece for code in codes for piece in re.findall(r"\w+", code)}


def _suggestions(query: Query, reader: QueryReader, missing: Sequence[str]) -> Iterator[str]:
    """Suggest corrections of conditions that no item meets, existing names of columns, and numbers
    as conditions on columns that have them.
    """
    if query.understood.conditions.notes:
        yield from _corrected_conditions(query, reader)
    if ":" in query.typed.text:
        yield from _similar_columns(query, reader)
    dates = _dates(query, reader)
    yield from dates.values()
    codes = _codes(query, reader)
    for word in missing or [token.text for token in query.lookup.tokens[:1]]:
        is_in_date = any(word in phrase for phrase in dates)
        if is_in_date or word in codes or not word.isdecimal():
            continue
        for column in reader.catalog.catalog_columns:
            # Only a name without spaces can be typed before a colon.
            if len(column.name.split()) == 1 and _has_number(reader, column, word):
                yield f"Did you mean {column.name}:{word}?"


def _dates(query: Query, reader: QueryReader) -> dict[str, str]:
    """Return a note for each decade, century and year that a query names in words, by these words:
    the filters of the columns that have such an item.

    Texts are searched for words alone: "19th century" is in no text that says 1850.
    """
    columns = [
        column
        for column in reader.catalog.catalog_columns
        if has_years(column.name, column.type) and len(column.name.split()) == 1
    ]
    if not columns:
        return {}
    notes: dict[str, str] = {}
    typed = " ".join(clause.text for clause in query.typed.clauses if clause.is_plain)
    for phrase, years in ranges_of_years(typed).items():
        pause()
        filters = [
            f"{column.name}:{years}" for column in columns if _is_found(years, column, reader)
        ]
        if filters:
            notes[phrase] = f"Did you mean {' or '.join(filters[:MAX_DATE_COLUMNS])}?"
    return notes


def _corrected_conditions(query: Query, reader: QueryReader) -> Iterator[str]:
    for clause in query.typed.clauses:
        if not clause.is_condition or clause.excluded:
            continue
        corrected = reader.lexicon.corrected_text(clause.text)
        if corrected.changes:
            yield f"Did you mean {replace(clause, text=corrected.text)}?"


def _similar_columns(query: Query, reader: QueryReader) -> Iterator[str]:
    from difflib import get_close_matches

    columns = reader.catalog.catalog_columns
    # A name with spaces is typed with underscores.
    names = list(map(underscored, columns.names))
    typed = dict.fromkeys(FIELD_TYPED.findall(query.typed.text))
    for name, word in islice(typed, MAX_FIELD_NAMES):
        pause()
        near = [] if columns.has(name) else get_close_matches(name, names, 1)
        if near:
            yield f"There is no column “{name}”. Did you mean {near[0]}:{word}?"


def _has_number(reader: QueryReader, column: StoredColumn, word: str) -> bool:
    """Return whether no text has a number, but a cell of a column of numbers, or of dates as their
    year.
    """
    if reader.models.lexical_keys.has(word) or len(word) > MAX_DIGITS:
        return False
    if column.type == "number":
        cells = reader.catalog.values.cells(column.stored)
        if int(word) not in cells.distinct:
            return False
        # The distinct cells include those of items that are removed or replaced.
        return bool((cells.codes == cells.distinct.index(int(word))).any())
    if column.type == "date" and len(word) == LENGTH_OF_YEAR:
        cells = reader.catalog.values.cells(column.stored)
        is_in_year = type_named(column.type).test(word, is_prefix=False)
        assert is_in_year is not None
        of_items = [cells.distinct[code] for code in np.unique(cells.codes).tolist()]
        return any(is_in_year(cell) for cell in of_items if cell is not None)
    return False


def _ignored(query: Query, reader: QueryReader) -> Iterator[str]:
    """Say which operators, synonyms and words of `word*` are not looked up."""
    if query.typed.n_ignored:
        n = Count(query.typed.n_ignored)
        yield f"Only the first {MAX_OPERATORS} operators count; {n} more {n:was|were} left out."
    if query.lookup.has_more_synonyms:
        yield f"Only the first {MAX_SYNONYM_WORDS} words of synonyms count; more were left out."
    for clause in query.typed.clauses:
        if clause.kind == "prefix" and reader.is_read(clause):
            _, n_words = reader.lexicon.prefix_words(fold(clause.text))
            if n_words > MAX_EXPANSION:
                yield (
                    f"{n_words:,} words begin with “{clause.text}”; "
                    f"the {MAX_EXPANSION} most frequent ones rank the hits."
                )

"""Notes on a query: what was changed in it, what no item has, and what may be meant instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch.errors import Count
from qkvsearch.rank.expansion import MAX_EXPANSION, with_changes
from qkvsearch.rank.query import MAX_SYNONYM_WORDS, Query, QueryReader
from qkvsearch.rank.query_language import MAX_OPERATORS
from qkvsearch.tables.column_types import type_named
from qkvsearch.text.analysis import HAS_CJK

NO_TEXTS = (
    "These items have no texts to search: they came from interactions alone. Build with a file of "
    "them as well (`items`)."
)
STOP_WORDS_ALONE = "These words are too common to be searched for alone."
# How many unknown names of columns get a suggestion.
MAX_FIELD_NAMES = 6
# Text that looks like a condition on a column.
FIELD_TYPED = re.compile(r"(?<![^\s-])(\w+):(\w+)")
# In longer queries most words may be missing.
MAX_WORDS = 6
# The digits of the largest integer of 64 bits. Python refuses to read thousands of digits.
MAX_DIGITS = 19


def query_notes(query: Query, reader: QueryReader) -> list[str]:
    """Return the notes on a query for the user."""
    if not reader.models.snapshot.facts["text_columns"]:
        return [] if query.codes.tokens else [NO_TEXTS]
    unknown = _unknown_words(query, reader)
    # A query none of whose words is in a text gets another note.
    missing = unknown if len(unknown) < len({token.text for token in query.tokens}) else []
    hints = _unsearched(unknown, reader) if unknown else {}
    is_common = query.stop_words_mask is not None and not query.stop_words_mask.any()
    return [
        *(change.note for change in query.changes if change.note),
        *(hints.get(word) or f"No text has “{word}”." for word in missing),
        *(hint for word, hint in hints.items() if word not in missing),
        *([STOP_WORDS_ALONE] if is_common else []),
        *query.conditions.notes,
        *_suggestions(query, reader, missing),
        *_ignored(query, reader),
    ]


def _unsearched(unknown: Sequence[str], reader: QueryReader) -> dict[str, str]:
    """Return a note for each word that no text has but a column that is not searched has."""
    searched, notes = reader.models.snapshot.facts["text_columns"], {}
    columns = [
        column
        for column in reader.catalog.catalog_columns
        if type_named(column.type).is_text and column.stored not in (*searched, "id")
    ]
    for word in unknown:
        form = fold(word)
        escaped = re.escape(form)
        for column in columns:
            pause()
            cells = reader.catalog.folded_cells(column.stored)
            if cells is None:
                notes[word] = f"No searched text has “{word}”."
            elif form in cells and re.search(rf"{escaped}(?<!\w{escaped})(?!\w)", cells):
                operator = f"{column.name}:{word} asks for it, and " * column.name.isidentifier()
                notes[word] = (
                    f"No searched text has “{word}”, but column {column.name}, which is not "
                    f"searched, has: {operator}a build with `text_columns` searches it."
                )
                break
    return notes


def _unknown_words(query: Query, reader: QueryReader) -> list[str]:
    """Return the words of a short query that no searched text has."""
    words = {token.text: token for token in query.tokens}
    if len(words) > MAX_WORDS:
        return []
    keys = reader.models.lexical_keys
    # Codes are no words, and conditions have notes of their own.
    codes = " ".join(fold(token.text) for token in query.codes.tokens)
    noted = {
        fold(word)
        for clause in query.clauses
        if clause.is_condition
        for word in clause.text.split()
    }
    return [
        text
        for text, token in words.items()
        if not keys.has(token.term)
        and not HAS_CJK(text)
        and text not in noted
        and text not in codes
    ]


def _suggestions(query: Query, reader: QueryReader, missing: Sequence[str]) -> Iterator[str]:
    """Suggest corrections of unmet conditions, names of columns, and numbers as conditions."""
    columns = reader.catalog.catalog_columns
    for clause in query.clauses if query.conditions.notes else ():
        if clause.is_condition and not clause.excluded:
            changes = reader.lexicon.changes(clause.text, False)
            if changes:
                corrected = replace(clause, text=with_changes(clause.text, changes))
                yield f"Did you mean {corrected}?"
    typed = dict.fromkeys(FIELD_TYPED.findall(query.typed)) if ":" in query.typed else {}
    for name, word in islice(typed, MAX_FIELD_NAMES):
        from difflib import get_close_matches

        pause()
        if not columns.has(name) and (near := get_close_matches(name, columns.names, 1)):
            yield f"There is no column “{name}”. Did you mean {near[0]}:{word}?"
    for word in filter(str.isdecimal, missing or [token.text for token in query.tokens[:1]]):
        for column in columns:
            if column.type == "number" and _has_cell(reader, column.stored, word):
                yield f"Did you mean {column.name}:{word}?"


def _has_cell(reader: QueryReader, column: str, word: str) -> bool:
    if reader.models.lexical_keys.has(word) or len(word) > MAX_DIGITS:
        return False
    return int(word) in reader.catalog.column_cells(column).distinct


def _ignored(query: Query, reader: QueryReader) -> Iterator[str]:
    """Say which operators, synonyms and words of `word*` are not looked up."""
    if n := query.n_ignored:
        more = "{n} more {n:was|were} left out".format(n=Count(n))
        yield f"Only the first {MAX_OPERATORS} operators count; {more}."
    if query.has_more_synonyms:
        yield f"Only the first {MAX_SYNONYM_WORDS} words of synonyms count; more were left out."
    for clause in query.clauses:
        if clause.kind == "prefix" and reader.is_read(clause):
            _, n_words = reader.lexicon.prefix_words(fold(clause.text))
            if n_words > MAX_EXPANSION:
                yield (
                    f"{n_words:,} words begin with “{clause.text}”; "
                    f"the {MAX_EXPANSION} most frequent ones rank the hits."
                )

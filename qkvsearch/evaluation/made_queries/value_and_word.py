"""A value of a column with a word of the title, such as "red tent"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import COLUMNS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, TITLE, Source
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named

# A value has at most so many words, and so many characters; longer cells are texts.
MAX_WORDS, MAX_CHARACTERS = 3, 30
# Shorter words of a title say too little.
SHORTEST = 3


class ValueAndWord(QueryKind):
    name = "value_and_word"
    description = "a value of a column with a word of the title"
    claim = "values with a word of the title find their item"

    def make(self, source: Source, rng: np.random.Generator) -> Iterator[MadeQuery]:
        columns = [
            source.stored_columns[name]
            for name in source.text_columns
            if name not in (TITLE, source.description)
        ]
        if not columns or not source.titles:
            return
        names = [column.stored for column in columns]
        for item, title in source.shuffled_titles(rng):
            (cells,) = source.build.catalog.cells([item], names)
            choices = [
                (column, value)
                for column, cell in zip(columns, cells, strict=True)
                for value in values_of(column, cell)
            ]
            words = [t.text for t in source.telling_words(title) if _is_telling(t.text)]
            if not choices or not words:
                continue
            column, value = choices[rng.integers(len(choices))]
            word = words[rng.integers(len(words))]
            if word in source.analyzer.terms(value) or word in value.lower():
                continue
            answers = _answers(source, column, value, word)
            if item in answers and len(answers) <= MAX_ANSWERS:
                yield MadeQuery(self.name, f"{value} {word}", item, answers)

    def carries(self, source: Source) -> frozenset[str]:
        return frozenset([COLUMNS])


def values_of(column: StoredColumn, cell: object) -> list[str]:
    """Return the values of a cell that a person may type: entries of a list, or a short text."""
    if cell is None:
        return []
    entries = type_named(column.type).entries(cell)
    return [
        entry
        for entry in map(str.strip, map(str, entries))
        if any(map(str.isalpha, entry))
        and len(entry.split()) <= MAX_WORDS
        and len(entry) <= MAX_CHARACTERS
    ]


def _is_telling(word: str) -> bool:
    return len(word) >= SHORTEST or not word.isascii()


def _answers(source: Source, column: StoredColumn, value: str, word: str) -> tuple[int, ...]:
    """Return the items with the word in their title and the value in their column, in order."""
    items = source.titled(word)
    if not items:
        return ()
    cells = source.build.catalog.cells(items, [column.stored])
    return tuple(
        item for item, (cell,) in zip(items, cells, strict=True) if value in values_of(column, cell)
    )

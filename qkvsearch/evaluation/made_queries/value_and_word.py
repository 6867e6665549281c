"""A value of a column with a word of the title, such as "red tent"."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import COLUMNS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, NO_PROSE, TITLE, QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import as_typed
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named

# A value has at most so many words, and so many characters; longer cells are texts.
MAX_WORDS, MAX_CHARACTERS = 3, 30
# Shorter words of a title say too little.
SHORTEST = 3
# A value that more items have, such as "in stock", is nothing to look for.
MAX_SHARE = 0.5
# Between the values of a cell that is no list. A slash between letters, as in AC/DC, is no sign.
BETWEEN_VALUES = re.compile(r"\s+/\s+|\s*[;|、]\s*")


class ValueAndWord(QueryKind):
    name = "value_and_word"
    description = "a value of a column with a word of the title"
    claim = "values with a word of the title find their item"

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
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
                value
                for column, cell in zip(columns, cells, strict=True)
                for value in values_of(column, cell)
            ]
            words = _most_telling(source, title)
            if not choices or not words:
                continue
            value = choices[rng.integers(len(choices))]
            word = words[rng.integers(len(words))]
            if word in source.analyzer.terms(value) or word in value.lower():
                continue
            if len(source.with_words(value)) > MAX_SHARE * source.n_items:
                continue
            # Whoever types this does not say which column has the value.
            answers = source.with_words(f"{value} {word}")
            if item in answers and len(answers) <= MAX_ANSWERS:
                yield MadeQuery(self.name, as_typed(f"{value} {word}"), item, answers)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset([COLUMNS])


def values_of(column: StoredColumn, cell: object) -> list[str]:
    """Return the values of a cell that a person may type: entries of a list, or short texts."""
    if cell is None:
        return []
    entries = [
        entry
        for text in type_named(column.type).entries(cell)
        for entry in BETWEEN_VALUES.split(str(text).strip())
    ]
    return [
        entry
        for entry in entries
        if any(map(str.isalpha, entry))
        and not NO_PROSE.search(entry)
        and len(entry.split()) <= MAX_WORDS
        and len(entry) <= MAX_CHARACTERS
    ]


def _most_telling(source: QueriedCatalog, title: str) -> list[str]:
    """Return the words of a title that few items have: the rarer half, at least one."""
    words = {
        token.text: source.build.models.lexical_keys.n_with(token.term)
        for token in source.telling_words(title)
        if len(token.text) >= SHORTEST or not token.text.isascii()
    }
    by_rarity = sorted(words, key=lambda word: (words[word], word))
    return by_rarity[: max(1, len(by_rarity) // 2)]

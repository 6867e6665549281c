"""What of a query is an id or another code of an item, and what is left to be read as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch.retrieval import Head, LexicalKeys, Part
from qkvsearch.retrieval.keys import K1
from qkvsearch.texts.analysis import Token, fold
from qkvsearch.texts.codes import codes_in, whole_as_id
from qkvsearch.workspace import Tables


@dataclass(frozen=True)
class QueryCodes:
    """tokens: the codes that some item has. weight: of them, as a factor. rest: the query without
    them, as what has a meaning.
    """

    tokens: Sequence[Token]
    weight: float
    rest: str
    keys: LexicalKeys | None

    @classmethod
    def of(cls, text: str, keys: LexicalKeys | None) -> QueryCodes:
        """A code is no word: encoders would find what is spelled alike. An id that may be a word or
        a number counts only as all of the query, as much as a word does, and is read as one, too.
        """
        if keys is None:
            return cls([], 0, text, keys)

        def is_known(term: str) -> bool:
            return bool(keys.vocabulary.rows([term])[0] >= 0)

        if codes := codes_in(text, is_known):
            typed = {token.text for token in codes}
            rest = " ".join(word for word in text.split() if word not in typed)
            return cls(codes, 1, rest, keys)
        whole = whole_as_id(text, is_known)
        return cls([] if whole is None else [whole], 1 / (K1 + 1), text, keys)

    def head(self, tables: Tables) -> Head | None:
        """Scores of all items, in the units of words; each part says in which column the code is,
        None where no item has one.
        """
        found = self.keys.head(self.tokens) if self.keys is not None and self.tokens else None
        if found is None:
            return None
        weight = self.weight

        def parts(position: int) -> list[Part]:
            return [
                part._replace(
                    key=self._place(tables, position, part.query), value=weight * part.value
                )
                for part in found.parts(position)
            ]

        return replace(found, scores=np.float32(weight) * found.scores, parts=parts)

    def cells(self, tables: Tables, position: int) -> dict[str, list[str]]:
        """An item's cells that are these codes, by column."""
        terms = {token.term for token in self.tokens}
        if not terms:
            return {}
        row = tables.row(position)
        return {name: [str(cell)] for name, cell in row.items() if _term(cell) in terms}

    def _place(self, tables: Tables, position: int, word: str) -> str:
        """Where an item has a code, as in "SKU 000467"; the word itself where no cell is it."""
        term = next(token.term for token in self.tokens if token.text == word)
        row = tables.row(position)
        places = (
            f"{column.name} {row[column.stored]}"
            for column in tables.catalog_columns
            if _term(row[column.stored]) == term
        )
        return next(places, word)


def _term(cell: object) -> str:
    return "" if cell is None else fold(" ".join(str(cell).split()))

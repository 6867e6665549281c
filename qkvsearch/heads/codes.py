"""The ids and other codes of items in a query, and the rest of it, which is read as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.late_interaction import idf
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.scores.components import Components
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.text.analysis import Token
from qkvsearch.text.product_codes import DIGIT, code_forms, codes_in, whole_as_id, without_codes


@dataclass(frozen=True)
class QueryCodes:
    """The codes in a query that items have."""

    # The codes.
    tokens: Sequence[Token]
    # The factor of their scores.
    weight: float
    # The query without them, which encoders read.
    rest: str
    keys: TermKeys
    # Whether the query is a code that is no word of a text, and so means that item alone.
    is_exact: bool = False
    # Whether they are codes whatever stands beside them.
    are_certain: bool = False

    @classmethod
    def of(cls, text: str, models: StoredModels) -> QueryCodes:
        """Find the codes in a query.

        Codes, and long numbers that no item has, are no words: encoders would find items with a
        similar spelling. An id that may be a word or a small number counts only if it is the whole
        query. It counts half as much as that word in a text of average length, and is read as a
        word too: for the query 2001, the film of that title comes before item 2001.
        """
        keys = models.code_keys

        def is_known(term: str) -> bool:
            return keys.n_with(term) > 0

        codes = codes_in(text, is_known)
        rest = without_codes(text, codes)
        if codes:
            return cls(codes, 1, rest, keys, is_exact=not rest, are_certain=True)
        whole = whole_as_id(text, is_known)
        if whole is None:
            return cls([], 1, rest, keys)
        as_code = keys.postings(whole.term)[1][0]
        as_word = idf([whole.text], models.lexical_keys, models.analyzer)[0] / 2
        is_exact = bool(DIGIT(whole.term)) and not models.words.has(whole.term)
        return cls([whole], float(as_word / as_code) or 1, rest, keys, is_exact)

    def head(self, catalog: StoredCatalog) -> Scores | None:
        """Return the scores of all items, in the units of words, with parts that name the column of
        the code; None where no item has one.
        """
        scores = self.keys.head(self.tokens) if self.tokens else None
        if scores is None:
            return None
        weight = self.weight

        def parts(position: int) -> Components:
            components = []
            for part in scores.parts(position):
                key = self._with_column(catalog, position, part.query)
                components.append(part._replace(key=key, value=weight * part.value))
            return Components.of(components)

        return replace(scores, scores=np.float32(weight) * scores.scores, parts=parts)

    def cells(self, catalog: StoredCatalog, position: int) -> dict[str, list[str]]:
        """Return the cells of an item that are these codes, by column."""
        terms = {token.term for token in self.tokens}
        if not terms:
            return {}
        cells = {}
        for name, cell in catalog.row(position).items():
            codes = [entry for entry in _entries(cell) if terms.intersection(code_forms(entry))]
            if codes:
                cells[name] = codes
        return cells

    def _with_column(self, catalog: StoredCatalog, position: int, word: str) -> str:
        """Return a code of an item with its column, as in "SKU 000467".

        Return the word itself where no cell equals it.
        """
        term = next(token.term for token in self.tokens if token.text == word)
        row = catalog.row(position)
        for column in catalog.catalog_columns:
            for entry in _entries(row[column.stored]):
                if term in code_forms(entry):
                    return f"{column.name} {entry}"
        return word


def _entries(cell: object) -> list[str]:
    """Return a cell, and the entries of a list."""
    text = "" if cell is None else str(cell)
    return list(dict.fromkeys([text, *text.split(LIST_SEPARATOR)]))

"""What of a query is an id or another code of an item, and what is left to be read as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from qkvsearch.index import StoredModels
from qkvsearch.retrieval import Components, ScoreComponent, Scores, TermKeys
from qkvsearch.retrieval.late_interaction import idf
from qkvsearch.storage import StoredCatalog
from qkvsearch.text.analysis import Token, fold
from qkvsearch.text.product_codes import codes_in, whole_as_id, without_codes


@dataclass(frozen=True)
class QueryCodes:
    """tokens: the codes that some item has. weight: of them, as a factor. rest: the query without
    them, as what has a meaning.
    """

    tokens: Sequence[Token]
    weight: float
    rest: str
    keys: TermKeys

    @classmethod
    def of(cls, text: str, models: StoredModels) -> QueryCodes:
        """A code is no word, nor is a long number that no item has: encoders would find what is
        spelled alike. An id that may be a word or a small number counts only as all of the query,
        half as much as that word does in a text of average length, and is read as one, too: who
        asks for 2001 means the film before the number of another.
        """
        keys = models.code_keys

        def is_known(term: str) -> bool:
            return keys.n_with(term) > 0

        codes = codes_in(text, is_known)
        rest = without_codes(text, codes)
        if codes:
            return cls(codes, 1, rest, keys)
        whole = whole_as_id(text, is_known)
        if whole is None:
            return cls([], 1, rest, keys)
        as_code = keys.postings(whole.term)[1][0]
        as_word = idf([whole.text], models.lexical_keys, models.analyzer)[0] / 2
        return cls([whole], float(as_word / as_code) or 1, rest, keys)

    def head(self, catalog: StoredCatalog) -> Scores | None:
        """Scores of all items, in the units of words; each part says in which column the code is,
        None where no item has one.
        """
        found = self.keys.head(self.tokens) if self.tokens else None
        if found is None:
            return None
        weight = self.weight

        def parts(position: int) -> Components:
            return Components.of(map(partial(placed, position), found.parts(position)))

        def placed(position: int, part: ScoreComponent) -> ScoreComponent:
            place = self._place(catalog, position, part.query)
            return part._replace(key=place, value=weight * part.value)

        return replace(found, scores=np.float32(weight) * found.scores, parts=parts)

    def cells(self, catalog: StoredCatalog, position: int) -> dict[str, list[str]]:
        """An item's cells that are these codes, by column."""
        terms = {token.term for token in self.tokens}
        if not terms:
            return {}
        row = catalog.row(position)
        return {name: [str(cell)] for name, cell in row.items() if _term(cell) in terms}

    def _place(self, catalog: StoredCatalog, position: int, word: str) -> str:
        """Where an item has a code, as in "SKU 000467"; the word itself where no cell is it."""
        term = next(token.term for token in self.tokens if token.text == word)
        row = catalog.row(position)
        places = (
            f"{column.name} {row[column.stored]}"
            for column in catalog.catalog_columns
            if _term(row[column.stored]) == term
        )
        return next(places, word)


def _term(cell: object) -> str:
    return "" if cell is None else fold(" ".join(str(cell).split()))

"""The stored codes of items: which item a query means that has an id or an article number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.stored.part import Addition, BuildReader
from qkvsearch.stored.terms import TERM_FORMS, TermsPart
from qkvsearch.texts.codes import cell_codes, code_columns, code_terms
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import BuildContents, Snapshot
from qkvsearch.workspace.segments import Segment

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog

# The fact that names the columns of codes, which a build decides by all its items.
COLUMNS = "code_columns"


@dataclass(frozen=True)
class CodesPart(TermsPart):
    """Beside the words, whose weights depend on how long a text is: a code is no part of a text.
    Builds from before there were codes have none.
    """

    group: str = "codes"
    arrays: ClassVar = TERM_FORMS

    def store(self, contents: BuildContents, catalog: Catalog) -> None:
        contents.facts[COLUMNS] = code_columns(catalog)
        self.store_counts(contents, _counts(catalog, contents.facts[COLUMNS]), len(catalog))

    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        self.put_keys(contents, LexicalKeys.weighed(counts, np.zeros(n_items, np.float32)))

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        contents.facts[COLUMNS] = self._columns(addition.former)
        counts = _counts(addition.catalog, contents.facts[COLUMNS])
        terms = counts.vocabulary.terms
        self.put(contents, terms=terms, indptr=counts.indptr, indices=counts.items)

    def merge(self, contents: BuildContents, build: BuildReader, progress: Progress) -> None:
        contents.facts[COLUMNS] = self._columns(build)
        super().merge(contents, build, progress)

    def segment_counts(self, segment: Segment) -> TermCounts:
        terms, indptr, indices = self.piece(segment, "terms", "indptr", "indices").values()
        return TermCounts(Vocabulary(terms), indptr, indices, np.ones(len(indices), np.uint8))

    def norms(self, build: Snapshot) -> np.ndarray:
        return np.zeros(len(build.rows), np.float32)

    def _columns(self, build: BuildReader) -> list[str]:
        """In a build that does not say so, the columns of which every cell that looks like a code
        is one of its item's.
        """
        snapshot = build.snapshot
        if COLUMNS in snapshot.facts:
            return list(snapshot.facts[COLUMNS])
        import pandas as pd

        counts = self.segment_counts(snapshot.base)
        terms = np.repeat(counts.vocabulary.terms, np.diff(counts.indptr))
        known = set(zip(terms.tolist(), counts.items.tolist(), strict=True))
        tables = snapshot.tables
        cells = pd.DataFrame(tables.cells(), columns=tables.columns, dtype=object)
        found = {name: cell_codes(cells[name]) for name in tables.columns[1:]}
        return [name for name, codes in found.items() if codes and codes <= known]


def _counts(catalog: Catalog, columns: Sequence[str]) -> TermCounts:
    """Each code once."""
    codes, items = code_terms(catalog, columns)
    terms, begins = np.unique(codes, return_index=True)
    indptr = np.append(begins, len(codes)).astype(np.int64)
    ones = np.ones(len(codes), np.uint8)
    return TermCounts(Vocabulary(terms), indptr, items.astype(np.int32), ones)

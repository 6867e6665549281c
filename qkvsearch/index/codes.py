"""The stored codes of items: which item a query means that has an id or an article number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.index.component import Addition
from qkvsearch.index.terms import TERM_FORMS, TermsComponent
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.segments import Segment
from qkvsearch.text.codes import code_columns, code_terms
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog

# The fact that names the columns of codes, which a build decides by all its items.
COLUMNS = "code_columns"


@dataclass(frozen=True)
class CodesComponent(TermsComponent):
    """Beside the words, whose weights depend on how long a text is: a code is no part of a text."""

    group: str = "codes"
    arrays: ClassVar = TERM_FORMS

    def store(self, contents: BuildContents, catalog: Catalog) -> None:
        contents.facts[COLUMNS] = code_columns(catalog)
        self.store_counts(contents, _counts(catalog, contents.facts[COLUMNS]), len(catalog))

    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        self.put_keys(contents, LexicalKeys.weighed(counts, np.zeros(n_items, np.float32)))

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        counts = _counts(addition.catalog, contents.facts[COLUMNS])
        terms = counts.vocabulary.terms
        self.put(contents, terms=terms, indptr=counts.indptr, indices=counts.items)

    def segment_counts(self, segment: Segment) -> TermCounts:
        terms, indptr, indices = self.piece(segment, "terms", "indptr", "indices").values()
        return TermCounts(Vocabulary(terms), indptr, indices, np.ones(len(indices), np.uint8))

    def norms(self, build: Snapshot) -> np.ndarray:
        return np.zeros(len(build.rows), np.float32)


def _counts(catalog: Catalog, columns: Sequence[str]) -> TermCounts:
    """Each code once."""
    codes, items = code_terms(catalog, columns)
    terms, begins = np.unique(codes, return_index=True)
    indptr = np.append(begins, len(codes)).astype(np.int64)
    ones = np.ones(len(codes), np.uint8)
    return TermCounts(Vocabulary(terms), indptr, items.astype(np.int32), ones)

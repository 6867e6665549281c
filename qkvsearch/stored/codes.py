"""The stored codes of items: which item a query means that has an id or an article number in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.stored.part import BuildReader, Change, StoredPart, unmoved
from qkvsearch.texts.codes import code_terms
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import BuildContents

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog


@dataclass(frozen=True)
class CodesPart(StoredPart[LexicalKeys]):
    """Beside the words, whose weights depend on how long a text is: a code is no part of a text.
    Builds from before there were codes have none.
    """

    group: str = "codes"
    arrays: ClassVar = ("terms", "indptr", "indices", "weights")

    def store(self, contents: BuildContents, catalog: Catalog) -> None:
        codes, items = code_terms(catalog)
        terms, begins = np.unique(codes, return_index=True)
        indptr = np.append(begins, len(codes)).astype(np.int64)
        n_items = len(catalog)
        keys = LexicalKeys.from_names(Vocabulary(terms), indptr, items.astype(np.int32), n_items)
        self.put(contents, terms=terms, indptr=indptr, indices=keys.indices, weights=keys.weights)

    def load(self, build: BuildReader) -> LexicalKeys:
        arrays = self.read_all(build.snapshot)
        return LexicalKeys(Vocabulary(arrays.pop("terms")), n_items=build.n_items, **arrays)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Which columns hold codes depends on all items."""
        if unmoved(change.origin, change.former.n_items) and not change.replaced:
            self.share(contents, *self.arrays)
        else:
            self.store(contents, change.catalog)

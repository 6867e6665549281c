"""The stored codes of items: which item a query means that has an id or an article number in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.stored.part import BuildReader, Change, StoredPart
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
        self.put(contents, **_arrays(catalog))

    def load(self, build: BuildReader) -> LexicalKeys:
        arrays = self.read_all(build.snapshot)
        return LexicalKeys(Vocabulary(arrays.pop("terms")), n_items=build.n_items, **arrays)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Made afresh, since which columns hold codes depends on all items."""
        former, arrays = self.read_all(change.former.snapshot), _arrays(change.catalog)
        if all(np.array_equal(former[name], array) for name, array in arrays.items()):
            self.share(contents, *self.arrays)
        else:
            self.put(contents, **arrays)


def _arrays(catalog: Catalog) -> dict[str, np.ndarray]:
    codes, items = code_terms(catalog)
    terms, begins = np.unique(codes, return_index=True)
    indptr = np.append(begins, len(codes)).astype(np.int64)
    keys = LexicalKeys.from_names(Vocabulary(terms), indptr, items.astype(np.int32), len(catalog))
    return {"terms": terms, "indptr": indptr, "indices": keys.indices, "weights": keys.weights}

"""Stored keys that are searched by term: the lexical head's and, beside them, the items' codes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.index.component import Addition, ArraySpec, IndexComponent
from qkvsearch.retrieval import LexicalKeys, TermKeys
from qkvsearch.retrieval.keys import CountedKeys, length_norms
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.segments import Segment
from qkvsearch.text.product_codes import code_columns, code_terms
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from qkvsearch.data.catalog import Catalog
    from qkvsearch.index import StoredModels

# The fact that names the columns of codes, which a build decides by all its items.
COLUMNS = "code_columns"
TERM_ARRAYS = {
    "terms": ArraySpec("S", ("terms",)),
    "indptr": ArraySpec("i", ("terms",), spans="entries"),
    "indices": ArraySpec("i", ("entries",), below="items"),
    "weights": ArraySpec("f", ("entries",)),
}


class TermsComponent(IndexComponent[TermKeys]):
    """Every weight depends on all items. So the base has the weights of its own, and beside
    segments they are made of the counts of all.
    """

    @abstractmethod
    def segment_counts(self, segment: Segment) -> TermCounts:
        """Of its own rows."""

    @abstractmethod
    def norms(self, snapshot: Snapshot) -> np.ndarray:
        """As in `bm25`, float32 (n_items,)."""

    @abstractmethod
    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        """Add the arrays of a whole build."""

    def load(self, models: StoredModels) -> TermKeys:
        snapshot = models.snapshot
        if snapshot.rows.is_plain:
            arrays = self.piece(snapshot.base, *TERM_ARRAYS)
            return LexicalKeys(Vocabulary(arrays.pop("terms")), n_items=models.n_items, **arrays)
        (base, place), *others = self._counts(snapshot)
        added = TermCounts.joined([counts.placed(to) for counts, to in others])
        return CountedKeys(base, place, added, self.norms(snapshot), models.n_items)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        if models.snapshot.rows.is_plain:
            self.share(contents, models.snapshot, *self.names_in(models.snapshot))
        else:
            pieces = [counts.placed(to) for counts, to in self._counts(models.snapshot)]
            self.store_counts(contents, TermCounts.joined(pieces), models.n_items)

    def put_keys(self, contents: BuildContents, keys: LexicalKeys) -> None:
        """Add what `load` reads of a whole build."""
        postings = {name: getattr(keys, name) for name in list(TERM_ARRAYS)[1:]}
        self.put(contents, terms=keys.vocabulary.terms, **postings)

    def _counts(self, snapshot: Snapshot) -> Iterator[tuple[TermCounts, np.ndarray]]:
        """Of each segment, with the row number that each of its rows has now."""
        start = 0
        for segment in snapshot.with_items:
            end = start + segment.n_rows
            yield self.segment_counts(segment), snapshot.rows.item_rows[start:end]
            start = end


@dataclass(frozen=True)
class LexicalComponent(TermsComponent):
    """counts: how often an item has a term. lengths: how many words each item has."""

    group: str = "lexical"
    arrays: ClassVar = TERM_ARRAYS | {
        "counts": ArraySpec("iu", ("entries",)),
        "lengths": ArraySpec("i", ("items",), rows="texts"),
    }

    def store(
        self, contents: BuildContents, vocabulary: Vocabulary, counts: csr_matrix | csc_matrix
    ) -> None:
        """counts: how often each item has each term, (n_items, n_terms)."""
        self.store_counts(contents, TermCounts.from_matrix(vocabulary, counts), counts.shape[0])

    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        lengths = counts.lengths(n_items)
        self.put_keys(contents, LexicalKeys.weighed(counts, length_norms(lengths)))
        self.put(contents, counts=_narrow(counts.counts), lengths=lengths)

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        analyzer = addition.former.analyzer
        texts = addition.catalog.texts()
        counts = TermCounts.of_texts([analyzer.key_terms(text) for text in texts])
        self.put(
            contents,
            terms=counts.vocabulary.terms,
            indptr=counts.indptr,
            indices=counts.items,
            counts=_narrow(counts.counts),
            lengths=counts.lengths(len(texts)),
        )

    def segment_counts(self, segment: Segment) -> TermCounts:
        found = self.piece(segment, "terms", "indptr", "indices", "counts")
        terms, indptr, indices, counts = found.values()
        return TermCounts(Vocabulary(terms), indptr, indices, counts)

    def norms(self, snapshot: Snapshot) -> np.ndarray:
        return length_norms(self.read(snapshot, "lengths")["lengths"])


def _narrow(counts: np.ndarray) -> np.ndarray:
    """Whole numbers in as few bytes as the largest needs."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


@dataclass(frozen=True)
class CodesComponent(TermsComponent):
    """Beside the words, whose weights depend on how long a text is: a code is no part of a text."""

    group: str = "codes"
    arrays: ClassVar = TERM_ARRAYS

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

    def norms(self, snapshot: Snapshot) -> np.ndarray:
        return np.zeros(len(snapshot.rows), np.float32)


def _counts(catalog: Catalog, columns: Sequence[str]) -> TermCounts:
    """Each code once."""
    codes, items = code_terms(catalog, columns)
    terms, begins = np.unique(codes, return_index=True)
    indptr = np.append(begins, len(codes)).astype(np.int64)
    ones = np.ones(len(codes), np.uint8)
    return TermCounts(Vocabulary(terms), indptr, items.astype(np.int32), ones)

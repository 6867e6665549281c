"""The stored lexical head: term counts of all items, and the BM25 weights that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.index.component import Addition
from qkvsearch.index.schema import ArraySpec
from qkvsearch.index.terms import TERM_FORMS, TermsComponent
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.keys import length_norms
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.segments import Segment
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix


@dataclass(frozen=True)
class LexicalComponent(TermsComponent):
    """counts: how often an item has a term. lengths: how many words each item has."""

    group: str = "lexical"
    arrays: ClassVar = TERM_FORMS | {
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

    def norms(self, build: Snapshot) -> np.ndarray:
        return length_norms(self.read(build, "lengths")["lengths"])


def _narrow(counts: np.ndarray) -> np.ndarray:
    """Whole numbers in as few bytes as the largest needs."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))

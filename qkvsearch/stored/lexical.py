"""The stored lexical head: term counts of all items, and the BM25 weights that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.stored.part import BuildReader, Change, StoredPart, places
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import BuildContents, Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix


class _Counts(NamedTuple):
    """Entries (n,): a row of `terms`, a row of the items, and a count; those of a pair add up."""

    terms: np.ndarray
    rows: np.ndarray
    items: np.ndarray
    values: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """The terms that some item has."""
        return self.terms[np.bincount(self.rows, minlength=len(self.terms)) > 0]


@dataclass(frozen=True)
class LexicalPart(StoredPart[LexicalKeys]):
    """Every weight depends on all items, so the counts are kept to make all weights anew from."""

    group: str = "lexical"
    arrays: ClassVar = ("terms", "indptr", "indices", "weights", "counts")

    def store(
        self, contents: BuildContents, vocabulary: Vocabulary, counts: csr_matrix | csc_matrix
    ) -> None:
        """counts: how often each item has each term, (n_items, n_terms)."""
        by_term = counts.tocsc()
        by_term.sort_indices()
        keys = LexicalKeys.from_counts(vocabulary, by_term)
        most = int(by_term.data.max(initial=0))
        self.put(
            contents,
            counts=by_term.data.astype(np.min_scalar_type(most)),
            terms=keys.vocabulary.terms,
            indptr=keys.indptr,
            indices=keys.indices,
            weights=keys.weights,
        )

    def load(self, build: BuildReader) -> LexicalKeys:
        names = ("indptr", "indices", "weights")
        postings = {name: self.read(build.snapshot, name) for name in names}
        vocabulary = Vocabulary(self.read(build.snapshot, "terms"))
        return LexicalKeys(vocabulary, n_items=build.n_items, **postings)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Bit by bit what a fresh build has, from the counts that are there and new texts alone."""
        if change.keeps_texts:
            self.share(contents, *self.arrays)
            return
        former = change.former
        pieces = [self._kept(former.snapshot, places(change.read, former.n_items))]
        texts = ["\n".join(columns) for columns in zip(*change.new_fields, strict=True)]
        if texts:
            pieces.append(_counted(texts, np.flatnonzero(change.unread)))
        self.store(contents, *_joined(pieces, len(change.read)))

    def _kept(self, build: Snapshot, place: np.ndarray) -> _Counts:
        """The former build's counts, in the items' new places."""
        arrays = self.read_all(build)
        items = place[arrays["indices"]]
        stays = items >= 0
        rows = np.repeat(np.arange(len(arrays["terms"])), np.diff(arrays["indptr"]))
        return _Counts(arrays["terms"], rows[stays], items[stays], arrays["counts"][stays])


def _counted(texts: Sequence[str], place: np.ndarray) -> _Counts:
    """An entry a word. `count_terms` would import scikit-learn, which takes longer than that."""
    analyzer = Analyzer()
    found = [analyzer.key_terms(text) for text in texts]
    vocabulary = Vocabulary.of(set().union(*found))
    rows = vocabulary.rows(term for terms in found for term in terms)
    items = np.repeat(place, [len(terms) for terms in found])
    return _Counts(vocabulary.terms, rows, items, np.ones(len(rows), dtype=np.float32))


def _joined(pieces: Sequence[_Counts], n_items: int) -> tuple[Vocabulary, csc_matrix]:
    """The terms that there are, in a width that the longest needs, and counts of all items."""
    from scipy.sparse import csc_matrix

    terms = np.unique(np.concatenate([piece.used for piece in pieces]))
    rows = [np.searchsorted(terms, piece.terms)[piece.rows] for piece in pieces]
    values = np.concatenate([piece.values for piece in pieces]).astype(np.float32)
    cells = np.concatenate([piece.items for piece in pieces]), np.concatenate(rows)
    vocabulary = Vocabulary.of([])
    if len(terms):
        vocabulary = Vocabulary(terms.astype(f"S{np.char.str_len(terms).max()}"))
    return vocabulary, csc_matrix((values, cells), shape=(n_items, len(vocabulary)))

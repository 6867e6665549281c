"""The lexical arrays for other items than before, bit by bit those of a fresh build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch.revision.items import places, unmoved
from qkvsearch.stored import store_lexical
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import BuildContents, Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix


class Counts(NamedTuple):
    """How often items have terms: rows of `terms`, row numbers of items, and counts, all (n,).
    Those of one pair add up.
    """

    terms: np.ndarray
    rows: np.ndarray
    items: np.ndarray
    values: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """The terms that some item has."""
        return self.terms[np.bincount(self.rows, minlength=len(self.terms)) > 0]


def remake_lexical(
    contents: BuildContents, build: Snapshot, read: np.ndarray, texts: Sequence[str]
) -> None:
    """From the counts of the texts that were read, and of `texts`, of the others in their order.

    read: int64 (n_items,), row numbers in the former build, −1 for the others.
    """
    n_former = build.facts["n_items"]
    if unmoved(read, n_former):
        contents.shared |= {name for name in build.facts["files"] if name.startswith("lexical.")}
        return
    parts = [_stored(build, places(read, n_former))]
    if texts:
        parts.append(_counted(texts, np.flatnonzero(read < 0)))
    store_lexical(contents, *_joined(parts, len(read)))


def _stored(build: Snapshot, place: np.ndarray) -> Counts:
    """Those of the former build, in their new places."""
    names = ("terms", "indptr", "indices", "counts")
    terms, indptr, indices, values = (build.array(f"lexical.{name}") for name in names)
    items = place[indices]
    stays = items >= 0
    rows = np.repeat(np.arange(len(terms)), np.diff(indptr))
    return Counts(terms, rows[stays], items[stays], values[stays])


def _counted(texts: Sequence[str], place: np.ndarray) -> Counts:
    """An entry a word. `count_terms` would import scikit-learn, which takes longer than that."""
    analyzer = Analyzer()
    found = [analyzer.key_terms(text) for text in texts]
    vocabulary = Vocabulary.of(set().union(*found))
    rows = vocabulary.rows(term for terms in found for term in terms)
    items = np.repeat(place, [len(terms) for terms in found])
    return Counts(vocabulary.terms, rows, items, np.ones(len(rows), dtype=np.float32))


def _joined(parts: Sequence[Counts], n_items: int) -> tuple[Vocabulary, csc_matrix]:
    """The terms that there are, in a width that the longest needs, and counts of all items."""
    from scipy.sparse import csc_matrix

    terms = np.unique(np.concatenate([part.used for part in parts]))
    rows = [np.searchsorted(terms, part.terms)[part.rows] for part in parts]
    values = np.concatenate([part.values for part in parts]).astype(np.float32)
    places = np.concatenate([part.items for part in parts]), np.concatenate(rows)
    vocabulary = Vocabulary.of([])
    if len(terms):
        vocabulary = Vocabulary(terms.astype(f"S{np.char.str_len(terms).max()}"))
    return vocabulary, csc_matrix((values, places), shape=(n_items, len(vocabulary)))

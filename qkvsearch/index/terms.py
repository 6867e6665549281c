"""What the lexical head and the codes have in common: keys that are asked by term."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.index.component import BuildReader, IndexComponent
from qkvsearch.index.schema import ArraySpec
from qkvsearch.retrieval import LexicalKeys, TermKeys
from qkvsearch.retrieval.keys import CountedKeys
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.segments import Segment
from qkvsearch.text.vocabulary import Vocabulary

TERM_FORMS = {
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
    def norms(self, build: Snapshot) -> np.ndarray:
        """As in `bm25`, float32 (n_items,)."""

    @abstractmethod
    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        """Add the arrays of a whole build."""

    def load(self, build: BuildReader) -> TermKeys:
        snapshot = build.snapshot
        if snapshot.rows.is_plain:
            arrays = self.piece(snapshot.base, *TERM_FORMS)
            return LexicalKeys(Vocabulary(arrays.pop("terms")), n_items=build.n_items, **arrays)
        (base, place), *others = self._counts(snapshot)
        added = TermCounts.joined([counts.placed(to) for counts, to in others])
        return CountedKeys(base, place, added, self.norms(snapshot), build.n_items)

    def merge(self, contents: BuildContents, build: BuildReader, progress: Progress) -> None:
        if build.snapshot.rows.is_plain:
            self.share(contents, build.snapshot, *self.names_in(build.snapshot))
        else:
            pieces = [counts.placed(to) for counts, to in self._counts(build.snapshot)]
            self.store_counts(contents, TermCounts.joined(pieces), build.n_items)

    def put_keys(self, contents: BuildContents, keys: LexicalKeys) -> None:
        """Add what `load` reads of a whole build."""
        postings = {name: getattr(keys, name) for name in list(TERM_FORMS)[1:]}
        self.put(contents, terms=keys.vocabulary.terms, **postings)

    def _counts(self, build: Snapshot) -> Iterator[tuple[TermCounts, np.ndarray]]:
        """Of each segment, with the row number that each of its rows has now."""
        start = 0
        for segment in build.with_items:
            end = start + segment.n_rows
            yield self.segment_counts(segment), build.rows.place[start:end]
            start = end

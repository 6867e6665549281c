"""The stored words of every item in order, as they are spelled: for phrases and typos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.index.component import Addition, ArraySpec, IndexComponent
from qkvsearch.retrieval.word_index import WordIndex, WordSequences
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.segments import Segment
from qkvsearch.text.analysis import Analyzer

if TYPE_CHECKING:
    from qkvsearch.index import StoredModels


@dataclass(frozen=True)
class WordsComponent(IndexComponent[WordIndex]):
    """The words of all items. The lexical keys do not have their order."""

    group: str = "words"
    arrays: ClassVar = {
        "spellings": ArraySpec("S", ("spellings",)),
        "terms": ArraySpec("S", ("spellings",)),
        "indptr": ArraySpec("i", ("items",), spans="words"),
        "words": ArraySpec("i", ("words",), below="spellings"),
    }

    def store(
        self, contents: BuildContents, fields: Sequence[Sequence[str]], analyzer: Analyzer
    ) -> None:
        """fields: the text columns, each with one text an item."""
        self._put(contents, WordSequences.of_fields(fields, analyzer))

    def load(self, models: StoredModels) -> WordIndex:
        return WordIndex(list(self._sequences_of(models.snapshot)), models.n_items)

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        self.store(contents, addition.catalog.fields(), addition.previous.analyzer)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        snapshot = models.snapshot
        if snapshot.rows.is_plain:
            self.share(contents, snapshot, *self.arrays)
        else:
            self._put(contents, _joined(list(self._sequences_of(snapshot)), models.n_items))

    def _put(self, contents: BuildContents, sequences: WordSequences) -> None:
        self.put(contents, **{name: getattr(sequences, name) for name in self.arrays})

    def _sequences_of(self, snapshot: Snapshot) -> Iterator[tuple[WordSequences, np.ndarray]]:
        start = 0
        for segment in snapshot.with_items:
            end = start + segment.n_rows
            yield self._sequences(segment), snapshot.rows.item_rows[start:end]
            start = end

    def _sequences(self, segment: Segment) -> WordSequences:
        return WordSequences(**self.piece(segment, *self.arrays))


def _joined(pieces: Sequence[tuple[WordSequences, np.ndarray]], n_items: int) -> WordSequences:
    """Join sequences in the order of the item rows, without spellings that no item has."""
    texts: list[np.ndarray] = [np.zeros(0, np.int64)] * n_items
    spelled = np.concatenate([words.spellings for words, _ in pieces])
    matched = np.concatenate([words.terms for words, _ in pieces])
    start = 0
    for words, item_rows in pieces:
        for row in np.flatnonzero(item_rows >= 0).tolist():
            own = words.words[words.indptr[row] : words.indptr[row + 1]]
            texts[item_rows[row]] = own.astype(np.int64) + start
        start += len(words.spellings)
    all_words = np.concatenate(texts)
    spellings, first, numbers = np.unique(
        spelled[all_words], return_index=True, return_inverse=True
    )
    indptr = np.cumsum([0, *map(len, texts)])
    return WordSequences(spellings, matched[all_words[first]], indptr, numbers.astype(np.int32))

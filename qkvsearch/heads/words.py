"""What a build stores of words: the lexical keys, the items' codes, and the words in order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.bm25 import CountedKeys, LexicalKeys, TermCounts, TermKeys, length_norms
from qkvsearch.heads.component import Addition, ArraySpec, IndexComponent
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.segments import Segment
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.product_codes import code_columns, code_terms
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.tables.catalog import Catalog

# The fact that names the columns of codes, chosen when the whole catalog was read.
COLUMNS = "code_columns"
TERM_ARRAYS = {
    "terms": ArraySpec("S", ("terms",)),
    "indptr": ArraySpec("i", ("terms",), spans="entries"),
    "indices": ArraySpec("i", ("entries",), below="items"),
    "weights": ArraySpec("f", ("entries",)),
}


class TermsComponent(IndexComponent[TermKeys]):
    """Keys that are searched by term.

    Every weight depends on all items. A base stores the weights of its own items; with segments the
    weights are computed from the counts of all.
    """

    @abstractmethod
    def segment_counts(self, segment: Segment) -> TermCounts:
        """Read the counts of a segment by its own rows."""

    @abstractmethod
    def norms(self, snapshot: Snapshot) -> np.ndarray:
        """Return the length norms of BM25, float32 (n_items,)."""

    @abstractmethod
    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        """Add the arrays of a whole build."""

    def rarity(self, snapshot: Snapshot) -> Mapping[str, float]:
        """Return `TermKeys.rarity`."""
        return {}

    def load(self, models: StoredModels) -> TermKeys:
        snapshot = models.snapshot
        n_items, rarity = models.n_items, self.rarity(snapshot)
        if snapshot.rows.is_plain:
            arrays = self.piece(snapshot.base, *TERM_ARRAYS)
            vocabulary = Vocabulary(arrays.pop("terms"))
            return LexicalKeys(vocabulary, n_items=n_items, rarity=rarity, **arrays)
        (base, item_rows), *others = self._counts(snapshot)
        added = TermCounts.joined([counts.renumbered(item_rows) for counts, item_rows in others])
        return CountedKeys(base, item_rows, added, self.norms(snapshot), n_items, rarity)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        if models.snapshot.rows.is_plain:
            self.share(contents, models.snapshot, *self.names_in(models.snapshot))
        else:
            pieces = [
                counts.renumbered(item_rows) for counts, item_rows in self._counts(models.snapshot)
            ]
            self.store_counts(contents, TermCounts.joined(pieces), models.n_items)

    def put_keys(self, contents: BuildContents, keys: LexicalKeys) -> None:
        """Add the arrays that `load` reads from a base."""
        postings = {name: getattr(keys, name) for name in list(TERM_ARRAYS)[1:]}
        self.put(contents, terms=keys.vocabulary.terms, **postings)

    def _counts(self, snapshot: Snapshot) -> Iterator[tuple[TermCounts, np.ndarray]]:
        """Yield the counts of each segment, and the item row of each of its rows."""
        for segment, item_rows in snapshot.item_rows_by_segment():
            yield self.segment_counts(segment), item_rows


@dataclass(frozen=True)
class LexicalComponent(TermsComponent):
    """The lexical head. counts: how often an item has a term. lengths: words of each item. common,
    rarity: terms that are common in the language, and their `word_rarity`.
    """

    group: str = "lexical"
    arrays: ClassVar = TERM_ARRAYS | {
        "counts": ArraySpec("iu", ("entries",)),
        "lengths": ArraySpec("i", ("items",), rows="texts"),
        "common": ArraySpec("S", ("common",)),
        "rarity": ArraySpec("f", ("common",)),
    }

    def store(
        self,
        contents: BuildContents,
        vocabulary: Vocabulary,
        counts: csr_matrix | csc_matrix,
        rarity: Mapping[str, float],
    ) -> None:
        """counts: how often each item has each term, (n_items, n_terms)."""
        self.store_counts(contents, TermCounts.from_matrix(vocabulary, counts), counts.shape[0])
        common = Vocabulary.of(rarity)
        weights = [rarity.get(term.decode(), 1.0) for term in common.terms.tolist()]
        self.put(contents, common=common.terms, rarity=np.array(weights))

    def store_counts(self, contents: BuildContents, counts: TermCounts, n_items: int) -> None:
        lengths = counts.lengths(n_items)
        self.put_keys(contents, LexicalKeys.weighed(counts, length_norms(lengths)))
        self.put(contents, counts=_narrow(counts.counts), lengths=lengths)

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        analyzer = addition.previous.analyzer
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
        arrays = self.piece(segment, "terms", "indptr", "indices", "counts")
        terms, indptr, indices, counts = arrays.values()
        return TermCounts(Vocabulary(terms), indptr, indices, counts)

    def norms(self, snapshot: Snapshot) -> np.ndarray:
        return length_norms(self.read(snapshot, "lengths")["lengths"])

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        super().merge(contents, models, progress)
        self.share(contents, models.snapshot, "common", "rarity")

    def rarity(self, snapshot: Snapshot) -> Mapping[str, float]:
        common, rarity = self.read(snapshot, "common", "rarity").values()
        return dict(zip(map(bytes.decode, common.tolist()), rarity.tolist(), strict=True))


def _narrow(counts: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest dtype that fits."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


@dataclass(frozen=True)
class CodesComponent(TermsComponent):
    """The items' codes. Their weights do not depend on the length of a text."""

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
    """Count each code of an item once."""
    codes, items = code_terms(catalog, columns)
    terms, begins = np.unique(codes, return_index=True)
    indptr = np.append(begins, len(codes)).astype(np.int64)
    ones = np.ones(len(codes), np.uint8)
    return TermCounts(Vocabulary(terms), indptr, items.astype(np.int32), ones)


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
        for segment, item_rows in snapshot.item_rows_by_segment():
            yield WordSequences(**self.piece(segment, *self.arrays)), item_rows


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

"""What a build stores of words: the lexical keys, the items' codes, and the words in order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.bm25 import CountedKeys, LexicalKeys, TermCounts, TermKeys, length_norms
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.product_codes import code_columns, code_terms
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from qkvsearch.tables.catalog import Catalog

# The fact that names the columns of codes, chosen when the whole catalog was read.
COLUMNS = "code_columns"
TERM_ARRAYS = {
    "terms": ArraySpec("S", ("terms",), rows="own"),
    "indptr": ArraySpec("i", ("terms",), rows="own", lists="entries"),
    "indices": ArraySpec("i", ("entries",), rows="own", below="items"),
    "weights": ArraySpec("f", ("entries",), rows="own"),
}


class TermsComponent(IndexComponent[TermKeys]):
    """Keys that are searched by term.

    Every weight depends on all items. A base stores the weights of its own items. Where items were
    added or deleted, the weights are computed from the counts of all segments.
    """

    # The arrays of a segment that `counts_of` reads.
    count_arrays: ClassVar[Sequence[str]]

    @abstractmethod
    def counts_of(self, arrays: Mapping[str, np.ndarray]) -> TermCounts:
        """Return the counts of a segment by its own rows."""

    @abstractmethod
    def norms(self, snapshot: Snapshot) -> np.ndarray:
        """Return the length norms of BM25, float32 (n_items,)."""

    @abstractmethod
    def base_of(self, counts: TermCounts, n_items: int) -> dict[str, np.ndarray]:
        """Return the arrays of a base with these counts."""

    def rarity(self, snapshot: Snapshot) -> Mapping[str, float]:
        """Return `TermKeys.rarity`."""
        return {}

    def load(self, models: BuildModels) -> TermKeys:
        snapshot = models.snapshot
        n_items = snapshot.facts["n_items"]
        rarity = self.rarity(snapshot)
        if snapshot.rows.is_plain:
            arrays = self.base_arrays(snapshot, *TERM_ARRAYS)
            vocabulary = Vocabulary(arrays.pop("terms"))
            return LexicalKeys(vocabulary, n_items=n_items, rarity=rarity, **arrays)
        (base, item_rows), *others = self.counts_by_segment(snapshot)
        added = TermCounts.joined([counts.renumbered(item_rows) for counts, item_rows in others])
        return CountedKeys(base, item_rows, added, self.norms(snapshot), n_items, rarity)

    def joined(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        pieces = [
            counts.renumbered(item_rows) for counts, item_rows in self.counts_by_segment(snapshot)
        ]
        return self.base_of(TermCounts.joined(pieces), snapshot.facts["n_items"])

    def counts_by_segment(self, snapshot: Snapshot) -> Iterator[tuple[TermCounts, np.ndarray]]:
        """Yield the counts of each segment, and the item row of each of its rows."""
        for arrays, item_rows in self.pieces(snapshot, *self.count_arrays):
            yield self.counts_of(arrays), item_rows


def _postings(keys: LexicalKeys) -> dict[str, np.ndarray]:
    """Return the arrays that `TermsComponent.load` reads from a base."""
    return {
        "terms": keys.vocabulary.terms,
        "indptr": keys.indptr,
        "indices": keys.indices,
        "weights": keys.weights,
    }


@dataclass(frozen=True)
class LexicalComponent(TermsComponent):
    """The lexical head."""

    group: str = "lexical"
    arrays: ClassVar = TERM_ARRAYS | {
        # How often an item has a term.
        "counts": ArraySpec("iu", ("entries",), rows="own"),
        # The number of words of each item.
        "lengths": ArraySpec("i", ("items",), rows="texts"),
        # Terms that are common in the language, and their `word_rarity`.
        "common": ArraySpec("S", ("common",)),
        "rarity": ArraySpec("f", ("common",)),
    }
    count_arrays: ClassVar = ("terms", "indptr", "indices", "counts")

    def store(
        self,
        contents: BuildContents,
        vocabulary: Vocabulary,
        counts: csr_matrix | csc_matrix,
        rarity: Mapping[str, float],
    ) -> None:
        """counts: how often each item has each term, (n_items, n_terms)."""
        by_term = TermCounts.from_matrix(vocabulary, counts)
        common = Vocabulary.of(rarity)
        weights = [rarity.get(term.decode(), 1.0) for term in common.terms.tolist()]
        self.put(contents, **self.base_of(by_term, counts.shape[0]))
        self.put(contents, common=common.terms, rarity=np.array(weights))

    def pending_keys(self, contents: BuildContents) -> LexicalKeys:
        """Return the keys of a whole build that will be published."""
        arrays = {name: self.pending(contents, name) for name in self.arrays}
        rarity = self.rarity_of(arrays["common"], arrays["rarity"])
        return LexicalKeys(
            Vocabulary(arrays["terms"]),
            arrays["indptr"],
            arrays["indices"],
            arrays["weights"],
            len(arrays["lengths"]),
            rarity,
        )

    def base_of(self, counts: TermCounts, n_items: int) -> dict[str, np.ndarray]:
        lengths = counts.lengths(n_items)
        keys = LexicalKeys.weighed(counts, length_norms(lengths))
        return {**_postings(keys), "counts": narrow(counts.counts), "lengths": lengths}

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        analyzer = addition.previous.analyzer
        texts = addition.catalog.texts()
        counts = TermCounts.of_texts([analyzer.key_terms(text) for text in texts])
        return {
            "terms": counts.vocabulary.terms,
            "indptr": counts.indptr,
            "indices": counts.items,
            "counts": narrow(counts.counts),
            "lengths": counts.lengths(len(texts)),
        }

    def counts_of(self, arrays: Mapping[str, np.ndarray]) -> TermCounts:
        vocabulary = Vocabulary(arrays["terms"])
        return TermCounts(vocabulary, arrays["indptr"], arrays["indices"], arrays["counts"])

    def norms(self, snapshot: Snapshot) -> np.ndarray:
        return length_norms(self.read(snapshot, "lengths")["lengths"])

    def rarity(self, snapshot: Snapshot) -> Mapping[str, float]:
        return self.rarity_of(**self.read(snapshot, "common", "rarity"))

    def rarity_of(self, common: np.ndarray, rarity: np.ndarray) -> dict[str, float]:
        """Return `TermKeys.rarity` by the two arrays that have it."""
        return dict(zip(map(bytes.decode, common.tolist()), rarity.tolist(), strict=True))


def narrow(counts: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest dtype that fits."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


@dataclass(frozen=True)
class CodesComponent(TermsComponent):
    """The items' codes. Their weights do not depend on the length of a text."""

    group: str = "codes"
    arrays: ClassVar = TERM_ARRAYS
    count_arrays: ClassVar = ("terms", "indptr", "indices")

    def store(self, contents: BuildContents, catalog: Catalog) -> None:
        columns = code_columns(catalog)
        contents.facts[COLUMNS] = columns
        self.put(contents, **self.base_of(_counts(catalog, columns), len(catalog)))

    def base_of(self, counts: TermCounts, n_items: int) -> dict[str, np.ndarray]:
        return _postings(LexicalKeys.weighed(counts, np.zeros(n_items, np.float32)))

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        counts = _counts(addition.catalog, addition.previous.snapshot.facts[COLUMNS])
        terms = counts.vocabulary.terms
        return {"terms": terms, "indptr": counts.indptr, "indices": counts.items}

    def counts_of(self, arrays: Mapping[str, np.ndarray]) -> TermCounts:
        items = arrays["indices"]
        ones = np.ones(len(items), np.uint8)
        return TermCounts(Vocabulary(arrays["terms"]), arrays["indptr"], items, ones)

    def norms(self, snapshot: Snapshot) -> np.ndarray:
        return np.zeros(snapshot.facts["n_items"], np.float32)


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
        "spellings": ArraySpec("S", ("spellings",), rows="own"),
        "terms": ArraySpec("S", ("spellings",), rows="own"),
        "indptr": ArraySpec("i", ("items",), rows="own", lists="words"),
        "words": ArraySpec("i", ("words",), rows="own", below="spellings"),
    }

    def store(
        self, contents: BuildContents, fields: Sequence[Sequence[str]], analyzer: Analyzer
    ) -> None:
        """fields: the text columns, each with one text an item."""
        self.put(contents, **self._arrays_of(WordSequences.of_fields(fields, analyzer)))

    def load(self, models: BuildModels) -> WordIndex:
        sequences = list(self._sequences_of(models.snapshot))
        return WordIndex(sequences, models.snapshot.facts["n_items"])

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        fields, analyzer = addition.catalog.fields(), addition.previous.analyzer
        return self._arrays_of(WordSequences.of_fields(fields, analyzer))

    def joined(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        sequences = list(self._sequences_of(snapshot))
        return self._arrays_of(joined_sequences(sequences, snapshot.facts["n_items"]))

    def _arrays_of(self, sequences: WordSequences) -> dict[str, Any]:
        return {name: getattr(sequences, name) for name in self.arrays}

    def _sequences_of(self, snapshot: Snapshot) -> Iterator[tuple[WordSequences, np.ndarray]]:
        for arrays, item_rows in self.pieces(snapshot, *self.arrays):
            yield WordSequences(**arrays), item_rows


def joined_sequences(
    pieces: Sequence[tuple[WordSequences, np.ndarray]], n_items: int
) -> WordSequences:
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

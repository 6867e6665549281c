"""The passages of long texts, which a search compares with a query one by one.

What is searched are *units*: each item without a long text is one, and so is each passage of the
others. A passage counts with the short texts of its item, such as the title. All units have one
idf and one mean length, so that short and long items compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.bm25 import (
    ListedKeys,
    TermCounts,
    bm25,
    inverse_document_frequency,
    length_norms,
)
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.heads.words import LexicalComponent, joined_sequences, narrow
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from qkvsearch.text.analyzed import AnalyzedTexts, TextParts

GROUP = "passages"
# Behind any text.
END = np.iinfo(np.int32).max


# --- texts to passages ---


@dataclass(frozen=True)
class Passages:
    """Where the passages of items are: passage p is `spans[p]` of the item `items[p]`.

    >>> split = Passages.of([["Kilns", "Mills"], ["They burned peat. " * 200, "Otters."]])
    >>> split.items.tolist(), split.spans[0].tolist(), split.n_items
    ([0, 0, 0, 0], [1, 0, 900], 2)
    >>> columns = split.fields([["Kilns", "Mills"], ["They burned peat. " * 200, "Otters."]])
    >>> [texts[1][:17] for texts in columns]
    ['Kilns', 'They burned peat.']
    """

    # The item of each passage, int64 (n,), ascending.
    items: np.ndarray
    # The text column of each passage, and where it begins and ends there, int32 (n, 3).
    spans: np.ndarray
    n_items: int

    @classmethod
    def of(cls, fields: Sequence[Sequence[str]]) -> Passages:
        """Split the long texts of items. fields: the text columns, each with one text an item."""
        # Its expressions take milliseconds to compile, and a search needs none of them.
        from qkvsearch.text.passages import passages

        found = []
        for column, texts in enumerate(fields):
            for item, text in enumerate(texts):
                found += [(item, column, *span) for span in passages(text)]
        found.sort()
        table = np.array(found, np.int32).reshape(len(found), 4)
        return cls(table[:, 0].astype(np.int64), table[:, 1:], len(fields[0]))

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the passages of each item begin, int64 (n_items + 1,)."""
        n_of_items = np.bincount(self.items, minlength=self.n_items)
        return np.concatenate([[0], np.cumsum(n_of_items)])

    def fields(self, fields: Sequence[Sequence[str]]) -> list[TextParts]:
        """Return the text columns of passages: short texts of their items, and the passages."""
        return [self._parts(column, texts) for column, texts in enumerate(fields)]

    def _parts(self, column: int, texts: Sequence[str]) -> TextParts:
        """Return what passages have of a column. texts: of the items."""
        from qkvsearch.text.analyzed import TextParts

        has_long_text = np.zeros(self.n_items, dtype=bool)
        is_own = self.spans[:, 0] == column
        has_long_text[self.items[is_own]] = True
        # A long text is nothing beside the passages of another column of its item.
        ends = np.where(has_long_text[self.items], 0, END)
        starts = np.where(is_own, self.spans[:, 1], 0)
        ends = np.where(is_own, self.spans[:, 2], ends)
        return TextParts(texts, self.items, starts.astype(np.int64), ends.astype(np.int64))

    def n_long(self) -> np.ndarray:
        """Return how many long texts each item has, int64 (n_items,)."""
        items = [item for item, _ in self._long_texts()]
        return np.bincount(np.array(items, np.int64), minlength=self.n_items)

    def _long_texts(self) -> Iterator[tuple[int, int]]:
        """Yield item and column of each long text."""
        pairs = np.stack([self.items, self.spans[:, 0]], axis=1)
        yield from map(tuple, np.unique(pairs, axis=0).tolist())

    def of_passages(self, is_kept: np.ndarray) -> Passages:
        """Return some of the passages. is_kept: bool (n,)."""
        return Passages(self.items[is_kept], self.spans[is_kept], self.n_items)

    def of_items(self, is_kept: np.ndarray) -> Passages:
        """Return the passages of some items, which are numbered anew. is_kept: bool (n_items,)."""
        kept = is_kept[self.items]
        numbers = np.cumsum(is_kept) - 1
        return Passages(numbers[self.items[kept]], self.spans[kept], int(is_kept.sum()))


# --- what is searched ---


@dataclass(frozen=True)
class UnitTerms(ListedKeys):
    """The weights of (term, unit) pairs, computed when a query needs them.

    pieces: counts of terms by rows of their own, and the unit of each row, −1 for none. norms:
    float32 (n_units,), of BM25.
    """

    pieces: Sequence[tuple[TermCounts, np.ndarray]]
    norms: np.ndarray
    # The number of units, which `TermKeys` calls items.
    n_items: int
    # The terms of the first of `pieces`. In a build that is those of whole items: all terms.
    vocabulary: Vocabulary
    rarity: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def n_entries(self) -> int:
        """How many pairs of a term and a unit there are."""
        return sum(int((rows[counts.items] >= 0).sum()) for counts, rows in self.pieces)

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        found = [(rows[items], counts) for items, counts, rows in self._of_pieces(term)]
        units = np.concatenate([units for units, _ in found])
        counts = np.concatenate([counts for _, counts in found])
        if len(units) and units.min() < 0:
            is_unit = units >= 0
            units, counts = units[is_unit], counts[is_unit]
        if (units[1:] < units[:-1]).any():
            order = np.argsort(units, kind="stable")
            units, counts = units[order], counts[order]
        idf = inverse_document_frequency(np.array([len(units)]), self.n_items)
        return units.astype(np.int32), bm25(idf, counts, self.norms[units])

    def _of_pieces(self, term: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for counts, rows in self.pieces:
            items, times = counts.of(term)
            yield items, times, rows


@dataclass(frozen=True)
class Units:
    """The units of a build: items without passages in their order, and then all passages in the
    order of their items.
    """

    # The item of each unit, int64 (n_units,).
    item_of: np.ndarray
    # How many units are items.
    n_short: int
    n_items: int
    # Column, start and end of each passage, int32 (n_units - n_short, 3).
    spans: np.ndarray
    terms: UnitTerms
    words: WordIndex
    # For each segment the unit of each passage that it stores, −1 for one of a deleted item.
    stored: Sequence[np.ndarray]

    def __len__(self) -> int:
        return len(self.item_of)

    @cached_property
    def short_items(self) -> np.ndarray:
        """The items without passages, int64 (n_short,)."""
        return self.item_of[: self.n_short]

    @cached_property
    def _first_units(self) -> np.ndarray:
        """The first passage of each item that has passages, int64."""
        items = self.item_of[self.n_short :]
        is_first = np.ones(len(items), dtype=bool)
        is_first[1:] = items[1:] != items[:-1]
        return self.n_short + np.flatnonzero(is_first)

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return the unit of each item with the highest score, the first of equal ones, int64
        (n_items,). scores: of all units.
        """
        best = np.empty(self.n_items, np.int64)
        best[self.short_items] = np.arange(self.n_short)
        firsts = self._first_units
        if not len(firsts):
            return best
        of_passages = scores[self.n_short :]
        highest = np.maximum.reduceat(of_passages, firsts - self.n_short)
        lengths = np.diff(np.append(firsts, len(self)))
        is_best = of_passages == np.repeat(highest, lengths)
        units = self.n_short + np.flatnonzero(is_best)
        # Backwards, so that the first of equal ones is written last. NaN equals nothing.
        best[self.item_of[firsts]] = firsts
        best[self.item_of[units[::-1]]] = units[::-1]
        return best

    def passages_of(self, item: int) -> np.ndarray:
        """Return the units that are passages of an item, int64 (n,)."""
        of_passages = self.item_of[self.n_short :]
        return self.n_short + np.arange(*of_passages.searchsorted([item, item + 1]))

    def span(self, unit: int) -> tuple[int, int, int] | None:
        """Return column, start and end of a passage; None for a unit that is an item."""
        if unit < self.n_short:
            return None
        column, start, end = self.spans[unit - self.n_short].tolist()
        return column, start, end

    def texts(self, unit: int, texts: Sequence[str]) -> list[str]:
        """Return the text columns of a unit. texts: those of its item."""
        span = self.span(unit)
        if span is None:
            return list(texts)
        own, start, end = span
        long_columns = set(self.spans[self.passages_of(int(self.item_of[unit])) - self.n_short, 0])
        of_unit = ["" if column in long_columns else text for column, text in enumerate(texts)]
        of_unit[own] = texts[own][start:end]
        return of_unit

    def of_items(self, scores: Scores, best: np.ndarray) -> Scores:
        """Return the scores of items, each by its best unit. best: as from `best`."""
        covered = scores.covered
        return replace(
            scores,
            scores=scores.scores[best],
            parts=lambda item: scores.parts(int(best[item])),
            covered=None if covered is None else covered[best],
            addends=[self.of_items(addend, best) for addend in scores.addends],
        )

    def expanded(self, scores: Scores) -> Scores:
        """Return the scores of units: each has that of its item."""
        covered, item_of = scores.covered, self.item_of
        return replace(
            scores,
            scores=scores.scores[item_of],
            parts=lambda unit: scores.parts(int(item_of[unit])),
            covered=None if covered is None else covered[item_of],
            addends=[self.expanded(addend) for addend in scores.addends],
        )


# --- on disk ---


class _UnitNumbers(NamedTuple):
    """The numbers of the units of a build."""

    item_of: np.ndarray
    n_short: int
    stored: list[np.ndarray]
    # The unit of each item without passages, −1 for others, int64 (n_items,).
    unit_of_item: np.ndarray


@dataclass(frozen=True)
class PassagesComponent(IndexComponent[Units]):
    """The passages of long texts, and their words. A build without long texts has none."""

    group: str = GROUP
    arrays: ClassVar = {
        "starts": ArraySpec("i", ("items",), rows="own", lists="passages"),
        "spans": ArraySpec("i", ("passages", "bounds"), rows="own"),
        "lengths": ArraySpec("i", ("passages",), rows="own"),
        "terms": ArraySpec("S", ("terms",), rows="own"),
        "indptr": ArraySpec("i", ("terms",), rows="own", lists="entries"),
        "indices": ArraySpec("i", ("entries",), rows="own", below="passages"),
        "counts": ArraySpec("iu", ("entries",), rows="own"),
        "spellings": ArraySpec("S", ("spellings",), rows="own"),
        "spelling_terms": ArraySpec("S", ("spellings",), rows="own"),
        "word_indptr": ArraySpec("i", ("passages",), rows="own", lists="words"),
        "words": ArraySpec("i", ("words",), rows="own", below="spellings"),
    }

    def store(
        self, contents: BuildContents, split: Passages, fields: Sequence[AnalyzedTexts]
    ) -> None:
        """Store the passages of a whole build. fields: their text columns."""
        self.put(contents, **_arrays_of(split, fields))

    def terms_of(self, contents: BuildContents) -> UnitTerms:
        """Return the terms of the units of a build that will be published."""
        items = LexicalComponent()

        def of_items(*names: str) -> dict[str, np.ndarray]:
            return {name: items.pending(contents, name) for name in names}

        arrays = {name: self.pending(contents, name) for name in self.arrays}
        counts = items.counts_of(of_items(*items.count_arrays))
        n_items = len(arrays["starts"]) - 1
        numbers = _numbered([arrays["starts"]], [np.arange(n_items)], n_items)
        pieces = [(counts, numbers.unit_of_item), (_counts_of(arrays), numbers.stored[0])]
        rarity = items.rarity_of(**of_items("common", "rarity"))
        lengths = items.pending(contents, "lengths")
        return _terms(pieces, lengths, [arrays["lengths"]], numbers, rarity)

    def load(self, models: BuildModels) -> Units:
        snapshot = models.snapshot
        pieces = list(self.pieces(snapshot, *self.arrays))
        n_items = snapshot.facts["n_items"]
        numbers = self._numbers(pieces, n_items)
        items = LexicalComponent()
        lengths = items.read(snapshot, "lengths")["lengths"]
        counts = [
            (_counts_of(arrays), rows)
            for (arrays, _), rows in zip(pieces, numbers.stored, strict=True)
        ]
        words = [
            (_words_of(arrays), rows)
            for (arrays, _), rows in zip(pieces, numbers.stored, strict=True)
        ]
        if numbers.n_short:
            for of_items, item_rows in items.counts_by_segment(snapshot):
                counts.append((of_items, _unit_rows(item_rows, numbers.unit_of_item)))
            for sequences, item_rows in models.words.pieces:
                words.append((sequences, _unit_rows(item_rows, numbers.unit_of_item)))
        terms = _terms(
            counts,
            lengths,
            [arrays["lengths"] for arrays, _ in pieces],
            numbers,
            items.rarity(snapshot),
        )
        spans = _ordered([arrays["spans"] for arrays, _ in pieces], numbers)
        return Units(
            numbers.item_of,
            numbers.n_short,
            n_items,
            spans,
            terms,
            WordIndex(words, len(numbers.item_of)),
            numbers.stored,
        )

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        from qkvsearch.text.analyzed import AnalyzedTexts

        fields = addition.catalog.fields()
        split = Passages.of(fields)
        columns = AnalyzedTexts.of_columns(split.fields(fields), addition.previous.analyzer)
        return _arrays_of(split, columns)

    def joined(self, snapshot: Snapshot) -> dict[str, Any]:
        pieces = list(self.pieces(snapshot, *self.arrays))
        numbers = self._numbers(pieces, snapshot.facts["n_items"])
        n_passages = len(numbers.item_of) - numbers.n_short
        if not n_passages:
            return dict.fromkeys(self.arrays)
        rows = [np.where(units >= 0, units - numbers.n_short, -1) for units in numbers.stored]
        counts = TermCounts.joined(
            [
                _counts_of(arrays).renumbered(own)
                for (arrays, _), own in zip(pieces, rows, strict=True)
            ]
        )
        words = joined_sequences(
            [(_words_of(arrays), own) for (arrays, _), own in zip(pieces, rows, strict=True)],
            n_passages,
        )
        split = Passages(
            numbers.item_of[numbers.n_short :],
            _ordered([arrays["spans"] for arrays, _ in pieces], numbers),
            snapshot.facts["n_items"],
        )
        return _arrays(split, counts, words)

    def stored_units(self, snapshot: Snapshot) -> _UnitNumbers:
        """Return the numbers of the units of a build."""
        pieces = list(self.pieces(snapshot, "starts", "lengths"))
        return self._numbers(pieces, snapshot.facts["n_items"])

    def _numbers(
        self, pieces: Sequence[tuple[Mapping[str, np.ndarray], np.ndarray]], n_items: int
    ) -> _UnitNumbers:
        starts = [arrays["starts"] for arrays, _ in pieces]
        return _numbered(starts, [item_rows for _, item_rows in pieces], n_items)


# --- the numbers of units ---


def _numbered(
    starts: Sequence[np.ndarray], item_rows: Sequence[np.ndarray], n_items: int
) -> _UnitNumbers:
    """Number the units of a build.

    starts: of each segment, where the passages of each of its rows begin. item_rows: the item of
    each of these rows, −1 for a deleted one.
    """
    n_of_item = np.zeros(n_items, np.int64)
    for begins, items in zip(starts, item_rows, strict=True):
        is_item = items >= 0
        n_of_item[items[is_item]] = np.diff(begins)[is_item]
    short = np.flatnonzero(n_of_item == 0)
    item_of = np.concatenate([short, np.repeat(np.arange(n_items), n_of_item)])
    unit_of_item = np.full(n_items, -1)
    unit_of_item[short] = np.arange(len(short))
    first = len(short) + np.cumsum(n_of_item) - n_of_item
    stored = []
    for begins, items in zip(starts, item_rows, strict=True):
        lengths = np.diff(begins)
        owners = np.repeat(items, lengths)
        within = np.arange(begins[-1]) - np.repeat(begins[:-1], lengths)
        stored.append(np.where(owners >= 0, first[owners] + within, -1))
    return _UnitNumbers(item_of, len(short), stored, unit_of_item)


def _unit_rows(item_rows: np.ndarray, unit_of_item: np.ndarray) -> np.ndarray:
    """Return the unit of each row of a segment, −1 for a deleted item and one with passages."""
    return np.where(item_rows >= 0, unit_of_item[item_rows], -1)


def _ordered(pieces: Sequence[np.ndarray], numbers: _UnitNumbers) -> np.ndarray:
    """Return rows of passages of all segments in the order of units."""
    return in_order(pieces, numbers.stored)


def in_order(pieces: Sequence[np.ndarray], stored: Sequence[np.ndarray]) -> np.ndarray:
    """Return rows of all segments by their units; no copy where they are in order."""
    units = np.concatenate(stored)
    is_plain = len(pieces) == 1 and bool((np.diff(units) == 1).all())
    if is_plain and (not len(units) or units[0] >= 0):
        return pieces[0]
    rows = np.concatenate(pieces)
    kept = np.flatnonzero(units >= 0)
    return rows[kept[np.argsort(units[kept], kind="stable")]]


def _terms(
    pieces: Sequence[tuple[TermCounts, np.ndarray]],
    lengths: np.ndarray,
    of_passages: Sequence[np.ndarray],
    numbers: _UnitNumbers,
    rarity: Mapping[str, float],
) -> UnitTerms:
    """Return the terms of units. lengths: how many words each item has. of_passages: how many each
    passage has, by segment.
    """
    n_words = np.concatenate(
        [lengths[numbers.item_of[: numbers.n_short]], _ordered(of_passages, numbers)]
    )
    norms = length_norms(n_words.astype(np.int32))
    return UnitTerms(pieces, norms, len(numbers.item_of), pieces[0][0].vocabulary, rarity)


# --- arrays ---


def _arrays_of(split: Passages, fields: Sequence[AnalyzedTexts]) -> dict[str, np.ndarray]:
    """Return the arrays of passages. fields: their text columns."""
    from qkvsearch.text.analyzed import AnalyzedTexts

    analyzer = fields[0].runs.analyzer if fields else Analyzer()
    vocabulary, counts = AnalyzedTexts.joined(fields).key_counts()
    words = WordSequences.of_fields(fields, analyzer)
    return _arrays(split, TermCounts.from_matrix(vocabulary, counts), words)


def _arrays(split: Passages, counts: TermCounts, words: WordSequences) -> dict[str, np.ndarray]:
    return {
        "starts": split.starts,
        "spans": split.spans,
        "lengths": counts.lengths(len(split)),
        "terms": counts.vocabulary.terms,
        "indptr": counts.indptr,
        "indices": counts.items,
        "counts": narrow(counts.counts),
        "spellings": words.spellings,
        "spelling_terms": words.terms,
        "word_indptr": words.indptr,
        "words": words.words,
    }


def _counts_of(arrays: Mapping[str, np.ndarray]) -> TermCounts:
    vocabulary = Vocabulary(arrays["terms"])
    return TermCounts(vocabulary, arrays["indptr"], arrays["indices"], arrays["counts"])


def _words_of(arrays: Mapping[str, np.ndarray]) -> WordSequences:
    return WordSequences(
        arrays["spellings"], arrays["spelling_terms"], arrays["word_indptr"], arrays["words"]
    )

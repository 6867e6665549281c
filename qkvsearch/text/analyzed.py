"""Texts that are analyzed once, for everything that counts their words.

A text is a sequence of runs of letters, and the terms of a run do not depend on its neighbours. So
each distinct run is analyzed once, and term counts are a product of two sparse matrices:
texts × runs by runs × terms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.scratch import counts_of
from qkvsearch.text.analysis import (
    CODED,
    HAS_DIGIT,
    Analyzer,
    Token,
    has_topic,
    normalizer,
    resolve_code,
    with_topics,
    without_stop_words,
)
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

# Entries of large arrays that are moved at a time, by positions of twice their size.
BLOCK = 1 << 20
# A text of as many characters is split word by word.
LONG = 500
# Characters of a word whose runs are remembered.
LONGEST_KEPT = 40


class TextParts(Sequence[str]):
    """Parts of texts, cut out when they are read: a copy of all long texts is large.

    texts: the whole ones. owners: the text of each part, int64 (n,), ascending. starts, ends: where
    each begins and ends there, int64 (n,).

    >>> list(TextParts(["deep sea"], np.array([0, 0]), np.array([0, 5]), np.array([4, 8])))
    ['deep', 'sea']
    """

    def __init__(
        self, texts: Sequence[str], owners: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> None:
        self.texts, self.owners, self.starts, self.ends = texts, owners, starts, ends
        # Numbers of Python are faster to cut by, and those of lists are large.
        self._cuts = [array("q", np.asarray(each, np.int64)) for each in (owners, starts, ends)]

    def __len__(self) -> int:
        return len(self.owners)

    def distinct(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the distinct parts among some, int64 (m,), and the number of each part
        among them, int64 (n,). Equal parts of two texts are two; all empty ones are one.
        """
        starts, ends = self.starts[rows], self.ends[rows]
        is_empty = starts >= ends
        owners = np.where(is_empty, -1, self.owners[rows])
        spans = np.stack([owners, np.where(is_empty, 0, starts), np.where(is_empty, 0, ends)], 1)
        _, first, number_of = np.unique(spans, axis=0, return_index=True, return_inverse=True)
        return first + rows.start, number_of.ravel()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        owners, starts, ends = self._cuts
        return self.texts[owners[index]][starts[index] : ends[index]]


class RunTerms(NamedTuple):
    """The terms of n runs. indptr (n + 1,), indices: rows of the distinct `terms`, repeated."""

    terms: list[str]
    indptr: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, terms_of_runs: Iterable[Sequence[str]]) -> RunTerms:
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(term, len(numbers)) for term in run] for run in terms_of_runs]
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.fromiter(chain.from_iterable(rows), np.int64, indptr[-1])
        return cls(list(numbers), indptr, indices)

    def matrix(self) -> csr_matrix:
        """Return the counts, float32 (n, n_terms)."""
        return _csr(self.indptr, self.indices, len(self.terms))


class Runs:
    """The distinct runs of letters of some texts, by number, each analyzed once.

    All texts are read before any property is used.
    """

    # Several encoders read the columns one after the other.
    _last_counts: tuple[Vocabulary, csr_matrix] | None = None

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.numbers: dict[str, int] = {}
        self._of_words = _RunsOfWords(analyzer, self.numbers)

    def read(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return where each text's runs begin, int64 (n + 1,), and their numbers, int32."""
        indptr, pieces = [0], [np.zeros(0, np.int32)]
        for text in texts:
            pieces.append(self._of_words.in_text(text))
            indptr.append(indptr[-1] + len(pieces[-1]))
        return np.array(indptr), np.concatenate(pieces)

    def close(self) -> None:
        """Forget the words that were read: those of a large catalog take much memory."""
        self._of_words.clear()

    def read_with_parts(
        self, parts: TextParts
    ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Return what `read` does of whole texts, and of their parts.

        The runs of a part are those of its text, and are not looked for again.
        """
        indptr, pieces = [0], [np.zeros(0, np.int32)]
        # Where the runs of each part are among those of the texts; −1 where they are others.
        starts = np.zeros(len(parts), np.int64)
        lengths = np.zeros(len(parts), np.int64)
        first_parts = parts.owners.searchsorted(np.arange(len(parts.texts) + 1)).tolist()
        for number, text in enumerate(parts.texts):
            own = slice(first_parts[number], first_parts[number + 1])
            if own.start == own.stop:  # a text without parts, as most are
                pieces.append(self._of_words.in_text(text))
                indptr.append(indptr[-1] + len(pieces[-1]))
                continue
            runs, (begins, ends) = self._of_words.in_parts(text, parts.starts[own], parts.ends[own])
            starts[own] = np.where(begins >= 0, begins + indptr[-1], -1)
            lengths[own] = ends - begins
            pieces.append(runs)
            indptr.append(indptr[-1] + len(runs))
        others = np.flatnonzero(starts < 0).tolist()
        for number in others:
            runs = self._of_words.in_text(parts[number])
            pieces.append(runs)
            starts[number], lengths[number] = indptr[-1], len(runs)
            indptr.append(indptr[-1] + len(runs))
        numbers = np.concatenate(pieces)
        of_parts = _end_to_end(numbers, starts, lengths)
        indptr = indptr[: len(parts.texts) + 1]
        return (np.array(indptr), numbers[: indptr[-1]]), of_parts

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """The tokens of each run."""
        return [self.analyzer.tokens(run) for run in self.numbers]

    @cached_property
    def key_terms(self) -> RunTerms:
        """The terms by `Analyzer.key_terms`."""
        return RunTerms.of(map(self.analyzer.key_terms_of, self.numbers, self.tokens))

    @cached_property
    def word_terms(self) -> RunTerms:
        """The terms of the tokens, without numbers and emoji."""
        return RunTerms.of(
            [token.term for token in with_topics(without_stop_words(tokens))]
            for tokens in self.tokens
        )

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """The number of tokens of each run, int64 (n_runs,)."""
        return np.array([len(tokens) for tokens in self.tokens], np.int64)

    @cached_property
    def is_stop_word(self) -> np.ndarray:
        """Whether each run is a stop word, bool (n_runs,)."""
        return np.array([all(token.is_stop_word for token in run) for run in self.tokens], bool)

    def counts_in(self, vocabulary: Vocabulary) -> csr_matrix:
        """Return how often each run has each term of the vocabulary, float32 (n_runs, n_terms).

        Code-like words that the vocabulary lacks count as their bare words: see `resolve_code`.
        """
        if self._last_counts is None or self._last_counts[0] is not vocabulary:
            self._last_counts = vocabulary, self._counts_in(vocabulary)
        return self._last_counts[1]

    def _counts_in(self, vocabulary: Vocabulary) -> csr_matrix:
        n_runs = len(self.tokens)
        rows = vocabulary.rows(self.word_terms.terms)[self.word_terms.indices]
        owners = np.repeat(np.arange(n_runs), np.diff(self.word_terms.indptr))
        runs, terms = [owners[rows >= 0]], [rows[rows >= 0]]
        for run, (token, *_) in enumerate(self.tokens):
            if token.subtokens and has_topic(token.term) and vocabulary.row(token.term) < 0:
                words = resolve_code([token], lambda term: vocabulary.row(term) >= 0)
                bare = vocabulary.rows(word.term for word in words if has_topic(word.term))
                terms.append(bare[bare >= 0])
                runs.append(np.full(len(terms[-1]), run))
        owners, indices = np.concatenate(runs), np.concatenate(terms)
        indptr = np.cumsum(np.append(0, np.bincount(owners, minlength=n_runs)))
        return _csr(indptr, indices[np.argsort(owners, kind="stable")], len(vocabulary))


class _RunsOfWords(dict[str, "bytes | None"]):
    """The numbers of the runs of each word, None for a word with a digit.

    Words are what stands between spaces. They recur, so that each is normalized and split once.
    Numbers are int32 as bytes, which are the fastest to join.
    numbers: of runs; new ones are added.
    """

    def __init__(self, analyzer: Analyzer, numbers: dict[str, int]) -> None:
        self._normalize = normalizer(analyzer.language)
        self._numbers = numbers

    def __missing__(self, word: str) -> bytes | None:
        found = None if HAS_DIGIT(word) else self._split(word)
        # Longer ones, such as sentences in scripts without spaces, hardly recur.
        if len(word) <= LONGEST_KEPT:
            self[word] = found
        return found

    def in_text(self, text: str) -> np.ndarray:
        """Return the runs of a text in reading order, int32 (n,)."""
        if len(text) < LONG:
            return np.frombuffer(self._split(text), np.int32)
        return np.frombuffer(b"".join(self._in_pieces(text)[1]), np.int32)

    def in_parts(
        self, text: str, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return the runs of a text, and which of them each of its parts text[start:end] has: the
        first one and the one behind the last one, int64 (n_parts,); −1 and 0 for a part whose runs
        may be others, because it is short, or begins or ends within a piece.
        """
        ends = np.minimum(ends, len(text))
        is_all = (starts == 0) & (ends == len(text))
        if len(text) < LONG or is_all.all():
            runs = self.in_text(text)
            n_runs = np.where(starts < ends, len(runs), 0)
            is_known = is_all | (starts >= ends)
            return runs, (np.where(is_known, 0, -1), np.where(is_known, n_runs, 0))
        pieces, found = self._in_pieces(text)
        # A piece ends with the sign behind it, the last one as well.
        begins = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)) + 1, out=begins[1:])
        n_before = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, found), np.int64, len(pieces)) // 4, out=n_before[1:])
        ends = np.where(ends == len(text), begins[-1], ends)
        first, behind = begins.searchsorted(starts), begins.searchsorted(ends)
        is_known = (begins[first] == starts) & (begins[behind] == ends)
        is_known &= (ends - starts > LONG) | is_all
        runs = np.frombuffer(b"".join(found), np.int32)
        return runs, (
            np.where(is_known, n_before[first], -1),
            np.where(is_known, n_before[behind], 0),
        )

    def _in_pieces(self, text: str) -> tuple[list[str], list[bytes]]:
        """Return the pieces of a text and the runs of each. A piece is a word, or several that are
        split together; behind each is a space or the end of a line.
        """
        pieces: list[str] = []
        runs: list[bytes] = []
        for line in text.split("\n"):
            words = line.split(" ")
            found = list(map(self.__getitem__, words))
            done = 0
            for start, end in _around([i for i, of_word in enumerate(found) if of_word is None]):
                together = " ".join(words[start:end])
                pieces += words[done:start]
                runs += found[done:start]  # type: ignore[arg-type]
                pieces.append(together)
                runs.append(self._split(together))
                done = end
            pieces += words[done:]
            runs += found[done:]  # type: ignore[arg-type]
        return pieces, runs

    def _split(self, text: str) -> bytes:
        numbers = self._numbers
        runs = CODED.findall(self._normalize(text))
        return np.array([numbers.setdefault(run, len(numbers)) for run in runs], np.int32).tobytes()


def _around(numbered: Iterable[int]) -> list[tuple[int, int]]:
    """Return spans of words that are split together: those with a digit, and their neighbours. A
    run such as "25 m", "B 6" or "1 000" has a space.

    >>> _around([0, 4, 6])
    [(0, 2), (3, 8)]
    """
    spans: list[tuple[int, int]] = []
    for i in numbered:
        start, end = max(i - 1, 0), i + 2
        if spans and start < spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


@dataclass(eq=False)
class AnalyzedTexts(Sequence[str]):
    """Texts with the runs of letters that they consist of.

    indptr: int64 (n + 1,), where each text's runs begin. numbers: int32 (n_runs,), numbers of
    `runs` in reading order.

    >>> texts = AnalyzedTexts.of(["The deep sea", "The", "deep, deep"], Analyzer())
    >>> vocabulary, counts = texts.term_counts()
    >>> vocabulary.terms.tolist(), counts.toarray().tolist()
    ([b'deep', b'sea', b'the'], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    """

    texts: Sequence[str]
    runs: Runs
    indptr: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[str], analyzer: Analyzer) -> AnalyzedTexts:
        """Analyze texts; return texts that this analyzer has analyzed unchanged."""
        return cls.of_columns([texts], analyzer)[0]

    @classmethod
    def of_columns(
        cls, columns: Iterable[Iterable[str]], analyzer: Analyzer
    ) -> list[AnalyzedTexts]:
        """Analyze columns of texts, with shared runs; return analyzed columns unchanged."""
        columns = list(columns)
        analyzed = [
            column
            for column in columns
            if isinstance(column, AnalyzedTexts) and column.runs.analyzer == analyzer
        ]
        if len(analyzed) == len(columns):
            return analyzed
        runs = Runs(analyzer)
        # Parts are read with their texts.
        parts = {id(column.texts): column for column in columns if isinstance(column, TextParts)}
        read: dict[int, AnalyzedTexts] = {}
        for column in columns:
            if id(column) in read:
                continue
            texts = column if isinstance(column, Sequence) else list(column)
            if id(column) in parts:
                own = parts[id(column)]
                of_texts, of_parts = runs.read_with_parts(own)
                read[id(own)] = cls(own, runs, *of_parts)
            else:
                of_texts = runs.read(texts)
            read[id(column)] = cls(texts, runs, *of_texts)
        runs.close()
        return [read[id(column)] for column in columns]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, index: Any) -> Any:
        return self.texts[index]

    def take(self, rows: np.ndarray) -> AnalyzedTexts:
        """Return the texts in these rows, int64 (n,)."""
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        indptr, numbers = _end_to_end(self.numbers, self.indptr[rows], lengths)
        texts = [self.texts[row] for row in rows.tolist()]
        return AnalyzedTexts(texts, self.runs, indptr, numbers)

    def cut(self, longest: int, rng: np.random.Generator) -> AnalyzedTexts:
        """Return the texts with a random span of about `longest` tokens of each longer one.

        Only what counts their words sees them cut: the strings in `texts` stay whole.
        """
        n_runs = np.diff(self.indptr)
        # A run without spaces between its words has several tokens.
        shares = np.minimum(longest / np.maximum(self.n_tokens, 1), 1)
        lengths = np.ceil(n_runs * shares).astype(np.int64)
        starts = self.indptr[:-1] + rng.integers(n_runs - lengths + 1)
        indptr, numbers = _end_to_end(self.numbers, starts, lengths)
        return AnalyzedTexts(self.texts, self.runs, indptr, numbers)

    @classmethod
    def joined(cls, columns: Sequence[AnalyzedTexts]) -> AnalyzedTexts:
        """Join the columns of each item to one text, each column on its own line."""
        texts = JoinedTexts(columns)
        runs = columns[0].runs
        if any(column.runs is not runs for column in columns):
            return cls.of(texts, runs.analyzer)
        numbers = np.concatenate([column.numbers for column in columns])
        offsets = np.cumsum([0, *(len(column.numbers) for column in columns)])
        pairs = zip(columns, offsets, strict=False)
        starts = np.stack([column.indptr[:-1] + offset for column, offset in pairs], 1)
        lengths = np.stack([np.diff(column.indptr) for column in columns], 1)
        indptr, numbers = _end_to_end(numbers, starts.ravel(), lengths.ravel())
        return cls(texts, runs, indptr[:: len(columns)], numbers)

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """The number of tokens of each text, int64 (n,)."""
        return _sums(self.runs.n_tokens, self.numbers, self.indptr)

    def key_counts(self) -> tuple[Vocabulary, csc_matrix]:
        """Return the terms by `Analyzer.key_terms`, and the counts: float32 (n, n_terms)."""
        # What occurs twice is added up with the terms.
        return _count_terms(self._runs_in_order(self.indptr, self.numbers), self.runs.key_terms)

    def term_counts(self) -> tuple[Vocabulary, csr_matrix]:
        """Return the terms by `Analyzer.terms`, and the counts: float32 (n, n_terms), the terms of
        a text ascending.
        """
        vocabulary, counts = _count_terms(self._content_run_counts, self.runs.word_terms)
        return vocabulary, counts.tocsr()

    def counts_in(self, vocabulary: Vocabulary) -> csr_matrix:
        """Return how often each text has each term of the vocabulary, as a `TokenEncoder` counts
        them: float32 (n, n_terms), the terms of a text ascending."""
        return _sorted(self._content_run_counts @ self.runs.counts_in(vocabulary))

    @cached_property
    def _content_run_counts(self) -> csr_matrix:
        """The counts of runs without stop words, but in texts that have no others."""
        is_content = ~self.runs.is_stop_word
        n_content = _sums(is_content, self.numbers, self.indptr)
        n_runs = np.diff(self.indptr)
        has_content = n_content > 0
        counted = is_content[self.numbers] | ~np.repeat(has_content, n_runs)
        indptr = np.cumsum(np.append(0, np.where(has_content, n_content, n_runs)))
        by_run = self._runs_in_order(indptr, self.numbers[counted]).tocsc()
        by_run.sum_duplicates()  # in place
        return by_run.tocsr()

    def _runs_in_order(self, indptr: np.ndarray, numbers: np.ndarray) -> csr_matrix:
        """Return a 1 for each run of each text, several for one that recurs."""
        return _csr(indptr, numbers, len(self.runs.numbers))


@dataclass(frozen=True)
class JoinedTexts(Sequence[str]):
    """The columns of each item as one text, joined when it is read: a copy of all texts is large.

    >>> list(JoinedTexts([["Mills", "Kilns"], ["wind", "fire"]]))
    ['Mills\\nwind', 'Kilns\\nfire']
    """

    columns: Sequence[Sequence[str]]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return "\n".join(column[index] for column in self.columns)


class TokenSequences(NamedTuple):
    """The tokens of items, as numbers.

    tokens: the distinct ones, by first occurrence. indptr: int64 (n + 1,), where each item begins.
    numbers: int32, rows of `tokens` in reading order; −1 after each column of an item.
    """

    tokens: list[Token]
    indptr: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[AnalyzedTexts]) -> TokenSequences:
        """Number the tokens of items whose columns have shared runs."""
        runs = columns[0].runs
        run_tokens = list(chain.from_iterable(runs.tokens))
        run_starts = np.cumsum(np.append(0, runs.n_tokens))
        lengths = np.stack([column.n_tokens + 1 for column in columns], 1).ravel()
        indptr = np.cumsum(np.append(0, lengths))
        sequence = np.full(indptr[-1], -1, np.int32)
        for c, column in enumerate(columns):
            begins = indptr[c :: len(columns)]
            for first, last in _blocks(column.indptr):
                numbers = column.numbers[column.indptr[first] : column.indptr[last]]
                of_runs = run_starts[numbers], runs.n_tokens[numbers]
                of_texts = begins[first:last], column.n_tokens[first:last]
                sequence[_gather_spans(*of_texts)[1]] = _gather_spans(*of_runs)[1]

        occurrences = _first_occurrences(sequence, len(run_tokens))
        order = np.argsort(occurrences, kind="stable")
        order = order[occurrences[order] < len(sequence)]
        # The last number is for −1.
        renumbered = np.full(len(run_tokens) + 1, -1, np.int32)
        renumbered[order] = np.arange(len(order))
        tokens = [run_tokens[number] for number in order.tolist()]
        return cls(tokens, indptr[:: len(columns)], renumbered[sequence])


def _first_occurrences(sequence: np.ndarray, n: int) -> np.ndarray:
    """Return where each of n numbers occurs first, int64 (n,); the length for one that does not.
    sequence: int32, −1 for no number.
    """
    first = np.full(n + 1, len(sequence))
    # Backwards, so that the first of equal numbers is written last.
    for end in range(len(sequence), 0, -BLOCK):
        start = max(end - BLOCK, 0)
        first[sequence[start:end][::-1]] = np.arange(end - 1, start - 1, -1)
    return first[:n]


def _count_terms(run_counts: csr_matrix, terms: RunTerms) -> tuple[Vocabulary, csc_matrix]:
    """Return the terms that occur, sorted, and their counts in each text."""
    counts = run_counts @ terms.matrix()
    used = np.flatnonzero(counts_of(counts.indices, counts.shape[1]))
    if not len(used):
        none = _csr(np.zeros(counts.shape[0] + 1), np.zeros(0, np.int64), 1)
        return Vocabulary.of([]), none.tocsc()
    encoded = np.array([terms.terms[row].encode() for row in used.tolist()])
    order = np.argsort(encoded, kind="stable")
    columns = np.zeros(counts.shape[1], counts.indices.dtype)
    columns[used[order]] = np.arange(len(used))
    counts = _csr(counts.indptr, columns[counts.indices], len(used), counts.data)
    return Vocabulary(encoded[order]), counts.tocsc()


def _sorted(counts: csr_matrix) -> csr_matrix:
    """Return a matrix with the entries of each row in ascending order. Going through the columns
    one after the other takes less time than sorting each row.
    """
    return counts.tocsc().tocsr()


def _end_to_end(
    values: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put spans of values end to end; return the new starts, (n + 1,), and the values."""
    indptr = np.cumsum(np.append(0, lengths))
    joined = np.empty(indptr[-1], values.dtype)
    for first, last in _blocks(indptr):
        _, positions = _gather_spans(starts[first:last], lengths[first:last])
        joined[indptr[first] : indptr[last]] = values[positions]
    return indptr, joined


def _blocks(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the first and behind the last of some spans with about `BLOCK` entries, in order."""
    first = 0
    while first < len(indptr) - 1:
        last = int(indptr.searchsorted(indptr[first] + BLOCK, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _sums(values: np.ndarray, numbers: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the sum of values[numbers[indptr[i] : indptr[i + 1]]] for each i, int64 (n,)."""
    sums = np.empty(len(indptr) - 1, np.int64)
    for first, last in _blocks(indptr):
        before = np.cumsum(values[numbers[indptr[first] : indptr[last]]], dtype=np.int64)
        places = indptr[first : last + 1] - indptr[first]
        sums[first:last] = np.diff(np.append(0, before)[places])
    return sums


def _gather_spans(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put spans end to end; return the new starts, (n + 1,), and each entry's old position."""
    indptr = np.cumsum(np.append(0, lengths))
    return indptr, np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])


def _csr(
    indptr: np.ndarray, indices: np.ndarray, n_columns: int, data: np.ndarray | None = None
) -> csr_matrix:
    from scipy.sparse import csr_matrix

    values = np.ones(len(indices), np.float32) if data is None else data
    return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns))

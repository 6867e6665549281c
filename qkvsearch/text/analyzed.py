"""Many texts whose words are read once, for all that counts them.

A text is a sequence of runs of letters, and what a run is matched by does not depend on what stands
beside it. So counts of terms are a sparse product, texts × runs by runs × terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch.text.analysis import NUMBER, Analyzer, Token, fold, lower, resolve_code
from qkvsearch.text.language.languages import ENGLISH
from qkvsearch.text.language.word_patterns import CODED
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class TermsOfRuns(NamedTuple):
    """Which terms each of n runs has. terms: the different ones. indptr (n + 1,), indices: rows of
    `terms`, as often as the run has each.
    """

    terms: list[str]
    indptr: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, terms: Iterable[Sequence[str]]) -> TermsOfRuns:
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(term, len(numbers)) for term in of] for of in terms]
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.fromiter(chain.from_iterable(rows), np.int64, indptr[-1])
        return cls(list(numbers), indptr, indices)

    def matrix(self) -> csr_matrix:
        """float32 (n, n_terms)."""
        return _csr(self.indptr, self.indices, len(self.terms))


class Runs:
    """The different runs of some texts, by number: each is analyzed once."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.numbers: dict[str, int] = {}

    def read(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Where each text's runs begin, int64 (n + 1,), and their numbers, int32. All texts are
        read before anything is asked.
        """
        numbers = self.numbers
        # English stems go by no accents.
        normal = fold if self.analyzer.language == ENGLISH else lower
        indptr, pieces = [0], [np.zeros(0, np.int32)]
        for text in texts:
            found = [numbers.setdefault(run, len(numbers)) for run in CODED.findall(normal(text))]
            pieces.append(np.array(found, np.int32))
            indptr.append(indptr[-1] + len(found))
        return np.array(indptr), np.concatenate(pieces)

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """Of each run."""
        return [self.analyzer.tokens(run) for run in self.numbers]

    @cached_property
    def keys(self) -> TermsOfRuns:
        """By `Analyzer.key_terms`."""
        return TermsOfRuns.of(map(self.analyzer.key_terms, self.numbers))

    @cached_property
    def meaning(self) -> TermsOfRuns:
        """All that are no numbers."""
        return TermsOfRuns.of(
            [token.term for token in tokens if not NUMBER(token.term)] for tokens in self.tokens
        )

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """int64 (n_runs,)."""
        return np.array([len(tokens) for tokens in self.tokens], np.int64)

    @cached_property
    def is_telling(self) -> np.ndarray:
        """Which are no stop words, bool (n_runs,)."""
        return np.array([not tokens[0].is_stop_word for tokens in self.tokens], bool)

    def known_in(self, vocabulary: Vocabulary) -> csr_matrix:
        """How often each run has each term that is known, float32 (n_runs, n_terms): of code whose
        whole term is not, its bare words, as `resolve_code` has them.
        """
        if self._last is None or self._last[0] is not vocabulary:
            self._last = vocabulary, self._known_in(vocabulary)
        return self._last[1]

    # Columns are read by one encoder after another.
    _last: tuple[Vocabulary, csr_matrix] | None = None

    def _known_in(self, vocabulary: Vocabulary) -> csr_matrix:
        known = vocabulary.rows(self.meaning.terms)[self.meaning.indices]
        terms = [known[known >= 0]]
        runs = [np.repeat(np.arange(len(self.tokens)), np.diff(self.meaning.indptr))[known >= 0]]
        for run, (token, *_) in enumerate(self.tokens):
            if token.subtokens and not NUMBER(token.term) and vocabulary.row(token.term) < 0:
                parts = resolve_code([token], lambda term: vocabulary.row(term) >= 0)
                bare = vocabulary.rows(part.term for part in parts if not NUMBER(part.term))
                terms.append(bare[bare >= 0])
                runs.append(np.full(len(terms[-1]), run))
        of, found = np.concatenate(runs), np.concatenate(terms)
        indptr = np.cumsum(np.append(0, np.bincount(of, minlength=len(self.tokens))))
        return _csr(indptr, found[np.argsort(of, kind="stable")], len(vocabulary))


@dataclass(eq=False)
class AnalyzedTexts(Sequence[str]):
    """Texts, and the runs that they are made of.

    indptr: int64 (n + 1,), where each text's runs begin. numbers: int32 (n_runs,), which of `runs`
    they are, in reading order. read_by: what others make of the texts, such as a tokenizer, by who
    made it, so that it is made once.

    >>> texts = AnalyzedTexts.of(["The deep sea", "The", "deep, deep"], Analyzer())
    >>> vocabulary, counts = texts.term_counts()
    >>> vocabulary.terms.tolist(), counts.toarray().tolist()
    ([b'deep', b'sea', b'the'], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    """

    texts: Sequence[str]
    runs: Runs
    indptr: np.ndarray
    numbers: np.ndarray
    read_by: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, texts: Iterable[str], analyzer: Analyzer) -> AnalyzedTexts:
        """Texts that the analyzer has read come back as they are."""
        return cls.of_columns([texts], analyzer)[0]

    @classmethod
    def of_columns(cls, fields: Iterable[Iterable[str]], analyzer: Analyzer) -> list[AnalyzedTexts]:
        """Column after column, all with the same runs; as they are where the analyzer has read
        them.
        """
        fields = list(fields)
        read = [each for each in fields if isinstance(each, AnalyzedTexts)]
        if len(read) == len(fields) and all(each.runs.analyzer == analyzer for each in read):
            return read
        runs, columns = Runs(analyzer), [list(texts) for texts in fields]
        return [cls(texts, runs, *runs.read(texts)) for texts in columns]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, place: Any) -> Any:
        return self.texts[place]

    def taken(self, rows: np.ndarray) -> AnalyzedTexts:
        """The texts in these rows, int64 (n,)."""
        indptr, places = _spans(self.indptr, rows)
        texts = [self.texts[row] for row in rows.tolist()]
        return AnalyzedTexts(texts, self.runs, indptr, self.numbers[places])

    @classmethod
    def joined(cls, columns: Sequence[AnalyzedTexts]) -> AnalyzedTexts:
        """The columns of each item as one text, each on a line of its own."""
        texts = ["\n".join(fields) for fields in zip(*columns, strict=True)]
        runs = columns[0].runs
        if any(column.runs is not runs for column in columns):
            return cls.of(texts, runs.analyzer)
        every = np.concatenate([column.numbers for column in columns])
        starts = np.cumsum([0, *(len(column.numbers) for column in columns)])
        begins = np.stack([of.indptr[:-1] + a for of, a in zip(columns, starts, strict=False)], 1)
        lengths = np.stack([np.diff(column.indptr) for column in columns], 1)
        indptr, places = _gathered(begins.ravel(), lengths.ravel())
        return cls(texts, runs, indptr[:: len(columns)], every[places])

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """How many tokens each text has, int64 (n,)."""
        total = np.cumsum(np.append(0, self.runs.n_tokens[self.numbers]))
        return np.asarray(total[self.indptr[1:]] - total[self.indptr[:-1]])

    def key_counts(self) -> tuple[Vocabulary, csr_matrix]:
        """What they can be found by, by `Analyzer.key_terms`, and how often each text has each such
        term: float32 (n, n_terms)."""
        return _narrowed(self._by_run(self.indptr, self.numbers), self.runs.keys)

    def term_counts(self) -> tuple[Vocabulary, csr_matrix]:
        """The same of `Analyzer.terms`, what an embedding is made of."""
        return _narrowed(self._telling, self.runs.meaning)

    def counts_in(self, vocabulary: Vocabulary) -> csr_matrix:
        """How often each text has each of these terms, as a `TokenEncoder` reads it: float32
        (n, n_terms), a text's terms ascending."""
        found = self._telling @ self.runs.known_in(vocabulary)
        found.sort_indices()
        return found

    @cached_property
    def _telling(self) -> csr_matrix:
        """How often each text has each run but those of stop words, unless it has no others."""
        tells = self.runs.is_telling[self.numbers]
        n_telling = np.cumsum(np.append(0, tells))
        some = n_telling[self.indptr[1:]] > n_telling[self.indptr[:-1]]
        kept = tells | ~np.repeat(some, np.diff(self.indptr))
        indptr = np.cumsum(np.append(0, kept))[self.indptr]
        return self._by_run(indptr, self.numbers[kept])

    def _by_run(self, indptr: np.ndarray, numbers: np.ndarray) -> csr_matrix:
        found = _csr(indptr, numbers.copy(), len(self.runs.numbers))
        found.sum_duplicates()  # in place
        return found


class TokenSequences(NamedTuple):
    """tokens: those of the different runs, in the order in which they are first read. indptr:
    int64 (n + 1,), where each item's begin. numbers: int64, which they are; −1 behind each column.
    """

    tokens: list[Token]
    indptr: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[AnalyzedTexts]) -> TokenSequences:
        """Of items whose columns have the same runs."""
        runs, n = columns[0].runs, len(columns[0])
        every = list(chain.from_iterable(runs.tokens))
        first = np.cumsum(np.append(0, runs.n_tokens))
        lengths = np.stack([column.n_tokens + 1 for column in columns], 1).ravel()
        indptr = np.cumsum(np.append(0, lengths))
        numbers = np.full(indptr[-1], -1, np.int64)
        for c, column in enumerate(columns):
            of_column = np.arange(c, n * len(columns), len(columns))
            _, places = _gathered(first[column.numbers], runs.n_tokens[column.numbers])
            _, to = _gathered(indptr[of_column], column.n_tokens)
            numbers[to] = places
        there, at, back = np.unique(numbers, return_index=True, return_inverse=True)
        order = np.argsort(at, kind="stable")
        order = order[there[order] >= 0]
        place = np.full(len(there), -1, np.int64)
        place[order] = np.arange(len(order))
        tokens = [every[number] for number in there[order].tolist()]
        return cls(tokens, indptr[:: len(columns)], place[back])


def _narrowed(by_run: csr_matrix, terms: TermsOfRuns) -> tuple[Vocabulary, csr_matrix]:
    """The terms that there are, sorted, and their counts."""
    counts = by_run @ terms.matrix()
    used = np.unique(counts.indices)
    if not len(used):
        return Vocabulary.of([]), _csr(np.zeros(counts.shape[0] + 1), np.zeros(0, np.int64), 1)
    spelled = np.array([terms.terms[row].encode() for row in used.tolist()])
    order = np.argsort(spelled, kind="stable")
    place = np.zeros(counts.shape[1], counts.indices.dtype)
    place[used[order]] = np.arange(len(used))
    counts = _csr(counts.indptr, place[counts.indices], len(used), counts.data)
    counts.sort_indices()
    return Vocabulary(spelled[order]), counts


def _spans(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _gathered(indptr[rows], indptr[rows + 1] - indptr[rows])


def _gathered(begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spans end to end: where each begins then, (n + 1,), and where each entry was."""
    indptr = np.cumsum(np.append(0, lengths))
    return indptr, np.repeat(begins - indptr[:-1], lengths) + np.arange(indptr[-1])


def _csr(
    indptr: np.ndarray, indices: np.ndarray, n_columns: int, data: np.ndarray | None = None
) -> csr_matrix:
    from scipy.sparse import csr_matrix

    values = np.ones(len(indices), np.float32) if data is None else data
    return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns))

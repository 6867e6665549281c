"""Terms to row numbers, from a sorted array that is read from disk without loading it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_by_word

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# So many rows are kept: of a vocabulary that has no more terms, all.
KEPT_ROWS = 1 << 14


@dataclass(frozen=True)
class Vocabulary:
    """`terms`: sorted UTF-8, dtype S. Byte order is code point order, so a binary search finds a
    term in a memory-mapped file.

    >>> Vocabulary.of(["cat", "dog", "猫"]).rows(["猫", "cow"]).tolist()
    [2, -1]
    """

    terms: np.ndarray

    @classmethod
    def of(cls, terms: Iterable[str]) -> Vocabulary:
        return cls(np.array([term.encode() for term in sorted(terms)] or [b""]))

    def __len__(self) -> int:
        return len(self.terms)

    def row(self, term: str) -> int:
        """As in `rows`, of one term.

        >>> Vocabulary.of(["cat", "dog"]).row("dog")
        1
        """
        wanted = term.encode(errors="surrogatepass")
        # NumPy would copy all terms to compare them with one that is longer than each.
        if not wanted or len(wanted) > self.terms.itemsize:
            return -1
        row = int(self.terms.searchsorted(wanted))
        return row if row < len(self) and self.terms[row] == wanted else -1

    @cached_property
    def known_row(self) -> Callable[[str], int]:
        """`row`, which it keeps of many terms: queries share their words."""
        if len(self) <= KEPT_ROWS:
            rows = {term: row for row, term in enumerate(self.terms.tolist()) if term}
            return lambda term: rows.get(term.encode(errors="surrogatepass"), -1)
        vocabulary = weakref.proxy(self)  # in a circle, files would wait for the garbage collector
        return cached_by_word(lambda term: int(vocabulary.row(term)), KEPT_ROWS)

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms}

    def beginning(self, prefix: str) -> list[str]:
        """All terms that begin so.

        >>> Vocabulary.of(["cat", "catch", "dog"]).beginning("cat")
        ['cat', 'catch']
        """
        wanted = prefix.encode(errors="surrogatepass")
        # The largest byte of UTF-8 is below 255.
        first, last = np.searchsorted(self.terms, np.array([wanted, wanted + b"\xff"]))
        return [term.decode(errors="surrogatepass") for term in self.terms[first:last]]

    def rows(self, terms: Iterable[str]) -> np.ndarray:
        """Row numbers (int64), −1 for a term that is not here."""
        return self.find(
            np.array([term.encode(errors="surrogatepass") for term in terms], dtype=bytes)
        )

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """`rows` of terms that are UTF-8 already, dtype S (n,)."""
        if not len(self):
            return np.full(len(wanted), -1, dtype=np.int64)
        rows = self.terms.searchsorted(wanted)
        rows[rows == len(self)] = 0
        rows[(self.terms[rows] != wanted) | (wanted == b"")] = -1
        return rows

    def counts(self, texts: Iterable[Iterable[str]]) -> csr_matrix:
        """How often each text, given as its terms, has each term that is here: float32
        (n_texts, n_terms), a text's terms ascending.

        >>> Vocabulary.of(["cat", "dog"]).counts([["dog", "cow", "dog"], []]).toarray().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        from scipy.sparse import csr_matrix

        numbers: dict[str, int] = {}
        known = [[numbers.setdefault(term, len(numbers)) for term in terms] for terms in texts]
        each = np.fromiter((number for text in known for number in text), np.int64)
        rows = self.rows(numbers)[each]
        of = np.repeat(np.arange(len(known)), [len(text) for text in known])[rows >= 0]
        rows = rows[rows >= 0]
        shape = len(known), len(self)
        return csr_matrix((np.ones(len(rows), np.float32), (of, rows)), shape=shape)


def count_terms(
    texts: Iterable[str], terms_of: Callable[[str], list[str]]
) -> tuple[Vocabulary, csr_matrix]:
    """The vocabulary of `texts` and how often each text has each term, (n_texts, n_terms)."""
    terms = [terms_of(text) for text in texts]
    vocabulary = Vocabulary.of(set().union(*terms))
    return vocabulary, vocabulary.counts(terms)

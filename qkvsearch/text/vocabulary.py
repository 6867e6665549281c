"""A vocabulary: the row number of each term, by binary search in a sorted memory-mapped array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import MAX_LENGTH, cached_property

# A query asks for the row of each of its words several times.
CACHED_ROWS = 4096


@dataclass(frozen=True)
class Vocabulary:
    """A sorted array of distinct terms, UTF-8, dtype S.

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
        """Return the row of one term, −1 if it is not in the vocabulary.

        >>> Vocabulary.of(["cat", "dog"]).row("dog")
        1
        """
        row = self._cached_rows.get(term)
        if row is None:
            row = _row(self.terms, term)
            if len(term) <= MAX_LENGTH:
                if len(self._cached_rows) >= CACHED_ROWS:
                    self._cached_rows.clear()
                self._cached_rows[term] = row
        return row

    @cached_property
    def _cached_rows(self) -> dict[str, int]:
        # A query asks for so many rows that the call of an `lru_cache` would be most of the time.
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the terms, without the rows that are cached."""
        return {"terms": self.terms}

    def with_prefix(self, prefix: str) -> list[str]:
        """Return all terms that begin with a prefix.

        >>> Vocabulary.of(["cat", "catch", "dog"]).with_prefix("cat")
        ['cat', 'catch']
        """
        start = prefix.encode(errors="surrogatepass")
        # NumPy would copy all terms to compare them with a longer one.
        if len(start) >= self.terms.itemsize:
            return [prefix] if self.row(prefix) >= 0 else []
        # All bytes of UTF-8 are below 255.
        first, last = np.searchsorted(self.terms, np.array([start, start + b"\xff"]))
        return [term.decode(errors="surrogatepass") for term in self.terms[first:last]]

    def rows(self, terms: Iterable[str]) -> np.ndarray:
        """Return the rows of terms, int64 (n,); −1 for terms that are not in the vocabulary."""
        longest = self.terms.itemsize
        encoded = [term.encode(errors="surrogatepass") for term in terms]
        # NumPy would cut longer terms, and find what is left of them.
        fitting = [each if len(each) <= longest else b"" for each in encoded]
        return self.find(np.array(fitting, dtype=self.terms.dtype))

    def find(self, encoded: np.ndarray) -> np.ndarray:
        """Return the `rows` of terms that are UTF-8 already, dtype S (n,)."""
        if not len(self):
            return np.full(len(encoded), -1, dtype=np.int64)
        rows = self.terms.searchsorted(encoded)
        rows[rows == len(self)] = 0
        rows[(self.terms[rows] != encoded) | (encoded == b"")] = -1
        return rows


def _row(terms: np.ndarray, term: str) -> int:
    """Return the row of a term among sorted ones, −1 if it is not there."""
    encoded = term.encode(errors="surrogatepass")
    # NumPy would copy all terms to compare them with a longer one.
    if not encoded or len(encoded) > terms.itemsize:
        return -1
    row = int(terms.searchsorted(encoded))
    return row if row < len(terms) and terms[row] == encoded else -1

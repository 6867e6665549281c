"""Arrays that may be larger than memory: large ones are in temporary files without a name."""

import math
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from qkvsearch.errors import DataError

# Arrays from so many bytes on are in files.
LARGE = 1 << 26
# Rows of a long array that are worked on at a time.
ROWS_AT_ONCE = 1 << 18
# The folder for large temporary files; Python's usual one may be in memory.
LARGE_TEMPORARY = Path("/var/tmp")


def scratch_folder() -> str | None:
    """Return /var/tmp, which is on a disk; None where TMPDIR is set or it cannot be written to."""
    named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    usable = LARGE_TEMPORARY.is_dir() and os.access(LARGE_TEMPORARY, os.W_OK)
    return str(LARGE_TEMPORARY) if usable and not named else None


def scratch_file() -> IO[bytes]:
    """Open a file without a name, which is gone with its arrays, or with the process."""
    return tempfile.TemporaryFile(dir=scratch_folder())


@contextmanager
def _room(size: int) -> Iterator[None]:
    """Raise `DataError` where `size` bytes cannot be written."""
    try:
        yield
    except OSError as error:
        folder = scratch_folder() or tempfile.gettempdir()
        needed = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{math.ceil(size / 1e6)} MB"
        raise DataError(
            f"{folder}: {needed} are needed there: {error.strerror or error}; "
            "make room, or name a folder on another disk with TMPDIR"
        ) from None


def scratch_array(shape: int | tuple[int, ...], dtype: Any, large: int | None = None) -> np.ndarray:
    """Return an array of zeros to write to, in a file if it has `large` bytes or more.

    >>> scratch_array(3, np.int32)
    array([0, 0, 0], dtype=int32)
    """
    shape = (shape,) if isinstance(shape, int) else shape
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < (LARGE if large is None else large):
        return np.zeros(shape, dtype)
    with _room(size), scratch_file() as file:
        # A full disk is an error now: later, the system would end the process.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
        return np.memmap(file, dtype, mode="r+", shape=shape).view(np.ndarray)


def in_file(array: np.ndarray, large: int | None = None) -> np.ndarray:
    """Return a copy of an array in a file if it has `large` bytes or more; else itself.

    One that is in a file already is returned as it is. The copy takes memory where it is read.

    >>> in_file(np.array([[1, 2], [3, 4]]), large=0).tolist()
    [[1, 2], [3, 4]]
    """
    # Keys on a server are no array, and take no memory here.
    if not isinstance(array, np.ndarray) or array.size == 0 or _mapping(array) is not None:
        return array
    if array.nbytes < (LARGE if large is None else large):
        return array
    with _room(array.nbytes), scratch_file() as file:
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.flush()
        return np.memmap(file, array.dtype, mode="r+", shape=array.shape).view(np.ndarray)


def give_back(array: np.ndarray) -> None:
    """Give back the memory of an array that is in a file, from which it is read when needed."""
    mapping = _mapping(array)
    # A change of a private mapping is in memory alone.
    if mapping is not None and mapping.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        file: Any = mapping.base
        file.madvise(mmap.MADV_DONTNEED)


def _mapping(array: Any) -> np.memmap | None:
    """Return the mapped file that an array is a view of, None for an array in memory."""
    while array is not None:
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = getattr(array, "base", None)
    return None


class GrowingArray:
    """An array (n,) that is written piece by piece, in a file once it is large.

    >>> grown = GrowingArray(np.int32)
    >>> grown.append(np.array([7, 8])), grown.append(np.array([9])), len(grown)
    (None, None, 3)
    >>> grown.whole().tolist()
    [7, 8, 9]
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._pieces: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, piece: np.ndarray) -> None:
        piece = np.ascontiguousarray(piece, self.dtype)
        self._length += len(piece)
        if self._file is None and self._length * self.dtype.itemsize < LARGE:
            self._pieces.append(piece.copy())
            return
        with _room(self._length * self.dtype.itemsize):
            if self._file is None:
                self._file = scratch_file()
                for earlier in self._pieces:
                    self._file.write(earlier.data)
                self._pieces = []
            self._file.write(piece.data)

    def fill(self, value: Any, count: int) -> None:
        """Append a value `count` times."""
        for start in range(0, count, ROWS_AT_ONCE):
            self.append(np.full(min(ROWS_AT_ONCE, count - start), value, self.dtype))

    def whole(self) -> np.ndarray:
        """Return the array; nothing can be appended any more. A file stays on disk until read."""
        if self._file is None:
            return np.concatenate([np.empty(0, self.dtype), *self._pieces])
        with _room(self._length * self.dtype.itemsize), self._file as file:
            file.flush()
            return np.memmap(file, self.dtype, mode="r+", shape=(self._length,)).view(np.ndarray)


def pieces_of(length: int, size: int | None = None) -> Iterator[slice]:
    """Yield spans of a long array.

    >>> [(span.start, span.stop) for span in pieces_of(5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    size = size or ROWS_AT_ONCE
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def counts_of(codes: np.ndarray, count: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Return how often each number below `count` is in `codes` (n,), int64 (count,). mask: bool
    (n,), the rows that count.

    >>> counts_of(np.array([1, -1, 1, 0]), 3).tolist()
    [1, 2, 0]
    """
    counts = np.zeros(count + 1, np.int64)
    for rows in pieces_of(len(codes)):
        piece = codes[rows] if mask is None else codes[rows][mask[rows]]
        counts += np.bincount(piece + 1, minlength=count + 1)
    return counts[1:]


def first_rows(codes: np.ndarray, count: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Return the first row of each number below `count` in `codes` (n,), int64 (count,); n for a
    number without a row.

    >>> first_rows(np.array([1, -1, 1, 0]), 3).tolist()
    [3, 0, 4]
    """
    first = np.full(count + 1, len(codes), np.int64)
    for rows in reversed(list(pieces_of(len(codes)))):
        descending = np.arange(rows.stop - 1, rows.start - 1, -1)
        if mask is not None:
            descending = descending[mask[descending]]
        first[codes[descending]] = descending
    return first[:count]


def filtered(array: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the entries of `array` (n,) where `mask` (bool, n) is True; itself where all are."""
    if mask.all():
        return array
    entries = GrowingArray(array.dtype)
    for rows in pieces_of(len(array)):
        entries.append(array[rows][mask[rows]])
    return entries.whole()


def spread(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return values[codes] (n,), where the code −1 stands for the last value.

    >>> spread(np.array([7.0, np.nan]), np.array([0, -1, 0])).tolist()
    [7.0, nan, 7.0]
    """
    cells = scratch_array(len(codes), values.dtype)
    for rows in pieces_of(len(codes)):
        cells[rows] = values[codes[rows]]
    return cells


def grouped(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort the rows of `codes` (n,) by number, stably: return where the rows of each number below
    `count` begin, int64 (count + 1,), and the rows, without those of −1.

    A counting sort (Knuth, The Art of Computer Programming 3, section 5.2, algorithm D).

    >>> starts, order = grouped(np.array([1, 0, -1, 1]), 2)
    >>> starts.tolist(), order.tolist()
    ([0, 1, 3], [1, 0, 3])
    """
    starts = np.concatenate([[0], np.cumsum(counts_of(codes, count))])
    order = scratch_array(int(starts[-1]), np.int32 if len(codes) < 2**31 else np.int64)
    free = starts[:-1].copy()
    for rows in pieces_of(len(codes)):
        piece = codes[rows]
        by_number = np.argsort(piece, kind="stable")
        by_number = by_number[np.searchsorted(piece, 0, sorter=by_number) :]
        numbers = piece[by_number]
        begins = np.flatnonzero(np.diff(numbers, prepend=-1))
        lengths = np.diff(begins, append=len(numbers))
        rank = np.arange(len(numbers)) - np.repeat(begins, lengths)
        order[free[numbers] + rank] = by_number + rows.start
        free[numbers[begins]] += lengths
    return starts, order

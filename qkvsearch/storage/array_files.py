"""Arrays in `.npy` files: synced to disk when written, checked and memory-mapped when read."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from qkvsearch._utils.files import sync
from qkvsearch.errors import DamagedError
from qkvsearch.storage.checksums import check_file, checksum, compare


class StoredFile(NamedTuple):
    """A file in a build's folder, and its entry in the manifest."""

    path: Path
    entry: Mapping[str, Any]


def write_array(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Write an array to a new file, synced to disk, and return its entry in the manifest."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.save(_Stream(file), array, allow_pickle=False)
        sync(file)
    return {**file_entry(path), "dtype": array.dtype.str, "shape": list(array.shape)}


class ArrayFile:
    """An array of a given shape that is written to a new file block by block, in order of rows.

    >>> import tempfile
    >>> with ArrayFile(Path(tempfile.mkdtemp(), "x.npy"), np.int64, (3,)) as file:
    ...     file.append(np.array([1, 2]))
    ...     file.append(np.array([3]))
    >>> read_array(file.stored).tolist()
    [1, 2, 3]
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape, self.n_rows = path, np.dtype(dtype), shape, 0
        self._file = path.open("wb")
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, rows: np.ndarray) -> None:
        """Write the next rows. Raises `ValueError` for another dtype or row shape."""
        if rows.dtype != self.dtype or rows.shape[1:] != self.shape[1:]:
            raise ValueError(f"{self.path}: rows {rows.dtype} {rows.shape} of {self.shape}")
        self._file.write(np.ascontiguousarray(rows).data)
        self.n_rows += len(rows)

    def close(self) -> None:
        """Sync the file to disk. Raises `ValueError` where rows are missing."""
        sync(self._file)
        self._file.close()
        if self.n_rows != self.shape[0]:
            raise ValueError(f"{self.path}: {self.n_rows} rows instead of {self.shape[0]}")

    @property
    def stored(self) -> StoredFile:
        """The closed file and its entry in the manifest."""
        entry = {**file_entry(self.path), "dtype": self.dtype.str, "shape": list(self.shape)}
        return StoredFile(self.path, entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


def concatenate_on_disk(
    pieces: Iterable[np.ndarray], folder: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate arrays of which only one is in memory at a time. Return where each one starts,
    int64 (n_pieces + 1,), and the memory-mapped whole. There must be at least one piece.

    The whole is in an unnamed file in `folder`, which the system removes with the array or with the
    process. Raises `OSError` where the disk is full.
    """
    ends = [0]
    with tempfile.TemporaryFile(dir=folder) as file:
        for piece in pieces:
            file.write(piece.tobytes())
            ends.append(ends[-1] + len(piece))
        dtype, shape = piece.dtype, (ends[-1], *piece.shape[1:])
        file.flush()
        if not file.tell():  # no system maps an empty file
            return np.array(ends, dtype=np.int64), np.zeros(shape, dtype)
        mapped = np.memmap(file, dtype, mode="r", shape=shape)
    return np.array(ends, dtype=np.int64), mapped.view(np.ndarray)


class _Stream:
    """A file that NumPy writes to through Python: directly, it would miss a last write's error."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


def file_entry(path: Path) -> dict[str, Any]:
    """Return the size and the checksum of a file, as a manifest has them."""
    return {"bytes": path.stat().st_size, "xxh3": checksum(path)}


def read_array(file: StoredFile) -> np.ndarray:
    """Memory-map an array, without unpickling. Raises `DamagedError`."""
    path, entry = file
    check_file(path, entry)
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        shape, dtype = tuple(entry.get("shape", array.shape)), entry.get("dtype", array.dtype.str)
    except Exception as error:  # a header is parsed as Python, and may fail in any way
        raise DamagedError(path, f"cannot be read as an array: {error}") from None
    if array.shape != shape or array.dtype.str != dtype:
        raise DamagedError(
            path, f"{array.dtype.str} {array.shape} instead of the {dtype} {shape} that was written"
        )
    # A plain view: each slice of the memmap type costs microseconds, and a query takes many.
    return array.view(np.ndarray)


def share_file(source: StoredFile, target: Path) -> Mapping[str, Any]:
    """Compare a file with its checksum, make a hard link to it, or a copy where the file system has
    no hard links, and return its entry. Raises `DamagedError`.
    """
    compare(*source)
    try:
        target.hardlink_to(source.path)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source.path, target)
        with target.open("rb+") as file:
            sync(file)
    return source.entry

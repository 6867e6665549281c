"""Arrays in `.npy` files: synced to disk when written, checked and memory-mapped when read."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from qkvsearch._utils.files import sync
from qkvsearch._utils.python_syntax import parsing_python
from qkvsearch.errors import DamagedError
from qkvsearch.store.checksums import check_file, checksum, compare


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


class _Stream:
    """A file that NumPy writes to through Python. On a real file it bypasses Python, and misses
    errors of the last write.
    """

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
        with parsing_python:
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

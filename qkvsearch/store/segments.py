"""A segment: the folder of one published build with its manifest, arrays and catalog file."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store.array_files import StoredFile, read_array
from qkvsearch.store.catalog.file import CATALOG
from qkvsearch.store.catalog.segment import SegmentCatalog
from qkvsearch.store.checksums import check_file, checksum_of, compare, read_checksummed

# A workspace of another format is refused. The number rises when the files of a build change, or
# the terms of its texts: a query would be looked up by other terms than those that are stored.
FORMAT_VERSION = 13
MANIFEST = "manifest.json"
BUILDS_FOLDER = "builds"
# The names of builds: a workspace may share its folder with other files.
BUILD_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
# Arrays that say which rows are items: see `RowMap.joined`.
AFTER, ORIGIN, TOMBSTONES = "rows.after", "rows.origin", "tombstones"


class Segment:
    """The folder of a build.

    Only the manifest is read at first. Every other file is checked when it is first read, so that a
    damaged file affects only what needs it.

    checksum: of the manifest, None to accept any. again: compare every file anew, because its
    content will be written to a new file under a new checksum. Raises `DamagedError`, and
    `WorkspaceError` for another format.
    """

    def __init__(self, folder: Path, checksum: str | None = None, *, again: bool = False) -> None:
        self.folder, self.again = folder, again
        self._compared: set[str] = set()
        path = folder / MANIFEST
        if folder.is_symlink():
            raise DamagedError(folder, "it is a link, and was written as a folder")
        try:
            manifest = read_checksummed(path, checksum)
            require_format(folder, manifest["format"])
            _require_manifest(manifest)
            self.checksum = checksum or checksum_of(manifest)
            self.manifest: Mapping[str, Any] = manifest
            # Size and checksum of each file, by its name.
            self.files: Mapping[str, Mapping[str, Any]] = dict(manifest["files"])
            # How many items the segment itself has.
            self.n_rows: int = manifest["n_rows"]
            # Name and checksum of the manifest of each segment below this one, the base first.
            self.below = [(str(name), str(sum_)) for name, sum_ in manifest["below"]]
        except FileNotFoundError:
            raise DamagedError(path, "it is not there") from None
        except (AttributeError, LookupError, TypeError, ValueError):
            raise DamagedError(path, "it is not a manifest") from None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about the whole build when this segment was its newest."""
        return self.manifest["facts"]

    @property
    def array_names(self) -> Iterator[str]:
        """Names of the arrays that the segment has."""
        return (name.removesuffix(".npy") for name in self.files if name.endswith(".npy"))

    def has(self, array: str) -> bool:
        """Return whether the segment has an array."""
        return f"{array}.npy" in self.files

    def file(self, name: str) -> StoredFile:
        """Return a file and its entry in the manifest. Raises `DamagedError`."""
        if name not in self.files:
            raise DamagedError(self.folder / MANIFEST, f"it lists no {name}")
        return StoredFile(self.folder / name, self.files[name])

    def array(self, name: str) -> np.ndarray:
        """Read an array, compared with its checksum once a process. Raises `DamagedError`."""
        return read_array(self._checked(f"{name}.npy"))

    def row_numbers(self, name: str, n: int | None, low: int, high: int) -> np.ndarray:
        """Read `n` row numbers (None: any number) from `low` to `high`. Raises `DamagedError`."""
        rows = self.array(name)
        fits = rows.dtype.kind == "i" and rows.ndim == 1 and n in (None, len(rows))
        if not fits or (len(rows) and not low <= rows.min() <= rows.max() <= high):
            length = "" if n is None else f"{n:,} "
            what = f"it does not have {length}row numbers from {low} to {high}"
            raise DamagedError(self.folder / f"{name}.npy", what)
        return rows

    @cached_property
    def catalog(self) -> SegmentCatalog:
        """The catalog file, checked as an array is. Raises `DamagedError`."""
        catalog = SegmentCatalog(self._checked(CATALOG).path)
        catalog.require_rows(self.n_rows)
        return catalog

    def damaged(self) -> Iterator[DamagedError]:
        """Read every file and yield an error for each that differs from its checksum."""
        for name in self.files:
            try:
                compare(*self.file(name))
            except DamagedError as error:
                yield error

    def _checked(self, name: str) -> StoredFile:
        """Compare a file with its checksum, and return it. Raises `DamagedError`."""
        file = self.file(name)
        check_file(*file, again=self.again and name not in self._compared)
        self._compared.add(name)
        return file

    def close(self) -> None:
        if "catalog" in self.__dict__:
            self.catalog.close()


def require_format(path: Path, version: int) -> None:
    """Raise `WorkspaceError` for another format than this version reads."""
    if version != FORMAT_VERSION:
        raise WorkspaceError(
            f"{path}: the workspace has format {version!r:.20}, and this version reads format "
            f"{FORMAT_VERSION} only; build it again in a new folder"
        )


def _require_manifest(manifest: Any) -> None:
    """Raise an error where a manifest lacks what a segment reads, or names files elsewhere."""
    if not isinstance(manifest["n_rows"], int) or not isinstance(manifest["facts"], dict):
        raise TypeError
    for name, entry in manifest["files"].items():
        if not entry.keys() >= {"bytes", "xxh3"}:
            raise LookupError(name)
        if "/" in name or "\\" in name or name.startswith("."):
            raise LookupError(name)
    for name, _ in manifest["below"]:
        if not BUILD_NAME.fullmatch(str(name)):
            raise LookupError(name)

"""A segment: the folder of one published build, its manifest, arrays and part of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.storage.array_files import StoredFile, read_array
from qkvsearch.storage.catalog.file import CATALOG
from qkvsearch.storage.catalog.segment import SegmentCatalog
from qkvsearch.storage.checksummed import checksum_of, read_checksummed
from qkvsearch.storage.checksums import check_file, compare

# A workspace of another format is refused.
FORMAT_VERSION = 7
MANIFEST = "manifest.json"
BUILDS_FOLDER = "builds"
# A workspace may share its folder with other things, such as other folders in `builds/`.
OWN_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
# By the first two a segment's rows find their places among those of the base; the third one holds
# the stored rows, of whatever segment, that are no items of the build.
AFTER, ORIGIN, TOMBSTONES = "rows.after", "rows.origin", "tombstones"


class Segment:
    """The folder of a build, opened: nothing is read but the manifest. Every other file is checked
    when it is first read, so that one that is damaged or gone is missed only by what needs it.

    checksum: that of the manifest, None where any will do. trust: read files without comparing
    them with their checksums. again: compare them whatever this process has seen or trusts, since
    what is read will be written elsewhere and signed. below: the segments that it stands on, base
    first, each by its name and the checksum of its manifest. Raises `DamagedError`,
    `WorkspaceError` for another format.
    """

    def __init__(
        self,
        folder: Path,
        checksum: str | None = None,
        *,
        trust: bool = False,
        again: bool = False,
    ) -> None:
        self.folder, self.trust, self.again = folder, trust, again
        path = folder / MANIFEST
        if folder.is_symlink():
            raise DamagedError(folder, "it is a link, and was written as a folder")
        try:
            manifest = read_checksummed(path, checksum)
            self.checksum = checksum or checksum_of(manifest)
            require_readable(folder, manifest["format"])
            self.manifest: Mapping[str, Any] = manifest
            self.files: Mapping[str, Mapping[str, Any]] = dict(manifest["files"])
            self.n_rows: int = manifest["n_rows"]
            self.below = [(str(name), str(sum_)) for name, sum_ in manifest["below"]]
            if not all(entry.keys() >= {"bytes", "xxh3"} for entry in self.files.values()):
                raise LookupError
            if not isinstance(self.n_rows, int) or not isinstance(manifest["facts"], dict):
                raise TypeError
            if any("/" in name or "\\" in name or name.startswith(".") for name in self.files):
                raise LookupError
            if not all(OWN_NAME.fullmatch(name) for name, _ in self.below):
                raise LookupError
        except FileNotFoundError:
            raise DamagedError(path, "it is not there") from None
        except (AttributeError, LookupError, TypeError, ValueError):
            raise DamagedError(path, "it is no manifest") from None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the build knew of itself when this segment was its newest."""
        facts: Mapping[str, Any] = self.manifest["facts"]
        return facts

    @property
    def array_names(self) -> Iterator[str]:
        return (name.removesuffix(".npy") for name in self.files if name.endswith(".npy"))

    def has(self, array: str) -> bool:
        return f"{array}.npy" in self.files

    def file(self, name: str) -> StoredFile:
        if name not in self.files:
            raise DamagedError(self.folder / MANIFEST, f"it lists no {name}")
        return StoredFile(self.folder / name, self.files[name])

    def array(self, name: str) -> np.ndarray:
        """Checked the first time that this process reads it. Raises `DamagedError`."""
        file = self.file(f"{name}.npy")
        return read_array(file, trust=self._is_trusted(file))

    def row_numbers(self, name: str, n: int | None, least: int, most: int) -> np.ndarray:
        """An array of `n` row numbers, any number of them for None, from `least` to `most`. Raises
        `DamagedError`.
        """
        found = self.array(name)
        fits = found.dtype.kind == "i" and found.ndim == 1 and n in (None, len(found))
        if not fits or (len(found) and not least <= found.min() <= found.max() <= most):
            raise DamagedError(
                self.folder / f"{name}.npy", f"not as many row numbers, or beyond {least} to {most}"
            )
        return found

    @cached_property
    def catalog(self) -> SegmentCatalog:
        """Checked like an array. Raises `DamagedError`."""
        file = self.file(CATALOG)
        check_file(*file, trust=self._is_trusted(file))
        found = SegmentCatalog(file.path)
        found.require_rows(self.n_rows)
        return found

    def damaged(self) -> Iterator[DamagedError]:
        """Every file is read, and compared with its checksum."""
        for name in self.files:
            try:
                compare(*self.file(name))
            except DamagedError as error:
                yield error

    def _is_trusted(self, file: StoredFile) -> bool:
        """Whether a file may be read as it is. Raises `DamagedError`."""
        if self.again and file.path not in self._compared:
            compare(*file)
            self._compared.add(file.path)
        return self.again or self.trust

    @cached_property
    def _compared(self) -> set[Path]:
        return set()

    def close(self) -> None:
        if "catalog" in self.__dict__:
            self.catalog.close()


def require_readable(place: Path, written_in: int) -> None:
    """Raise `WorkspaceError` for another format than that of this version."""
    if written_in != FORMAT_VERSION:
        raise WorkspaceError(
            f"{place}: the workspace has format {written_in!r:.20}, and this version reads format "
            f"{FORMAT_VERSION} only; build it again in a new folder"
        )

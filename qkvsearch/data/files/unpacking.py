"""Where a table is: a file, standard input, or a part of one; unpacked where it is packed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from qkvsearch._utils.limits import PACKED_FILES, PACKED_LAYERS, WORKBOOK_PARTS, check_unpacked
from qkvsearch.data.files.frames import picked
from qkvsearch.errors import DataError, need

STDIN = "-"
PACKERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
ZSTANDARD = b"\x28\xb5\x2f\xfd"
# Of a workbook, what is read in pieces, and what is not read.
IN_PIECES = ("xl/worksheets/", "xl/sharedStrings", "xl/media/", "xl/drawings/", "xl/embeddings/")
ZIP, EMPTY_ZIP = b"PK\x03\x04", b"PK\x05\x06"


@dataclass(frozen=True)
class Place:
    """label: as it was given. name: of the table's own file. size: the bytes of the file that was
    given, packed as it was. part: what stands behind `#`.
    """

    label: str
    name: str
    path: Path
    size: int
    part: str = ""

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    def start(self) -> bytes:
        """The first bytes, which tell what a file is. Raises `DataError`."""
        try:
            with self.path.open("rb") as file:
                return file.read(4096)
        except OSError as error:
            raise DataError(f"{self.label}: cannot read: {error.strerror}") from None


@contextmanager
def unpacked(source: str | Path) -> Iterator[Place]:
    """The file of a table, until the context ends. Raises `DataError` that names it.

    source: a path, or "-" for standard input; `archive.zip#orders.csv` picks a file of an archive.
    """
    with ExitStack() as stack:
        place = _place(str(source), stack)
        for _ in range(PACKED_LAYERS.value):
            layer = _unpack(place, stack)
            if layer is None:
                break
            place = layer
        else:
            raise DataError(
                f"{place.label}: packed more than {PACKED_LAYERS.value} times; unpack it first"
            )
        yield place


def _place(source: str, stack: ExitStack) -> Place:
    if source == STDIN:
        name = "standard input"
        return _measured(name, name, _kept(_chunks(sys.stdin.buffer), stack))
    path, part = Path(source), ""
    if not _exists(path) and "#" in source:
        before, _, after = source.partition("#")
        if _exists(Path(before)):
            path, part = Path(before), after
    if not _exists(path):
        raise DataError(f"{source}: no such file")
    if path.is_fifo():
        with path.open("rb") as pipe:
            return _measured(source, path.name, _kept(_chunks(pipe), stack), part)
    if not path.is_file():
        raise DataError(f"{source}: not a file")
    return _measured(source, path.name, path, part)


def _measured(label: str, name: str, path: Path, part: str = "") -> Place:
    try:
        return Place(label, name, path, path.stat().st_size, part)
    except OSError as error:
        raise DataError(f"{label}: cannot read: {error.strerror}") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for a file, such as a query
        return False


def _unpack(place: Place, stack: ExitStack) -> Place | None:
    """What is inside, or None where the file is not packed."""
    start = place.start()
    inside = None
    if start.startswith(ZSTANDARD):
        with place.path.open("rb") as packed:
            inside = _copy(_from_zstandard(packed, place.label), place, stack)
    for mark, open_packed in PACKERS.items():
        if start.startswith(mark):
            with open_packed(place.path) as file:
                inside = _copy(_chunks(file), place, stack)
    if inside is not None:
        name = Path(place.name)
        name = name.with_suffix("") if name.suffix.lower() in PACKED_SUFFIXES else name
        return replace(place, name=name.name, path=inside)
    if start.startswith((ZIP, EMPTY_ZIP)):
        return _from_archive(place, stack)
    return None


def _from_archive(place: Place, stack: ExitStack) -> Place | None:
    """The only table of an archive, or the part that was asked for; None for a spreadsheet."""
    try:
        with zipfile.ZipFile(place.path) as archive:
            if "xl/workbook.xml" in archive.namelist():
                _check_workbook(archive, place)
                return None
            PACKED_FILES.check(len(archive.namelist()), place.label)
            names = [
                name
                for name in archive.namelist()
                if not (name.endswith("/") or name.startswith("__MACOSX/"))
                and not Path(name).name.startswith(".")
            ]
            bare = [name for name in names if Path(name).name == place.part]
            name = bare[0] if len(bare) == 1 else picked(place.part, names, "file", place.label)
            with archive.open(name) as member:
                inside = _copy(_chunks(member), place, stack)
    except (zipfile.BadZipFile, RuntimeError, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{place.label}: cannot be unpacked: {error}") from None
    return replace(place, name=Path(name).name, path=inside, part="")


def _check_workbook(archive: zipfile.ZipFile, place: Place) -> None:
    """Raise `DataError` for a workbook that would take too much memory or time."""
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    check_unpacked(sum(sizes.values()), place.size, place.label)
    others = [size for name, size in sizes.items() if not name.startswith(IN_PIECES)]
    WORKBOOK_PARTS.check(sum(others), place.label)
    # Any number of sheets may name the same part, and each would be read.
    content = archive.read("xl/workbook.xml").replace(b"\0", b"")
    if content.count(b"sheetId") > len(sizes) or b"<!ENTITY" in content:
        raise DataError(f"{place.label}: not a spreadsheet, or damaged: sheets without a part")


def _copy(chunks: Iterable[bytes], place: Place, stack: ExitStack) -> Path:
    """A file of what is unpacked, as long as the context lasts."""

    def checked() -> Iterator[bytes]:
        total = 0
        for chunk in chunks:
            total += len(chunk)
            check_unpacked(total, place.size, place.label)
            yield chunk

    try:
        return _kept(checked(), stack)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{place.label}: damaged, or cut short: {error}") from None


def _kept(chunks: Iterable[bytes], stack: ExitStack) -> Path:
    path = Path(stack.enter_context(TemporaryDirectory(prefix="qkvsearch-"))) / "table"
    with path.open("wb") as file:
        file.writelines(chunks)
    return path


def _chunks(file: Any) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk


def _from_zstandard(file: BinaryIO, label: str) -> Iterator[bytes]:
    """Frame by frame, in small pieces: 2 KB may unpack to 64 MB."""
    zstandard = need("zstandard", "zst", f"{label}: unpacking it", error=DataError)
    unpacker, rest = zstandard.ZstdDecompressor().decompressobj(), b""
    try:
        while rest or (rest := file.read(2048)):
            if unpacker.eof:
                unpacker = zstandard.ZstdDecompressor().decompressobj()
            yield unpacker.decompress(rest)
            rest = unpacker.unused_data if unpacker.eof else b""
    except zstandard.ZstdError as error:
        raise EOFError(error) from None
    if not unpacker.eof:
        raise EOFError("it ends in the middle")

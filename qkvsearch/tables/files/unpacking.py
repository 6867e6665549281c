"""The files that tables are in: paths and standard input, unpacked if they are packed."""

from __future__ import annotations

import glob
import gzip
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from qkvsearch._utils.files import is_of_a_workspace
from qkvsearch._utils.limits import (
    ELEMENT_BYTES,
    PACKED_FILES,
    PACKED_LAYERS,
    WORKBOOK_PARTS,
    check_unpacked,
)
from qkvsearch.errors import DataError
from qkvsearch.tables.files.kinds import possible_tables, refuse_other_kinds
from qkvsearch.tables.files.open_documents import is_open_document
from qkvsearch.tables.frames import pick_name

STDIN = "-"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")
# How packed files begin.
GZIP, ZIP, EMPTY_ZIP = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06"
# What a damaged archive raises wherever it is read.
DAMAGE = (
    EOFError,
    ElementTree.ParseError,
    KeyError,
    OSError,
    RuntimeError,
    UnicodeError,
    zipfile.BadZipFile,
    zlib.error,
)
WORKBOOK = "xl/workbook.xml"
# Files that are archives and have no table that is read, by a member and what it begins with.
DOCUMENTS = {
    ("mimetype", b"application/vnd.oasis"): "an OpenDocument file",
    ("xl/workbook.bin", b""): "a binary workbook (.xlsb)",
    ("Index/Document.iwa", b""): "a file of Numbers or Pages",
    ("Index.zip", b""): "a file of Numbers or Pages",
    ("word/document.xml", b""): "a Word document",
    ("ppt/presentation.xml", b""): "a presentation",
    ("mimetype", b"application/epub"): "an e-book (EPUB)",
}
# In the workbook part of the Strict variant of .xlsx.
STRICT = b"purl.oclc.org/ooxml"
# The members of a workbook that are read in pieces, or not at all.
IN_PIECES = ("xl/worksheets/", "xl/sharedStrings", "xl/media/", "xl/drawings/", "xl/embeddings/")


@dataclass(frozen=True)
class TableFile:
    """A file with a table in it, unpacked.

    label: the file as the caller named it. name: of the unpacked file. size: the bytes of the
    packed file. fragment: the text behind `#`, such as the name of a sheet.
    """

    label: str
    name: str
    path: Path
    size: int
    fragment: str = ""

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    def start(self) -> bytes:
        """Return the first bytes, which tell the format. Raises `DataError`."""
        try:
            with self.path.open("rb") as file:
                return file.read(4096)
        except OSError as error:
            raise DataError(f"{self.label}: cannot read: {error.strerror or error}") from None


@contextmanager
def unpacked(source: str | Path) -> Iterator[TableFile]:
    """Open the file of a table, until the context ends. Raises `DataError` that names it.

    source: a path, or "-" for standard input; `archive.zip#orders.csv` picks a file of an archive.
    """
    with ExitStack() as stack:
        file = _open(str(source), stack)
        for _ in range(PACKED_LAYERS.value):
            inner = _unpack(file, stack)
            if inner is None:
                break
            file = inner
        else:
            raise DataError(
                f"{file.label}: packed more than {PACKED_LAYERS.value} times; unpack it first"
            )
        yield file


def _open(source: str, stack: ExitStack) -> TableFile:
    if source == STDIN:
        name = "standard input"
        return _measured(name, name, _write(_of_a_table(_chunks(sys.stdin.buffer), name), stack))
    if address := ADDRESS.match(source):  # the rest may have a password
        raise DataError(
            f"{address[0]}…: not a file; download it, or export the table of a database as CSV"
        )
    path, fragment = Path(source), ""
    if not _exists(path) and "#" in source:
        before, _, after = source.partition("#")
        if _exists(Path(before)):
            path, fragment = Path(before), after
    if not _exists(path):
        raise DataError(f"{source}: no such file")
    if path.is_fifo():
        with path.open("rb") as pipe:
            chunks = _of_a_table(_chunks(pipe), source)
            return _measured(source, path.name, _write(chunks, stack), fragment)
    if not path.is_file():
        raise DataError(f"{source}: not a file")
    return _measured(source, path.name, path, fragment)


def matching(source: str | Path) -> list[str | Path]:
    """Return the files that a pattern such as `logs/*.csv` matches, by name; another source as it
    is. What follows `#` belongs to each file. The files of a workspace are no data. Raises
    `DataError` where no file matches.
    """
    pattern, sign, fragment = str(source).partition("#")
    is_file = ADDRESS.match(pattern) or any(map(_exists, map(Path, (source, pattern))))
    if is_file or not glob.has_magic(pattern):
        return [source]
    found = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    files = [name for name in found if not is_of_a_workspace(Path(name))]
    if not files:
        raise DataError(f"{source}: no file matches this pattern")
    return [f"{name}{sign}{fragment}" for name in files]


def _measured(label: str, name: str, path: Path, fragment: str = "") -> TableFile:
    try:
        return TableFile(label, name, path, path.stat().st_size, fragment)
    except OSError as error:
        raise DataError(f"{label}: cannot read: {error.strerror or error}") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for a file, such as a query
        return False


def _unpack(file: TableFile, stack: ExitStack) -> TableFile | None:
    """Return the file inside, or None where a file is not packed."""
    start = file.start()
    if start.startswith(GZIP):
        with gzip.open(file.path) as packed:
            path = _copy(_chunks(packed), file, stack)
        name = file.name[:-3] if file.name.lower().endswith(".gz") else file.name
        return replace(file, name=name, path=path)
    if start.startswith((ZIP, EMPTY_ZIP)):
        return _from_archive(file, stack)
    return None


def _from_archive(file: TableFile, stack: ExitStack) -> TableFile | None:
    """Return the named file of an archive, or its only one; None for a spreadsheet."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            if WORKBOOK in archive.namelist():
                _check_workbook(archive, file)
                return None
            PACKED_FILES.check(len(archive.namelist()), file.label)
            if is_open_document(file.path):
                sizes = [member.file_size for member in archive.infolist()]
                check_unpacked(sum(sizes), file.size, file.label)
                return None
            _check_kind(archive, file)
            names = [
                name
                for name in archive.namelist()
                if not (name.endswith("/") or name.startswith("__MACOSX/"))
                and not Path(name).name.startswith(".")
            ]
            if not file.fragment:
                names = possible_tables(names, file.label)
            same_name = [name for name in names if Path(name).name == file.fragment]
            if len(same_name) == 1:
                name = same_name[0]
            else:
                name = pick_name(file.fragment, names, "file", file.label)
            with archive.open(name) as member:
                path = _copy(_chunks(member), file, stack)
    except DAMAGE as error:
        raise DataError(f"{file.label}: cannot be unpacked: {error}") from None
    return replace(file, name=Path(name).name, path=path, fragment="")


def _check_kind(archive: zipfile.ZipFile, file: TableFile) -> None:
    """Raise `DataError` for a file that is an archive but no archive of tables."""
    members = set(archive.namelist())
    for (member, start), kind in DOCUMENTS.items():
        if member not in members:
            continue
        with archive.open(member) as content:
            if content.read(len(start)) == start:
                raise DataError(f"{file.label}: {kind}; save the table as .xlsx or CSV")


def _check_workbook(archive: zipfile.ZipFile, file: TableFile) -> None:
    """Raise `DataError` for a workbook that would take too much memory or time."""
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    check_unpacked(sum(sizes.values()), file.size, file.label)
    others = [size for name, size in sizes.items() if not name.startswith(IN_PIECES)]
    WORKBOOK_PARTS.check(sum(others), file.label)
    n_elements = 0
    for name in sizes:
        with archive.open(name) as member:
            for chunk in _chunks(member):
                n_elements += chunk.count(b"<") - chunk.count(b"</")
                check_unpacked(ELEMENT_BYTES * n_elements, file.size, file.label)
    # Any number of sheets may name the same part, and each would be read.
    content = archive.read(WORKBOOK).replace(b"\0", b"")
    if content.count(b"sheetId") > len(sizes) or b"<!ENTITY" in content:
        raise DataError(f"{file.label}: not a spreadsheet, or damaged: sheets without a part")
    if STRICT in content:
        raise DataError(
            f"{file.label}: a Strict Open XML spreadsheet, which is not read; save it as an "
            "ordinary Excel workbook (.xlsx), or as CSV"
        )
    types = ElementTree.fromstring(archive.read("[Content_Types].xml"))
    main = {
        each.get("PartName", f"/{WORKBOOK}")
        for each in types
        if each.get("ContentType", "").endswith(".main+xml")
    }
    if main != {f"/{WORKBOOK}"}:
        raise DataError(f"{file.label}: not a spreadsheet, or damaged: no workbook in {WORKBOOK}")


def _copy(chunks: Iterable[bytes], file: TableFile, stack: ExitStack) -> Path:
    """Write unpacked bytes to a temporary file. Raises `DataError` for too many of them."""

    def checked() -> Iterator[bytes]:
        total = 0
        for chunk in _of_a_table(chunks, file.label):
            total += len(chunk)
            check_unpacked(total, file.size, file.label)
            yield chunk

    try:
        return _write(checked(), stack)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{file.label}: damaged, or cut short: {error}") from None


def _of_a_table(chunks: Iterable[bytes], label: str) -> Iterator[bytes]:
    """Yield the bytes of a file. Raises `DataError` at once for one that begins as no table does,
    before the rest is unpacked.
    """
    is_first = True
    for chunk in chunks:
        if is_first:
            refuse_other_kinds(chunk, label)
            is_first = False
        yield chunk


def _write(chunks: Iterable[bytes], stack: ExitStack) -> Path:
    """Write bytes to a temporary file, and return its path."""
    path = Path(stack.enter_context(TemporaryDirectory(prefix="qkvsearch-"))) / "table"
    with path.open("wb") as file:
        file.writelines(chunks)
    return path


def _chunks(file: Any) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk

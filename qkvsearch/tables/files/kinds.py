"""Files that have no table in them, by how they begin, so that they are refused before they are
read, whatever their size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from qkvsearch.errors import DataError, quantity


class FileKind(NamedTuple):
    """Files of which no table is read. what: what they are, and what to do."""

    begins: re.Pattern[bytes]
    what: str


def _kinds(what: str, *patterns: bytes) -> list[FileKind]:
    return [FileKind(re.compile(pattern, re.DOTALL), what) for pattern in patterns]


# Bytes at a later place follow as many of any kind. A pattern has bytes that no text begins with:
# a table may well begin with BM, ID3 or MZ.
KINDS = [
    *_kinds("a PDF, not a table", rb"\s{0,8}%PDF-", rb"\xef\xbb\xbf%PDF-"),
    *_kinds(
        "a picture, not a table",
        rb"\x89PNG",
        rb"\xff\xd8\xff",
        rb"GIF8[79]a",
        rb"RIFF.{4}WEBP",
        rb"BM.{4}\0\0\0\0",
        rb"II\*\0|MM\0\*",
        rb"\0.{3}ftyp(hei|mif|avi)",
        rb"8BPS\0",
        rb"\0\0\x01\0.\0",
    ),
    *_kinds(
        "audio, not a table",
        rb"ID3[\x02-\x04]",
        rb"\xff[\xfb\xf3\xf2\xf1\xf9]",
        rb"RIFF.{4}WAVE",
        rb"OggS\0",
        rb"fLaC\0",
        rb"FORM.{4}AIF",
        rb"\0.{3}ftypM4[AB]",
        rb"#!AMR\n",
    ),
    *_kinds(
        "a video, not a table; what is said in it is in its subtitles, as .srt or .vtt",
        rb"\0.{3}ftyp",
        rb"\0.{3}(moov|mdat|wide)",
        rb"\x1aE\xdf\xa3",
        rb"RIFF.{4}AVI ",
        rb"FLV\x01",
        rb"\x30\x26\xb2\x75",
        rb"\0\0\x01[\xba\xb3]",
    ),
    *_kinds("a document (RTF), not a table", rb"\{\\rtf"),
    *_kinds("PostScript, not a table", rb"%!PS-"),
    *_kinds("a program, not a table", rb"\x7fELF", rb"MZ.{2,56}\0\0\0\0", rb"\xca\xfe\xba\xbe"),
    *_kinds(
        "a dump of a database, as SQL; export its table as CSV",
        rb"(-- (MySQL|MariaDB) dump|--\r?\n-- PostgreSQL|/\*!40|PRAGMA foreign_keys)",
    ),
    *_kinds("a database of Access; export its table as CSV", rb"\0\x01\0\0Standard (Jet|ACE)"),
    *_kinds("a 7z archive; unpack it first", rb"7z\xbc\xaf"),
    *_kinds("a rar archive; unpack it first", rb"Rar!\x1a"),
    *_kinds("a tar archive; unpack it first", rb".{257}ustar"),
    *_kinds("packed as .bz2; unpack it, or pack it as .gz", rb"BZh[1-9]1AY"),
    *_kinds("packed as .xz; unpack it, or pack it as .gz", rb"\xfd7zXZ"),
    *_kinds("packed as .zst; unpack it, or pack it as .gz", rb"\x28\xb5\x2f\xfd"),
    *_kinds("an Arrow or Feather file; save it as Parquet or CSV", rb"ARROW1"),
    *_kinds("a Feather file; save it as Parquet or CSV", rb"FEA1"),
    *_kinds("an Avro file; save it as Parquet or CSV", rb"Obj\x01"),
    *_kinds("an HDF5 file; save it as Parquet or CSV", rb"\x89HDF"),
    *_kinds("an array of NumPy; save it as Parquet or CSV", rb"\x93NUMPY"),
    *_kinds("a file of R; save it as CSV", rb"RD[AX][23]\n", rb"[AX]\n\0\0\0[\x02\x03]"),
    *_kinds("a file of SPSS; save it as CSV", rb"\$FL[23]@"),
    *_kinds("a file of Stata; save it as CSV", rb"<stata_dta>"),
    *_kinds("a pickle; save it as Parquet or CSV", rb"\x80[\x02-\x05]"),
]
# Suffixes of files in an archive that are no tables.
NO_TABLES = frozenset(
    "png jpg jpeg gif webp svg bmp tif tiff heic avif ico psd mp3 wav ogg oga opus flac m4a aac "
    "mp4 m4v mov avi mkv webm wmv mpg mpeg pdf doc docx odt rtf ppt pptx odp epub exe dll so dylib "
    "class py js ts css c h cpp java rs go ttf otf woff woff2 zip rar 7z tar".split()
)


def refuse_other_kinds(start: bytes, label: str) -> None:
    """Raise `DataError` for a file that begins as no table does.

    >>> refuse_other_kinds(b"%PDF-1.4", "talk.pdf")
    Traceback (most recent call last):
    qkvsearch.errors.DataError: talk.pdf: this is a PDF, not a table
    """
    for kind in KINDS:
        if kind.begins.match(start):
            raise DataError(f"{label}: this is {kind.what}")


def possible_tables(names: Sequence[str], label: str) -> list[str]:
    """Return the files of an archive that may be tables, by their suffixes. Raises `DataError`
    where there are files, and none may be.

    >>> possible_tables(["a.png", "items.csv", "b.png"], "all.zip")
    ['items.csv']
    """
    tables = [name for name in names if _suffix(name) not in NO_TABLES]
    if names and not tables:
        kinds = sorted({_suffix(name) for name in names})
        listed = ", ".join(f".{kind}" for kind in kinds[:5])
        files = quantity(len(names), "file")
        raise DataError(f"{label}: this is an archive of {files} without a table ({listed})")
    return tables


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower().removeprefix(".")

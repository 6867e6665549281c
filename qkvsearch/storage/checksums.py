"""Checksums of files: compared when a process first reads a file, then remembered."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from qkvsearch.errors import DamagedError

# What is read at a time. The same function of hashlib comes with OpenSSL, which takes longer to be
# imported than most files to be read.
BLOCK = 1 << 18
# Set to 1, arrays and catalogs are read without being compared with their checksums.
TRUST = "QKVSEARCH_TRUST"
# By device, inode, time of the last change and size: what was compared once need not be again.
_sound: set[tuple[int, int, int, int, str]] = set()


def checksum(path: Path) -> str:
    """XXH3 of 64 bits, of a whole file, in hexadecimal digits."""
    digest = xxhash.xxh3_64()
    block = memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(block):
            digest.update(block[:n])
    return digest.hexdigest()


def check_size(path: Path, entry: Mapping[str, Any]) -> os.stat_result:
    """Raise `DamagedError` for a file that is missing, a link, or longer or shorter than it was."""
    try:
        found = path.lstat()
    except OSError as error:
        raise DamagedError(path, error.strerror or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        raise DamagedError(path, "it is a link or a folder, and was written as a file")
    if found.st_size != entry["bytes"]:
        raise DamagedError(path, f"{found.st_size:,} bytes instead of {entry['bytes']:,}")
    return found


def check_file(path: Path, entry: Mapping[str, Any], *, trust: bool = False) -> None:
    """Raise `DamagedError` where a file is not as it was written; each is read once a process.

    entry: of the manifest, `bytes` with `xxh3`. trust: compare the size alone, as the
    environment's QKVSEARCH_TRUST=1 asks for too.
    """
    found = check_size(path, entry)
    if trust or os.environ.get(TRUST) == "1":
        return
    known = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, entry["xxh3"])
    if known not in _sound:
        compare(path, entry)
        _sound.add(known)


def compare(path: Path, entry: Mapping[str, Any]) -> None:
    """Read a file and compare it with its checksum, whatever was seen before. Raises
    `DamagedError`.
    """
    check_size(path, entry)
    try:
        found = checksum(path)
    except OSError as error:
        raise DamagedError(path, f"cannot be read: {error.strerror or error}") from None
    if found != entry["xxh3"]:
        raise DamagedError(path, "its checksum is not the one that was written")

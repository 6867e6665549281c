"""Checksums of files, compared when a process first reads a file, and checksummed JSON files."""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from qkvsearch._utils.files import write_synced
from qkvsearch.errors import DamagedError

# Bytes read at a time. `hashlib.file_digest` would import OpenSSL, which takes longer than reading
# most files.
BLOCK = 1 << 18
# Far above what the manifest of any build needs.
MAX_JSON_BYTES = 256 * 1024**2
# A file of JSON, as it is written.
ENVELOPE = re.compile(
    r'\{"checksum": "(?P<checksum>\w{16})", "content": (?P<body>.*)\}\n', re.DOTALL
)
# Files that were compared: device, inode, time of the last change, size, checksum.
_compared: set[tuple[int, int, int, int, str]] = set()


def checksum(path: Path) -> str:
    """Return the 64-bit XXH3 of a file as hexadecimal digits."""
    digest = xxhash.xxh3_64()
    block = memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(block):
            digest.update(block[:n])
    return digest.hexdigest()


def file_status(path: Path) -> os.stat_result:
    """Return the status of a file. Raises `DamagedError` for a link or folder, and `OSError`."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(path, "it is a link, a folder or a pipe, and was written as a file")
    return status


def check_size(path: Path, entry: Mapping[str, Any]) -> os.stat_result:
    """Return the status of a file. Raise `DamagedError` where it is missing, a link, or of another
    size than in the manifest.
    """
    try:
        status = file_status(path)
    except OSError as error:
        raise DamagedError(path, error.strerror or str(error)) from None
    if status.st_size != entry["bytes"]:
        raise DamagedError(path, f"{status.st_size:,} bytes instead of {entry['bytes']:,}")
    return status


def check_file(path: Path, entry: Mapping[str, Any], *, again: bool = False) -> None:
    """Raise `DamagedError` where a file differs from what was written. A process compares each
    file once; again: compare it anew. entry: `bytes` and `xxh3` from the manifest.
    """
    status = check_size(path, entry)
    key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, entry["xxh3"])
    if again or key not in _compared:
        compare(path, entry)
        _compared.add(key)


def compare(path: Path, entry: Mapping[str, Any]) -> None:
    """Read a file and compare it with its checksum, even if that was done before. Raises
    `DamagedError`.
    """
    check_size(path, entry)
    try:
        actual = checksum(path)
    except OSError as error:
        raise DamagedError(path, f"cannot be read: {error.strerror or error}") from None
    if actual != entry["xxh3"]:
        raise DamagedError(path, "its checksum is not the one that was written")


# --- JSON files ---


def write_checksummed(path: Path, content: Any, mode: int = 0o666) -> str:
    """Write a temporary file, sync it and rename it to `path`; return the checksum of the content.
    mode: the permissions of a new file.
    """
    text, checksum = _encoded(content)
    write_synced(path, text.encode(), mode)
    return checksum


def read_checksummed(path: Path, checksum: str | None = None) -> Any:
    """Read the content and compare it with the checksum in the file and, if given, with `checksum`.

    Raises `DamagedError`, and `FileNotFoundError` where there is no such file.
    """
    try:
        if file_status(path).st_size > MAX_JSON_BYTES:
            raise DamagedError(path, f"it is longer than {MAX_JSON_BYTES:,} bytes")
        written = ENVELOPE.fullmatch(path.read_text(encoding="utf-8"))
        if written is None:
            raise ValueError("it is not written so")
        content = json.loads(written["body"])
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DamagedError(path, "it is not what was written") from None
    if _checksum_of(written["body"]) != written["checksum"]:
        raise DamagedError(path, "its checksum is not the one that was written")
    if checksum is not None and written["checksum"] != checksum:
        raise DamagedError(path, "it is not the file that belongs here")
    return content


def checksum_of(content: Any) -> str:
    """Return the checksum that a file with this content has."""
    return _encoded(content)[1]


def _encoded(content: Any) -> tuple[str, str]:
    """Return the text of the file, which is unique for a content, and the checksum. JSON escapes
    everything beyond ASCII, so any Python string can be written.
    """
    body = json.dumps(content, indent=1)
    checksum = _checksum_of(body)
    return f'{{"checksum": "{checksum}", "content": {body}}}\n', checksum


def _checksum_of(body: str) -> str:
    return xxhash.xxh3_64_hexdigest(body.encode())

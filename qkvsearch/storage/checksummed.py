"""Small JSON files that contain the checksum of their content."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import xxhash

from qkvsearch._utils.files import write_synced
from qkvsearch.errors import DamagedError

# Far above what the manifest of any build needs.
MAX_BYTES = 256 * 1024**2


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
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(path, "it is a link or a folder, and was written as a file")
        if status.st_size > MAX_BYTES:
            raise DamagedError(path, f"it is longer than {MAX_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)["content"]
        expected, actual_checksum = _encoded(content)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DamagedError(path, "it is not what was written") from None
    if text != expected:
        raise DamagedError(path, "its checksum is not the one that was written")
    if checksum is not None and actual_checksum != checksum:
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
    checksum = xxhash.xxh3_64_hexdigest(body.encode())
    return f'{{"checksum": "{checksum}", "content": {body}}}\n', checksum

"""Small JSON files in which every byte answers for itself: the text, and the checksum of it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import xxhash

from qkvsearch._utils.files import write_synced
from qkvsearch.errors import DamagedError

# Far above what the manifest of any build needs.
MOST_BYTES = 256 * 1024**2


def write_checksummed(path: Path, content: Any, mode: int = 0o666) -> str:
    """Write `content` beside its place, on the disk, then rename it; its checksum comes back.
    mode: the permissions of a new file.
    """
    text, found = _signed(content)
    write_synced(path, text.encode(), mode)
    return found


def read_checksummed(path: Path, checksum: str | None = None) -> Any:
    """What was written, if every byte is as it was, and the checksum the one that is expected.

    Raises `DamagedError`, and `FileNotFoundError` where there is no such file.
    """
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise DamagedError(path, "it is a link or a folder, and was written as a file")
        if found.st_size > MOST_BYTES:
            raise DamagedError(path, "it is longer than any that is written")
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)["content"]
        expected, sum_ = _signed(content)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DamagedError(path, "it is not what was written") from None
    if text != expected:
        raise DamagedError(path, "its checksum is not the one that was written")
    if checksum is not None and sum_ != checksum:
        raise DamagedError(path, "it is not the file that belongs here")
    return content


def checksum_of(content: Any) -> str:
    """The checksum by which a content is signed."""
    return _signed(content)[1]


def _signed(content: Any) -> tuple[str, str]:
    """The one text that a content has, and its checksum. Letters beyond ASCII are escaped, so that
    anything that Python holds as text can be written.
    """
    body = json.dumps(content, indent=1)
    found = xxhash.xxh3_64_hexdigest(body.encode())
    return f'{{"checksum": "{found}", "content": {body}}}\n', found

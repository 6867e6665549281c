"""Small files of JSON that carry a checksum of themselves and are replaced as a whole."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import xxhash

from qkvsearch.errors import DamagedError


def write_signed(path: Path, content: Any) -> str:
    checksum, text = _signed(content)
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return checksum


def read_signed(path: Path, checksum: str | None = None) -> Any:
    text = path.read_bytes()
    try:
        content = json.loads(text)["content"]
        found, expected = _signed(content)
    except (ValueError, LookupError, TypeError):
        found, expected = "", ""
    if expected.encode() != text or checksum not in (None, found):
        raise DamagedError(f"{path}: its checksum is not the one that was written", str(path))
    return content


def _signed(content: Any) -> tuple[str, str]:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    checksum = xxhash.xxh3_64_hexdigest(canonical.encode())
    whole = {"checksum": checksum, "content": content}
    return checksum, json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True) + "\n"

"""Checksums of files."""

from __future__ import annotations

from pathlib import Path

import xxhash


def checksum(path: Path) -> str:
    digest, block = xxhash.xxh3_64(), bytearray(1 << 18)
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(block):
            digest.update(memoryview(block)[:n])
    return digest.hexdigest()

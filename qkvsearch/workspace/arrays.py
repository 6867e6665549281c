"""One build's folder: `.npy` files and a manifest with their sizes and checksums."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from qkvsearch.errors import WorkspaceError

# 2: several dense heads, each with its encoder, and weights learned for all.
FORMAT_VERSION = 2
MANIFEST = "manifest.json"


def write_build(folder: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write the arrays, then the manifest, and have the disk confirm both."""
    folder.mkdir(parents=True)
    files = {}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        with path.open("wb") as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
            _sync(file)
        files[name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    manifest = {"format": FORMAT_VERSION, **facts, "files": files}
    with (folder / MANIFEST).open("w", encoding="utf-8") as text:
        json.dump(manifest, text, indent=1, ensure_ascii=False)
        _sync(text)
    for directory in (folder, folder.parent):
        _sync_directory(directory)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Raises `WorkspaceError` where the manifest or a file is missing, cut short, or too new."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        newer = manifest["format"] > FORMAT_VERSION
        sizes = {} if newer else {name: file["bytes"] for name, file in manifest["files"].items()}
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{folder / MANIFEST}: {error}; build the workspace again") from None
    except (AttributeError, LookupError, TypeError):
        raise WorkspaceError(
            f"{folder / MANIFEST}: not a manifest; build the workspace again"
        ) from None
    if newer:
        raise WorkspaceError(
            f"{folder}: written in format {manifest['format']}, this version reads up to "
            f"{FORMAT_VERSION}; upgrade with pip install -U qkvsearch"
        )
    if manifest["format"] < FORMAT_VERSION:
        raise WorkspaceError(
            f"{folder}: written in format {manifest['format']}, this version reads "
            f"{FORMAT_VERSION}; build the workspace again"
        )
    for name, expected in sizes.items():
        path = folder / f"{name}.npy"
        size = path.stat().st_size if path.is_file() else None
        if size != expected:
            found = "missing" if size is None else f"{size:,} bytes instead of {expected:,}"
            raise WorkspaceError(f"{path}: {found}; build the workspace again")
    return manifest


def read_array(folder: Path, name: str) -> np.ndarray:
    """Memory-mapped and read-only: pages are loaded as they are touched. Nothing is unpickled."""
    path = folder / f"{name}.npy"
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path}: {error}; build the workspace again") from None
    return array


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open a directory, and orders directory entries itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""One build's folder: `.npy` files and a manifest with their sizes and checksums."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.errors import WorkspaceError
from qkvsearch.files import sync

# 2: several dense heads, each with its encoder, and weights learned for all.
# 3: term counts, so that items can be added and removed.
# 4: settings of the ratings, interactions per item, and a fingerprint of each pretrained model.
FORMAT_VERSION = 4
MANIFEST = "manifest.json"


class StoredFile(NamedTuple):
    """An array's file in a build's folder, and its entry in the manifest."""

    path: Path
    entry: Mapping[str, Any]


def write_build(
    folder: Path,
    arrays: Mapping[str, np.ndarray],
    facts: Mapping[str, Any],
    shared: Mapping[str, StoredFile] | None = None,
) -> None:
    """Write the arrays, then the manifest, both flushed to the disk before this returns.

    `shared`: files of another build that this one has in common with it.
    """
    folder.mkdir(parents=True)
    files: dict[str, Any] = {}
    for name, source in (shared or {}).items():
        _link(source.path, folder / f"{name}.npy")
        files[name] = source.entry
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        with path.open("wb") as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
            sync(file)
        files[name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    manifest = {"format": FORMAT_VERSION, **facts, "files": files}
    with (folder / MANIFEST).open("w", encoding="utf-8") as text:
        json.dump(manifest, text, indent=1, ensure_ascii=False)
        sync(text)
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
    # A plain view: each slice of the memmap type costs microseconds, and a query takes many.
    return array.view(np.ndarray)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link(source: Path, target: Path) -> None:
    """A second name for a file; a copy where the file system has no hard links."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb+") as file:
            sync(file)


def _sync_directory(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open a directory, and orders directory entries itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

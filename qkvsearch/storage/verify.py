"""Every file of a workspace read, and compared with what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from qkvsearch.errors import DamagedError
from qkvsearch.storage.records import RecordsDatabase
from qkvsearch.storage.root import read_root
from qkvsearch.storage.segments import BUILDS_FOLDER, OWN_NAME, Segment


def damaged_files(workspace: Path) -> list[DamagedError]:
    """What is not as it was written, of the root, the records and all builds: those that the root
    names or, where it cannot be read, that there are. Raises `WorkspaceError` for another format.
    """
    folders = workspace / BUILDS_FOLDER
    try:
        root = read_root(workspace)
    except DamagedError as error:
        there = {path.name: None for path in folders.glob("*") if OWN_NAME.fullmatch(path.name)}
        return [error, *_of_records(workspace), *_of_builds(folders, there)]
    if root is None:
        return []
    builds = {build.name: build.manifest for build in root.builds}
    return [*_of_records(workspace), *_of_builds(folders, builds)]


def _of_records(workspace: Path) -> Iterator[DamagedError]:
    try:
        RecordsDatabase.of(workspace).check()
    except DamagedError as error:
        yield error


def _of_builds(folders: Path, builds: Mapping[str, str | None]) -> Iterator[DamagedError]:
    """builds: the checksum of each one's manifest, by name; None where any will do."""
    waiting, met = list(builds.items()), set()
    while waiting:
        name, checksum = waiting.pop()
        if name in met:
            continue
        met.add(name)
        try:
            segment = Segment(folders / name, checksum)
        except DamagedError as error:
            yield error
        else:
            waiting += segment.below
            yield from segment.damaged()

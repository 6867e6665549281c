"""One build as readers see it: opened once, and unchanged whatever is published meanwhile."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.storage.array_files import StoredFile
from qkvsearch.storage.catalog.stored import StoredCatalog
from qkvsearch.storage.locks import hold_build, is_writing
from qkvsearch.storage.records import RecordsDatabase
from qkvsearch.storage.root import BuildEntry, read_root
from qkvsearch.storage.row_map import RowMap
from qkvsearch.storage.segments import (
    AFTER,
    BUILDS_FOLDER,
    MANIFEST,
    ORIGIN,
    TOMBSTONES,
    Segment,
)

# A build may be removed between reading which one is current and opening it.
ATTEMPTS = 5


class Snapshot:
    """segments: the folders that hold its arrays and items, the base first; the last one is the
    build's own, with the facts. `held` keeps its files from being removed.
    """

    def __init__(
        self,
        workspace: Path,
        created: str,
        segments: Sequence[Segment],
        held: IO[Any] | None = None,
    ) -> None:
        self.workspace, self.created, self.segments = workspace, created, list(segments)
        self._held = held
        if held is not None:  # who lets go of it without closing lets go of the files as well
            weakref.finalize(self, held.close)
        self.facts: Mapping[str, Any] = segments[-1].facts

    @classmethod
    def of(
        cls, workspace: Path, entry: BuildEntry, *, trust: bool = False, again: bool = False
    ) -> Snapshot:
        """A build that there is; trust, again: as in `Segment`. Raises `DamagedError`."""
        builds = workspace / BUILDS_FOLDER
        held = _held(builds / entry.name / MANIFEST)
        try:
            own = Segment(builds / entry.name, entry.manifest, trust=trust, again=again)
            below = [
                Segment(builds / name, checksum, trust=trust, again=again)
                for name, checksum in own.below
            ]
        except BaseException:
            held.close()
            raise
        return cls(workspace, entry.created, [*below, own], held)

    @property
    def name(self) -> str:
        """Of the build, and of its folder."""
        return self.segments[-1].name

    @property
    def base(self) -> Segment:
        """The build that all others of the segments were added to."""
        return self.segments[0]

    @cached_property
    def with_items(self) -> list[Segment]:
        """The segments that have rows, the base first."""
        return [segment for segment in self.segments if segment.n_rows]

    @cached_property
    def tombstones(self) -> np.ndarray:
        """Stored rows, ascending, int32 (n,), that are no items of this build."""
        own = self.segments[-1]
        if not own.has(TOMBSTONES):
            return np.zeros(0, np.int32)
        n_stored = sum(segment.n_rows for segment in self.segments)
        return own.row_numbers(TOMBSTONES, None, 0, n_stored - 1)

    @cached_property
    def rows(self) -> RowMap:
        """Which stored rows are the items. Raises `DamagedError`."""
        try:
            rows = self._joined_rows()
            fits = len(rows) == self.facts["n_items"]
        except (LookupError, TypeError, ValueError):
            fits = False
        if not fits:
            manifest = self.segments[-1].folder / MANIFEST
            raise DamagedError(manifest, "it has another number of items than its segments")
        return rows

    def _joined_rows(self) -> RowMap:
        base, *others = self.with_items
        if not others and not len(self.tombstones):
            return RowMap.plain(base.n_rows)
        after, origin = (
            np.concatenate(
                [
                    np.zeros(0, np.int64),
                    *(segment.row_numbers(name, segment.n_rows, *limits) for segment in others),
                ]
            )
            for name, limits in ((AFTER, (0, base.n_rows)), (ORIGIN, (-1, base.n_rows - 1)))
        )
        ids: list[Any] = [id_ for segment in others for id_ in segment.catalog.ids()]
        if len({segment.catalog.whole_ids for segment in self.with_items}) == 1:
            return RowMap.joined(base.n_rows, self.tombstones, after, origin, ids)
        # Text has joined whole numbers, which from now on are sorted as text.
        texts = list(map(str, [*base.catalog.ids(), *ids]))
        rows = RowMap.joined(base.n_rows, self.tombstones, after, origin, texts[base.n_rows :])
        return rows.sorted_by([texts[row] for row in rows.stored])

    @cached_property
    def catalog(self) -> StoredCatalog:
        """The items and users of the build. Raises `DamagedError`."""
        return StoredCatalog(
            [segment.catalog for segment in self.with_items],
            self.rows,
            self.facts,
            self.recorded,
        )

    @property
    def recorded(self) -> RecordsDatabase:
        """The records of the workspace."""
        return RecordsDatabase.of(self.workspace)

    def array(self, name: str) -> np.ndarray:
        """An array of the whole build: of the newest segment that has it. Raises `DamagedError`."""
        return self._newest(name).array(name)

    def file(self, name: str) -> StoredFile:
        """The file of an array, in the newest segment that has it."""
        return self._newest(name).file(f"{name}.npy")

    @property
    def files(self) -> Iterator[StoredFile]:
        """All files but the manifests."""
        return (segment.file(name) for segment in self.segments for name in segment.files)

    @cached_property
    def array_names(self) -> set[str]:
        """All arrays but those that say which rows are items."""
        found = {name for segment in self.segments for name in segment.array_names}
        return found - {AFTER, ORIGIN, TOMBSTONES}

    def __contains__(self, name: str) -> bool:
        return name in self.array_names

    def _newest(self, name: str) -> Segment:
        for segment in reversed(self.segments):
            if segment.has(name):
                return segment
        raise WorkspaceError(
            f"{self.workspace}: its build has no {name}; build the workspace again"
        )

    def damaged(self) -> list[DamagedError]:
        """Every file is read, and compared with its checksum."""
        return [error for segment in self.segments for error in segment.damaged()]

    def close(self) -> None:
        """Close the catalog, and let go of the files."""
        for segment in self.segments:
            segment.close()
        if "catalog" in self.__dict__:
            self.catalog.close()
        if self._held is not None:
            self._held.close()


def open_current(workspace: Path, *, trust: bool = False) -> Snapshot | None:
    """The current build; None where there is no root. Whoever may write the workspace reads no file
    that was not compared with its checksum since. Raises `DamagedError`, `WorkspaceError`.
    """
    is_writer = is_writing(workspace)
    for attempt in range(ATTEMPTS):
        root = read_root(workspace)
        if root is None:
            return None
        try:
            return Snapshot.of(workspace, root.current_build, trust=trust, again=is_writer)
        except DamagedError:
            # A writer may have removed it, if another one is the current one now.
            newer = read_root(workspace)
            if attempt == ATTEMPTS - 1 or newer is None or newer.current == root.current:
                raise
    raise AssertionError


def _held(manifest: Path) -> IO[Any]:
    try:
        return hold_build(manifest)
    except OSError as error:
        raise DamagedError(manifest, error.strerror or str(error)) from None

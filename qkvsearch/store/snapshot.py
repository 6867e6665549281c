"""The files of one build, held open: they do not change when other builds are published."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store.array_files import StoredFile
from qkvsearch.store.catalog.stored import StoredCatalog
from qkvsearch.store.locks import hold_build, is_writing
from qkvsearch.store.records import RecordsDatabase
from qkvsearch.store.records.build_records import BuildRecords
from qkvsearch.store.root import BuildEntry, read_root
from qkvsearch.store.row_map import RowMap
from qkvsearch.store.segments import AFTER, BUILDS_FOLDER, MANIFEST, ORIGIN, TOMBSTONES, Segment

# A build may be removed between reading which one is current and opening it.
ATTEMPTS = 5


class Snapshot:
    """An opened build.

    segments: the segments of the build, the base first; the last one is its own and has the facts.
    lock: an open file that keeps others from removing the build.
    """

    def __init__(
        self,
        workspace: Path,
        created: str,
        segments: Sequence[Segment],
        lock: IO[Any] | None = None,
    ) -> None:
        self.workspace, self.created = workspace, created
        self.segments = list(segments)
        self._lock = lock
        if lock is not None:  # in case nobody calls `close`
            weakref.finalize(self, lock.close)
        self.facts: Mapping[str, Any] = segments[-1].facts

    @classmethod
    def of(cls, workspace: Path, entry: BuildEntry, *, again: bool = False) -> Snapshot:
        """Open a build of the workspace. again: as in `Segment`. Raises `DamagedError`."""
        builds = workspace / BUILDS_FOLDER
        lock = _locked(builds / entry.name / MANIFEST)
        try:
            own = Segment(builds / entry.name, entry.manifest, again=again)
            below = [Segment(builds / name, sum_, again=again) for name, sum_ in own.below]
        except BaseException:
            lock.close()
            raise
        return cls(workspace, entry.created, [*below, own], lock)

    @property
    def name(self) -> str:
        """The name of the build and of its folder."""
        return self.segments[-1].name

    @property
    def base(self) -> Segment:
        """The first segment: a whole build that the others were added to."""
        return self.segments[0]

    @cached_property
    def with_items(self) -> list[Segment]:
        """The segments that have rows, the base first."""
        return [segment for segment in self.segments if segment.n_rows]

    def item_rows_by_segment(self) -> Iterator[tuple[Segment, np.ndarray]]:
        """Yield each segment that has rows, with the item row of each of its rows."""
        start = 0
        for segment in self.with_items:
            end = start + segment.n_rows
            yield segment, self.rows.item_rows[start:end]
            start = end

    @cached_property
    def tombstones(self) -> np.ndarray:
        """Stored rows that are deleted, int32 (n,), ascending."""
        own = self.segments[-1]
        if not own.has(TOMBSTONES):
            return np.zeros(0, np.int32)
        n_stored = sum(segment.n_rows for segment in self.segments)
        return own.row_numbers(TOMBSTONES, None, 0, n_stored - 1)

    @cached_property
    def rows(self) -> RowMap:
        """The map between stored rows and items. Raises `DamagedError`."""
        try:
            rows = self._row_map()
            fits = len(rows) == self.facts["n_items"]
        except (LookupError, TypeError, ValueError):
            fits = False
        if not fits:
            manifest = self.segments[-1].folder / MANIFEST
            raise DamagedError(manifest, "it has another number of items than its segments")
        return rows

    def _row_map(self) -> RowMap:
        base, *others = self.with_items
        if not others and not len(self.tombstones):
            return RowMap.plain(base.n_rows)
        after = _joined_numbers(others, AFTER, 0, base.n_rows)
        origin = _joined_numbers(others, ORIGIN, -1, base.n_rows - 1)
        ids: list[Any] = [id_ for segment in others for id_ in segment.catalog.ids()]
        if len({segment.catalog.whole_ids for segment in self.with_items}) == 1:
            return RowMap.joined(base.n_rows, self.tombstones, after, origin, ids)
        # Some ids are text and others whole numbers: all are sorted as text.
        texts = list(map(str, [*base.catalog.ids(), *ids]))
        rows = RowMap.joined(base.n_rows, self.tombstones, after, origin, texts[base.n_rows :])
        return rows.sorted_by([texts[row] for row in rows.stored])

    @cached_property
    def catalog(self) -> StoredCatalog:
        """The items and users of the build. Raises `DamagedError`."""
        catalogs = [segment.catalog for segment in self.with_items]
        return StoredCatalog(catalogs, self.rows, self.facts)

    @cached_property
    def records(self) -> BuildRecords:
        """The interactions with items of this build that were recorded in the workspace."""
        return BuildRecords(self.catalog, RecordsDatabase.of(self.workspace))

    def array(self, name: str) -> np.ndarray:
        """Read an array from the newest segment that has it. Raises `DamagedError`."""
        return self._newest(name).array(name)

    def file(self, name: str) -> StoredFile:
        """Return the file of an array in the newest segment that has it."""
        return self._newest(name).file(f"{name}.npy")

    @property
    def files(self) -> Iterator[StoredFile]:
        """All files but the manifests."""
        return (segment.file(name) for segment in self.segments for name in segment.files)

    @cached_property
    def array_names(self) -> set[str]:
        """Names of all arrays but those of the row map."""
        names = {name for segment in self.segments for name in segment.array_names}
        return names - {AFTER, ORIGIN, TOMBSTONES}

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
        """Read every file and return an error for each that differs from its checksum."""
        return [error for segment in self.segments for error in segment.damaged()]

    def close(self) -> None:
        """Close all files, so that the build can be removed."""
        for segment in self.segments:
            segment.close()
        if "catalog" in self.__dict__:
            self.catalog.close()
        if self._lock is not None:
            self._lock.close()


def open_current(workspace: Path) -> Snapshot | None:
    """Open the current build; return None where there is no root.

    For a writer every file is compared with its checksum anew. Raises `DamagedError`,
    `WorkspaceError`.
    """
    is_writer = is_writing(workspace)
    for attempt in range(ATTEMPTS):
        root = read_root(workspace)
        if root is None:
            return None
        try:
            return Snapshot.of(workspace, root.current_build, again=is_writer)
        except DamagedError:
            # A writer may have published another build and removed this one.
            newer = read_root(workspace)
            if attempt == ATTEMPTS - 1 or newer is None or newer.current == root.current:
                raise
    raise AssertionError


def _joined_numbers(segments: Sequence[Segment], name: str, low: int, high: int) -> np.ndarray:
    """Read one array of row numbers of several segments, int64, from `low` to `high`."""
    arrays = [segment.row_numbers(name, segment.n_rows, low, high) for segment in segments]
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _locked(manifest: Path) -> IO[Any]:
    try:
        return hold_build(manifest)
    except OSError as error:
        raise DamagedError(manifest, error.strerror or str(error)) from None

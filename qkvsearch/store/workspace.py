"""A workspace: publish a build, whose files are synced before the root makes it current."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.files import sync_directory
from qkvsearch._utils.scratch import give_back
from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import DamagedError, QkvError, WorkspaceError, listed_names
from qkvsearch.store.array_files import file_entry, share_file, write_array
from qkvsearch.store.build_contents import BuildContents
from qkvsearch.store.catalog.file import CATALOG, write_catalog
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from qkvsearch.store.locks import WRITER, is_in_use, writer_lock
from qkvsearch.store.records import RecordsDatabase
from qkvsearch.store.records.record_rows import is_user
from qkvsearch.store.remote_collections import collections_of, drop_keys, write_keys
from qkvsearch.store.root import (
    ROOT,
    BuildEntry,
    Erasure,
    Root,
    read_root,
    root_state,
    write_root,
)
from qkvsearch.store.rules_file import RulesFile
from qkvsearch.store.segments import (
    BUILD_NAME,
    BUILDS_FOLDER,
    FORMAT_VERSION,
    MANIFEST,
    TOMBSTONES,
    Segment,
)
from qkvsearch.store.snapshot import Snapshot, open_current

log = logging.getLogger("qkvsearch.store")

# How many builds, of how many bases including the current one, a rollback can return to.
MAX_BASES, MAX_BUILDS = 2, 50
# How many names are drawn for a new build before all count as taken.
ATTEMPTS = 100
# How often all files are read again because a writer changed the builds meanwhile.
MAX_CHECKS = 5
# The fact of a build: why it has not taken over settings of the build before, a reason each.
LOST_SETTINGS = "lost_settings"
# Stands for the same among the facts of a build that cannot be read.
UNREADABLE_SETTINGS = "unreadable_settings"
LOST_FACTS = "settings that tune found, if it did, cannot be read"
# NumPy raises an OSError without a number where it cannot write all of an array.
NO_SPACE = (None, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Workspace:
    """A folder with `root.json` and `builds/<name>/`.

    wait, notify: as in `writer_lock`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        wait: float | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        # NaN is neither reached nor passed by any time.
        valid = wait is None or (is_number(wait) and wait >= 0)
        require(valid, "wait", wait, "a number of seconds, 0 or more, or None")
        self.path, self.wait, self.notify = Path(path), wait, notify

    def open(self) -> Snapshot:
        """Open the current build. Raises `WorkspaceError` where there is none or it is damaged."""
        snapshot = open_current(self.path)
        if snapshot is None:
            raise self._missing
        return snapshot

    def open_build(self, name: str) -> Snapshot:
        """Open a build of the list, whether it is current or not. Raises `WorkspaceError` where
        there is no such build, or where it is removed meanwhile, and `DamagedError`.
        """
        root = read_root(self.path)
        if root is None:
            raise self._missing
        entry = root.find(name)
        if entry is None:
            raise WorkspaceError(f"{self.path}: no build {name!r}; {_named_builds(root.builds)}")
        try:
            return Snapshot.of(self.path, entry)
        except DamagedError:
            # A writer may have removed it since the list was read.
            newer = read_root(self.path)
            if newer is None or newer.find(name) is not None:
                raise
            there = _named_builds(newer.builds)
            message = f"{self.path}: the build {name} was removed meanwhile; {there}"
            raise WorkspaceError(message) from None

    def previous_build(self, name: str) -> str:
        """Return the name of the build that was current before this one.

        Where that is not in the list, as after a rollback to the first build, it is the newest
        other one. Raises `WorkspaceError` where there is no other build.
        """
        root = read_root(self.path)
        if root is None:
            raise self._missing
        entry = root.find(name)
        previous = None if entry is None else root.find(entry.parent)
        others = [build for build in root.builds if build.name != name]
        if previous is None and not others:
            raise WorkspaceError(f"{self.path}: no build before {name}; {_named_builds(others)}")
        return others[-1].name if previous is None else previous.name

    @property
    def _missing(self) -> WorkspaceError:
        if any((self.path / BUILDS_FOLDER).glob(f"*/{MANIFEST}")):
            advice = "make it again, of the builds that are there, with repair, or build anew"
            return DamagedError(self.path / ROOT, "it is not there", advice)
        folder = shlex.quote(str(self.path))
        return WorkspaceError(
            f"{self.path}: no workspace here; build one with qkvsearch -w {folder} build FILE, "
            "or try a sample with qkvsearch -w sample:videos"
        )

    def state(self) -> tuple[int, ...] | None:
        """Return a value that changes with every change of the root; this takes microseconds."""
        return root_state(self.path)

    @contextmanager
    def writing(self, command: str) -> Iterator[None]:
        """Hold the right to change the workspace in a `with` block.

        Raises `WorkspaceError` where another writer has it for longer than `wait`, and where there
        is no workspace, unless the `command` is "build".
        """
        if command != "build" and not self.path.is_dir():
            raise self._missing
        is_new = not os.path.lexists(self.path)
        with writer_lock(self.path, command, self.wait, self.notify) as is_first:
            if is_first and command != "repair":
                read_root(self.path)  # a damaged root fails now, not after hours of work
                self.finish_erasing()
            try:
                yield
            except BaseException:
                if is_first and is_new:
                    self._remove_if_empty()
                raise

    def _remove_if_empty(self) -> None:
        """Remove the folder that a first build made, where nothing came of that build."""
        with suppress(OSError):
            (self.path / BUILDS_FOLDER).rmdir()
        with suppress(OSError):
            if os.listdir(self.path) == [WRITER]:
                (self.path / WRITER).unlink()
                self.path.rmdir()

    def publish(
        self,
        contents: BuildContents,
        command: str,
        *,
        instead_of: str = "",
        erasure: Erasure | None = None,
    ) -> BuildEntry:
        """Write a build to a new folder and make it current. It is added to the list of builds, or
        replaces the build `instead_of`. With an `erasure` it replaces all builds.

        A crash at any point leaves the previous build current. A caller that derives `contents`
        from a build must hold `writing` from before it reads that build. Raises `WorkspaceError`
        where the folder cannot be written.
        """
        with self.writing(command):
            root = read_root(self.path) or Root([], "")
            instead = root.find(instead_of)
            with self._new_folder() as folder:
                entry = BuildEntry(
                    name=folder.name,
                    number=root.next_number,
                    created=datetime.now(UTC).isoformat(timespec="seconds"),
                    command=command,
                    items=int(contents.facts["n_items"]),
                    base=folder.name if contents.base is None else contents.base.base.name,
                    parent=instead.parent if instead else root.current,
                    manifest="",
                )
                entry = self._written(folder, entry, contents)
                builds = [build for build in root.builds if build is not instead]
                if erasure is not None:
                    builds = []
                write_root(self.path, _within_limits(Root([*builds, entry], entry.name, erasure)))
            self._clean()
        return entry

    @contextmanager
    def _new_folder(self) -> Iterator[Path]:
        """Create a folder for a new build. After an error, remove it again, unless the build is
        current already; errors of the disk become `WorkspaceError`.
        """
        builds = self.path / BUILDS_FOLDER
        folder = None
        try:
            builds.mkdir(0o700, exist_ok=True)
            folder = _create_folder(builds)
            yield folder
        except BaseException as error:
            if folder is not None:
                self._discard(folder)
            if not isinstance(error, (OSError, sqlite3.Error)):
                raise
            has_no_space = isinstance(error, OSError) and error.errno in NO_SPACE
            # SQLite has no number for it.
            is_full = has_no_space or "disk is full" in str(error)
            advice = "; is the disk full? The previous build stays" if is_full else ""
            message = f"{self.path}: cannot write the build: {error}{advice}"
            raise WorkspaceError(message) from error

    def _written(self, folder: Path, entry: BuildEntry, contents: BuildContents) -> BuildEntry:
        """Write all files of a build, then the manifest; return the entry with its checksum."""
        # The entries of the manifest, by the names of the files.
        files: dict[str, Any] = {}
        for name, source in contents.shared.items():
            files[name] = share_file(source, folder / name)
        if contents.catalog is not None:
            write_catalog(folder / CATALOG, contents.catalog, contents.users)
            files[CATALOG] = file_entry(folder / CATALOG)
        n_rows = contents.n_rows
        # Before the other arrays: this takes those that are keys on a server out of `contents`.
        write_keys(entry.name, self.path, contents)
        arrays = dict(contents.arrays)
        if contents.tombstones is not None and len(contents.tombstones):
            arrays[TOMBSTONES] = contents.tombstones.astype(np.int32)
        for name, array in arrays.items():
            files[f"{name}.npy"] = write_array(folder / f"{name}.npy", array)
            give_back(array)
        manifest = {
            "format": FORMAT_VERSION,
            "build": asdict(entry),
            "n_rows": n_rows,
            "below": _below(contents.base),
            "facts": contents.facts,
            "files": files,
        }
        checksum = write_checksummed(folder / MANIFEST, manifest)
        sync_directory(folder.parent)
        return replace(entry, manifest=checksum)

    # --- verification ---

    def damaged_files(self) -> list[DamagedError]:
        """Read every file of the root, the records and all builds, and return an error for each
        that differs from what was written. Where the root cannot be read, the builds are those that
        have a folder. Raises `WorkspaceError` for another format.
        """
        for _ in range(MAX_CHECKS):
            before = self.state()
            errors = self._damaged_files()
            # A writer may have removed builds meanwhile, whose files are missing then.
            if not errors or self.state() == before:
                break
        return errors

    def _damaged_files(self) -> list[DamagedError]:
        errors: list[DamagedError] = []
        folders = self.path / BUILDS_FOLDER
        checksums: dict[str, str | None] = {}
        try:
            root = read_root(self.path)
            if root is None:
                return []
            checksums.update((build.name, build.manifest) for build in root.builds)
        except DamagedError as error:
            errors.append(error)
            names = (path.name for path in folders.glob("*"))
            checksums.update((name, None) for name in names if BUILD_NAME.fullmatch(name))
        for check in (self.records.check, self.rules.read):
            try:
                check()
            except DamagedError as error:
                errors.append(error)
        return [*errors, *_damaged_segments(folders, checksums)]

    # --- records ---

    @property
    def records(self) -> RecordsDatabase:
        """The database of recorded interactions, which all builds share."""
        return RecordsDatabase.of(self.path, self.wait, self.notify)

    @property
    def rules(self) -> RulesFile:
        """The owner's rules, which all builds share."""
        return RulesFile(self.path)

    def current_facts(self) -> dict[str, Any]:
        """Return the facts of the current build, even if other files of it are damaged; under
        `UNREADABLE_SETTINGS`, reasons about settings that a new build cannot take over.
        """
        try:
            root = read_root(self.path)
            if root is None:
                return {}
            path = self.path / BUILDS_FOLDER / root.current / MANIFEST
            return dict(read_checksummed(path, root.current_build.manifest)["facts"])
        except DamagedError as error:
            # The line is stored, and shown to people who do not know where the workspace is.
            name = Path(error.file).name
            return {UNREADABLE_SETTINGS: [f"{LOST_FACTS} ({name}: {error.what})"]}

    # --- previous builds ---

    def builds(self) -> list[BuildEntry]:
        """Return the builds that rollback can return to, oldest first. Raises `WorkspaceError`."""
        root = read_root(self.path)
        return [] if root is None else list(root.builds)

    def rollback(self, name: str | None = None) -> BuildEntry:
        """Make another build current, by default the previous one; later builds stay listed. Raises
        `WorkspaceError` where there is no such build, `DamagedError` where it is damaged.
        """
        with self.writing("rollback"):
            root = self._root()
            entry = root.find(root.current_build.parent if name is None else name)
            if entry is None:
                others = [build for build in root.builds if build.name != root.current]
                what = "no build before the current one" if name is None else f"no build {name!r}"
                raise WorkspaceError(f"{self.path}: {what}; {_named_builds(others)}")
            with closing(Snapshot.of(self.path, entry)) as build:
                error = next(iter(build.damaged()), None)
                if error is not None:
                    raise error
            self.replace_root(replace(root, current=entry.name))
        return entry

    def drop_builds(self, *, but: Iterable[str] = ()) -> int:
        """Remove all builds except the current one and those named in `but`, and return how many
        were removed. Builds that readers have open keep their folder until a later writer.
        """
        with self.writing("compact"):
            root = self._root()
            names = {root.current, *but}
            builds = [build for build in root.builds if build.name in names]
            self.replace_root(Root(builds, root.current))
            self._clean()
            return len(root.builds) - len(builds)

    def keep_current_only(self, erasure: Erasure) -> None:
        """Take all builds but the current one from the list, and note what is to be deleted."""
        root = self._root()
        self.replace_root(Root([root.current_build], root.current, erasure))

    def _root(self) -> Root:
        """Return the list of builds. Raises `WorkspaceError` where there is none."""
        root = read_root(self.path)
        if root is None:
            raise self._missing
        return root

    def unfinished_erasure(self) -> Erasure | None:
        """Return what a `forget` that was killed has still to delete, if anything."""
        root = read_root(self.path)
        return None if root is None else root.erasure

    def finish_erasing(self) -> None:
        """Delete what a `forget` has still to delete, which may have been killed: the records of
        the user, and the folders of builds that are not listed, even if readers have them open.
        Requires `writing`. Raises `WorkspaceError`; a later call goes on.
        """
        root = read_root(self.path)
        if root is None or root.erasure is None:
            return
        erased = root.erasure
        self.records.forget(erased.user, fold=erased.fold, last=erased.last)
        if self._clean(even_in_use=True):
            self.replace_root(replace(root, erasure=None))  # the id is in no file now

    def writable_records(self) -> RecordsDatabase:
        """Return the records for a change that may come beside a writer of builds. First delete
        those of a user whom a killed `forget` has left there. Raises `WorkspaceError`.
        """
        records, erased = self.records, self.unfinished_erasure()
        if erased is not None:
            of_user = (
                f"SELECT 1 FROM recorded WHERE {is_user(erased.fold)} AND number <= ?2 LIMIT 1"
            )
            if records.rows(of_user, erased.user, erased.last):
                records.forget(erased.user, fold=erased.fold, last=erased.last)
        return records

    def replace_root(self, root: Root) -> None:
        """Write the root, or say that it cannot be written. Raises `WorkspaceError`."""
        try:
            write_root(self.path, root)
        except OSError as error:
            message = f"{self.path}: cannot write: {error.strerror or error}; nothing has changed"
            raise WorkspaceError(message) from error

    def _discard(self, folder: Path) -> None:
        """Remove a build's folder, unless it became current just before the interruption."""
        with suppress(QkvError):
            root = read_root(self.path)
            if root is None or root.find(folder.name) is None:
                shutil.rmtree(folder, ignore_errors=True)

    def _clean(self, even_in_use: bool = False) -> bool:
        """Remove leftovers after a change, and return whether none is left.

        The change is done, whatever fails here: the log says so, and the next writer goes on.
        """
        try:
            return self._remove_leftovers(even_in_use)
        except (OSError, QkvError) as error:
            log.warning("%s: what earlier builds left could not be removed: %s", self.path, error)
            return False

    def _remove_leftovers(self, even_in_use: bool = False) -> bool:
        """Remove the folders of builds that are not listed any more, except those that readers have
        open unless `even_in_use`, and the files of interrupted writers. Return whether no other
        folder is left. Requires `writing`.
        """
        root = read_root(self.path)
        assert root is not None
        folders = self.path / BUILDS_FOLDER
        remote = collections_of(self.path)
        names = {path.name for path in folders.iterdir() if BUILD_NAME.fullmatch(path.name)}
        listed = {build.name for build in root.builds}
        needed = set(listed)
        if not even_in_use:
            in_use = (name for name in names - listed if is_in_use(folders / name / MANIFEST))
            needed.update(in_use)
        try:
            for name in list(needed):
                needed.update(below for below, _ in Segment(folders / name).below)
        except DamagedError:  # which other folders it needs is not known
            return False
        for name in names - needed:
            shutil.rmtree(folders / name, ignore_errors=True)
        for pattern in (".root.json-*", ".rules.json-*", f"{BUILDS_FOLDER}/*/.manifest.json-*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        drop_keys(remote, self.path)
        return not any((folders / name).exists() for name in names - needed)


def _named_builds(builds: Sequence[BuildEntry]) -> str:
    """Return which builds there are, for a message."""
    if not builds:
        return "there is no other"
    verb = "is" if len(builds) == 1 else "are"
    return f"there {verb} {listed_names([build.name for build in builds])}"


def _damaged_segments(folders: Path, checksums: Mapping[str, str | None]) -> Iterator[DamagedError]:
    """Read every file of these builds and of the segments below them. checksums: of each build's
    manifest, by name; None where it is not known.
    """
    queue, seen = list(checksums.items()), set()
    while queue:
        name, checksum = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            segment = Segment(folders / name, checksum)
        except DamagedError as error:
            yield error
        else:
            queue += segment.below
            yield from segment.damaged()


def _create_folder(builds: Path) -> Path:
    """Create a folder whose name is the time and a random number."""
    for _ in range(ATTEMPTS):
        folder = builds / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise FileExistsError(errno.EEXIST, "all names are taken", str(builds))


def _within_limits(root: Root) -> Root:
    """Return the root without the builds that a rollback cannot return to any more.

    The build that was current before stays, also where a rollback had returned to it and newer ones
    are listed.
    """
    current = root.current_build
    before = root.find(current.parent) or current
    in_order = [current, before, *reversed(root.builds)]
    bases = list(dict.fromkeys(build.base for build in in_order))
    builds = [build for build in root.builds if build.base in bases[:MAX_BASES]]
    names = {build.name for build in builds[-MAX_BUILDS:]} | {current.name, before.name}
    return replace(root, builds=[build for build in builds if build.name in names])


def _below(base: Snapshot | None) -> list[tuple[str, str]]:
    """Return name and checksum of the manifest of each segment below a new one."""
    if base is None:
        return []
    own = base.segments[-1]
    needs_own = len(base.segments) == 1 or any(name != f"{TOMBSTONES}.npy" for name in own.files)
    below = base.segments if needs_own else base.segments[:-1]
    return [(segment.name, segment.checksum) for segment in below]

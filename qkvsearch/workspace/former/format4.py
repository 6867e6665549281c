"""Format 4, read only: a database with the catalogs of all builds, and a folder of arrays each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from qkvsearch.data.columns.facts import TYPES
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace.catalog.segment import SegmentCatalog
from qkvsearch.workspace.checksums import check_size
from qkvsearch.workspace.former.database import (
    AGAIN,
    DATABASE,
    FormerBuild,
    check,
    connect,
    read_current,
)
from qkvsearch.workspace.former.records import FormerRecords
from qkvsearch.workspace.locks import hold_build
from qkvsearch.workspace.records import RecordsDatabase
from qkvsearch.workspace.segments import (
    BUILDS_FOLDER,
    FORMAT_VERSION,
    MANIFEST,
    Segment,
    require_readable,
)
from qkvsearch.workspace.signed import MOST_BYTES
from qkvsearch.workspace.snapshot import Snapshot

FORMAT = 4
# Facts that every build has, and those that go with the arrays of a part: nothing else says that a
# manifest of format 4 is as it was written.
FACTS = {"n_items": int, "encoder": str, "head_weights": dict, "text_columns": list, "rows": list,
         "qkvsearch": str}  # fmt: skip
FACTS_OF = {"interactions": ("n_users", int), "next_item": ("next_item", dict)}
SETTINGS = {"n_components", "max_iter", "alpha0", "reg", "nu"}
COLUMN = {"name", "role", "type"}
NUMBERS_OF = {"implicit": {"alpha0", "reg", "nu", "n_items"},
              "ratings": {"mean", "lowest", "highest", "reg", "damping", "bias_reg"}}  # fmt: skip


class FormerSnapshot(Snapshot):
    """A build of format 4. What is recorded is read where it is."""

    @property
    def recorded(self) -> RecordsDatabase:
        """The records of the workspace."""
        return FormerRecords(self.workspace)


class FormerSegment(Segment):
    """A whole build of format 4 as the one segment that it would be today."""

    def __init__(self, workspace: Path, build: FormerBuild, *, trust: bool = False) -> None:
        """Raises `DamagedError`, and `WorkspaceError` for the formats before."""
        self.folder, self.trust = workspace / BUILDS_FOLDER / build.name, trust
        self.checksum = ""
        self.database, self.number = workspace / DATABASE, build.number
        facts = read_manifest(self.folder)
        try:
            files = facts.pop("files")
            _check_facts(facts, {name.partition(".")[0] for name in files})
            self.n_rows = facts["n_items"]
            self.files: Mapping[str, Mapping[str, Any]] = {
                f"{name}.npy": {"bytes": entry["bytes"], "sha256": str(entry["sha256"])}
                for name, entry in files.items()
            }
        except (AttributeError, LookupError, TypeError, ValueError):
            raise _no_manifest(self.folder) from None
        self.manifest = {"format": facts.pop("format"), "facts": facts}
        self.below = []
        for name, entry in self.files.items():
            if "/" in name or "\\" in name or name.startswith("."):
                raise _no_manifest(self.folder)
            check_size(self.folder / name, entry)

    @cached_property
    def catalog(self) -> SegmentCatalog:
        """Its tables among those of all builds."""
        return FormerCatalog(self.database, f"_{self.number}")


class FormerCatalog(SegmentCatalog):
    """The tables of one build in the database of all."""

    def connect(self) -> sqlite3.Connection:
        """Another connection. Raises `WorkspaceError`."""
        return connect(self.path)


def open_former(workspace: Path, *, trust: bool = False) -> Snapshot | None:
    """The current build of a workspace of format 4, None where there is no workspace. Raises
    `DamagedError`, and `WorkspaceError` for the formats before.
    """
    if not (workspace / DATABASE).is_file():
        return None
    with closing(connect(workspace / DATABASE)) as db:
        build = read_current(db, workspace)
    manifest = workspace / BUILDS_FOLDER / build.name / MANIFEST
    if manifest.is_symlink() or (manifest.exists() and not manifest.is_file()):
        raise _no_manifest(manifest.parent)
    try:
        held = hold_build(manifest)
    except OSError as error:
        raise DamagedError(manifest, error.strerror or str(error), AGAIN) from None
    try:
        segment = FormerSegment(workspace, build, trust=trust)
    except BaseException:
        held.close()
        raise
    snapshot = FormerSnapshot(workspace, build.created, [segment], held)
    try:
        _check_columns(segment)
    except BaseException:
        snapshot.close()
        raise
    return snapshot


def damaged_files(workspace: Path) -> list[DamagedError]:
    """What is not as it was written, as far as format 4 can tell. Raises `WorkspaceError` for the
    formats before.
    """
    try:
        with closing(connect(workspace / DATABASE)) as db:
            check(db, workspace / DATABASE)
        build = open_former(workspace)
    except DamagedError as error:
        return [error]
    if build is None:
        return []
    with closing(build):
        return build.damaged()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Of format 4. Raises `DamagedError`, and `WorkspaceError` for any other format."""
    manifest, version = any_manifest(folder)
    require_readable(folder, version)
    if version < FORMAT:
        raise WorkspaceError(
            f"{folder}: written in format {version}, this version reads {FORMAT} and "
            f"{FORMAT_VERSION}; {AGAIN}"
        )
    return manifest


def any_manifest(folder: Path) -> tuple[dict[str, Any], int]:
    """Of a build of whatever format before 5; and the format. Raises `DamagedError`."""
    path = folder / MANIFEST
    try:
        if path.lstat().st_size > MOST_BYTES:
            raise _no_manifest(folder)
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return manifest, int(manifest["format"])
    except OSError as error:
        raise DamagedError(path, error.strerror or str(error), AGAIN) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _no_manifest(folder) from None


def _check_facts(facts: Mapping[str, Any], groups: set[str]) -> None:
    """groups: the parts that have arrays. Raises `LookupError` where a fact is not as it should."""
    needed = FACTS | dict(of for group, of in FACTS_OF.items() if group in groups)
    wrong = [name for name, type_ in needed.items() if not isinstance(facts[name], type_)]
    for group in NUMBERS_OF.keys() & groups:
        numbers = facts[group]
        if numbers.keys() != NUMBERS_OF[group] or not _are_numbers(numbers.values()):
            wrong.append(group)
    weights = facts["head_weights"]
    wrong += [] if are_settings(facts.get("tuned")) else ["tuned"]
    if wrong or not {"lexical"} <= weights.keys() <= groups or not _are_numbers(weights.values()):
        raise LookupError(wrong)


def _check_columns(segment: FormerSegment) -> None:
    """Against the table of items. Raises `DamagedError`."""
    facts, stored = segment.facts, segment.catalog.columns.keys()
    try:
        columns = [*facts.get("columns", ()), *facts.get("interaction_columns", ())]
        known = {column.get("stored") or column["name"] for column in facts.get("columns", ())}
        is_as_written = known | set(facts["text_columns"]) <= stored and all(
            column.keys() >= COLUMN and column["type"] in TYPES for column in columns
        )
    except (AttributeError, LookupError, TypeError):
        is_as_written = False
    if not is_as_written:
        raise _no_manifest(segment.folder)


def are_settings(tuned: Any) -> bool:
    """Whether this is what `tune` writes, or None."""
    if tuned is None:
        return True
    settings = tuned.get("settings") if isinstance(tuned, dict) else None
    found = settings if isinstance(settings, dict) else {"": None}
    return found.keys() <= SETTINGS and _are_numbers(found.values())


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _no_manifest(folder: Path) -> DamagedError:
    return DamagedError(folder / MANIFEST, "it is no manifest", AGAIN)

"""The root of a workspace: the list of builds and the current one.

Renaming `root.json` into place makes a build current; all its files are on disk before.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from qkvsearch.store.segments import BUILD_NAME, FORMAT_VERSION, require_format

ROOT = "root.json"


@dataclass(frozen=True)
class BuildEntry:
    """A build in the list of the root."""

    # The name of its folder.
    name: str
    # Greater than the numbers of earlier builds.
    number: int
    # When it was made, in UTC (ISO 8601).
    created: str
    # The command that made it.
    command: str
    # How many items it has.
    items: int
    # The whole build that its segments were added to, or itself.
    base: str
    # The build that was current before, "" for none.
    parent: str
    # The checksum of its manifest.
    manifest: str


@dataclass(frozen=True)
class Erasure:
    """A user whom no listed build has any more. Their records, and the folders of builds that are
    not listed, are still to be deleted.

    user: the text of the id. fold: whether ids that differ only in case are the same. last: the
    number of the last record at that time. What is recorded of the user later stays.
    """

    user: str
    fold: bool
    last: int


@dataclass(frozen=True)
class Root:
    """All builds, the oldest first, and the name of the current one. erasure: what a `forget` that
    has published its build has still to do.
    """

    builds: Sequence[BuildEntry]
    current: str
    erasure: Erasure | None = None

    @property
    def next_number(self) -> int:
        return max((build.number for build in self.builds), default=0) + 1

    def find(self, name: str) -> BuildEntry | None:
        return next((build for build in self.builds if build.name == name), None)

    @property
    def current_build(self) -> BuildEntry:
        build = self.find(self.current)
        assert build is not None
        return build


def read_root(workspace: Path) -> Root | None:
    """Read the root; return None where there is none. Raises `DamagedError`, and `WorkspaceError`
    for another format or a file.
    """
    path = workspace / ROOT
    try:
        content: Any = read_checksummed(path)
    except FileNotFoundError:
        return None
    except DamagedError:
        if workspace.is_file():
            raise WorkspaceError(f"{workspace}: a file, and a workspace is a folder") from None
        raise
    try:
        require_format(workspace, content["format"])
        return _root(content)
    except (AttributeError, LookupError, TypeError):
        raise DamagedError(path, "it is not a list of builds") from None


def root_state(workspace: Path) -> tuple[int, ...] | None:
    """Return a value that changes with every change of the root, without reading it."""
    try:
        status = (workspace / ROOT).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def write_root(workspace: Path, root: Root) -> None:
    """Replace the list of builds and the current one: the rename of the root file is the commit."""
    builds = [asdict(build) for build in root.builds]
    content = {"format": FORMAT_VERSION, "current": root.current, "builds": builds}
    if root.erasure is not None:
        content["erasure"] = asdict(root.erasure)
    write_checksummed(workspace / ROOT, content)


def _root(content: Any) -> Root:
    builds = [BuildEntry(**entry) for entry in content["builds"]]
    erasure = Erasure(**content["erasure"]) if "erasure" in content else None
    root = Root(builds, content["current"], erasure)
    if root.find(root.current) is None:
        raise LookupError(root.current)
    for build in builds:
        if not BUILD_NAME.fullmatch(build.name) or not BUILD_NAME.fullmatch(build.base):
            raise LookupError(build.name)
    return root

"""The root of a workspace: which builds there are and which is current, written last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qkvsearch.errors import DamagedError
from qkvsearch.storage.checksummed import read_checksummed, write_checksummed
from qkvsearch.storage.segments import FORMAT_VERSION, OWN_NAME, require_readable

ROOT = "root.json"


@dataclass(frozen=True)
class BuildEntry:
    """A build that there is.

    name: its folder. number: each build has a greater one. command: what made it. base: the build
    whose arrays it begins with, itself where it is whole. parent: the build that was current
    before, "" for none. manifest: the checksum of its manifest.
    """

    name: str
    number: int
    created: str
    command: str
    items: int
    base: str
    parent: str
    manifest: str


@dataclass(frozen=True)
class Root:
    """All builds, the oldest first, and the name of the current one."""

    builds: Sequence[BuildEntry]
    current: str

    @property
    def next_number(self) -> int:
        return max((build.number for build in self.builds), default=0) + 1

    def find(self, name: str) -> BuildEntry | None:
        return next((build for build in self.builds if build.name == name), None)

    @property
    def current_build(self) -> BuildEntry:
        found = self.find(self.current)
        assert found is not None
        return found


def read_root(workspace: Path) -> Root | None:
    """None where there is none. Raises `DamagedError`, `WorkspaceError` for another format."""
    path = workspace / ROOT
    try:
        content: Any = read_checksummed(path)
    except FileNotFoundError:
        return None
    try:
        require_readable(workspace, content["format"])
        return _root(content)
    except (AttributeError, LookupError, TypeError):
        raise DamagedError(path, "it is no list of builds") from None


def root_state(workspace: Path) -> tuple[int, ...] | None:
    """Something that is another one after each change of the root, without reading it."""
    try:
        found = (workspace / ROOT).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def write_root(workspace: Path, root: Root) -> None:
    """The moment in which another build becomes the current one: a file is renamed."""
    builds = [asdict(build) for build in root.builds]
    content = {"format": FORMAT_VERSION, "current": root.current, "builds": builds}
    write_checksummed(workspace / ROOT, content)


def _root(content: Any) -> Root:
    builds = [BuildEntry(**entry) for entry in content["builds"]]
    root = Root(builds, content["current"])
    if root.find(root.current) is None:
        raise LookupError(root.current)
    for build in builds:
        if not OWN_NAME.fullmatch(build.name) or not OWN_NAME.fullmatch(build.base):
            raise LookupError(build.name)
    return root

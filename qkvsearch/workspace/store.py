"""The workspace folder: open its current build, publish another, record interactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import records
from qkvsearch.workspace.publish import BuildContents, publish
from qkvsearch.workspace.schema import DATABASE
from qkvsearch.workspace.snapshot import Snapshot, read_current

Answer = TypeVar("Answer")

# An update starts again where another build was published meanwhile, at most this many times.
ATTEMPTS = 5


class Workspace:
    """A folder with `workspace.db` and `builds/<id>/`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / DATABASE).is_file()

    def open(self) -> Snapshot:
        """The current build. Raises `WorkspaceError` where there is none or it is damaged."""
        if not self.exists:
            raise WorkspaceError(
                f"{self.path}: no workspace here; make one with qkvsearch -w {self.path} build …"
            )
        return Snapshot.current(self.path)

    def publish(self, contents: BuildContents) -> None:
        """Write a build and make it current, as `publish.publish` says."""
        publish(self.path, contents)

    def revise(self, derive: Callable[[Snapshot], Answer]) -> Answer:
        """The answer of `derive`, which makes a build from the current one and publishes it.

        `derive` is called again where another build was published meanwhile, so that of two
        simultaneous updates neither is lost. Raises what `derive` raises, and `WorkspaceError`
        where every attempt comes too late.
        """
        for _ in range(ATTEMPTS):
            build = self.open()
            try:
                return derive(build)
            except WorkspaceError as caught:
                if self.is_current(build):
                    raise
                error = caught
            finally:
                build.close()
        raise error

    def record(self, user: str, item: str, rating: float | None) -> None:
        """One more interaction, by ids; open builds see it at once. Raises `WorkspaceError`."""
        records.append(self.path / DATABASE, user, item, rating)

    def is_current(self, snapshot: Snapshot) -> bool:
        """False where another build was published since. Raises `WorkspaceError`."""
        tables, name, _ = read_current(self.path)
        tables.close()
        return name == snapshot.folder.name

"""The workspaces of bundled samples, which are built when they are first asked for."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qkvsearch.errors import WorkspaceError

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine import Engine
    from qkvsearch.store import Workspace

# The prefix of the names of bundled samples.
SAMPLE = "sample:"


@dataclass(frozen=True)
class SampleWorkspaces:
    """What opens samples, with what a command opens and shows its own workspace with."""

    open_engine: Callable[[Path], Engine]
    workspace_of: Callable[[Path], Workspace]
    progress: Callable[[], AbstractContextManager[Progress | None]]

    def open(self, name: str) -> Engine:
        """Open a sample; build it first if it is new, changed or damaged, or encoders changed."""
        from qkvsearch._utils.user_files import samples_folder
        from qkvsearch._utils.version import __version__
        from qkvsearch.store import FORMAT_VERSION
        from qkvsearch.tables.samples import sample
        from qkvsearch.text.encoders import installed

        fingerprint = sample(name).fingerprint()
        encoders = installed() or ("corpus",)
        folder = "-".join([name, __version__, str(FORMAT_VERSION), fingerprint, *encoders])
        path = samples_folder() / folder
        with suppress(WorkspaceError):
            return self._verified(path)
        try:
            return self._built(name, path)
        except (OSError, WorkspaceError):  # the home folder of a service may be read-only
            path = Path(tempfile.mkdtemp(prefix="qkvsearch-"))
            atexit.register(shutil.rmtree, path, ignore_errors=True)
            return self._built(name, path)

    def _built(self, name: str, path: Path) -> Engine:
        """Build a sample, in place of a damaged one; other processes wait meanwhile."""
        from qkvsearch.learn.builder import build_workspace
        from qkvsearch.tables.sources import read_source

        workspace = self.workspace_of(path)
        with workspace.writing("build"):
            with suppress(WorkspaceError):
                return self._verified(path)
            (path / "root.json").unlink(missing_ok=True)
            shutil.rmtree(path / "builds", ignore_errors=True)
            with self.progress() as report:
                build_workspace(workspace, read_source(f"{SAMPLE}{name}"), progress=report)
        return self.open_engine(path)

    def _verified(self, path: Path) -> Engine:
        """Open a sample after a check of all its files. Raises `WorkspaceError`."""
        from qkvsearch.engine.info import verify

        engine = self.open_engine(path)
        verify(engine.workspace)
        return engine

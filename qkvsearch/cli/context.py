"""The context of all commands: their workspace, and their messages on stderr."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qkvsearch.cli.commands import WAIT
from qkvsearch.cli.progress_bar import progress_bar
from qkvsearch.cli.sample_workspaces import SAMPLE, SampleWorkspaces
from qkvsearch.cli.stderr import fitting, of_workspace, spelled, to_stderr
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.terminal import printable

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine import Engine
    from qkvsearch.store import Workspace

DEFAULT_WORKSPACE = Path(".qkvsearch")


@dataclass
class CommandContext:
    """The options before the command, and what they mean for it."""

    workspace: Path | None
    quiet: bool
    verbose: bool

    def message(self, text: str) -> None:
        """Print a line to stderr, unless --quiet; on a terminal in several lines if it is long."""
        self.message_table(fitting(printable(self.hint(text))))

    def hint(self, text: str) -> str:
        """Return a text whose commands are for the workspace of -w, so that they can be copied."""
        return of_workspace(text, self.workspace)

    def message_table(self, table: str) -> None:
        """Print a table to stderr, unless --quiet.

        A table may be styled, and its cells are escaped. To escape it once more would show the
        styles as letters.
        """
        if not self.quiet:
            to_stderr(table)

    def notes(self, notes: Iterable[str]) -> None:
        """Print the notes of an answer, one per line."""
        context = click.get_current_context()
        for note in notes:
            self.message(spelled(note, context, context.command))

    @property
    def sample(self) -> str | None:
        """The bundled sample that -w names, if any."""
        name = str(self.workspace or "")
        return name.removeprefix(SAMPLE) if name.startswith(SAMPLE) else None

    @property
    def wait(self) -> float | None:
        """How many seconds a change waits for another writer; None for as long as it takes."""
        return click.get_current_context().meta.get(WAIT)

    def writable_path(self) -> Path:
        """Return the folder to build or change. Raises `WorkspaceError` for a sample."""
        if self.sample is not None:
            raise WorkspaceError(
                f"{self.workspace} is a bundled sample and cannot be changed; make your own copy "
                f"with qkvsearch -w DIR build {self.workspace}"
            )
        return self.workspace or DEFAULT_WORKSPACE

    def writable_workspace(self, path: Path) -> Workspace:
        """Return the workspace of a folder, with the waiting time of --wait."""
        from qkvsearch.store import Workspace

        return Workspace(path, wait=self.wait, notify=self.message)

    def open_writable(self) -> Engine:
        """Open the workspace for a change. Raises `WorkspaceError`."""
        self.writable_path()
        return self.open()

    def open(self, *, follow: bool = False) -> Engine:
        """Open the workspace or sample that -w names, or the one here. Raises `WorkspaceError`.

        follow: answer from the build that is current when a question comes. A sample stays as it
        is.
        """
        if self.sample is not None:
            return self.open_sample(self.sample)
        path = self.workspace or DEFAULT_WORKSPACE
        if self.verbose:
            self.message(f"Workspace: {path}")
        return self._engine(path, follow)

    def _engine(self, path: Path, follow: bool = False) -> Engine:
        """Open an engine that is closed when the command ends."""
        with _without_garbage_collection():
            from qkvsearch.engine import Engine

            engine = Engine(path, follow=follow, wait=self.wait, notify=self.message)
        click.get_current_context().call_on_close(engine.close)
        return engine

    def open_sample(self, name: str) -> Engine:
        """Open a bundled sample; build it first where that is needed."""
        samples = SampleWorkspaces(self._engine, self.writable_workspace, self.progress)
        return samples.open(name)

    def progress(self) -> AbstractContextManager[Progress | None]:
        """Show a progress bar on stderr if that is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            return nullcontext()
        return progress_bar()


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection during the first import, and exempt the imported objects from it:
    they stay until the end, and scanning them takes a fifteenth of the time of a search.
    """
    if "qkvsearch.engine" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settings() -> CommandContext:
    """Return the context of the running command."""
    context = click.get_current_context().find_object(CommandContext)
    if context is None:
        raise QkvError("this command runs only as a part of qkvsearch")
    return context

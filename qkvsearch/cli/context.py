"""What every command is given: which workspace, how much to say, how parameters are spelled."""

from __future__ import annotations

import atexit
import gc
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.terminal import in_one_line, printable

if TYPE_CHECKING:
    from qkvsearch._utils.progress import Progress
    from qkvsearch.engine import Engine
    from qkvsearch.storage import Workspace

DEFAULT_WORKSPACE = Path(".qkvsearch")
# What the name of a bundled sample begins with.
SAMPLE = "sample:"
# Under which a context keeps the words of the command line, and the seconds of --wait.
TYPED, WAIT = "qkvsearch.typed", "qkvsearch.wait"
# What a build that did not come to its end leaves in its folder.
LOCK = "writer.lock"
ENGINE = "qkvsearch.engine"
# A number as users type it.
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
seed_option = click.option(
    "--seed",
    "random_state",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of what is random.",
)
delimiter_option = click.option(
    "--delimiter",
    metavar="SIGN",
    callback=lambda _context, _parameter, sign: "\t" if sign in ("tab", "\\t") else sign,
    help="What divides the cells of a text file, such as ; or tab.  [default: of , ; tab and | the "
    "one that every line has]",
)
engine_option = click.option(
    "--engine",
    metavar="URL",
    help="Where the work is done: spark (all cores of this machine) or spark://HOST:PORT, a "
    "cluster (needs qkvsearch[spark]).  [default: in this process]",
)


def _keep_wait(context: click.Context, _: click.Parameter, seconds: float | None) -> None:
    context.meta[WAIT] = seconds


wait_option = click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    expose_value=False,
    callback=_keep_wait,
    help="Wait at most so long while another command changes the workspace.  [default: as long as "
    "it takes]",
)


@dataclass
class CommandContext:
    """The options before the command."""

    workspace: Path | None
    quiet: bool
    verbose: bool

    def say(self, message: str) -> None:
        """A line for the person, never part of the result."""
        if not self.quiet:
            click.echo(printable(message), err=True)

    def say_notes(self, notes: Iterable[str]) -> None:
        """What an answer says of itself, a line each."""
        context = click.get_current_context()
        for note in notes:
            self.say(spelled(note, context, context.command))

    def named_workspace(self) -> Path | None:
        """The one asked for, or the one in this folder."""
        if self.workspace is not None:
            return self.workspace
        is_there = DEFAULT_WORKSPACE.is_dir() and any(
            path.name != LOCK and path.name[0] != "." for path in DEFAULT_WORKSPACE.iterdir()
        )
        return DEFAULT_WORKSPACE if is_there else None

    def own_workspace(self) -> Path:
        """Where to build: the folder named, or the one of this folder. A sample is nobody's own."""
        if self.sample is not None:
            raise WorkspaceError(
                f"{self.workspace} is a bundled sample, and stays as it is; for one of your own: "
                f"qkvsearch -w DIR build {self.workspace}"
            )
        return self.workspace or DEFAULT_WORKSPACE

    def to_write(self, path: Path) -> Workspace:
        """A workspace for a command that changes it, which waits as --wait says."""
        from qkvsearch.storage import Workspace

        return Workspace(path, wait=self.wait, notify=self.say)

    @property
    def wait(self) -> float | None:
        """For how many seconds a change waits for another writer, None for as long as it takes."""
        seconds: float | None = click.get_current_context().meta.get(WAIT)
        return seconds

    def open_own(self) -> Engine:
        """The named workspace, for a command that changes it. Raises `WorkspaceError`."""
        self.own_workspace()
        return self.open()

    def open(self, sample: str | None = None) -> Engine:
        """The named workspace. Without one the bundled sample, built on its first use; `sample` is
        None for what is about somebody's own data: that raises `WorkspaceError`.
        """
        path = self.named_workspace()
        if self.sample is not None:
            return self.open_sample(self.sample)
        if path is None and sample is not None:
            self.say(f"No workspace here: using the bundled {sample} (-w DIR names another).")
            return self.open_sample(sample)
        if path is None:
            raise WorkspaceError(
                f"no workspace is named, and this folder has none ({DEFAULT_WORKSPACE}): name one "
                "with qkvsearch -w DIR, make one with qkvsearch build, or try a sample with "
                "qkvsearch -w sample:movies"
            )
        if self.verbose:
            self.say(f"Workspace: {path}")
        return self._opened(path)

    def _opened(self, path: Path) -> Engine:
        """An engine that is closed when the command ends."""
        with _to_stay():
            from qkvsearch.engine import Engine

            engine = Engine(path, wait=self.wait, say=self.say)
        click.get_current_context().call_on_close(engine.close)
        return engine

    @property
    def sample(self) -> str | None:
        """The bundled sample that is named in place of a folder."""
        name = str(self.workspace or "")
        return name.removeprefix(SAMPLE) if name.startswith(SAMPLE) else None

    def open_sample(self, name: str) -> Engine:
        """A bundled sample, built on its first use, and when it changed or is damaged, or other
        encoders are installed than it was built with.
        """
        from qkvsearch import __version__
        from qkvsearch._utils.user_files import samples_folder
        from qkvsearch.data.samples import sample
        from qkvsearch.storage import FORMAT_VERSION
        from qkvsearch.text.encoders import installed

        fingerprint = sample(name).fingerprint()
        encoders = installed() or ("corpus",)
        folder = "-".join([name, __version__, str(FORMAT_VERSION), fingerprint, *encoders])
        path = samples_folder() / folder
        with suppress(WorkspaceError):
            return self._sound(path)
        try:
            return self._built_sample(name, path)
        except WorkspaceError:  # a home that cannot be written to, as services have
            path = Path(tempfile.mkdtemp(prefix="qkvsearch-"))
            atexit.register(shutil.rmtree, path, ignore_errors=True)
            return self._built_sample(name, path)

    def _built_sample(self, name: str, path: Path) -> Engine:
        """Built by one process, for which others wait; in the place of one that is damaged."""
        from qkvsearch.data.sources import read_source
        from qkvsearch.index.builder import build_workspace

        workspace = self.to_write(path)
        with workspace.writing("build"):
            with suppress(WorkspaceError):
                return self._sound(path)
            (path / "root.json").unlink(missing_ok=True)
            shutil.rmtree(path / "builds", ignore_errors=True)
            with self.progress() as report:
                build_workspace(workspace, read_source(f"sample:{name}"), progress=report)
        return self._opened(path)

    def _sound(self, path: Path) -> Engine:
        """A sample of which no file is damaged. Raises `WorkspaceError`."""
        from qkvsearch.engine.info import verified

        engine = self._opened(path)
        verified(engine.workspace)
        return engine

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """A progress bar on stderr where that is a terminal, else nothing."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            tasks: dict[str, int] = {}

            def report(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    shown = in_one_line(stage.capitalize())
                    tasks[stage] = bar.add_task(shown, total=total)
                bar.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

            yield report


@contextmanager
def _to_stay() -> Iterator[None]:
    """What a process imports and opens first stays until its end. To look through it for what could
    go, meanwhile and once more at the end, takes a fifteenth of a search.
    """
    if ENGINE in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def spelled(message: str, context: click.Context, command: click.Command | None) -> str:
    """A message for the command line: parameters that Python calls `recent` are --recent there.

    What is no option of the command that ran may be one of `build`, by which a workspace gets what
    it lacks, or of `search`. What the person typed in backticks stays as it was typed.
    """
    root = context.find_root()
    typed: list[str] = root.meta.get(TYPED, [])
    if isinstance(command, click.Group):
        command = next((command.commands[word] for word in typed if word in command.commands), None)
    others = (root.command.get_command(root, name) for name in ("build", "search"))  # type: ignore[attr-defined]
    own, *lent = map(_options, (command, *others))
    arguments = {p.name for p in command.params if isinstance(p, click.Argument)} if command else ()

    def option(match: re.Match[str]) -> str:
        name = match[1]
        if any(match[0] in word for word in typed):
            return match[0]
        if name in own:
            return own[name].opts[0]
        if name in arguments:
            return name.upper()
        for options in lent:
            if name in options:
                value = " FILE" * isinstance(options[name].type, click.Path)
                return f"{options[name].opts[0]}{value}"
        return match[0]

    return re.sub(r"`(\w+)`", option, message)


def _options(command: click.Command | None) -> dict[str, click.Option]:
    """By the names of the Python parameters."""
    params = [] if command is None else command.params
    return {str(p.name): p for p in params if isinstance(p, click.Option)}


def settings() -> CommandContext:
    """The options of the command that is running."""
    found = click.get_current_context().find_object(CommandContext)
    if found is None:
        raise QkvError("this command runs as a part of qkvsearch")
    return found

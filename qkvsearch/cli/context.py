"""The context of all commands: the workspace, messages on stderr, shared options."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.wrapping import wrapped
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.terminal import in_one_line, printable

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine import Engine
    from qkvsearch.store import Workspace

# Adds options to a command.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
DEFAULT_WORKSPACE = Path(".qkvsearch")
# The prefix of the names of bundled samples.
SAMPLE = "sample:"
# The key of Click's `meta` for the words of the command line.
TYPED = "qkvsearch.typed"
# The key of Click's `meta` for the seconds of --wait.
WAIT = "qkvsearch.wait"
# The names of options that few users need. `--help` lists them last.
RARE = frozenset(
    {
        "delimiter",
        "encoding",
        "engine",
        "envelope",
        "event_column",
        "event_weights",
        "fold_ids",
        "ignore",
        "keys",
        "layout",
        "model",
        "next_item",
        "offset",
        "only",
        "random_state",
        "rating_scale",
        "raw",
        "strict",
        "strict_user",
        "synonyms",
        "temperature",
        "wait",
    }
)
# A command in a message that is about a workspace, without -w.
HINT = re.compile(
    r"\bqkvsearch (?=(?:add|builds|compact|compare|evaluate|export|info|items|learn|recommend|"
    r"record|remove|repair|rollback|search|searches|show|sync|tune)\b)"
)
# A number as users type it.
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


class Command(click.Command):
    """A command whose `--help` lists rare options last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Advanced": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                sections["Advanced" if param.name in RARE else "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandWithOthers(Command, click.Group):
    """A command that does something by itself, and has other commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


command = partial(click.command, cls=Command)
command_with_others = partial(
    click.group,
    cls=CommandWithOthers,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND [ARGS]...]",
)


def joined(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, which `--help` lists in this order."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        # A decorator adds its option in front of those that the command has.
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def stored_in_meta(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback of an option that stores its value in Click's `meta`."""

    def store(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.meta[key] = value

    return store


wait_option = click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    expose_value=False,
    callback=stored_in_meta(WAIT),
    help="How long to wait while another command changes the workspace.  [default: as long as it "
    "takes]",
)


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
        if self.workspace is None:
            return text
        named = f"qkvsearch -w {shlex.quote(str(self.workspace))} "
        return HINT.sub(lambda _: named, text)

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
            return self._built_sample(name, path)
        except (OSError, WorkspaceError):  # the home folder of a service may be read-only
            path = Path(tempfile.mkdtemp(prefix="qkvsearch-"))
            atexit.register(shutil.rmtree, path, ignore_errors=True)
            return self._built_sample(name, path)

    def _built_sample(self, name: str, path: Path) -> Engine:
        """Build a sample, in place of a damaged one; other processes wait meanwhile."""
        from qkvsearch.learn.builder import build_workspace
        from qkvsearch.tables.sources import read_source

        workspace = self.writable_workspace(path)
        with workspace.writing("build"):
            with suppress(WorkspaceError):
                return self._verified(path)
            (path / "root.json").unlink(missing_ok=True)
            shutil.rmtree(path / "builds", ignore_errors=True)
            with self.progress() as report:
                build_workspace(workspace, read_source(f"sample:{name}"), progress=report)
        return self._engine(path)

    def _verified(self, path: Path) -> Engine:
        """Open a sample after a check of all its files. Raises `WorkspaceError`."""
        from qkvsearch.engine.info import verify

        engine = self._engine(path)
        verify(engine.workspace)
        return engine

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """Show a progress bar on stderr if that is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            tasks: dict[str, int] = {}

            def report(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    tasks[stage] = bar.add_task(in_one_line(stage.capitalize()), total=total)
                bar.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

            yield report


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


def to_stderr(text: str) -> None:
    """Print a line to stderr. Where that cannot be written, it is lost: a change that was made has
    not failed for that.
    """
    with suppress(OSError):
        click.echo(text, err=True)


def reason_of(error: OSError) -> str:
    """Return what the system could not do, and with which file."""
    if error.errno == errno.EBADF and error.filename is None:
        return "stdout is closed, and results cannot be written"
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"


def fitting(text: str) -> str:
    """Return a text for stderr: on a terminal its long lines are broken between words."""
    if not sys.stderr.isatty():
        return text
    width = _width_of_stderr()
    return "\n".join(wrapped(line, width, indent=2) for line in text.split("\n"))


def _width_of_stderr() -> int:
    """Return the columns of the terminal that stderr is; results may go elsewhere."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def spelled(message: str, context: click.Context, command: click.Command | None) -> str:
    """Return a message with parameters spelled as on the command line: `recent` as --recent, and
    commands with the workspace.

    A parameter that the command does not have may be one of `build` or `search`. Words in backticks
    that the user typed stay as they are.
    """
    root = context.find_root()
    typed: list[str] = root.meta.get(TYPED, [])
    if isinstance(command, click.Group):
        inner = (command.commands[word] for word in typed if word in command.commands)
        command = next(inner, command)
    spellings = _spellings(root, command)

    def spelling(match: re.Match[str]) -> str:
        quoted, name = match[0], match[1]
        is_typed = any(quoted in word for word in typed)
        return quoted if is_typed else spellings.get(name, quoted)

    message = re.sub(r"`(\w+)`", spelling, message)
    run = context.find_object(CommandContext)
    return message if run is None else run.hint(message)


def _spellings(root: click.Context, command: click.Command | None) -> dict[str, str]:
    """Return how the command line spells each parameter, by its name in Python.

    A command's own spellings precede those of `build`, and these the ones of `search`.
    """
    spellings: dict[str, str] = {}
    for name in ("search", "build"):
        other: click.Command = root.command.get_command(root, name)  # type: ignore[attr-defined]
        for option in _options(other):
            is_file = isinstance(option.type, click.Path)
            spellings[str(option.name)] = f"{option.opts[0]} FILE" if is_file else option.opts[0]
    if command is not None:
        arguments = [param for param in command.params if isinstance(param, click.Argument)]
        spellings.update({str(argument.name): str(argument.name).upper() for argument in arguments})
        spellings.update({str(option.name): option.opts[0] for option in _options(command)})
    return spellings


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a comma-separated list; None without any."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",")]


def settings() -> CommandContext:
    """Return the context of the running command."""
    context = click.get_current_context().find_object(CommandContext)
    if context is None:
        raise QkvError("this command runs only as a part of qkvsearch")
    return context

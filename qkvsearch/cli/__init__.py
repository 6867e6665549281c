"""The command line: a group of commands that are imported when they are called."""

import io
import logging
import os
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from qkvsearch._utils.version import __version__
from qkvsearch.cli.context import CommandContext
from qkvsearch.cli.stderr import TYPED, fitting, reason_of, spelled, to_stderr
from qkvsearch.errors import QkvError, suggest
from qkvsearch.terminal import in_one_line, printable

# The commands by task, as `--help` lists them, each with its module.
GROUPS = {
    "Search and recommend": {
        "search": "rankings",
        "recommend": "rankings",
        "similar": "rankings",
        "serve": "serve",
        "mcp": "agents",
        "items": "listings",
        "show": "listings",
    },
    "Your data": {
        "build": "build",
        "add": "changes",
        "sync": "changes",
        "remove": "changes",
        "record": "changes",
        "learn": "changes",
        "rules": "rules",
        "records": "listings",
        "history": "listings",
        "users": "listings",
        "export": "encode",
        "data": "downloads",
    },
    "Quality": {
        "evaluate": "evaluate",
        "compare": "compare",
        "tune": "tune",
        "searches": "searches",
    },
    "Learn": {
        "demo": "demo",
        "teach": "teach",
        "attend": "encode",
        "encode": "encode",
    },
    "Maintenance": {
        "info": "listings",
        "builds": "listings",
        "rollback": "changes",
        "compact": "changes",
        "repair": "changes",
        "forget": "changes",
        "model": "downloads",
        "doctor": "downloads",
    },
}
COMMANDS = {name: module for commands in GROUPS.values() for name, module in commands.items()}
# Options of the group. Where one is written after the command, a message says so.
BEFORE_THE_COMMAND = ("-w", "--workspace", "-q", "--quiet", "-v", "--verbose", "--version")
# BLAS threads that wait for work spin for 2^26 cycles, a fifth of the time of a search, in which no
# other thread can use the core. With 2^20 cycles they sleep after a third of a millisecond.
SPIN_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
EPILOG = "Start with: qkvsearch demo"


class LazyGroup(click.Group):
    """A group that imports only the module of the command that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"qkvsearch.cli.{COMMANDS[cmd_name]}")
        return getattr(module, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each task."""
        widest = max(map(len, COMMANDS))
        for heading, names in GROUPS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                assert command is not None
                rows.append((name.ljust(widest), command.get_short_help_str(100)))
            with formatter.section(heading):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors name parameters as the command line spells them."""
        try:
            return super().invoke(ctx)
        except QkvError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise click.ClickException(spelled(str(error), ctx, command)) from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = suggest(args[0], list(COMMANDS))
            ctx.fail(f"no command {args[0]!r}{near or '; see qkvsearch --help'}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-w",
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="QKVSEARCH_WORKSPACE",
    help="Folder of the workspace, or a sample: sample:movies, sample:videos.  [default: "
    "./.qkvsearch]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors to stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Print the workspace and the time taken.")
@click.version_option(__version__, prog_name="qkvsearch")
@click.pass_context
def group(ctx: click.Context, workspace: Path | None, quiet: bool, verbose: bool) -> None:
    """Search your own files, and recommend from them, with the reasons for every result."""
    ctx.obj = run = CommandContext(workspace, quiet, verbose)
    if quiet:
        logger = logging.getLogger("qkvsearch")
        ctx.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    if verbose:
        began = time.perf_counter()
        ctx.call_on_close(lambda: run.message(f"Took {time.perf_counter() - began:.2f} s."))


def main(args: list[str] | None = None) -> None:
    """Run a command. Exit codes: 0 done, 1 a clear error, 2 wrong usage, 130 Ctrl-C."""
    _use_utf8()
    os.environ.setdefault(SPIN_VARIABLE, "20")
    try:
        code = group.main(args, prog_name="qkvsearch", standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        to_stderr("Stopped.")
        code = 130
    except UnicodeEncodeError as error:
        to_stderr(in_one_line(f"Error: {error.object!r}: not valid UTF-8"))
        code = 1
    except OSError as error:
        to_stderr(in_one_line(f"Error: {reason_of(error)}"))
        code = 1
    except MemoryError:
        to_stderr("Error: not enough memory")
        code = 1
    if code:
        _abandon_stdout()
    sys.exit(code if isinstance(code, int) else 0)


def _show(error: click.ClickException) -> None:
    """Show an error as Click does, with control characters escaped."""
    text = io.StringIO()
    error.show(text)
    to_stderr(fitting(printable(text.getvalue().removesuffix("\n"))))
    if isinstance(error, click.NoSuchOption) and error.option_name in BEFORE_THE_COMMAND:
        to_stderr(f"It comes before the command: qkvsearch {error.option_name} …")


def _abandon_stdout() -> None:
    """Prevent Python from writing the rest to a full disk, or a closed stream, again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _use_utf8() -> None:
    """Read and write UTF-8 on every system; invalid bytes become "�" or "?". A byte order mark, as
    programs on Windows write it in front, is no part of what is read.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = "utf-8-sig" if stream is sys.stdin else "utf-8"
            stream.reconfigure(encoding=encoding, errors="replace")

"""The kinds of commands, and what their options share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import click

# Adds options to a command.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
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
# A number as users type it.
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


class Command(click.Command):
    """A command whose `--help` lists rare options last, and whose options with a text or a file are
    given once: Click would take the last in silence.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for param, n in Counter(given).items():
            if n > 1 and isinstance(param, click.Option) and _is_single(param):
                raise click.UsageError(f"{param.opts[-1]} is given {n} times: give it once", ctx)
        return super().parse_args(ctx, args)

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


class CommandGroup(click.Group):
    """A command that only has other commands."""

    command_class = Command


class CommandWithOthers(Command, CommandGroup):
    """A command that does something by itself, and has other commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _is_single(option: click.Option) -> bool:
    """Return whether an option has one value, which is a text or a file."""
    is_named = isinstance(option.type, click.types.StringParamType | click.Path)
    return is_named and not (option.multiple or option.is_flag)


command = partial(click.command, cls=Command)
command_group = partial(click.group, cls=CommandGroup)
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


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a comma-separated list; None without any."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",")]

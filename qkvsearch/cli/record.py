"""`qkvsearch record`: interactions that the next `recommend` knows, one or a whole file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import TYPED, delimiter_option, settings
from qkvsearch.cli.listing import shown, write_listing
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.writing import wait_option
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.engine import Engine
    from qkvsearch.search.listing import Listing

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def log_columns(file: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that name the columns of a log, where a guess would be wrong."""
    roles = {"user": "the user", "item": "the item", "rating": "the rating",
             "weight": "the weight", "time": "when it was"}  # fmt: skip
    options = [
        click.option(f"--{role}-column", metavar="NAME", help=f"In {file}: {what}.")
        for role, what in roles.items()
    ]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def columns_of(named: dict[str, str | None]) -> Columns:
    """What these options say."""
    from qkvsearch.data.columns import Columns

    roles = {name.removesuffix("_column"): given for name, given in named.items()}
    return Columns(**roles)  # type: ignore[arg-type]


# A rating may be below 0, and would be taken for an option.
@click.command(
    short_help="Record interactions of users with items.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", metavar="USER ITEM [RATING] | FILE", nargs=-1)
@click.option("--undo", is_flag=True, help="Take back what was recorded last.")
@log_columns("FILE")
@delimiter_option
@wait_option
@output_options
def command(words: tuple[str, ...], undo: bool, output: Output, **columns: str | None) -> None:
    """Record that USER interacted with ITEM, and with which RATING, if any; or every row of FILE.

    The next `recommend` knows it, without a rebuild. A new user is created; ITEM, an id or a title,
    must be in the catalog. Where the log has weights in place of ratings, such as quantities,
    RATING is one, and a negative one takes back. FILE is a table such as `build` reads; all of its
    rows that can be used are recorded at once, and the others counted. --undo takes back what the
    last `record` wrote; again, what the one before wrote. `records` lists it all.

    \b
    Examples:
      qkvsearch -w films record 1017 "Heat (1995)" 4.5
      qkvsearch -w shop record today.csv
      qkvsearch -w shop record --undo
    """
    _check(words, undo, columns)
    run = settings()
    engine = run.open_own()
    if undo:
        done, said = engine.undo_record(), "Taken back"
    elif len(words) == 1:
        done, said = _record_file(engine, words[0], columns), "Recorded"
    else:
        done, said = engine.record(words[0], words[1], *map(float, words[2:])), "Recorded"
    run.say_notes(done.notes)
    run.say(f"{said}: {in_words(done)}.")
    if output.asked:
        write_listing(done, "interactions", output)


def _check(words: tuple[str, ...], undo: bool, columns: dict[str, str | None]) -> None:
    """Raise `click.UsageError` for words that name nothing to record."""
    context = click.get_current_context()
    typed = context.find_root().meta.get(TYPED, [])
    as_they_are = typed[typed.index("--") + 1 :] if "--" in typed else []
    for word in words:
        if word.startswith("-") and not NUMBER.fullmatch(word) and word not in [*as_they_are, "-"]:
            raise click.NoSuchOption(word, ctx=context)
    if undo and words:
        raise click.UsageError("--undo takes back the last: leave out what to record")
    if not undo and not 1 <= len(words) <= 3:
        raise click.UsageError("name a user and an item, or a file of interactions, or --undo")
    if len(words) != 1 and any(columns.values()):
        raise click.UsageError("columns and delimiters are those of a file: record FILE")
    if len(words) == 3 and not NUMBER.fullmatch(words[2]):
        raise click.UsageError(f"{words[2]!r} is no number, and the third word is a rating")


def _record_file(engine: Engine, file: str, columns: dict[str, str | None]) -> Listing:
    if file != "-" and "://" not in file and not Path(file).exists():
        raise click.UsageError(
            f"{file}: no such file; for a single interaction name a user and an item"
        )
    return engine.record_many(file, columns_of(columns))


def in_words(done: Listing) -> str:
    """What was recorded: one interaction by name, many by their number."""
    users = {row["user"] for row in done}
    if len(done) > 1:
        return f"{len(done):,} interactions of {quantity(len(users), 'user')}"
    (row,) = done
    item = f"{row['title'] or 'an item that left the catalog'} ({row['id']})"
    return f"user {row['user']}, {item}{_valued(row)}"


def _valued(row: dict[str, Any]) -> str:
    if row.get("rating") is not None:
        return f", rated {shown(row['rating'])}"
    return f", weight {shown(row['weight'])}" if row.get("weight") is not None else ""

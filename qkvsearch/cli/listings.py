"""`qkvsearch items`, `show`, `users`, `history`, `records`, `builds` and `info`: listings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.columns import columns_text
from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import fields_option, offset_option, where_option, where_options
from qkvsearch.cli.render import (
    Output,
    counted,
    listing_table,
    output_options,
    to_table,
    write_page,
)

if TYPE_CHECKING:
    from qkvsearch.search.listing import Listing

BUILD_COLUMNS = (
    ("", "left"), ("id", "left"), ("created (UTC)", "left"), ("command", "left"),
    ("items", "right"), ("segments", "right"), ("MB", "right"),
)  # fmt: skip
# Facts with a table of their own.
COLUMN_FACTS = ("columns", "interaction_columns")


@click.command(short_help="List the items of the catalog.")
@click.option("-k", type=click.IntRange(min=0), default=20, show_default=True, help="How many.")
@offset_option
@where_option
@fields_option
@click.option(
    "--sort",
    metavar="NAME",
    help="By a column, from the least on, or -NAME from the greatest; users: what most know.",
)
@output_options
def items(k: int, offset: int, where: Any, fields: str, sort: str | None, output: Output) -> None:
    """List the items of the catalog, in the order of their ids or another.

    \b
    Examples:
      qkvsearch -w shop items --where "price < 80" --fields price,url
      qkvsearch -w sample:movies items --sort -year --fields year
      qkvsearch -w shop items -k 100000 --format csv -o items.csv
    """
    run = settings()
    items = run.open().items
    listing = items.list(where=where, fields=fields, sort=sort, k=k, offset=offset)
    run.say_notes(listing.notes)
    write_page(listing, k, "items", output)


@click.command(short_help="Show one item with all its columns.")
@click.argument("item")
@output_options
def show(item: str, output: Output) -> None:
    """Show ITEM, an id or a title that only one item has: every column of the catalog, and how many
    users interacted with it. id:300 is read as an id alone, title:300 as a title.

    \b
    Examples:
      qkvsearch -w shop show "Rain jacket"
      qkvsearch -w shop show id:300 --format json
    """
    run = settings()
    engine = run.open()
    note = engine.catalog.find_item(item)[1]
    run.say_notes([note] if note else [])
    card = engine.show(item)
    output.write_one(card, [card], lambda: _card_table(card))


def _card_table(card: dict[str, Any]) -> str:
    rows = [[name, "" if cell is None else cell] for name, cell in card.items()]
    return to_table([("", "left"), ("", "wrap")], rows)


@click.command(short_help="List the users, with how many items each one knows.")
@click.option("-k", type=click.IntRange(min=0), default=20, show_default=True, help="How many.")
@offset_option
@where_options("Only users for which this SQL expression over id, interactions and recorded holds.")
@output_options
def users(k: int, offset: int, where: Any, output: Output) -> None:
    """List the users of the log and those recorded since: with how many items each one interacted,
    and how often that was recorded.

    \b
    Examples:
      qkvsearch -w shop users --where "interactions >= 5"
      qkvsearch -w shop users -k 100000 --format json
    """
    listing = settings().open().users.list(where=where, k=k, offset=offset)
    write_page(listing, k, "users", output)


@click.command(short_help="Show what is known of a user.")
@click.argument("user")
@click.option("-k", type=click.IntRange(min=0), help="How many.  [default: all]")
@offset_option
@output_options
def history(user: str, k: int | None, offset: int, output: Output) -> None:
    """Show with what USER interacted, the latest first: from the log that was built from, and what
    was recorded since, which is marked. The confidence is what an interaction counts when something
    is recommended: about 1 in full, 0 for what was disliked or taken back.

    \b
    Example:
      qkvsearch -w shop history 1017
    """
    run = settings()
    listing = run.open().history(user, k=k, offset=offset)
    run.say_notes(listing.notes)
    write_page(listing, k, "interactions", output)


@click.command(short_help="List what was recorded.")
@click.option("--user", metavar="USER", help="Only what was recorded of USER.")
@click.option("-k", type=click.IntRange(min=0), help="How many.  [default: all]")
@offset_option
@output_options
def records(user: str | None, k: int | None, offset: int, output: Output) -> None:
    """List what `record` and `add --interactions` wrote, the last first. What was recorded together
    has the same batch, which one `record --undo` takes back. The build has learned from what is
    marked so: that is in its log, and `rollback` comes before an undo.

    \b
    Examples:
      qkvsearch -w shop records -k 20
      qkvsearch -w shop records --user 1017 --format json
    """
    run = settings()
    listing = run.open().records(user, k=k, offset=offset)
    if not listing and k != 0:
        run.say(counted(listing, "records"))
    # Programs get every field; a table has room for those in which something is.
    empty = {name for name in ("rating", "weight") if all(row[name] is None for row in listing)}
    shown = replace(listing, names=[name for name in listing.names if name not in empty])
    output.write(listing.to_records(), lambda: listing_table(shown, "records"), listing.names)


@click.command(short_help="List the builds that rollback can return to.")
@output_options
def builds(output: Output) -> None:
    """List the builds of the workspace, the latest first: when each was made and by which command,
    its items, of how many segments it is, and how many megabytes it added on disk. Questions are
    answered from the one with the *.

    Builds of the current base and of the one before are kept, 50 at most; compact --drop-builds
    removes all but the current one.

    \b
    Examples:
      qkvsearch -w shop builds
      qkvsearch -w shop builds --format json
    """
    run = settings()
    listing = run.open().builds()
    run.say_notes(listing.notes)
    output.write(listing.to_records(), lambda: _build_table(listing), listing.names)


def _build_table(listing: Listing) -> str:
    return to_table(BUILD_COLUMNS, [_build_cells(row) for row in listing])


def _build_cells(row: dict[str, Any]) -> list[str]:
    created = row["created"][:16].replace("T", " ")
    sizes = ["damaged", ""]
    if row["segments"] is not None:
        sizes = [f"{row['segments']}", f"{row['megabytes']:,.2f}"]
    mark = "*" if row["current"] else ""
    return [mark, row["id"], created, row["command"], f"{row['items']:,}", *sizes]


@click.command()
@click.option("--verify", is_flag=True, help="Compare every file with its checksum.")
@output_options
def info(verify: bool, output: Output) -> None:
    """Show what the workspace was built from, and what it holds.

    \b
    Examples:
      qkvsearch -w films info
      qkvsearch -w films info --verify --format json
    """
    run = settings()
    facts = run.open().info(verify=verify)
    output.write([facts], lambda: _fact_table(facts, run.verbose))


def _fact_table(facts: dict[str, Any], verbose: bool) -> str:
    others = {name: fact for name, fact in facts.items() if name not in COLUMN_FACTS}
    table = to_table([("", "left"), ("", "wrap")], _fact_lines(others))
    return f"{table}\n{columns_text(facts['columns'], facts['interaction_columns'], verbose)}"


def _fact_lines(facts: dict[str, Any]) -> list[list[str]]:
    return [[name.replace("_", " "), _fact_text(value)] for name, value in facts.items() if value]


def _fact_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        lines = any(len(str(part)) > 30 for part in value)
        return ("\n" if lines else ", ").join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _short_text(value: Any) -> str:
    """One of several values of a fact."""
    if isinstance(value, dict):
        return f"({_fact_text(value)})"
    return f"{value:.3g}" if isinstance(value, float) else _fact_text(value)

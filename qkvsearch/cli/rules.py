"""The owner's rules: `qkvsearch rules` pins, buries and boosts items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.commands import command_group, wait_option
from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.errors import UnknownIdError

if TYPE_CHECKING:
    from qkvsearch.engine import Engine

PLACE = "QUERY=ITEM[,ITEM]"
BOOST = '"CONDITION: X"'


@command_group(short_help="Pin, bury and boost items by rules of your own.")
def rules() -> None:
    """Pin items to a query, bury them, and boost items under a condition.

    Rules are stored with the workspace. They stay when items are added, when it is built again, and
    after a rollback. Each one that counts for a hit is a line of its reasons, which still add up to
    the score. search, recommend and compare leave them out with --no-rules.

    \b
    Examples:
      qkvsearch -w shop rules add --pin "tent=m042,m017"
      qkvsearch -w shop rules add --boost "stock > 0: 0.5" --name "in stock"
      qkvsearch -w shop rules list
      qkvsearch -w shop rules remove 2
    """


@rules.command(short_help="Add a rule.")
@click.option(
    "--pin",
    metavar=PLACE,
    help="These items come first for QUERY, in this order, also where nothing else is found.",
)
@click.option("--bury", metavar=PLACE, help="These items come last for QUERY.")
@click.option(
    "--boost",
    metavar=BOOST,
    help="Add X standard deviations to the scores of the items for which CONDITION holds, written "
    "as in search --where. A negative X lowers them.",
)
@click.option("--name", metavar="TEXT", help="What the reasons of a hit call the rule.")
@wait_option
def add(pin: str | None, bury: str | None, boost: str | None, name: str | None) -> None:
    """Add one rule.

    QUERY is what people type. Case and accents make no difference, and a corrected query has the
    rules of what it is read as. An empty QUERY is the listing of all items. ITEM is an id or a
    unique title. Filters of a search are obeyed: a pinned item that they exclude is not there.

    The score of a search is in standard deviations from the average item, and so is X. Good hits
    often differ by less than 1 from each other, so .5 decides between hits that are about as good,
    and 5 puts nearly all hits under the condition first. A boost makes no item a hit. In recommend,
    X is in standard deviations of the user's scores, and for an empty query in those of the numbers
    of users.

    \b
    Examples:
      qkvsearch -w shop rules add --pin "tent=m042,m017"
      qkvsearch -w shop rules add --bury "gift=Gift card"
      qkvsearch -w shop rules add --boost "stock > 0: 0.5" --name "in stock"
      qkvsearch -w shop rules add --boost "made < 2015: -0.5"
    """
    if sum(value is not None for value in (pin, bury, boost)) != 1:
        raise click.UsageError("give one of --pin, --bury and --boost")
    run = settings()
    if boost is not None:
        condition, by = _boost(boost)
        done = run.open_writable().add_rule(boost=condition, by=by, name=name)
    else:
        placed = ("--pin", pin) if pin is not None else ("--bury", bury or "")
        query, names = _placed(*placed)
        engine = run.open_writable()
        done = engine.add_rule(
            pin=query if bury is None else None,
            bury=None if bury is None else query,
            items=_items(engine, names),
            name=name,
        )
    run.notes(done.notes)
    run.message(f"Rule {done[0]['number']} added: {_in_words(done[0])}.")


def _boost(text: str) -> tuple[str, float]:
    """Return the condition and the number of a boost. Raises `click.UsageError`.

    >>> _boost("stock = 1: 0.5")
    ('stock = 1', 0.5)
    """
    from qkvsearch.learn.rule_changes import MAX_BY

    condition, colon, number = text.rpartition(":")
    try:
        by = float(number)
    except ValueError:
        colon = ""
    if not colon or not condition.strip():
        raise click.UsageError(f'--boost is {BOOST}, such as "stock = 1: 0.5", not {text!r}')
    if not by or not abs(by) <= MAX_BY:
        raise click.UsageError(f"--boost: X is from -{MAX_BY:g} to {MAX_BY:g}, and not 0: {text!r}")
    return condition.strip(), by


def _placed(option: str, text: str) -> tuple[str, str]:
    """Return the query and the names of items. Raises `click.UsageError`.

    >>> _placed("--pin", "tent=m042,m017")
    ('tent', 'm042,m017')
    """
    query, sign, names = text.partition("=")
    if not sign or not names.strip():
        raise click.UsageError(f"{option} is {PLACE}, such as tent=m042, not {text!r}")
    return query.strip(), names.strip()


def _items(engine: Engine, names: str) -> list[str]:
    """Return the names of items. A title may have commas: a text that names one item is one."""
    try:
        engine.catalog.titles.find_item(names)
    except UnknownIdError:
        return [name.strip() for name in names.split(",") if name.strip()]
    return [names]


@rules.command("list", short_help="List the rules.")
@output_options
def list_rules(output: Output) -> None:
    """List the rules by their numbers. A rule whose items or columns are not in the catalog is
    skipped, and has a `problem`.

    \b
    Examples:
      qkvsearch -w shop rules list
      qkvsearch -w shop rules list --format json
    """
    listing = settings().open().rules()
    columns = [("", "right"), ("rule", "wrap"), ("name", "wrap"), ("problem", "wrap")]
    names = [name for name in ("name", "problem") if any(row[name] for row in listing)]
    shown = [column for column in columns if column[0] in ("", "rule", *names)]

    def table() -> str:
        rows = [
            [row["number"], _in_words(row), *(row[name] or "" for name in names)] for row in listing
        ]
        return to_table(shown, rows) if rows else to_table([], [], "no rules")

    output.write(listing.to_records(), table, listing.names)


def _in_words(row: Mapping[str, Any]) -> str:
    """Return what a rule does, as it is written with `rules add`."""
    from qkvsearch.tables.ids import id_text

    if row["kind"] == "boost":
        return f"boost {row['where']}: {row['by']:+g}"
    return (
        f"{row['kind']} {row['query'] or '(empty query)'} = {', '.join(map(id_text, row['items']))}"
    )


@rules.command(short_help="Remove a rule.")
@click.argument("number", type=click.IntRange(min=1))
@wait_option
def remove(number: int) -> None:
    """Remove the rule of this NUMBER, as `rules list` shows it.

    \b
    Example:
      qkvsearch -w shop rules remove 2
    """
    run = settings()
    done = run.open_writable().remove_rule(number)
    run.message(f"Rule {number} removed: {_in_words(done[0])}.")

"""`qkvsearch show`: one item, with all its columns."""

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, to_table


@click.command(short_help="Show one item with all its columns.")
@click.argument("item")
@output_options
def command(item: str, output: Output) -> None:
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
    output.write_one(card, [card], lambda: _table(card))


def _table(card: dict[str, Any]) -> str:
    rows = [[name, "" if cell is None else cell] for name, cell in card.items()]
    return to_table([("", "left"), ("", "wrap")], rows)

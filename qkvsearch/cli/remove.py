"""`qkvsearch remove`: items leave a workspace."""

import click

from qkvsearch.cli.context import settings


@click.command(short_help="Remove items from a workspace without a rebuild.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option(
    "--where",
    metavar="EXPR",
    help="Instead of ITEMs: all for which this SQL expression over the catalog's columns holds.",
)
def command(items: tuple[str, ...], where: str | None) -> None:
    """Remove each ITEM, an id or a title that only one item has, with its interactions.

    All of them are looked up first: where one is unknown, none is removed. What was recorded stays
    recorded, and counts again if `add` brings the item back.

    \b
    Examples:
      qkvsearch -w shop remove 4711 "Rain jacket"
      qkvsearch -w films remove --where "year < 1950"
    """
    run = settings()
    if bool(items) == (where is not None):
        raise click.UsageError("name items, or give --where EXPR: one of the two")
    engine = run.open_named("name a workspace to remove from: qkvsearch -w DIR remove ITEM")
    with run.progress() as progress:
        done = engine.remove(items, where=where, progress=progress)
    run.say_notes(done.notes)
    run.say(
        f"{engine.workspace.path}: {done.removed:,} removed, with {done.interactions_removed:,} "
        f"interactions; {done.n_items:,} items."
    )

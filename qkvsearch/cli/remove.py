"""`qkvsearch remove`: items leave a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import where_options
from qkvsearch.cli.listing import write_listing
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.writing import confirm, is_asked, wait_option, yes_option
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.index.add import Revision
    from qkvsearch.query.where import Where

# Of what leaves, as many titles are said.
SHOWN = 5
# So many leave by a condition without a question.
UNASKED = 10


@click.command(short_help="Remove items from a workspace without a rebuild.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@where_options(
    "Instead of ITEMs: all for which this SQL expression over the catalog's columns holds."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@yes_option
@wait_option
@output_options
def command(
    items: tuple[str, ...], where: Where | None, dry_run: bool, yes: bool, output: Output
) -> None:
    """Remove each ITEM, an id or a title that only one item has, with its interactions.

    All of them are looked up first: where one is unknown, none is removed. What was recorded stays
    recorded, and counts again if `add` brings the item back. --format lists id and title of what is
    removed. On a terminal, to remove more than ten items by a condition is asked first; rollback
    brings them back.

    \b
    Examples:
      qkvsearch -w shop remove 4711 "Rain jacket"
      qkvsearch -w films remove --where "year < 1950" --dry-run
    """
    run = settings()
    if bool(items) == (where is not None):
        raise click.UsageError("name items, or give --where EXPR: one of the two")
    engine = run.open_own()
    if where is not None and not (yes or dry_run) and is_asked():
        would = engine.remove(where=where, dry_run=True)
        if would.removed > UNASKED:
            run.say(f"Among them: {_titles(would)}.")
            confirm(f"Remove {would.removed:,} of {would.n_items + would.removed:,} items?")
    with run.progress() as progress:
        done = engine.remove(items, where=where, dry_run=dry_run, progress=progress)
    run.say_notes(done.notes)
    run.say(_said(done, str(engine.workspace.path), where, dry_run))
    if dry_run and done.gone:
        run.say(f"Among them: {_titles(done)}.")
    if output.asked:
        from qkvsearch.search.listing import Listing

        write_listing(Listing(done.gone, len(done.gone), ("id", "title")), "items", output)


def _said(done: Revision, path: str, where: Where | None, dry_run: bool) -> str:
    """How much was removed, or would be, by which condition, and how much stays."""
    does, stay = ("would be removed", " would stay") if dry_run else ("removed", "")
    expression = where if where is None or isinstance(where, str) else where[0]
    why = "" if expression is None else f" ({expression})"
    return (
        f"{path}: {done.removed:,} {does}{why}, with "
        f"{quantity(done.interactions_removed, 'interaction')}; "
        f"{quantity(done.n_items, 'item')}{stay}."
    )


def _titles(done: Revision) -> str:
    titles = [" ".join(str(item["title"]).split()) for item in done.gone[:SHOWN]]
    more = [f"and {done.removed - SHOWN:,} more"] if done.removed > SHOWN else []
    return ", ".join([*titles, *more])

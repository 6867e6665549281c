"""`qkvsearch add`: items join a workspace."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import wait_option


@click.command(short_help="Add items to a workspace without a rebuild.")
@click.argument("file", type=click.Path(path_type=str))
@click.option("--id-column", metavar="NAME", help="The id.")
@click.option("--title-column", metavar="NAME", help="The title.")
@click.option(
    "--text-columns",
    metavar="NAMES",
    help="What search reads, in the order of the build, where FILE has other names for it.",
)
@wait_option
def command(
    file: str, id_column: str | None, title_column: str | None, text_columns: str | None
) -> None:
    """Add the items of FILE, or replace those whose ids are already there.

    `search` finds them at once, and `recommend` places items without interactions by their text,
    marked cold. Nothing is learned anew: the encoder and the preferences stay those of the build. A
    replaced item keeps its interactions.

    \b
    Example:
      qkvsearch -w shop add new-products.csv
    """
    from qkvsearch.data.columns import Columns

    run = settings()
    engine = run.open_own()
    text = [name.strip() for name in text_columns.split(",")] if text_columns else None
    columns = Columns(id=id_column, title=title_column, text=text)
    with run.progress() as progress:
        done = engine.add(file, columns, progress=progress)
    run.say_notes(done.notes)
    path = engine.workspace.path
    run.say(f"{path}: {done.added:,} added, {done.replaced:,} replaced; {done.n_items:,} items.")

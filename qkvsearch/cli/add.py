"""`qkvsearch add`: items and interactions join a workspace."""

import click

from qkvsearch.cli.context import delimiter_option, settings
from qkvsearch.cli.record import columns_of, in_words, log_columns
from qkvsearch.cli.writing import wait_option
from qkvsearch.errors import quantity


@click.command(short_help="Add items or interactions to a workspace without a rebuild.")
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--id-column", metavar="NAME", help="The id.")
@click.option("--title-column", metavar="NAME", help="The title.")
@click.option(
    "--text-columns",
    metavar="NAMES",
    help="What search reads, in the order of the build, where FILE has other names for it.",
)
@click.option(
    "--interactions",
    metavar="LOG",
    type=click.Path(path_type=str),
    help="A log: its interactions are recorded, after the items of FILE joined.",
)
@log_columns("LOG")
@delimiter_option
@wait_option
def command(
    file: str | None,
    id_column: str | None,
    title_column: str | None,
    text_columns: str | None,
    interactions: str | None,
    delimiter: str | None,
    **columns: str | None,
) -> None:
    """Add the items of FILE, or replace those whose ids are already there; or the interactions of a
    LOG.

    `search` finds items at once, and `recommend` places those without interactions by their text,
    marked cold. Nothing is learned anew: the encoder and the preferences stay those of the build. A
    replaced item keeps its interactions. The next `recommend` knows the interactions, as with
    `record LOG`; `learn` makes them a part of the build.

    \b
    Examples:
      qkvsearch -w shop add new-products.csv
      qkvsearch -w shop add --interactions orders-of-may.csv
    """
    if file is None and interactions is None:
        raise click.UsageError("name a file of items, or a log: --interactions LOG")
    if file is None and (id_column or title_column or text_columns):
        raise click.UsageError("there are no items to have these columns: add FILE")
    if interactions is None and any(columns.values()):
        raise click.UsageError("these columns are those of a log: --interactions LOG")
    if file is not None:
        _add_items(file, id_column, title_column, text_columns, delimiter)
    if interactions is not None:
        run = settings()
        done = run.open_own().record_many(
            interactions, columns_of({**columns, "delimiter": delimiter})
        )
        run.say_notes(done.notes)
        run.say(f"Recorded: {in_words(done)}.")


def _add_items(
    file: str,
    id_column: str | None,
    title_column: str | None,
    text_columns: str | None,
    delimiter: str | None,
) -> None:
    from qkvsearch.data.columns import Columns

    run = settings()
    engine = run.open_own()
    text = [name.strip() for name in text_columns.split(",")] if text_columns else None
    columns = Columns(id=id_column, title=title_column, text=text, delimiter=delimiter)
    with run.progress() as progress:
        done = engine.add(file, columns, progress=progress)
    run.say_notes(done.notes)
    path = engine.workspace.path
    run.say(
        f"{path}: {done.added:,} added, {done.replaced:,} replaced; "
        f"{quantity(done.n_items, 'item')}."
    )

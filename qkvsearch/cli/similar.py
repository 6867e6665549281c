"""`qkvsearch similar`: the neighbours of an item, or of a user."""

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import ranking_options, why_none, write_ranking
from qkvsearch.cli.render import Output


@click.command(short_help="List what is like an item, or who is like a user.")
@click.argument("item", required=False)
@click.option("--user", metavar="ID", help="List users of the most similar preferences instead.")
@click.option("--explain", is_flag=True, help="Show the parts that add up to each score.")
@ranking_options
def command(
    item: str | None, user: str | None, explain: bool, output: Output, **options: Any
) -> None:
    """List the neighbours of an item, by its users and by its text, or those of a user.

    ITEM is an id, or a title where only one item has it; its year may be left out. id:300 is read
    as an id alone, title:300 as a title.

    \b
    Examples:
      qkvsearch similar "The Matrix"
      qkvsearch -w sample:movies similar --user u001 --explain
      qkvsearch -w talks similar t0042 -k 5 --format json
    """
    if (item is None) == (user is None):
        raise click.UsageError("name an item, or a user with --user: one of the two")
    if user is not None and (options.pop("where") is not None or options.pop("fields")):
        raise click.UsageError(
            "--where and --fields are about items, and with --user these are users"
        )
    run = settings()
    is_own = user is not None or output.path is not None
    engine = run.open(sample=None if is_own else "movies")
    if user is None:
        ranking = engine.similar(item, **options)
    else:
        with run.progress() as progress:
            ranking = engine.similar_users(user, explain=explain, progress=progress, **options)
    what = "item" if user is None else "user"
    nothing = f"No neighbours: nothing is known of this {what}, or no other {what} is left."
    run.say_notes([*why_none(ranking, options, nothing), *ranking.notes])
    write_ranking(ranking, output, explain)

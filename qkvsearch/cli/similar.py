"""`qkvsearch similar`: the neighbours of one or more items, or of a user."""

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.explaining import ExplainedCommand, explain_option
from qkvsearch.cli.hits import question_option, ranking_options, why_none, write_ranking
from qkvsearch.cli.render import Output


@click.command(cls=ExplainedCommand, short_help="List what is like an item, or who is like a user.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--user", metavar="ID", help="List users of the most similar preferences instead.")
@question_option("exclude", metavar="ITEM")
@explain_option("Say what adds up to each score; full: every part of the first hit.")
@ranking_options
def command(
    items: tuple[str, ...],
    user: str | None,
    explain: str | None,
    output: Output,
    **options: Any,
) -> None:
    """List the neighbours of items, by their users and by their texts, or those of a user.

    ITEM is an id, or a title where only one item has it; its year may be left out. id:300 is read
    as an id alone, title:300 as a title. Of several, the neighbours are those of all together.

    \b
    Examples:
      qkvsearch similar "The Matrix"
      qkvsearch similar Heat Ronin --exclude Casino --explain
      qkvsearch -w sample:movies similar --user u001 --explain
      qkvsearch -w talks similar t0042 -k 5 --format json
    """
    if bool(items) == (user is not None):
        raise click.UsageError("name an item, or a user with --user: one of the two")
    if user is not None:
        unset = {"where": None, "fields": "", "exclude": ()}
        given = [name for name, nothing in unset.items() if options.pop(name) != nothing]
        if given:
            raise click.UsageError(f"--{given[0]} is about items, and with --user these are users")
    run = settings()
    is_own = user is not None or output.path is not None
    engine = run.open(sample=None if is_own else "movies")
    if user is None:
        ranking = engine.similar(items, **options)
    else:
        with run.progress() as progress:
            ranking = engine.similar_users(
                user, explain=explain is not None, progress=progress, **options
            )
    what = "user" if user is not None else "item" if len(items) == 1 else "items"
    this = "these items" if what == "items" else f"this {what}"
    other = what.removesuffix("s")
    nothing = f"No neighbours: nothing is known of {this}, or no other {other} is left."
    run.say_notes([*why_none(ranking, options, nothing), *ranking.notes])
    write_ranking(ranking, output, explain)

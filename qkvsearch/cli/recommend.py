"""`qkvsearch recommend`: items for a known user, or for someone new from what they like."""

from __future__ import annotations

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import ranking_options, write_ranking
from qkvsearch.cli.render import Output


@click.command(short_help="Recommend items to a user, or to someone new.")
@click.option("--user", metavar="ID", help="A user of the log.")
@click.option("--like", "likes", metavar="ITEM", multiple=True, help="An id or title; repeatable.")
@click.option("--explain", is_flag=True, help="Show what of the history carries each score.")
@ranking_options
def command(
    user: str | None, likes: tuple[str, ...], explain: bool, output: Output, **options: Any
) -> None:
    """Recommend items to a user of the log, or to someone new from what they like.

    What they already know is left out. Nothing is retrained.

    \b
    Examples:
      qkvsearch recommend --user u001 --explain
      qkvsearch recommend --like "Heat" --like "Fargo" -k 5
    """
    if user is None and not likes:
        raise click.UsageError("name a user with --user, or something they like with --like")
    run = settings()
    engine = run.open(sample="movies")
    ranking = engine.recommend(user=user, likes=likes, explain=explain, **options)
    if not ranking and options["k"]:
        run.say("No recommendations: there is nothing this user likes, or no item is left.")
    write_ranking(ranking, output, explain)

"""`qkvsearch similar`: the neighbours of an item."""

from __future__ import annotations

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import ranking_options, write_ranking
from qkvsearch.cli.render import Output


@click.command()
@click.argument("item")
@click.option("--explain", is_flag=True, help="Show the parts that add up to each score.")
@ranking_options
def command(item: str, explain: bool, output: Output, **options: Any) -> None:
    """List the neighbours of an item, by who met it and by its text.

    ITEM is an id, or a title where only one item has it; its year may be left out.

    \b
    Examples:
      qkvsearch similar "The Matrix"
      qkvsearch -w talks similar t0042 -k 5 --format json
    """
    run = settings()
    ranking = run.open(sample="movies").similar(item, **options)
    if not ranking and options["k"]:
        run.say("No neighbours: nothing is known of this item, or no other item is left.")
    write_ranking(ranking, output, explain)

"""`qkvsearch search`: items ranked for a text query."""

import sys
from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.explaining import ExplainedCommand, explain_option
from qkvsearch.cli.hits import ranking_options, why_none, write_ranking
from qkvsearch.cli.render import Output


@click.command(cls=ExplainedCommand)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--heads",
    metavar="NAMES",
    help="Which heads score: lexical, semantic, token (a second pass, word by word), collaborative "
    "(with --user), or one by its name.  [default: all]",
)
@click.option(
    "--fusion",
    type=click.Choice(["scores", "ranks"]),
    default="scores",
    show_default=True,
    help="What of the heads is summed: standardized scores, or 1 / (60 + rank).",
)
@click.option(
    "--user", metavar="ID", help="Someone of the log, whose preferences are one more head."
)
@explain_option("Say what adds up to each score, by words; full: every part.")
@ranking_options
def command(
    query: tuple[str, ...], heads: str | None, explain: str | None, output: Output, **options: Any
) -> None:
    """Rank the items for a text query; `-` reads it from stdin.

    \b
    Examples:
      qkvsearch search how does attention work
      qkvsearch -w films search "space war" --where "year >= 1990" -k 5
      qkvsearch -w shop search tent --fields price,url --format csv -o tents.csv
      qkvsearch -w films search "space war" --user 42 --explain
    """
    run = settings()
    text = sys.stdin.read() if query == ("-",) else " ".join(query)
    is_own = options["user"] is not None or output.path is not None
    engine = run.open(sample=None if is_own else "videos")
    names = [name.strip() for name in heads.split(",")] if heads is not None else None
    # A table shows which words match; the other formats carry them with the reasons.
    marked = explain is not None or output.format == "table"
    ranking = engine.search(text, heads=names, explain=marked, **options)
    run.say_notes([*why_none(ranking, options, _why_nothing(options)), *ranking.notes])
    write_ranking(ranking, output, explain)


def _why_nothing(options: dict[str, Any]) -> str:
    if options["where"]:
        return "No hits: none of the items that --where leaves has any of these words."
    return "No hits: none of these words is in the catalog."

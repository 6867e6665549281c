"""`qkvsearch recommend`: items for a known user, for someone new, or for all users at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import CommandContext, engine_option, settings
from qkvsearch.cli.explaining import ExplainedCommand, explain_option
from qkvsearch.cli.hits import question_option, ranking_options, why_none, write_ranking
from qkvsearch.cli.record import NUMBER
from qkvsearch.cli.render import Output
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.engine import Engine

# What a table of all users has no room for.
ONE_USER_ONLY = (
    "user", "likes", "ratings", "without", "exclude", "explain", "diversity", "temperature",
    "offset", "min_weight",
)  # fmt: skip
SPELLED = {"likes": "like", "ratings": "rate"}


def _rated(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    """Of each item the number after the last =."""
    found = {}
    for text in given:
        item, separator, number = text.rpartition("=")
        if not separator or not item or not NUMBER.fullmatch(number.strip()):
            raise click.BadParameter(f"{text!r} is not of the form ITEM=RATING, such as Heat=4.5")
        found[item] = float(number)
    return found


@click.command(
    cls=ExplainedCommand, short_help="Recommend items to a user, to someone new, or to all."
)
@question_option("user", metavar="ID")
@question_option("likes", "--like", metavar="ITEM")
@question_option("ratings", "--rate", metavar="ITEM=RATING", callback=_rated)
@question_option("without", metavar="ITEM")
@question_option("exclude", metavar="ITEM")
@click.option(
    "--all-users", is_flag=True, help="All users, to a .parquet, .csv or .jsonl file (-o)."
)
@question_option("seen", "--seen/--no-seen", show_default=True, default=False)
@click.option(
    "--only",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Only items whose ids are in FILE, one a line (- is stdin).",
)
@question_option("model")
@question_option("recent", metavar="N")
@question_option("damping", metavar="X", default=0.0, type=click.FloatRange(min=0))
@question_option("diversity", metavar="X", default=0.0)
@engine_option
@explain_option("Say what of the history carries each score; full: every item of it.")
@ranking_options
def command(all_users: bool, only: Path | None, output: Output, **options: Any) -> None:
    """Recommend items to a user of the log, or to someone new from what they like.

    What they already know is left out. Nothing is retrained. With --all-users those of all users go
    to one file; the same call goes on where it was interrupted.

    \b
    Examples:
      qkvsearch -w sample:movies recommend --user u001 --explain
      qkvsearch recommend --like "Heat" --like "Fargo" -k 5 --diversity 0.3
      qkvsearch recommend --rate "Heat=5" --rate "Casino=1" --exclude "Fargo"
      qkvsearch -w sample:movies recommend --user u001 --without "The Goonies"
      qkvsearch -w shop recommend --all-users --fields price -o recs.csv
    """
    if all_users:
        given = [name for name in ONE_USER_ONLY if options.pop(name)]
        if given:
            name = SPELLED.get(given[0], given[0].replace("_", "-"))
            raise click.UsageError(f"--{name} is for one user, and --all-users for all")
        if output.path is None:
            raise click.UsageError("name a file for all users, such as: -o recs.parquet")
    elif options.pop("engine"):
        raise click.UsageError("--engine is for all users: --all-users")
    elif options["user"] is None and not (options["likes"] or options["ratings"]):
        raise click.UsageError("name a user with --user, or something they like with --like")
    from qkvsearch.search.candidates import listed_positions

    run = settings()
    is_own = all_users or options["user"] is not None or output.path is not None
    engine = run.open(sample=None if is_own else "movies")
    ids = None if only is None else _ids(only)
    if ids is not None:
        run.say_notes(listed_positions(engine.catalog, ids)[1])
    if all_users:
        _recommend_all(run, engine, output, only=ids, **options)
        return
    explain = options.pop("explain")
    ranking = engine.recommend(only=ids, explain=explain is not None, **options)
    nothing = "No recommendations: there is nothing this user likes, or no item is left."
    run.say_notes([*why_none(ranking, options, nothing), *ranking.notes])
    write_ranking(ranking, output, explain)


def _recommend_all(run: CommandContext, opened: Engine, output: Output, **options: Any) -> None:
    assert output.path is not None
    with run.progress() as progress:
        done = opened.recommend_all(
            output.path, format=output.format, raw=output.raw, progress=progress, **options
        )
    run.say_notes(done.notes)
    before = f", {done.before:,} of them before it was interrupted" if done.before else ""
    run.say(f"{output.path}: recommendations for {quantity(done.users, 'user')}{before}.")


def _ids(path: Path) -> list[str]:
    """A line each; a mark at the beginning, as spreadsheets write it, is no part of the first."""
    with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
        lines = file.read().removeprefix("\ufeff").split("\n")
    return [line.strip() for line in lines if line.strip()]

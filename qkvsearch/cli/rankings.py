"""`qkvsearch search`, `recommend` and `similar`: ranked items."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import NUMBER, CommandContext, engine_option, settings, spelled
from qkvsearch.cli.hits import (
    FIELDS,
    FULL,
    ExplainedCommand,
    explain_option,
    explained_rows,
    own_names,
    question_option,
    ranking_options,
    ranking_table,
    why_none,
    write_ranking,
)
from qkvsearch.cli.render import Output, terminal_width
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.engine import Engine
    from qkvsearch.retrieval import Ranking

# What a table of all users has no room for.
ONE_USER_ONLY = (
    "user", "likes", "ratings", "without", "exclude", "explain", "diversity", "temperature",
    "offset", "min_weight",
)  # fmt: skip
SPELLED = {"likes": "like", "ratings": "rate"}
# The id of a query, its hits as rows, and the whole answer.
Answer = tuple[str, list[dict[str, Any]], "Ranking"]


@click.command(cls=ExplainedCommand)
@click.argument("query", nargs=-1)
@click.option(
    "--queries",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Many queries, lines of id<TAB>text: each hit says which `query` it answers.",
)
@question_option("heads", metavar="NAMES")
@question_option("fusion")
@question_option(
    "user", metavar="ID", help="An existing user, whose preferences are one more head."
)
@question_option("prefix")
@question_option("facets", metavar="NAMES", default="")
@question_option("snippet")
@click.option(
    "--envelope",
    is_flag=True,
    help="JSON as one object: query, notes, corrections, facets, hits.",
)
@question_option("anyway")
@explain_option("Say what adds up to each score, by words; full: every part of the first hit.")
@ranking_options
def search(
    query: tuple[str, ...],
    queries: Path | None,
    heads: str | None,
    envelope: bool,
    explain: str | None,
    output: Output,
    **options: Any,
) -> None:
    """Rank the items for a text query; `-` reads it from stdin.

    "a phrase", field:word (any column; year:1990..1999) and word* must hold, -word must not, word^2
    counts twice; all else ranks. A query that begins with - goes behind --. Typos are looked up,
    and said.

    \b
    Examples:
      qkvsearch search how does attention work
      qkvsearch -w films search "space war" --where "year >= 1990" -k 5
      qkvsearch -w shop search '"rain jacket" -kids color:red' --facets brand,price
      qkvsearch -w shop search tent --fields price,url --format csv -o tents.csv
      qkvsearch -w films search "space war" --user 42 --explain
    """
    run = settings()
    if (queries is None) != bool(query):
        raise click.UsageError("give a QUERY, or a file of them with --queries: one of the two")
    if envelope and output.format not in ("json", "jsonl"):
        raise click.UsageError("--envelope is about JSON: add --format json or jsonl")
    is_own = options["user"] is not None or output.path is not None or queries is not None
    engine = run.open(sample=None if is_own else "videos")
    names = [name.strip() for name in heads.split(",")] if heads is not None else None
    # A table shows which words match; the other formats carry them with the reasons.
    options |= {"heads": names, "explain": explain is not None or output.format == "table"}
    answers = []
    for id_, text in _asked(query, queries).items():
        ranking = engine.search(text, **options)
        found = [*why_none(ranking, options, _why_nothing(options)), *ranking.notes]
        run.say_notes(f"{id_}: {note}" if queries else note for note in found)
        rows = explained_rows(ranking, explain)
        rows = [{"query": id_, **row} for row in rows] if queries else rows
        # Without the scores of all items: there may be many queries.
        answers.append((id_, rows, replace(ranking, head=None)))
    _write(answers, output, envelope, explain == FULL, is_batch=queries is not None)


def _asked(query: tuple[str, ...], queries: Path | None) -> dict[str, str]:
    """Texts by the ids of the queries; a single one has none."""
    if queries is not None:
        from qkvsearch.data.judgements import read_queries

        return read_queries(queries)
    return {"": sys.stdin.read() if query == ("-",) else " ".join(query)}


def _write(
    answers: list[Answer], output: Output, envelope: bool, full: bool, is_batch: bool
) -> None:
    if envelope:
        wholes = [
            ({"id": id_} if is_batch else {}) | _spelled(ranking).envelope(rows)
            for id_, rows, ranking in answers
        ]
        if is_batch or output.format == "jsonl":
            output.write(wholes, str)
        else:
            output.write_one(wholes[0], wholes, str)
        return
    own = next((own_names(ranking) for _, _, ranking in answers if ranking), [])
    rows = [row for _, rows, _ in answers for row in rows]
    names = ["query"] * is_batch + [*FIELDS, *own]
    output.write(rows, lambda: _tables(answers, full, is_batch), names)


def _spelled(ranking: Ranking) -> Ranking:
    """With options as the command line spells them."""
    context = click.get_current_context()
    return replace(ranking, notes=[spelled(n, context, context.command) for n in ranking.notes])


def _tables(answers: list[Answer], full: bool, is_batch: bool) -> str:
    """One below the other, each with what it counts."""
    shown = []
    for id_, rows, ranking in answers:
        heading = click.style(f"{id_}: {ranking.query}", bold=True) + "\n" if is_batch else ""
        counts = [
            f"{name}: {', '.join(f'{value} {n:,}' for value, n in values.items()) or 'nothing'}"
            for name, values in ranking.facets.items()
        ]
        lines = [fill(line, terminal_width(), subsequent_indent="  ") for line in counts]
        shown.append("\n".join([heading + ranking_table(rows, ranking, full), *lines]))
    return "\n".join(shown)


def _why_nothing(options: dict[str, Any]) -> str:
    if options["where"]:
        return "No hits: none of the items that --where leaves has any of these words."
    return "No hits: none of these words is in the catalog."


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
def recommend(all_users: bool, only: Path | None, output: Output, **options: Any) -> None:
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


@click.command(cls=ExplainedCommand, short_help="List what is like an item, or who is like a user.")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--user", metavar="ID", help="List users of the most similar preferences instead.")
@question_option("exclude", metavar="ITEM")
@explain_option("Say what adds up to each score; full: every part of the first hit.")
@ranking_options
def similar(
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

"""Rankings: `qkvsearch search`, `recommend` and `similar`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.limits import QUERY
from qkvsearch.cli.commands import command
from qkvsearch.cli.context import CommandContext, settings
from qkvsearch.cli.hits import (
    FULL,
    LEVELS_WITH_SMALLEST,
    ExplainedCommand,
    engine_explain,
    explain_option,
    explained_rows,
    field_names,
    no_hits_notes,
    notes_on_conditions,
    question_option,
    ranking_options,
    ranking_table,
    with_more_columns,
    write_ranking,
)
from qkvsearch.cli.render import Output
from qkvsearch.cli.stderr import spelled
from qkvsearch.cli.wrapping import terminal_width, wrapped
from qkvsearch.errors import quantity
from qkvsearch.rank.options import parse_ratings
from qkvsearch.rank.questions import RecommendQuestion
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch.engine import Engine
    from qkvsearch.rank.ranking import Ranking

# Options that do not go with --all-users.
ONE_USER_ONLY = (
    "user",
    "strict_user",
    "likes",
    "ratings",
    "without",
    "exclude",
    "explain",
    "diversity",
    "temperature",
    "offset",
    "distinct",
)
SPELLED = {"likes": "like", "ratings": "rate"}
# The id of a query, its hits as rows, and its ranking.
QueryAnswer = tuple[str, list[dict[str, Any]], "Ranking"]


@command(cls=ExplainedCommand)
@click.argument("query", nargs=-1)
@ranking_options
@explain_option(
    "Show what each score is made of, by words; full: every part of the first hit; smallest: also "
    "without which words of the query the hit would not be here.",
    LEVELS_WITH_SMALLEST,
)
@question_option(
    "user", metavar="ID", help="An existing user, whose preferences count as one more head."
)
@question_option("facets", metavar="NAMES", default="")
@question_option("snippet")
@question_option("passages", metavar="N", default=0)
@question_option("prefix")
@question_option("anyway")
@question_option("rules", "--rules/--no-rules", show_default=True)
@question_option("weak", "--weak/--no-weak", default=None)
@question_option("sort", metavar="COLUMN")
@question_option("heads", metavar="NAMES")
@click.option(
    "--queries",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Many queries, as lines of id<TAB>text; each hit has the id as `query`.",
)
@click.option(
    "--envelope",
    is_flag=True,
    help="Write one JSON object: query, notes, corrections, total, total_weak, no_hits, facets, "
    "hits.",
)
@question_option("strict_user")
def search(
    query: tuple[str, ...],
    queries: Path | None,
    envelope: bool,
    explain: str | None,
    output: Output,
    **options: Any,
) -> None:
    """Rank the items for a text query; `-` reads it from stdin.

    "a phrase", field:word (any column; year:1990..1999) and word* must match, -word must not,
    word^2 counts twice. All other words rank the results. Write -- before a query that begins
    with -. Typos are corrected, with a message.

    \b
    Examples:
      qkvsearch -w sample:videos search how does attention work
      qkvsearch -w films search "space war" --where "year >= 1990" -k 5
      qkvsearch -w shop search '"rain jacket" -kids color:red' --facets brand,price
      qkvsearch -w shop search tent --fields price,url --format csv -o tents.csv
      qkvsearch -w films search "space war" --user 42 --explain
    """
    run = settings()
    if (queries is None) != bool(query):
        raise click.UsageError("give a QUERY, or a file of them with --queries: one of the two")
    if envelope and output.format not in ("json", "jsonl"):
        raise click.UsageError("--envelope writes JSON: add --format json or jsonl")
    engine = run.open()
    with_more_columns(engine, options, output)
    # A table marks matching words; the other formats have them only with the reasons.
    options["explain"] = engine_explain(explain) or output.format == "table"
    is_batch = queries is not None
    answers: list[QueryAnswer] = []
    envelopes: list[dict[str, Any]] = []
    for id_, text in _texts(query, queries).items():
        ranking = engine.search(text, **options)
        notes = [
            *no_hits_notes(ranking, options),
            *ranking.notes,
            *notes_on_conditions(ranking),
        ]
        rows = explained_rows(ranking, explain)
        if is_batch:
            notes = [f"{id_}: {note}" for note in notes]
            rows = [{"query": id_, **row} for row in rows]
        run.notes(notes)
        if envelope:
            envelopes.append(_envelope(id_, rows, ranking, is_batch))
        else:
            # There may be many queries: keep no scores of all items.
            answers.append((id_, rows, replace(ranking, head=None, found=None)))
    if not envelope:
        _write_answers(answers, output, explain, is_batch)
    elif is_batch or output.format == "jsonl":
        output.write(envelopes, str)
    else:
        output.write_one(envelopes[0], envelopes, str)


def _texts(query: tuple[str, ...], queries: Path | None) -> dict[str, str]:
    """Return the texts of the queries by their ids; a single query has the id ""."""
    if queries is not None:
        from qkvsearch.tables.judgements import read_queries

        return read_queries(queries)
    if query == ("-",):
        # One character more than is allowed: a longer text is refused, not cut.
        return {"": sys.stdin.read(QUERY.value + 1)}
    return {"": " ".join(query)}


def _envelope(
    id_: str, rows: list[dict[str, Any]], ranking: Ranking, is_batch: bool
) -> dict[str, Any]:
    """Return an answer as one object, of many queries with the id of its query."""
    context = click.get_current_context()
    notes = [spelled(note, context, context.command) for note in ranking.notes]
    answer = replace(ranking, notes=notes).envelope(rows)
    return {"id": id_, **answer} if is_batch else answer


def _write_answers(
    answers: list[QueryAnswer], output: Output, explain: str | None, is_batch: bool
) -> None:
    fields = [name for *_, ranking in answers for name in field_names(ranking, explain)]
    all_rows = [row for _, rows, _ in answers for row in rows]
    names = ["query", *fields] if is_batch else fields
    output.write(all_rows, lambda: _tables(answers, explain == FULL, is_batch), names)


def _tables(answers: list[QueryAnswer], full: bool, is_batch: bool) -> str:
    """Return a table for each answer, with its facets below."""
    tables = []
    for id_, rows, ranking in answers:
        heading = ""
        if is_batch:
            # Escaped before it is styled: what comes after the styles would escape them as well.
            heading = click.style(in_one_line(f"{id_}: {ranking.query}"), bold=True) + "\n"
        counts = [_facet_line(name, values) for name, values in ranking.facets.items()]
        lines = [wrapped(line, terminal_width(), indent=2) for line in counts]
        tables.append("\n".join([heading + ranking_table(rows, ranking, full), *lines]))
    return "\n".join(tables)


def _facet_line(column: str, counts: Mapping[str, int]) -> str:
    """Return the values of a column with their numbers of items, in one line."""
    values = ", ".join(f"{value} {n:,}" for value, n in counts.items())
    return in_one_line(f"{column}: {values or 'nothing'}")


def _rated(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    return parse_ratings(texts, "ratings")


@command(cls=ExplainedCommand, short_help="Recommend items to a user, to someone new, or to all.")
@question_option("user", metavar="ID")
@question_option("strict_user")
@question_option("likes", "--like", metavar="ITEM")
@question_option("ratings", "--rate", metavar="ITEM=RATING", callback=_rated)
@ranking_options
@explain_option(
    "Show which items of the history each score comes from; full: all of them; smallest: also "
    "without which items the hit would not be here.",
    LEVELS_WITH_SMALLEST,
)
@question_option("without", metavar="ITEM")
@question_option("exclude", metavar="ITEM")
@click.option(
    "--all-users",
    is_flag=True,
    help="Recommend to all users, to a .parquet, .csv or .jsonl file (-o).",
)
@question_option("seen", "--seen/--no-seen", show_default=True, default=False)
@click.option(
    "--only",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Only items whose ids are in FILE, one per line (- is stdin).",
)
@question_option("model")
@question_option("heads", of=RecommendQuestion, metavar="NAMES")
@question_option("recent", metavar="N")
@question_option("damping", metavar="X", default=0.0, type=click.FloatRange(min=0))
@question_option("diversity", metavar="X", default=0.0)
@question_option("rules", "--rules/--no-rules", of=RecommendQuestion, show_default=True)
def recommend(all_users: bool, only: Path | None, output: Output, **options: Any) -> None:
    """Recommend items to an existing user, or to a new one from what they like. An unknown user
    gets the most popular items, with a message.

    Items of the history are left out. Nothing is trained again. With --all-users the
    recommendations of all users go to one file.

    \b
    Examples:
      qkvsearch -w sample:movies recommend --user u001 --explain
      qkvsearch -w films recommend --user 42 -k 1 --explain smallest
      qkvsearch -w films recommend --like "Heat" --like "Fargo" --diversity 0.3
      qkvsearch -w films recommend --rate "Heat=5" --rate "Casino=1" -k 5
      qkvsearch -w sample:movies recommend --user u001 --without "The Goonies"
      qkvsearch -w shop recommend --all-users --fields price -o recs.csv
    """
    if all_users:
        refused = [name for name in ONE_USER_ONLY if options.pop(name)]
        if refused:
            name = SPELLED.get(refused[0], refused[0].replace("_", "-"))
            raise click.UsageError(f"--{name} is for one user: leave it out with --all-users")
        if output.path is None:
            raise click.UsageError("name a file for all users, such as: -o recs.parquet")
    elif options["user"] is None and not (options["likes"] or options["ratings"]):
        raise click.UsageError("name a user with --user, or something they like with --like")
    run = settings()
    engine = run.open()
    ids = None if only is None else _ids(only)
    if all_users:
        _recommend_all(run, engine, output, only=ids, **options)
        return
    explain = options.pop("explain")
    with_more_columns(engine, options, output)
    ranking = engine.recommend(only=ids, explain=engine_explain(explain), **options)
    run.notes([*no_hits_notes(ranking, options), *ranking.notes])
    write_ranking(ranking, output, explain)


def _recommend_all(run: CommandContext, opened: Engine, output: Output, **options: Any) -> None:
    assert output.path is not None
    with run.progress() as progress:
        done = opened.recommend_all(
            output.path, format=output.format, raw=output.raw, progress=progress, **options
        )
    run.notes(done.notes)
    users = quantity(done.users, "user")
    if done.n_without:
        users = f"{done.users - done.n_without:,} of {users}"
    run.message(f"{output.path}: recommendations for {users}.")


def _ids(path: Path) -> list[str]:
    """Read the lines of a file, without the byte order mark that spreadsheets write."""
    with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
        lines = file.read().removeprefix("\ufeff").split("\n")
    return [line.strip() for line in lines if line.strip()]


@command(cls=ExplainedCommand, short_help="List items similar to an item.")
@click.argument("items", metavar="ITEM...", nargs=-1, required=True)
@question_option("exclude", metavar="ITEM")
@explain_option("Show what each score is made of; full: every part of the first hit.")
@ranking_options
def similar(items: tuple[str, ...], explain: str | None, output: Output, **options: Any) -> None:
    """List items similar to ITEM, by their users and their texts.

    ITEM is an id or a unique title; the year may be left out. id:300 is read only as an id,
    title:300 only as a title. For several items, hits are similar to all of them together.

    \b
    Examples:
      qkvsearch -w sample:movies similar "The Matrix"
      qkvsearch -w films similar Heat Ronin --exclude Casino --explain
      qkvsearch -w talks similar t0042 -k 5 --format json
    """
    run = settings()
    engine = run.open()
    with_more_columns(engine, options, output)
    ranking = engine.similar(items, **options)
    run.notes([*no_hits_notes(ranking, options), *ranking.notes])
    write_ranking(ranking, output, explain)

"""`qkvsearch search`: items ranked for a text query."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings, spelled
from qkvsearch.cli.explaining import FULL, ExplainedCommand, explain_option
from qkvsearch.cli.hits import (
    FIELDS,
    explained_rows,
    own_names,
    question_option,
    ranking_options,
    ranking_table,
    why_none,
)
from qkvsearch.cli.render import Output, terminal_width

if TYPE_CHECKING:
    from qkvsearch.retrieval import Ranking


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
def command(
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


# The id of a query, its hits as rows, and the whole answer.
Answer = tuple[str, list[dict[str, Any]], "Ranking"]


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

"""`qkvsearch searches`: what people searched for, from the log that `serve` writes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.commands import command
from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import offset_option, question_option
from qkvsearch.cli.listing_table import range_text
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.terminal import shorten

if TYPE_CHECKING:
    from qkvsearch.engine import Engine
    from qkvsearch.rank.listing import Listing

# The lists of problems, each with its heading.
PROBLEMS = {"no_hits": "Without hits", "no_clicks": "Nobody clicks on the first three hits"}
# Characters of a query in a table.
MAX_QUERY = 60


@command(short_help="Show what people searched for.")
@click.option(
    "--only",
    type=click.Choice(list(PROBLEMS)),
    help="Only the queries without hits, or those whose first three hits nobody clicked on in "
    "three searches or more.",
)
@question_option("k", "-k", default=20, show_default=True)
@offset_option
@output_options
def searches(only: str | None, k: int, offset: int, output: Output) -> None:
    """Show what people searched for, the most frequent queries first, from the log that serve
    --log-searches writes: how often, how many hits the last time, and how many clicks.

    Then the queries without hits, and why; and those whose first three hits nobody clicked on. If
    visitors then searched for something else that has hits, a line for your file of synonyms is
    shown. If they clicked on an item further down, the rule that brings it up is shown.

    A search that the same visitor continues within ten seconds, by typing on or by deleting, is not
    counted. Further pages are not counted either.

    \b
    Examples:
      qkvsearch -w shop searches
      qkvsearch -w shop searches --only no_hits --format csv -o missing.csv
    """
    run = settings()
    engine = run.open()
    listing = engine.searches(only=only, k=k, offset=offset)
    run.notes(listing.notes)
    if not listing and k:
        run.message(_why_none(engine, listing, only))
    output.write(listing.to_records(), lambda: _report(engine, listing, only, k), listing.names)


def _why_none(engine: Engine, listing: Listing, only: str | None) -> str:
    """Return why a list is empty."""
    if listing.total:
        return f"No more queries: there are {listing.total:,}."
    if only is not None and engine.searches(k=0).total:
        return "No query of the log is one of these."
    return "No searches in the log: serve --log-searches writes one."


def _report(engine: Engine, listing: Listing, only: str | None, k: int) -> str:
    """Return a table of the queries, and one for each problem that any has."""
    if not listing:
        return ""
    if only is not None:
        return _problem_table(only, listing)
    parts = [_table(listing)]
    for problem in PROBLEMS:
        if found := engine.searches(only=problem, k=k):
            parts.append(f"{PROBLEMS[problem]}\n{_problem_table(problem, found)}")
    return "\n".join(parts)


def _table(listing: Listing) -> str:
    columns = [("query", "wrap"), ("searches", "right"), ("hits", "right"), ("clicks", "right")]
    rows = [
        [_short(row["query"]), *(f"{row[name]:,}" for name in ("searches", "total", "clicks"))]
        for row in listing
    ]
    return to_table(columns, rows, range_text(listing, "queries", "query"))


def _problem_table(problem: str, listing: Listing) -> str:
    columns = [
        ("query", "wrap"),
        ("searches", "right"),
        ("why" if problem == "no_hits" else "clicked on", "wrap"),
        ("what to do", "wrap"),
    ]
    rows = [
        [
            _short(row["query"]),
            f"{row['searches']:,}",
            _why(row) if problem == "no_hits" else _clicked(row),
            _advice(row),
        ]
        for row in listing
    ]
    return to_table(columns, rows, range_text(listing, "queries", "query"))


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), MAX_QUERY)


def _why(row: Mapping[str, Any]) -> str:
    """Return why a query has no hits, in words."""
    match row["reason"]:
        case "unknown_words":
            return f"no item has {', '.join(map(_short, row['words']))}"
        case "filtered_out":
            return f"filtered out: {', '.join(map(_short, row['conditions']))}"
        case "not_answered":
            return "no item answers it"
        case other:
            return _short(str(other or "").replace("_", " "))


def _clicked(row: Mapping[str, Any]) -> str:
    """Return what was clicked on further down."""
    return ", ".join(
        f"{_short(item['title'] or item['id'])} ({item['clicks']:,})" for item in row["clicked"]
    )


def _advice(row: Mapping[str, Any]) -> str:
    """Return what to add to the synonyms or the rules, and what visitors searched for next."""
    found = []
    if row["synonyms"]:
        found.append(f"synonyms: {_short(row['synonyms'])}")
    if row["pin"]:
        found.append(f"rules add --pin {shlex.quote(row['pin'])}")
    if row["next"]:
        found.append(f"next: {_listed(row['next'])}")
    if not found and row["reason"] == "unknown_words":
        found.append("a synonym that your items have")
    if not found and row["problem"] == "no_clicks":
        found.append("see what it finds; rules can pin an item")
    return "; ".join(found)


def _listed(following: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{_short(one['query'])} ({one['searches']:,})" for one in following)

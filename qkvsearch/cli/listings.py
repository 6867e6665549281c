"""Listings: `qkvsearch items`, `show`, `users`, `history`, `records`, `builds` and `info`."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from qkvsearch.cli.columns import columns_text
from qkvsearch.cli.commands import command
from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import (
    fields_option,
    offset_option,
    question_option,
    where_option,
)
from qkvsearch.cli.listing_table import write_page
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.stderr import spelled
from qkvsearch.cli.text_table import to_table
from qkvsearch.errors import quantity

BUILD_COLUMNS = (
    ("", "left"),
    ("id", "left"),
    ("created (UTC)", "left"),
    ("command", "left"),
    ("items", "right"),
    ("segments", "right"),
    ("MB", "right"),
)
# Facts that `info` shows in a separate table.
COLUMN_FACTS = ("columns", "interaction_columns")
# Heads with a smaller weight only order what the others leave equal.
LEAST_WEIGHT = 0.01
# Facts that few builds have. Where there are any, they are shown.
RARE = (
    "tuned",
    "next_item",
    "rating_scale",
    "keys",
    "tuned_search",
    "texts_cut",
    "checksums",
)
# What became of the rows of a file, where that is no news: all were kept, or which column is what.
USUAL_ROW = re.compile(r"^Columns of |: 0 skipped$|, 0 duplicates combined, 0 skipped$")
all_rows_option = click.option("-k", type=click.IntRange(min=0), help="How many.  [default: all]")


@command(short_help="List the items of the catalog.")
@question_option("k", "-k", default=20, show_default=True)
@offset_option
@where_option
@fields_option
@click.option(
    "--sort",
    metavar="NAME",
    help="Sort by a column, ascending, or descending as -NAME; users: most users first.",
)
@output_options
def items(k: int, offset: int, where: Any, fields: str, sort: str | None, output: Output) -> None:
    """List the items of the catalog, in the order of their ids or another.

    \b
    Examples:
      qkvsearch -w shop items --where "price < 80" --fields price,url
      qkvsearch -w sample:movies items --sort -year --fields year
      qkvsearch -w shop items -k 100000 --format csv -o items.csv
    """
    run = settings()
    items = run.open().items
    listing = items.list(where=where, fields=fields, sort=sort, k=k, offset=offset)
    run.notes(listing.notes)
    write_page(listing, k, "items", output)


@command(short_help="Show one item with all its columns.")
@click.argument("item")
@output_options
def show(item: str, output: Output) -> None:
    """Show ITEM, an id or a unique title: every column of the catalog, and how many users
    interacted with it. id:300 is read only as an id, title:300 only as a title. Cells that were
    changed or emptied are also listed as they were in the file (`original` in JSON).

    \b
    Examples:
      qkvsearch -w shop show "Rain jacket"
      qkvsearch -w shop show id:300 --format json
    """
    run = settings()
    engine = run.open()
    note = engine.catalog.titles.find_item(item)[1]
    run.notes([note] if note else [])
    card = engine.show(item)
    shown = {name: cell for name, cell in card.items() if name != "original"}
    rows = [[name, "" if cell is None else cell] for name, cell in shown.items()]
    rows += [[f"{name} in the file", text] for name, text in card.get("original", {}).items()]
    output.write_one(card, [card], lambda: to_table([("", "left"), ("", "wrap")], rows))


@command(short_help="List the users, with their numbers of interactions.")
@question_option("k", "-k", default=20, show_default=True)
@offset_option
@output_options
def users(k: int, offset: int, output: Output) -> None:
    """List the users of the log and those recorded since: how many items each one interacted with,
    and how many of these interactions were recorded.

    \b
    Example:
      qkvsearch -w shop users -k 100000 --format csv -o users.csv
    """
    listing = settings().open().users.list(k=k, offset=offset)
    write_page(listing, k, "users", output)


@command(short_help="Show the interactions of a user.")
@click.argument("user")
@all_rows_option
@offset_option
@output_options
def history(user: str, k: int | None, offset: int, output: Output) -> None:
    """Show what USER interacted with, the latest first: in the log of the build, and recorded
    since, which is marked. The confidence is how much an interaction counts in recommendations:
    about 1 for a full one, 0 for a dislike or one that was taken back.

    \b
    Example:
      qkvsearch -w shop history 1017
    """
    run = settings()
    listing = run.open().history(user, k=k, offset=offset)
    run.notes(listing.notes)
    write_page(listing, k, "interactions", output)


@command(short_help="List recorded interactions.")
@click.option("--user", metavar="USER", help="Only the records of USER.")
@all_rows_option
@offset_option
@output_options
def records(user: str | None, k: int | None, offset: int, output: Output) -> None:
    """List what `record` and `add --interactions` wrote, the latest first. Interactions that were
    recorded together share a batch, which `record --undo BATCH` takes back. Those marked as
    learned are in the log of the build; to undo them, first `rollback`. In JSON and CSV, `recorded`
    is when the batch was written, and `client` who wrote it: http, or local and
    the user of the system.

    \b
    Examples:
      qkvsearch -w shop records -k 20
      qkvsearch -w shop records --user 1017 --format json
    """
    run = settings()
    listing = run.open().records(user, k=k, offset=offset)
    # A table leaves out empty columns and where batches come from; other formats have every field.
    left_out = {"recorded", "client"}
    for name in ("rating", "weight", "time"):
        if all(row[name] is None for row in listing):
            left_out.add(name)
    names = [name for name in listing.names if name not in left_out]
    write_page(listing, k, "records", output, names)


@command(short_help="List the builds that rollback can return to.")
@output_options
def builds(output: Output) -> None:
    """List the builds of the workspace, the latest first: when it was made, by which command, its
    number of items and segments, and how many megabytes it added on disk. The * marks the current
    build, which answers queries.

    Builds of the current base and of the previous one are kept, at most 50; compact --drop-builds
    removes all but the current one.

    \b
    Examples:
      qkvsearch -w shop builds
      qkvsearch -w shop builds --format json
    """
    run = settings()
    listing = run.open().builds()
    run.notes(listing.notes)
    cells = [_build_cells(row) for row in listing]
    output.write(listing.to_records(), lambda: to_table(BUILD_COLUMNS, cells), listing.names)


def _build_cells(row: dict[str, Any]) -> list[str]:
    created = row["created"][:16].replace("T", " ")
    sizes = ["damaged", ""]
    if row["segments"] is not None:
        sizes = [f"{row['segments']}", f"{row['megabytes']:,.2f}"]
    mark = "*" if row["current"] else ""
    return [mark, row["id"], created, row["command"], f"{row['items']:,}", *sizes]


@command()
@click.option("--verify", is_flag=True, help="Compare every file with its checksum.")
@output_options
def info(verify: bool, output: Output) -> None:
    """Show what the workspace was built from, and what it contains. With -v before the command,
    show every fact, such as why an encoder was chosen, and what became of the rows of files.

    \b
    Examples:
      qkvsearch -w films info
      qkvsearch -v -w films info
      qkvsearch -w films info --verify --format json
    """
    run = settings()
    engine = run.open()
    facts = engine.info(verify=verify)
    n_new_users = max(len(engine.users) - facts["users"], 0) if facts["recorded"] else 0
    shown = _fact_table if run.verbose else partial(_summary, n_new_users=n_new_users)
    output.write([facts], lambda: shown(facts))


def _summary(facts: dict[str, Any], n_new_users: int) -> str:
    """Return the facts that most people ask for, and a table of the items' columns. n_new_users:
    those recorded since the build, whom `users` lists as well.
    """
    weights = facts["head_weights"].items()
    heads = [f"{name} {weight:.2g}" for name, weight in weights if weight >= LEAST_WEIGHT]
    searched = ", ".join(facts["searched_columns"])
    log = [f"{column['role']} = {column['name']}" for column in facts["interaction_columns"]]
    counts = [
        quantity(facts[name], name.removesuffix("s"))
        + (
            f" ({n_new_users:,} more since the build)"
            if name == "users" and n_new_users > 0
            else ""
        )
        for name in ("items", "users", "interactions")
        if facts[name]
    ]
    if facts["recorded"]:
        counts.append(f"{facts['recorded']:,} recorded since")
    texts = {
        "workspace": facts["workspace"],
        "built": f"{facts['built'][:16].replace('T', ' ')} UTC; {facts['megabytes']:,} MB in "
        f"{quantity(facts['segments'], 'segment')}",
        "contains": ", ".join(counts),
        "searches": f"{searched} (heads: {', '.join(heads)})" if searched else "",
        "encoder": facts["encoder"],
        "advice": facts["advice"],
        "language": f"{facts['language']} ({facts['language_chosen']})",
        "recommend heads": recommend_heads_text(facts["recommend_heads"], with_metrics=False),
        "log": ", ".join(log),
    }
    texts |= {name.replace("_", " "): _fact_text(facts[name]) for name in RARE if facts.get(name)}
    texts["rows"] = "\n".join(row for row in facts["rows"] if not USUAL_ROW.search(row))
    # What was changed in cells is told by `build`, and with -v.
    columns = [{**column, "changed": {}} for column in facts["columns"]]
    return f"{_named_lines(texts)}\n{columns_text(columns, [])}"


def _named_lines(texts: Mapping[str, str]) -> str:
    """Return a line for each text that is not empty, after its name."""
    context = click.get_current_context()
    lines = [
        [name, spelled(text, context, context.command)] for name, text in texts.items() if text
    ]
    return to_table([("", "left"), ("", "wrap")], lines)


def _fact_table(facts: dict[str, Any]) -> str:
    """Return all facts, and tables of all columns."""
    texts = {name: _fact_text(value) for name, value in facts.items() if value}
    texts["recommend_heads"] = recommend_heads_text(facts["recommend_heads"])
    named = {n.replace("_", " "): text for n, text in texts.items() if n not in COLUMN_FACTS}
    columns = columns_text(facts["columns"], facts["interaction_columns"], verbose=True)
    return f"{_named_lines(named)}\n{columns}"


def recommend_heads_text(
    heads: Mapping[str, Mapping[str, float]] | None, with_metrics: bool = True
) -> str:
    """Return the share of each head of a recommendation, and with metrics what each reached alone.

    >>> recommend_heads_text({"shares": {"collaborative": 0.2, "neighbours": 0.8},
    ...     "alone": {"collaborative": 0.3187, "neighbours": 0.4103, "fused": 0.4112}})
    'collaborative 0.20, neighbours 0.80; held-out NDCG@20: alone 0.319 and 0.410, together 0.411'
    """
    if not heads or not heads["shares"]:
        return ""
    text = ", ".join(f"{name} {share:.2f}" for name, share in heads["shares"].items())
    if not (alone := heads["alone"]):
        return f"{text} (too few users to learn the shares)"
    if not with_metrics:
        return text
    figures = " and ".join(f"{alone[name]:.3f}" for name in heads["shares"])
    return f"{text}; held-out NDCG@20: alone {figures}, together {alone['fused']:.3f}"


def _fact_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        is_long = any(len(str(entry)) > 30 for entry in value)
        return ("\n" if is_long else ", ").join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _short_text(value: Any) -> str:
    """Return one of several values of a fact as text."""
    if isinstance(value, dict):
        return f"({_fact_text(value)})"
    return f"{value:.3g}" if isinstance(value, float) else _fact_text(value)

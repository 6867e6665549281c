"""Columns of files: the options that name them, and a table of what each column holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.commands import NUMBER, Decorator, joined, split_names
from qkvsearch.cli.text_table import to_table
from qkvsearch.cli.wrapping import cut_to
from qkvsearch.errors import Count

if TYPE_CHECKING:
    from qkvsearch.tables.catalog_columns import StoredColumn
    from qkvsearch.tables.columns import Columns

Fields = Mapping[str, Any]
HEADINGS = ("role", "type", "empty", "example", "changed")
LAYOUT = ("wrap", "left", "left", "right", "wrap", "wrap")
# This many columns of the catalog fit on a screen together with the other output of `build`.
MAX_ROWS = 9
MAX_EXAMPLE = 20


def item_columns(file: str, text_help: str) -> Decorator:
    """Add the options that name the columns of a file of items."""
    texts = click.option(
        "--texts",
        metavar="PATTERN",
        help=f"Files with the texts of the items in {file}, such as 'talks/{{id}}.vtt'. Instead of "
        "id, any column.",
    )
    named = _column_options(
        file, id_column="the id", title_column="the title", text_columns=text_help
    )
    return joined(named, texts)


def join_option(file: str) -> Decorator:
    """Add the option that names tables with further columns of the items of a file."""
    return click.option(
        "--join",
        metavar="TABLE",
        type=click.Path(path_type=str),
        multiple=True,
        help=f"A table that adds columns to {file}, by the ids of the items; repeatable.",
    )


def log_columns(file: str) -> Decorator:
    """Add the options that name the columns of a file of interactions."""
    return _column_options(
        file,
        user_column="the user's id",
        item_column="the item's id",
        rating_column="the rating",
        weight_column="how much or how often",
        time_column="the time",
    )


def _parse_weights(_: click.Context, __: click.Parameter, text: str | None) -> dict[str, float]:
    """Parse `view=1,purchase=5,refund=-1`; a name may contain = itself."""
    weights: dict[str, float] = {}
    if not text:
        return weights
    for entry in text.split(","):
        before, _equals, after = entry.rpartition("=")
        name = before.strip()
        number = after.strip()
        if not name or name in weights or not NUMBER.fullmatch(number):
            raise click.BadParameter(f"{entry!r}: write each NAME=NUMBER once: view=1,purchase=5")
        weights[name] = float(number)
    return weights


# What the rows of a log mean.
event_options = joined(
    click.option("--event-column", metavar="NAME", help="In the log: what a row is, such as view."),
    click.option(
        "--event-weights",
        metavar="NAME=W,...",
        callback=_parse_weights,
        help="What each event counts, such as view=1,purchase=5,refund=-1,remove=0; a negative "
        "weight takes back, 0 is ignored.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["rows", "lists", "matrix"]),
        help="Of the log: a row for each interaction, lines of a user and items, or a matrix of "
        "users by items.  [default: rows; of `record` and `add`, that of the build]",
    ),
)
# How text files are read.
file_options = joined(
    click.option(
        "--ignore", metavar="COLUMN", multiple=True, help="Do not read COLUMN; repeatable."
    ),
    click.option(
        "--delimiter",
        metavar="SIGN",
        callback=lambda _, __, sign: "\t" if sign in ("tab", "\\t") else sign,
        help="The character between the cells of a text file, such as ; or tab.  [default: "
        "detected among , ; tab and |]",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="The encoding of text files, such as cp850.  [default: detected]",
    ),
)


def _column_options(file: str, **contents: str) -> Decorator:
    """Return an option for each name, such as `id_column`, of a column with these contents."""

    def option(name: str, content: str) -> Decorator:
        metavar = "NAMES" if name == "text_columns" else "NAME"
        return click.option(f"--{name.replace('_', '-')}", metavar=metavar, help=content)

    return joined(*(option(name, f"In {file}: {text}.") for name, text in contents.items()))


def columns_of(text_columns: str | None = None, **options: Any) -> Columns:
    """Return the columns that options name, and how to read them."""
    from qkvsearch.tables.columns import Columns

    named = {option.removesuffix("_column"): value for option, value in options.items()}
    return Columns(text=split_names(text_columns), **named)


def is_filter(column: StoredColumn) -> bool:
    """Return whether people filter by a column: its cells are numbers, dates, yes/no or lists."""
    return column.role in ("", "text") and column.type != "text"


# --- the table ---


def columns_text(items: Sequence[Fields], log: Sequence[Fields], verbose: bool = False) -> str:
    """Return a table of the items' columns and one of the interactions', as wide as the terminal
    at most. Unless `verbose`, examples are cut, and further columns are only counted.
    """
    return _table("items", items, verbose) + _table("interactions", log, verbose)


def _table(kind: str, columns: Sequence[Fields], verbose: bool) -> str:
    if not columns:
        return ""
    displayed = columns if verbose else _most_important(columns)
    rows = [_row(column, None if verbose else MAX_EXAMPLE) for column in displayed]
    headings = list(zip([kind, *HEADINGS], LAYOUT, strict=True))
    if not any(row[-1] for row in rows):  # nothing was changed
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    table = to_table(headings, rows)
    others = [column for column in columns if column not in displayed]
    if not others:
        return table
    types = Counter(column["type"] for column in others)
    listed = ", ".join(f"{count:,} {type_}" for type_, count in types.most_common())
    more = "and {n} more {n:column|columns}: {listed} (-v shows {n:it|them})"
    return f"{table}{more.format(n=Count(len(others)), listed=listed)}\n"


def _most_important(columns: Sequence[Fields]) -> list[Fields]:
    """Return at most `MAX_ROWS` columns: those with a role, then those that lost cells."""

    def importance(index: int) -> tuple[bool, bool, int]:
        column = columns[index]
        return not column["role"], not any(map(_is_loss, column["changed"])), index

    indices = sorted(range(len(columns)), key=importance)[:MAX_ROWS]
    return [columns[index] for index in sorted(indices)]


def _row(column: Fields, max_example: int | None) -> list[str]:
    changes = sorted(
        column["changed"].items(), key=lambda change: (not _is_loss(change[0]), -change[1])
    )
    # A table has one line for a text of several paragraphs.
    example = " ".join(column["example"].split())
    return [
        column["name"],
        column["role"],
        f"{column['type']} ({column['unit']})" if column.get("unit") else column["type"],
        _percent(column["empty"]),
        example if max_example is None else cut_to(example, max_example),
        ", ".join(f"{what} ({count:,})" for what, count in changes),
    ]


def _is_loss(change: str) -> bool:
    return change.startswith(("emptied", "ambiguous"))


def _percent(share: float) -> str:
    """Return whole percents; 0% and 100% only if exact."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"

"""What the three ranking commands share: their options, and a ranking as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import (
    GAP,
    Output,
    as_rich_table,
    captioned,
    layout,
    narrowed,
    output_options,
    rendered,
    shown,
    terminal_width,
    to_table,
)
from qkvsearch.search.options import OPTIONS
from qkvsearch.terminal import printable

if TYPE_CHECKING:
    from qkvsearch.query.where import Where
    from qkvsearch.retrieval import Ranking

# Characters shown of each of the owner's columns.
SHOWN_OF_CELL = 24
# How far the lines below a hit stand in.
INDENT = 3
# What every hit has, in this order, before what only some questions add.
FIELDS = ("rank", "id", "title", "score", "weight")
OPTION = "--explain"
# In plain words, or every part of a score.
PLAIN, FULL = HOW = ("plain", "full")


class ExplainedCommand(click.Command):
    """A command whose `--explain` may stand alone: of the words that follow it, only `full` and
    `plain` are its value.

    Click takes any next word for the value of such an option; in `search --explain jacket` that is
    the query.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_value(args))


def with_value(args: list[str]) -> list[str]:
    """Arguments in which each `--explain` has its value. After `--` there are no more options.

    >>> with_value(["--explain", "full", "moon"]), with_value(["--explain", "moon", "full"])
    (['--explain', 'full', 'moon'], ['--explain=plain', 'moon', 'full'])
    """
    end = args.index("--") if "--" in args else len(args)
    alone = [
        word == OPTION and following not in HOW for word, following in pairwise([*args[:end], ""])
    ]
    given = [
        f"{OPTION}={PLAIN}" if is_alone else word
        for word, is_alone in zip(args[:end], alone, strict=True)
    ]
    return [*given, *args[end:]]


def explain_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--explain [full]` with this help; None where it is not given."""
    return click.option(OPTION, type=click.Choice(HOW), metavar="[full]", help=text)


def question_option(
    name: str, *flags: str, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the Click option of a question's option: its flags are `--name` unless given, and
    `settings` replace what `OPTIONS` says of it.
    """
    option = OPTIONS[name]
    shared: dict[str, Any] = {"help": option.help, "default": option.default}
    if option.kind is bool:
        shared["is_flag"] = True
    elif option.kind in (list, dict):
        shared |= {"multiple": True, "help": f"{option.help.removesuffix('.')}; repeatable."}
    elif option.choices:
        shared |= {"type": click.Choice(option.choices), "show_default": True}
    elif option.kind is str:
        shared["default"] = "" if option.default == () else option.default
    else:
        in_range: Any = click.IntRange if option.kind is int else click.FloatRange
        shared["type"] = in_range(option.minimum, option.maximum, min_open=option.is_open)
    if not option.default:
        del shared["default"]
    return click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, **shared | settings)


fields_option = question_option("fields", metavar="NAMES", default="")
offset_option = question_option("offset", metavar="N", default=0)


def where_options(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--where` with this help, and how long it may take, as one argument of the command."""
    where = click.option("--where", metavar="EXPR", callback=_condition, help=text)
    seconds = click.option(
        "--where-seconds",
        metavar="S",
        type=click.FloatRange(min=0, min_open=True),
        is_eager=True,
        expose_value=False,
        callback=_keep_seconds,
        help="Stop --where after S seconds.  [default: 2]",
    )
    return lambda command: where(seconds(command))


def _keep_seconds(context: click.Context, _: click.Parameter, seconds: float | None) -> None:
    context.meta["qkvsearch.seconds"] = seconds


def _condition(context: click.Context, _: click.Parameter, expression: str | None) -> Where | None:
    seconds = context.meta.get("qkvsearch.seconds")
    if expression is None or seconds is None:
        return expression
    from qkvsearch.query.where import Condition

    return Condition(expression, seconds=seconds)


where_option = where_options(OPTIONS["where"].help)


def ranking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which of the hits, which items, which columns of them, and the output options."""
    options: list[Callable[..., Any]] = [
        question_option("k", "-k", show_default=True),
        offset_option,
        question_option("min_weight", metavar="X", default=0.0),
        where_option,
        fields_option,
        question_option("temperature"),
        output_options,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def write_ranking(ranking: Ranking, output: Output, explain: str | None = None) -> None:
    """The hits with all their fields, or the table of them. explain: how, None for not at all."""
    rows = explained_rows(ranking, explain)
    fields = [*FIELDS, *own_names(ranking)]
    output.write(rows, lambda: ranking_table(rows, ranking, explain == FULL), fields)


def explained_rows(ranking: Ranking, explain: str | None) -> list[dict[str, Any]]:
    """The hits as rows, explained as --explain says."""
    if explain is None:
        return ranking.to_records()
    rows = ranking.explained_records(full=explain == FULL)
    if explain == FULL and len(rows) > 1 and "parts" in rows[0]:
        settings().say(
            "--explain full lists all parts of the first hit, and the largest of each other one; "
            "for all parts of another: --offset N -k 1."
        )
    return rows


def why_none(ranking: Ranking, options: dict[str, Any], nothing: str) -> list[str]:
    """For a person who gets no hits. nothing: why nothing could be one, where no note says so."""
    if ranking:
        return []
    if not ranking.n_candidates:
        return [] if ranking.notes else [nothing]
    if not options["k"]:
        return ["No hits asked for."]
    least, place = options["min_weight"], options["offset"] + 1
    found = f"No hits: of {ranking.n_candidates:,} candidates none from place {place:,} on"
    return [f"{found} has a weight of {least:g} or more." if least else f"{found}."]


def own_names(ranking: Ranking) -> list[str]:
    """Under which names the hits show columns of the catalog."""
    from qkvsearch.retrieval.ranking import own_key

    return [own_key(name) for name in (ranking[0].fields or {})] if ranking else []


def ranking_table(rows: list[dict[str, Any]], ranking: Ranking, full: bool = False) -> str:
    """The hits, each with its reasons below it where it has any; `full`: with its parts."""
    if not rows:
        return ""
    columns = [("#", "right"), ("title", "wrap"), ("score", "right"), ("weight", "right")]
    rated = any("predicted_rating" in row for row in rows)
    if rated:
        columns.append(("rating", "right"))
    people = any("shared" in row for row in rows)
    if people:
        columns.append(("shared", "right"))
    own = own_names(ranking)
    columns += [(name, layout(name, [row[name] for row in rows])) for name in own]
    columns.append(("id", "left"))
    cells, below = [], []
    for row in rows:
        line = [
            row["rank"],
            _marked(" ".join(row["title"].split()), row.get("matches", {}).get("title", [])),
            f"{row['score']:.3f}",
            f"{row['weight']:.1%}",
        ]
        line += [f"{row['predicted_rating']:.1f}"] if rated else []
        line += [row["shared"]] if people else []
        line += [shown(row[name], SHOWN_OF_CELL) for name in own]
        cells.append([*line, row["id"]])
        notes = ["new: no interactions yet"] if row.get("cold") else []
        notes += [row["snippet"]] if row.get("snippet") else []
        notes += _matches_elsewhere(row)
        below.append((notes, _reasons(row, full)))
    over = f"over {ranking.n_candidates:,} {'users' if people else 'items'}"
    caption = f"weight = softmax(score / {ranking.temperature:.3g}) {over}"
    return _with_lines(columns, cells, below, caption)


def _with_lines(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    below: Sequence[tuple[list[str], list[tuple[str, str]]]],
    caption: str,
) -> str:
    """A table with lines below its rows, as wide as the window: notes, and then what is added up,
    each with its text.
    """
    if not any(notes or reasons for notes, reasons in below):
        return to_table(columns, rows, caption)
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    texts = [
        [name for name, _ in columns],
        *([printable(str(cell)) for cell in row] for row in rows),
    ]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    flexible = [place for place, (_, way) in enumerate(columns) if way == "wrap"]
    narrowed(widths, flexible, terminal_width() - GAP * (len(columns) - 1))
    parts = []
    for i, (row, (notes, reasons)) in enumerate(zip(rows, below, strict=True)):
        parts.append(as_rich_table(columns, [row], has_header=i == 0, widths=widths))
        for lines in ([[note] for note in notes], reasons):
            grid = Table.grid(padding=(0, 1))
            grid.add_column(width=INDENT)
            for line in lines:
                grid.add_row("", *(Text(printable(text), style="dim") for text in line))
            parts += [grid] if lines else []
    return rendered([*parts, *captioned(caption)])


def _marked(title: str, words: list[str]) -> Any:
    """A title with the words that match the query in bold, where a terminal shows it."""
    if not sys.stdout.isatty():
        return title
    from rich.text import Text

    from qkvsearch.text.analysis import word_spans

    text = Text(printable(title))
    for start, end in word_spans(words, text.plain):
        text.stylize("bold green", start, end)
    return text


def _matches_elsewhere(row: dict[str, Any]) -> list[str]:
    """With the reasons: what matches in the columns that the table does not show."""
    if "parts" not in row:
        return []
    columns = row.get("matches", {}).items()
    return [f"in {name}: {', '.join(words)}" for name, words in columns if name != "title"]


def _reasons(row: dict[str, Any], full: bool) -> list[tuple[str, str]]:
    """What adds up to a score: in plain words, or `full`, part by part."""
    if full and "because" in row:
        addends = [(_reason(part), part["contribution"]) for part in row["because"]]
    elif full and "parts" in row:
        addends = [(_part(part), part["value"]) for part in row["parts"]]
    else:
        addends = [(reason["text"], reason["value"]) for reason in row.get("reasons", ())]
    return [(f"{value:+.3f}", text) for text, value in addends]


def _reason(part: dict[str, Any]) -> str:
    """An item of the history by its title; damping and diversity are no items."""
    if part["id"] is None:
        return f"by {part['title']}"
    return f"{'shared:' if part.get('shared') else 'because of'} {part['title']}"


def _part(part: dict[str, Any]) -> str:
    """The head, and what of the query meets what of the item."""
    words = [str(part[name]) for name in ("query", "key") if part[name] is not None]
    named = " ~ ".join(dict.fromkeys(words)) or "the same for every item"
    of_item = f" [{part['item']}]" if "item" in part else ""
    return f"{part['head']}{of_item}: {named}"

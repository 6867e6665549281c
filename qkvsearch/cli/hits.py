"""What the three ranking commands share: their options, and a ranking as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.listing import layout, shown
from qkvsearch.cli.render import Output, output_options, to_table
from qkvsearch.terminal import printable

if TYPE_CHECKING:
    from qkvsearch.retrieval import Ranking
    from qkvsearch.workspace.where import Where

# Contributions shown of each hit in a table; JSON carries all.
SHOWN_REASONS = 3
# Characters shown of each of the owner's columns.
SHOWN_OF_CELL = 24
# What every hit has, in this order, before what only some questions add.
FIELDS = ("rank", "id", "title", "score", "weight")
fields_option = click.option(
    "--fields",
    metavar="NAMES",
    default="",
    help="Columns of the catalog to show as well, such as price,url.",
)
offset_option = click.option(
    "--offset",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Pass over the first N.",
)


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
    from qkvsearch.workspace.where import Condition

    return Condition(expression, seconds=seconds)


where_option = where_options(
    "Only items for which this SQL expression over the catalog's columns holds."
)


def ranking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which of the hits, which items, which columns of them, and the output options."""
    options: list[Callable[..., Any]] = [
        click.option(
            "-k", type=click.IntRange(min=0), default=10, show_default=True, help="How many."
        ),
        offset_option,
        click.option(
            "--min-weight",
            metavar="X",
            type=click.FloatRange(0, 1),
            default=0.0,
            help="Only hits of at least this weight, from 0 to 1.",
        ),
        where_option,
        fields_option,
        click.option(
            "--temperature",
            type=click.FloatRange(min=0, min_open=True),
            help="Divides the scores before the softmax: the lower, the more weight on the first.  "
            "[default: their standard deviation]",
        ),
        output_options,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def write_ranking(ranking: Ranking, output: Output, explain: bool = False) -> None:
    """The hits with all their fields, or the table of them."""
    rows = with_parts(ranking) if explain else ranking.to_records()
    output.write(rows, lambda: ranking_table(rows, ranking), [*FIELDS, *own_names(ranking)])


def with_parts(ranking: Ranking) -> list[dict[str, Any]]:
    """The hits with the parts of their scores, where they do not carry a `because` of their own."""
    rows = ranking.to_records()
    for i, row in enumerate(rows):
        if "because" not in row:
            row["parts"] = [part._asdict() for part in ranking.explain(i)]
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


def ranking_table(rows: list[dict[str, Any]], ranking: Ranking) -> str:
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
    cells = []
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
        notes += _matches_elsewhere(row) + _reasons(row)
        cells += [["", _dim_line(line)] for line in notes]
    over = f"over {ranking.n_candidates:,} {'users' if people else 'items'}"
    caption = f"weight = softmax(score / {ranking.temperature:.3g}) {over}"
    return to_table(columns, cells, caption)


def _marked(title: str, words: list[str]) -> Any:
    """A title with the words that match the query in bold."""
    from rich.text import Text

    from qkvsearch.texts.analysis import word_spans

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


def _dim_line(reason: str) -> Any:
    from rich.text import Text

    return Text(f"  {printable(reason)}", style="dim", no_wrap=True, overflow="ellipsis")


def _reasons(row: dict[str, Any]) -> list[str]:
    """The largest parts of a score in words, and how much the others add."""
    if "because" in row:
        addends = [(_reason(part), part["contribution"]) for part in row["because"]]
    elif "parts" in row:
        addends = _by_word(row["parts"])
    else:
        return []
    lines = [f"{value:+.3f} {name}" for name, value in addends[:SHOWN_REASONS]]
    rest = [value for _, value in addends[SHOWN_REASONS:]]
    return lines + ([f"{sum(rest):+.3f} from {len(rest)} more"] if rest else [])


def _reason(part: dict[str, Any]) -> str:
    """An item of the history by its title; damping and diversity are no items."""
    if part["id"] is None:
        return f"by {part['title']}"
    return f"{'shared:' if part.get('shared') else 'because of'} {part['title']}"


def _by_word(parts: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """What each word of the query adds by each head, with the item's word that it goes best with;
    the heads' means, which are constants, as one.
    """
    words: dict[tuple[str, str], list[dict[str, Any]]] = {}
    means = 0.0
    for part in parts:
        if part["query"] is None:
            means += part["value"]
        else:
            words.setdefault((part["head"], part["query"]), []).append(part)
    addends = []
    for (head, word), pairs in words.items():
        best = max(pairs, key=lambda part: part["value"])["key"]
        name = f"{head}: {word}" if best == word else f"{head}: {word} ~ {best}"
        addends.append((name, sum(part["value"] for part in pairs)))
    addends.sort(key=lambda addend: -abs(addend[1]))
    return [*addends, ("the means of the heads", means)] if means else addends

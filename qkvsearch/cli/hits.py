"""Rankings on the command line: shared options, rows of hits, and a table with their reasons."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import copysign
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.shown_sums import AVERAGE_ITEM, DECIMALS, reasons_adding_up
from qkvsearch.cli.columns import is_filter
from qkvsearch.cli.commands import Command, Decorator, joined, stored_in_meta
from qkvsearch.cli.context import settings
from qkvsearch.cli.listing_table import cell_text, layout
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import (
    captioned,
    fitting_widths,
    heading_lines,
    is_too_narrow,
    lines_of_row,
    rendered,
    row_lines,
    styled,
)
from qkvsearch.cli.waterfall import bars, bars_width
from qkvsearch.cli.wrapping import AnyText, terminal_width, wrapped
from qkvsearch.errors import Count, quantity
from qkvsearch.rank.questions import OPTIONS, SMALLEST, Explain, Question, options_of
from qkvsearch.terminal import printable

if TYPE_CHECKING:
    from rich.text import Text

    from qkvsearch.engine import Engine
    from qkvsearch.rank.ranking import Ranking

# Characters that the table shows of each cell of the catalog.
MAX_FIELD = 24
# From this width on, a reason also says what each kind of head adds, and a table on a terminal has
# more columns.
WIDE = 110
# One more column for so many characters more, on average.
COLUMN_WIDTH = 15
# The style of words that match the query. Nothing else of a table has a colour.
MATCHED = "not dim bold green"
# Indentation of the lines below a hit.
INDENT = 3
OPTION = "--explain"
# Explaining more hits than this may take longer than people wait without a word.
MANY_EXPLAINED = 100
# The key of Click's `meta` for --weights.
WEIGHTS = "qkvsearch.weights"
# In plain words, or every component of a score.
PLAIN, FULL = LEVELS = ("plain", "full")
# Also what would have to be gone for the hit not to be there, at most so many.
MAX_GONE = 10
LEVELS_WITH_SMALLEST = (*LEVELS, SMALLEST)


class ExplainedCommand(Command):
    """A command whose `--explain` may have no value: only a level after it, such as `full`, is one.

    Click would take any next word as the value; in `search --explain jacket` that is the query.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        (option,) = [param for param in self.params if OPTION in param.opts]
        assert isinstance(option.type, click.Choice)
        return super().parse_args(ctx, with_value(args, option.type.choices))


def with_value(args: list[str], levels: Sequence[str] = LEVELS) -> list[str]:
    """Return the arguments with a value for each `--explain`. Options end at `--`.

    >>> with_value(["--explain", "full", "moon"]), with_value(["--explain", "moon", "full"])
    (['--explain', 'full', 'moon'], ['--explain=plain', 'moon', 'full'])
    """
    end = args.index("--") if "--" in args else len(args)
    options = [
        f"{OPTION}={PLAIN}" if word == OPTION and following not in levels else word
        for word, following in pairwise([*args[:end], ""])
    ]
    return [*options, *args[end:]]


def explain_option(text: str, levels: Sequence[str] = LEVELS) -> Decorator:
    """Return the option `--explain` with this help text; its default is None. levels: its values,
    of which `plain` need not be written.
    """
    metavar = f"[{'|'.join(level for level in levels if level != PLAIN)}]"
    return click.option(OPTION, type=click.Choice(levels), metavar=metavar, help=text)


def engine_explain(level: str | None) -> Explain:
    """Return the `explain` of a question for a level of the option."""
    return "smallest" if level == SMALLEST else level is not None


def question_option(
    name: str, *flags: str, of: type[Question] | None = None, **settings: Any
) -> Decorator:
    """Return the Click option of an option of a question. flags: by default `--name`. of: the
    question, where `OPTIONS` has the option of another one. settings: arguments of `click.option`
    that replace those that follow from the option.
    """
    option = OPTIONS[name] if of is None else options_of(of)[name]
    shared: dict[str, Any] = {"help": option.help}
    match option.kind:
        case "flag":
            shared["is_flag"] = True
        case "ids" | "ratings":
            shared |= {"multiple": True, "help": f"{option.help.removesuffix('.')}; repeatable."}
        case "choice":
            shared |= {"type": click.Choice(option.choices), "show_default": True}
        case "whole":
            least, most = option.minimum, option.maximum
            shared["type"] = click.IntRange(
                None if least is None else int(least), None if most is None else int(most)
            )
        case "number":
            shared["type"] = click.FloatRange(
                option.minimum, option.maximum, min_open=option.is_open
            )
    if option.default:
        shared["default"] = option.default
    return click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, **shared | settings)


fields_option = question_option("fields", metavar="NAMES", default="")
offset_option = question_option("offset", metavar="N", default=0)


where_option = question_option("where", metavar="EXPR")


# The options that all rankings share, and the output options.
ranking_options = joined(
    question_option("k", "-k", show_default=True),
    where_option,
    fields_option,
    question_option("distinct", metavar="COLUMN"),
    offset_option,
    question_option("temperature"),
    click.option(
        "--weights",
        is_flag=True,
        expose_value=False,
        callback=stored_in_meta(WEIGHTS),
        help="Show in the table the weight of each hit, its share of the softmax, as -v does.",
    ),
    output_options,
)


def with_more_columns(engine: Engine, options: dict[str, Any], output: Output) -> None:
    """Where a wide terminal shows hits and no fields are named, name columns that filter them."""
    is_shown = output.format == "table" and output.path is None and sys.stdout.isatty()
    if options["fields"] or not is_shown:
        return
    n_more = max((terminal_width() - WIDE) // COLUMN_WIDTH + 1, 0)
    names = [column.name for column in engine.catalog.catalog_columns if is_filter(column)]
    # A list of names has no way to write a comma within one.
    options["fields"] = ",".join([name for name in names if "," not in name][:n_more])


def write_ranking(ranking: Ranking, output: Output, explain: str | None = None) -> None:
    """Write the hits. explain: `PLAIN`, `FULL` or None."""
    rows = explained_rows(ranking, explain)
    fields = field_names(ranking, explain)
    output.write(rows, lambda: ranking_table(rows, ranking, explain == FULL), fields)


def field_names(ranking: Ranking, explain: str | None) -> list[str]:
    """Return the names of the fields of `explained_rows`."""
    reasons = ["reasons", "others"]
    if "because" not in ranking.names:
        reasons = ["parts", *reasons]
    return ranking.names if explain is None else [*ranking.names, *reasons]


def explained_rows(ranking: Ranking, explain: str | None) -> list[dict[str, Any]]:
    """Return the hits as rows, with the explanations that --explain requests."""
    if explain is None:
        return ranking.to_records()
    if len(ranking) > MANY_EXPLAINED:
        settings().message(
            f"Explaining {len(ranking):,} hits: encoders read the texts of each again, and a "
            "transformer takes long."
        )
    rows = ranking.explained_records(full=explain == FULL)
    if explain == FULL and len(rows) > 1 and "parts" in rows[0]:
        settings().message(
            "--explain full lists all parts of the first hit and the largest parts of the others; "
            "for all parts of another hit: --offset N -k 1."
        )
    return rows


def no_hits_notes(ranking: Ranking, options: dict[str, Any]) -> list[str]:
    """Return notes on why there are no hits, where the ranking itself has none."""
    # Where nothing could be ranked, its notes say so.
    if ranking or not ranking.n_candidates:
        return []
    if not options["k"]:
        return ["No hits: -k is 0."]
    position = options["offset"] + 1
    if ranking.found is not None and not ranking.found.question.is_by_score:
        n_listed = ranking.found.n_listed
        # Where all are weak, and these were not asked for, the ranking says so.
        if not n_listed:
            return []
        return [f"No hits from position {position:,} on: there are {n_listed:,}."]
    candidates = quantity(ranking.n_candidates, "candidate")
    return [f"No hits: of {candidates} none from position {position:,} on."]


def notes_on_conditions(ranking: Ranking) -> list[str]:
    """Return a note on how many hits there are without the conditions that leave none."""
    none = ranking.no_hits
    if none is None or none.reason != "filtered_out":
        return []
    conditions = [*(["`where`"] if none.where is not None else []), *none.operators]
    n = Count(none.total or 0)
    return [f"Without {' and '.join(conditions)} there {n:is|are} {n} {n:hit|hits}."]


def ranking_table(rows: list[dict[str, Any]], ranking: Ranking, full: bool = False) -> str:
    """Return a table of hits with their reasons below; with `full` all parts of the scores."""
    from qkvsearch.rank.ranking import own_key

    if not rows:
        return ""
    is_graded = any("match" in row for row in rows)
    is_rated = any("predicted_rating" in row for row in rows)
    has_weights = _shows_weights()
    fields = [own_key(name) for name in ranking.columns]

    columns = [("#", "right"), ("title", "wrap")]
    if is_graded:
        columns.append(("match", "left"))
    columns.append(("score", "right"))
    if has_weights:
        columns.append(("weight", "right"))
    if is_rated:
        columns.append(("rating", "right"))
    columns += [(name, layout(name, [row[name] for row in rows])) for name in fields]
    columns.append(("id", "left"))

    cells = []
    for row in rows:
        line = [row["rank"], _title(row)]
        if is_graded:
            line.append(row["match"])
        line.append(f"{row['score']:.{DECIMALS}f}")
        if has_weights:
            line.append(f"{row['weight']:.1%}")
        if is_rated:
            line.append(f"{row['predicted_rating']:.1f}")
        line += [cell_text(row[name], MAX_FIELD) for name in fields]
        line.append(row["id"])
        cells.append(line)

    caption = ""
    if has_weights:
        candidates = quantity(ranking.n_candidates, "item")
        caption = f"weight = softmax(score / {ranking.temperature:.3g}) over {candidates}"
    below = [
        [*_notes(row), *_reasons(row, full), *map(_indented, _gone(row, ranking))] for row in rows
    ]
    return _with_lines(columns, cells, below, caption)


def _shows_weights() -> bool:
    """Return whether the table shows weights: with --weights, or with -v before the command."""
    context = click.get_current_context(silent=True)
    if context is None:
        return False
    return settings().verbose or context.meta.get(WEIGHTS, False)


def _notes(row: dict[str, Any]) -> list[str | Text]:
    """Return the lines below a hit that are no reasons."""
    notes: list[str] = []
    if row.get("cold"):
        notes.append("new: no interactions yet")
    if row.get("passage"):
        words = _matched_words(row)
        shown = row.get("passages") or [row["passage"]]
        notes += [_passage_text(passage, words) for passage in shown]
    # The snippet of an item with passages is a part of the best one, which is there already.
    elif row.get("snippet"):
        notes.append(row["snippet"])
    notes += _matches_in_other_columns(row)
    return [_indented(note, matched=_matched_words(row)) for note in notes]


def _matched_words(row: dict[str, Any]) -> list[str]:
    """Return the words of an item that match the query, in whatever column."""
    return [word for words in row.get("matches", {}).values() for word in words]


def _passage_text(passage: dict[str, Any], words: Sequence[str]) -> str:
    """Return when a passage is said, and the part of it that has most of the words."""
    from qkvsearch.rank.hit_passages import clock
    from qkvsearch.rank.snippets import cut, densest
    from qkvsearch.text.analysis import word_spans

    text = " ".join(passage["text"].split())
    text = cut(text, *densest(text, word_spans(words, text)))
    if "start" not in passage:
        return text
    return f"{clock(passage['start'])}–{clock(passage['end'])}  {text}"


def _with_lines(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    below: Sequence[Sequence[str | Text]],
    caption: str,
) -> str:
    """Return a table with lines below each row."""
    is_list = is_too_narrow(columns, rows)
    widths = fitting_widths(columns, rows)
    lines = [] if is_list else heading_lines(columns, widths)
    for row, lines_below in zip(rows, below, strict=True):
        lines += lines_of_row(columns, row) if is_list else row_lines(columns, row, widths)
        lines += lines_below
    return rendered([*lines, *captioned(caption)])


def _indented(text: str, value: str = "", matched: Sequence[str] = ()) -> str | Text:
    """Return a text below a hit, after a number with its bar or nothing. It is wrapped, and never
    cut. matched: words that are marked in it on a terminal.
    """
    start = " " * (INDENT + 1) + value
    shown = _marked(styled(printable(" ".join(text.split())), "dim"), matched)
    line = start + shown if isinstance(shown, str) else _after(start, shown)
    return wrapped(line, terminal_width(), indent=len(start))


def _after(start: str, text: Text) -> Text:
    """Return a styled text after one without styles."""
    from rich.text import Text

    return Text.assemble(start, text)


def _marked(text: AnyText, words: Sequence[str]) -> AnyText:
    """Return a text in whose styles the matched words stand out: they alone have a colour."""
    if isinstance(text, str) or not words:
        return text
    from qkvsearch.text.analysis import word_spans

    for start, end in word_spans(words, text.plain):
        text.stylize(MATCHED, start, end)
    return text


def _title(row: dict[str, Any]) -> str | Text:
    """Return the title of a hit, on a terminal with the words that match the query in colour."""
    title = " ".join(row["title"].split())
    if not sys.stdout.isatty():
        return title
    from rich.text import Text

    return _marked(Text(printable(title)), row.get("matches", {}).get("title", []))


def _matches_in_other_columns(row: dict[str, Any]) -> list[str]:
    """Return the matches in columns that the table does not show, for a hit with reasons."""
    if "parts" not in row:
        return []
    columns = row.get("matches", {}).items()
    return [f"in {name}: {', '.join(words)}" for name, words in columns if name != "title"]


def _reasons(row: dict[str, Any], full: bool) -> list[str | Text]:
    """Return what a score is made of as a waterfall, in plain words or with `full` part by part,
    and their sum, the score, as the last line. The numbers add up to it as they are shown.
    """
    from qkvsearch.rank.reasons import only_kinds

    if full and row.get("because"):
        addends = [(_item_text(entry), entry["contribution"]) for entry in row["because"]]
    elif full and "parts" in row:
        addends = [(_component_text(entry), entry["value"]) for entry in row["parts"]]
    else:
        has_room = terminal_width() >= WIDE
        addends = [
            (reason["text"] if has_room else only_kinds(reason["text"]), reason["value"])
            for reason in row.get("reasons", ())
        ]
    if not addends:
        return []
    # What takes away has its sign, and its bar, also where it is shown as 0.
    values = [
        copysign(shown, exact) if shown == 0 else shown
        for (_, exact), shown in zip(addends, reasons_adding_up(addends, row["score"]), strict=True)
    ]
    numbers = [f"{value:+.{DECIMALS}f}" for value in values]
    room = max(map(len, numbers))
    starts = [f"{number:<{room}} " for number in numbers]
    # A list of all parts may have hundreds of lines, and most bars would be a point.
    if not full and (width := bars_width()):
        drawn = bars(values, width)
        starts = [f"{start}{bar} " for start, bar in zip(starts, drawn, strict=True)]
    matched = _matched_words(row)
    lines = [
        _indented(text, start, matched) for (text, _), start in zip(addends, starts, strict=True)
    ]
    return [*lines, _indented("", f"= {row['score']:.{DECIMALS}f}")]


def _gone(row: dict[str, Any], ranking: Ranking) -> list[str]:
    """Return a line on what would have to be gone for a hit not to be here, if that was asked."""
    if "smallest" not in row:
        return []
    ((kind, names),) = row["smallest"].items()
    if kind == "items":
        title_of = {entry["id"]: entry["title"] for entry in row.get("because", ())}
        names = [title_of.get(name, str(name)) for name in names]
    if not names:
        has_some = bool(row.get("because") or ranking.query.strip())
        none = f"no set of at most {MAX_GONE} {kind} was found without which this would not be here"
        return [none] if has_some else []
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    return [f"without {listed} this would not be here"]


def _item_text(entry: dict[str, Any]) -> str:
    """Return the line of an item of the history, or the name of another contribution."""
    from qkvsearch.rank.history_reasons import RULE, entry_line

    if entry["id"] is not None:
        return entry_line(entry)
    return entry["title"] if entry.get("how") == RULE else f"by {entry['title']}"


def _component_text(entry: dict[str, Any]) -> str:
    """Return the head of a score component, and what it compares."""
    from qkvsearch.rank.reasons import ADDED, KINDS, OF_ITEMS, OVERALL

    head = entry["head"]
    words = [str(entry[name]) for name in ("query", "key") if entry[name] is not None]
    words = [OVERALL if ADDED.fullmatch(word) else word for word in words]
    without_words = KINDS[head] if head in OF_ITEMS else AVERAGE_ITEM
    compared = " ~ ".join(dict.fromkeys(words)) or without_words
    of_item = f" [{entry['item']}]" if "item" in entry else ""
    return f"{head}{of_item}: {compared}"

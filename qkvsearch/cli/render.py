"""Output: rows as a table, JSON, JSON Lines, CSV or Markdown, to stdout or a file."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.files import replacing, write_file
from qkvsearch.cli.context import settings
from qkvsearch.tables import writers
from qkvsearch.terminal import printable, shorten

if TYPE_CHECKING:
    from rich.console import RenderableType

    from qkvsearch.rank.listing import Listing

Rows = Sequence[Mapping[str, Any]]

FORMATS = ("table", "json", "jsonl", "csv", "markdown")
BY_SUFFIX = {
    "": "table",
    ".txt": "table",
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".parquet": "parquet",
}
# Lessons can also be a page or a notebook.
DOCUMENT_FORMATS = (*FORMATS, "html", "ipynb")
DOCUMENT_BY_SUFFIX = {**BY_SUFFIX, ".html": "html", ".ipynb": "ipynb"}
# Formats that do not escape control characters.
UNESCAPED = ("csv", "markdown")
# The decimals of a number in Markdown, which people read. Other formats have all of them.
MARKDOWN_DECIMALS = 4
# Spaces between the columns of a table.
GAP = 2
# Characters of a cell that a table shows, at most and at least; other formats have all of it.
MAX_CELL, MIN_CELL = 40, 4
# Columns of listings that are never cut: people copy ids into their next command.
WHOLE = ("id", "user", "item", "time", "recorded")
# A longer word, such as a path, may be broken to fit into its column.
MAX_WORD = 20


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format`, `-o` and `--raw`; the command gets an `Output` as its argument `output`."""
    return _with_output(command, FORMATS, BY_SUFFIX)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options to a command that can also write documents."""
    return _with_output(command, DOCUMENT_FORMATS, DOCUMENT_BY_SUFFIX)


def _with_output(
    command: Callable[..., Any], formats: Sequence[str], by_suffix: Mapping[str, str]
) -> Callable[..., Any]:
    pages = ".html, .ipynb, " if "html" in formats else ""

    @click.option(
        "--format",
        "format_name",
        type=click.Choice(formats),
        help="Output format.  [default: table, or by the name of -o]",
    )
    @click.option(
        "-o",
        "--output",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Write to a file; {pages}.parquet, .csv, .json, .jsonl and .md set the format.",
    )
    @click.option(
        "--raw",
        is_flag=True,
        help="Do not put an apostrophe before CSV cells that a spreadsheet would run as formulas.",
    )
    @wraps(command)
    def with_output(
        *args: Any, format_name: str | None, path: Path | None, raw: bool, **kwargs: Any
    ) -> Any:
        return command(*args, output=Output(format_name, path, by_suffix, raw), **kwargs)

    return with_output


class Output:
    """The format and the destination of a command's results."""

    def __init__(
        self,
        format_name: str | None,
        path: Path | None,
        by_suffix: Mapping[str, str] = BY_SUFFIX,
        raw: bool = False,
    ) -> None:
        self.raw = raw
        self.path = None if path == Path("-") else path
        suffix = self.path.suffix.lower() if self.path else ""
        if format_name is None and suffix not in by_suffix:
            suffixes = ", ".join(name for name in by_suffix if name)
            raise click.BadParameter(
                f"cannot tell the format from {suffix!r} (known: {suffixes}); add --format",
                param_hint="-o",
            )
        self.format = format_name or by_suffix[suffix]
        # A command that makes a change lists it only on request.
        self.is_requested = format_name is not None or path is not None

    def write(self, rows: Rows, table: Callable[[], str], fields: Sequence[str] = ()) -> None:
        """Write rows as requested. table: makes the table. fields: columns that come first."""
        if self.format == "parquet":
            self._write_parquet(rows, fields)
            return
        if self.format not in FORMATS:
            raise click.UsageError(f"a list cannot be written as {self.format}")
        if self.format == "csv":
            self._emit(self._csv(rows, fields))
            return
        self._emit(table() if self.format == "table" else RENDERERS[self.format](rows, fields))

    def write_one(self, whole: Mapping[str, Any], rows: Rows, table: Callable[[], str]) -> None:
        """Write a single result: as JSON the object `whole`, in other formats its `rows`."""
        if self.format == "json":
            self._emit(to_json(whole))
        else:
            self.write(rows, table)

    def write_document(self, renderers: Mapping[str, Callable[[], str]]) -> None:
        """Write a document. renderers: makes it, by format."""
        if self.format not in renderers:
            formats = ", ".join(renderers)
            raise click.UsageError(f"this can be written as {formats}, not as {self.format}")
        self._emit(renderers[self.format]())

    def _emit(self, text: str) -> None:
        if self.path is None:
            (write_data if self.format in UNESCAPED else write_text)(text)
            return
        if self.format == "table":  # made for a terminal, if stdout is one
            text = click.unstyle(text)
        text = text if text.endswith("\n") else text + "\n"
        with replacing(self.path) as file:
            file.write((printable(text) if file.isatty() else text).encode())

    def _csv(self, rows: Rows, fields: Sequence[str]) -> str:
        """Return rows as CSV, with a message about cells changed for spreadsheets."""
        names = _columns(rows, fields)
        lines = writers.CsvLines(names, self.raw)
        shown = map(writers.with_shown_sums, rows)
        text = lines.heading() + lines.text([row.get(name, "") for name in names] for row in shown)
        if note := writers.said_of_guarded(lines.guarded):
            settings().message(f"{note}; --raw writes all cells as they are, for programs.")
        return text

    def _write_parquet(self, rows: Rows, fields: Sequence[str]) -> None:
        import pandas as pd

        assert self.path is not None
        writers.require_pyarrow(self.path)
        frame = pd.DataFrame(rows, columns=_columns(rows, fields))
        write_file(self.path, frame.to_parquet(index=False))


def write_text(text: str) -> None:
    """Write text to stdout; it ends with a newline unless it is empty."""
    click.echo(text, nl=bool(text) and not text.endswith("\n"))


def write_data(text: str) -> None:
    """Write text for programs to stdout, with control characters escaped on a terminal."""
    write_text(printable(text) if sys.stdout.isatty() else text)


def to_json(rows: Rows | Mapping[str, Any], fields: Sequence[str] = ()) -> str:
    return printable(json.dumps(rows, ensure_ascii=False, indent=1)) + "\n"


def to_markdown(rows: Rows, fields: Sequence[str] = ()) -> str:
    names = _columns(rows, fields)
    lines = [names, ["---"] * len(names)]
    shown = [writers.with_shown_sums(row, MARKDOWN_DECIMALS) for row in rows]
    lines += [[_markdown_cell(row.get(name)) for name in names] for row in shown]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


RENDERERS = {
    "json": to_json, "jsonl": lambda rows, _: writers.to_jsonl(rows), "markdown": to_markdown
}  # fmt: skip


def _columns(rows: Rows, fields: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*fields, *(name for row in rows for name in row)]))


def _markdown_cell(value: Any) -> str:
    text = (
        f"{value:.{MARKDOWN_DECIMALS}f}"
        if isinstance(value, float)
        else str(writers.one_cell("" if value is None else value))
    )
    return text.replace("|", "\\|").replace("\n", " ")


def to_table(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], caption: str = ""
) -> str:
    """Return a table as wide as the terminal at most. columns: headings with "left", "right" or
    "wrap"; only "wrap" columns become narrower in a narrow window.

    Where the window is too narrow for the longest words of the columns, every row is a list with a
    line for each cell.
    """
    has_header = any(name for name, _ in columns)
    room = terminal_width() - GAP * (len(columns) - 1)
    if has_header and sum(least_widths(columns, rows)) > room:
        return _as_lists(columns, rows, caption)
    if not sys.stdout.isatty():
        plain = _plain_table(columns, rows, caption, has_header)
        if plain is not None:
            return plain
    table = as_rich_table(columns, rows, has_header)
    return rendered([table, *captioned(caption)])


def least_widths(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> list[int]:
    """Return how narrow each column may become: as its longest word for "wrap", else not at all."""
    widths = []
    for i, (name, layout) in enumerate(columns):
        cells = [printable(name), *(printable(str(row[i])) for row in rows)]
        if layout == "wrap":
            words = [word for cell in cells for word in cell.split()]
            longest = max(map(cell_width, words), default=0)
            widths.append(min(longest, MAX_WORD))
        else:
            widths.append(max(map(cell_width, cells)))
    return widths


def widest_cells(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> list[int]:
    """Return the width of the widest line in each column, its heading included."""
    widths = []
    for i, (name, _) in enumerate(columns):
        cells = [printable(name), *(printable(str(row[i])) for row in rows)]
        lines = [line for cell in cells for line in cell.split("\n")]
        widths.append(max(map(cell_width, lines)))
    return widths


def _as_lists(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], caption: str
) -> str:
    """Return a line for each cell that is not empty, below the first cell of its row."""
    from rich.text import Text

    from qkvsearch.cli.lesson.wrapping import wrapped

    lines = [line for row in rows for line in lines_of_row(columns, row)]
    if caption:
        lines.append(wrapped(Text(printable(caption), style="dim"), terminal_width()))
    return rendered(lines)


def lines_of_row(columns: Sequence[tuple[str, str]], row: Sequence[Any]) -> list[RenderableType]:
    """Return a line for each cell of a row that is not empty: its heading and the whole cell."""
    from rich.text import Text

    from qkvsearch.cli.lesson.wrapping import wrapped

    lines: list[RenderableType] = []
    for i, ((name, _), cell) in enumerate(zip(columns, row, strict=True)):
        text = printable(" ".join(str(cell).split()))
        if not text:
            continue
        heading = f"{printable(name)}: " if name else ""
        indent = "" if i == 0 else "  "
        line = Text(f"{indent}{heading}{text}", style="bold" if i == 0 else "")
        lines.append(wrapped(line, terminal_width(), indent=4))
    return lines


def _plain_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    caption: str,
    has_header: bool,
) -> str | None:
    """Return the text that Rich, a slow import, would; None if something is styled or cut."""
    lines = [[name for name, _ in columns]] if has_header else []
    lines += [
        [printable(cell) if isinstance(cell, str) else str(cell) for cell in row] for row in rows
    ]
    texts = [caption, *(cell for line in lines for cell in line)]
    is_plain = all(text.isprintable() and text == text.strip() for text in texts)
    widths = [max(map(cell_width, cells)) for cells in zip(*lines, strict=True)]
    room = terminal_width()
    if not lines or not is_plain or not all(widths) or cell_width(caption) > room:
        return None
    excess = sum(widths) + GAP * (len(widths) - 1) - room
    if excess > 0:
        flexible = [i for i, (_, layout) in enumerate(columns) if layout == "wrap"]
        if len(flexible) != 1:
            return None
        (index,) = flexible
        widths[index] -= excess
        if has_header and cell_width(columns[index][0]) > widths[index]:
            return None  # Rich aligns headings at the bottom
        if not all(_wraps(line[index], widths[index]) for line in lines):
            return None
    table = "".join(_wrapped(line, widths, [layout for _, layout in columns]) for line in lines)
    return f"{table}{caption}\n" if caption else table


def cell_width(text: str) -> int:
    """Return the width of a text in a terminal; Rich is needed only beyond ASCII."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _wraps(text: str, width: int) -> bool:
    """Return whether Rich and the standard library wrap a text in the same way."""
    return text.isascii() and "  " not in text and all(len(word) <= width for word in text.split())


def _wrapped(cells: Sequence[str], widths: Sequence[int], layouts: Sequence[str]) -> str:
    """Return a row of a table, with as many lines as its longest cell."""
    from textwrap import wrap

    columns = [
        wrap(cell, width, break_on_hyphens=False) if cell_width(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    text = ""
    for line in zip_longest(*columns, fillvalue=""):
        filled = map(aligned, line, widths, layouts)
        text += f"{(' ' * GAP).join(filled).rstrip()}\n"
    return text


def aligned(cell: str, width: int, layout: str = "left") -> str:
    """Fill a cell with spaces up to the width of its column."""
    space = " " * (width - cell_width(cell))
    return f"{space}{cell}" if layout == "right" else f"{cell}{space}"


def captioned(caption: str) -> list[RenderableType]:
    """Return the line below a table, if any, for Rich."""
    from rich.text import Text

    return [Text(caption, style="dim")] if caption else []


def as_rich_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    has_header: bool = True,
    widths: Sequence[int] | None = None,
) -> RenderableType:
    """Return the table of `to_table` as an object of Rich. widths: of the columns, if fixed."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=has_header)
    if widths is None:
        widths = _fitting_widths(columns, rows)
    for i, (name, layout) in enumerate(columns):
        table.add_column(
            Text(printable(name)),
            justify="right" if layout == "right" else "left",
            overflow="fold",  # by default Rich cuts what is too wide
            width=None if widths is None else widths[i],
        )
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row)
        )
    return table


def _fitting_widths(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]
) -> list[int] | None:
    """Return the widths of columns that fit into the window; None where they cannot.

    Rich would make the widest column so narrow that its words break, although others have room.
    """
    room = terminal_width() - GAP * (len(columns) - 1)
    widths = [min(width, max(room, 1)) for width in widest_cells(columns, rows)]
    flexible = [i for i, (_, layout) in enumerate(columns) if layout == "wrap"]
    narrow(widths, flexible, room, least_widths(columns, rows))
    narrow(widths, flexible, room)
    return widths if sum(widths) <= room else None


def rendered(parts: Iterable[RenderableType]) -> str:
    """Render objects of Rich as text, in colour if stdout is a terminal with colours."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(
        file=text, width=terminal_width(), force_terminal=sys.stdout.isatty(), highlight=False
    )
    for part in parts:
        console.print(part)
    return "".join(f"{_without_padding(line)}\n" for line in text.getvalue().splitlines())


def _without_padding(line: str) -> str:
    """Return a line without the spaces at its end, styled or not."""
    return re.sub(r"[ ]+((?:\x1b\[[\d;]*m)*)$", r"\1", line)


def abreast(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Divide columns into groups that fit side by side, at least one column in each.

    >>> [group.stop - group.start for group in abreast([4, 4, 4, 30, 1], room=10)]
    [2, 1, 1, 1]
    """
    start = used = 0
    for i, width in enumerate(widths):
        if i > start and used + width > room:
            yield slice(start, i)
            start, used = i, 0
        used += width + GAP
    if widths:
        yield slice(start, len(widths))


def terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


# --- listings ---


def write_page(
    listing: Listing, k: int | None, kind: str, output: Output, names: Sequence[str] = ()
) -> None:
    """Write a page of a listing, or a message. names: the columns of a table, by default all."""
    if not listing and k != 0:
        settings().message(_range_text(listing, kind))
    write_listing(listing, kind, output, names)


def write_listing(listing: Listing, kind: str, output: Output, names: Sequence[str] = ()) -> None:
    """Write rows; a table ends with which of how many they are. kind: such as "items"."""
    output.write(
        listing.to_records(),
        lambda: listing_table(listing, kind, names or listing.names),
        listing.names,
    )


def listing_table(listing: Listing, kind: str, names: Sequence[str]) -> str:
    """Return a table with one line for each row, in which long cells are cut."""
    from rich.cells import cell_len, set_cell_size

    if not listing:
        return ""
    layouts = [layout(name, [row[name] for row in listing]) for name in names]
    lines = [
        list(map(printable, names)),
        *([printable(_listed_cell(name, row[name])) for name in names] for row in listing),
    ]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    flexible = [i for i, layout_ in enumerate(layouts) if layout_ == "wrap"]
    room = terminal_width() - GAP * (len(names) - 1)
    narrow(widths, flexible, room)
    if sum(widths) > room:
        columns = list(zip(names, layouts, strict=True))
        return _as_lists(columns, lines[1:], _range_text(listing, kind))

    def cell(text: str, i: int) -> str:
        if cell_len(text) > widths[i]:
            return f"{set_cell_size(text, widths[i] - 1)}…"
        return aligned(text, widths[i], layouts[i])

    heading, *rows = [
        (" " * GAP).join(cell(text, i) for i, text in enumerate(line)).rstrip() for line in lines
    ]
    caption = click.style(_range_text(listing, kind), dim=True)
    return "\n".join([click.style(heading, bold=True), *rows, caption]) + "\n"


def narrow(
    widths: list[int], flexible: list[int], room: int, least: Sequence[int] | None = None
) -> None:
    """Reduce the widest of the flexible columns, in place, until all columns fit.

    least: how narrow each column may become, by default `MIN_CELL`.

    >>> widths = [6, 40, 30]
    >>> narrow(widths, [1, 2], 40)
    >>> widths
    [6, 17, 17]
    """
    if least is None:
        least = [MIN_CELL] * len(widths)
    while sum(widths) > room:
        reducible = [i for i in flexible if widths[i] > least[i]]
        if not reducible:
            return
        widths[max(reducible, key=lambda i: widths[i])] -= 1


def _range_text(listing: Listing, kind: str) -> str:
    """Return which rows these are, of how many."""
    if not listing.total:
        return f"No {kind}."
    if not listing:
        return f"No {kind} from position {listing.offset + 1:,} on: there are {listing.total:,}."
    first, last = listing.offset + 1, listing.offset + len(listing)
    span = f"{first:,} of " if first == last else f"{first:,} to {last:,} of "
    if len(listing) == listing.total:
        span = ""
    return f"{span}{listing.total:,} {kind if listing.total != 1 else kind.removesuffix('s')}"


def layout(name: str, cells: list[Any]) -> str:
    """Return the layout of a column: "right" for numbers, "left" for ids, else "wrap"."""
    if any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells):
        return "right" if name != "id" else "left"
    return "left" if name in WHOLE else "wrap"


def _listed_cell(name: str, cell: Any) -> str:
    """Return a cell of a listing: a name that the next command is given is never cut."""
    is_name = name in WHOLE and isinstance(cell, str)
    return " ".join(cell.split()) if is_name else cell_text(cell)


def cell_text(cell: Any, max_length: int = MAX_CELL) -> str:
    """Return a cell in one line, cut if it is long."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, float):
        return f"{cell:.10g}" if abs(cell) >= 10 else f"{cell:.4g}"
    return shorten(" ".join(str(cell).split()), max_length)

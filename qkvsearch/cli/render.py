"""The one output renderer: rows to a table, JSON, JSON Lines, CSV or Markdown, or to a file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch._utils.files import replacing, write_file
from qkvsearch.cli.context import settings
from qkvsearch.data import writers
from qkvsearch.terminal import printable, shorten

if TYPE_CHECKING:
    from rich.console import RenderableType

    from qkvsearch.search.listing import Listing

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
# What is more than rows can be a page or a notebook, too.
DOCUMENT_FORMATS = (*FORMATS, "html", "ipynb")
DOCUMENT_BY_SUFFIX = {**BY_SUFFIX, ".html": "html", ".ipynb": "ipynb"}
# Whose cells stand as they are, which is for programs and not for a terminal.
UNESCAPED = ("csv", "markdown")
# Between the columns of a grid.
GAP = 2
# Characters of a cell that a table shows; other formats have all of it.
SHOWN = 40
# And at least so many, where there is no room.
LEAST = 4


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--format` and `-o`; it is passed one `output` that takes its rows."""
    return _with_output(command, FORMATS, BY_SUFFIX)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that writes documents as well: `output.write_document`."""
    return _with_output(command, DOCUMENT_FORMATS, DOCUMENT_BY_SUFFIX)


def _with_output(
    command: Callable[..., Any], formats: Sequence[str], by_suffix: Mapping[str, str]
) -> Callable[..., Any]:
    pages = ".html, .ipynb, " if "html" in formats else ""

    @click.option(
        "--format",
        "format_name",
        type=click.Choice(formats),
        help="How to print.  [default: table, or by the name of -o]",
    )
    @click.option(
        "-o",
        "--output",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Write to a file; {pages}.parquet, .csv, .json, .jsonl and .md name their format.",
    )
    @click.option(
        "--raw",
        is_flag=True,
        help="In CSV, no apostrophe before what a spreadsheet would run as a formula.",
    )
    @wraps(command)
    def with_output(
        *args: Any, format_name: str | None, path: Path | None, raw: bool, **kwargs: Any
    ) -> Any:
        return command(*args, output=Output(format_name, path, by_suffix, raw), **kwargs)

    return with_output


class Output:
    """Where the rows go and in which form."""

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
            known = ", ".join(name for name in by_suffix if name)
            raise click.BadParameter(
                f"cannot tell the format from {suffix!r} (known: {known}); add --format",
                param_hint="-o",
            )
        self.format = format_name or by_suffix[suffix]
        # A command whose result is a change lists it only then.
        self.asked = format_name is not None or path is not None

    def write(self, rows: Rows, table: Callable[[], str], fields: Sequence[str] = ()) -> None:
        """`rows` in the format asked for; `table()` gives the text that a person reads. `fields`
        head the columns even where there are no rows.
        """
        if self.format == "parquet":
            self._write_parquet(rows, fields)
            return
        if self.format not in FORMATS:
            raise click.UsageError(f"a list does not come as {self.format}: it is no document")
        if self.format == "csv":
            self._emit(self._csv(rows, fields))
            return
        self._emit(table() if self.format == "table" else RENDERERS[self.format](rows, fields))

    def write_one(self, whole: Mapping[str, Any], rows: Rows, table: Callable[[], str]) -> None:
        """A result that is one thing: JSON holds it `whole`, as one object; the listing formats
        hold its `rows`.
        """
        if self.format == "json":
            self._emit(to_json(whole))
        else:
            self.write(rows, table)

    def write_document(self, forms: Mapping[str, Callable[[], str]]) -> None:
        """A text that is more than rows: `forms` gives it in each format that it comes in."""
        if self.format not in forms:
            raise click.UsageError(f"this comes as {', '.join(forms)}, not as {self.format}")
        self._emit(forms[self.format]())

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
        """As CSV; what was changed in it for spreadsheets is said."""
        names = _columns(rows, fields)
        lines = writers.CsvLines(names, self.raw)
        text = lines.heading() + lines.text([row.get(name, "") for name in names] for row in rows)
        say_guarded(lines.guarded)
        return text

    def _write_parquet(self, rows: Rows, fields: Sequence[str]) -> None:
        import pandas as pd

        assert self.path is not None
        writers.require_pyarrow(self.path)
        frame = pd.DataFrame(rows, columns=_columns(rows, fields))
        write_file(self.path, frame.to_parquet(index=False))


def write_text(text: str) -> None:
    """To stdout, ending in a newline unless there is nothing."""
    click.echo(text, nl=bool(text) and not text.endswith("\n"))


def write_data(text: str) -> None:
    """`write_text`, for what programs read: a terminal is shown it made visible."""
    write_text(printable(text) if sys.stdout.isatty() else text)


def to_json(rows: Rows | Mapping[str, Any], fields: Sequence[str] = ()) -> str:
    return printable(json.dumps(rows, ensure_ascii=False, indent=1)) + "\n"


def to_jsonl(rows: Rows, fields: Sequence[str] = ()) -> str:
    return writers.to_jsonl(rows)


def say_guarded(guarded: Mapping[str, int]) -> None:
    """That cells of CSV were changed, on stderr."""
    if said := writers.said_of_guarded(guarded):
        settings().say(f"{said}; --raw writes all cells as they are, for programs.")


def to_markdown(rows: Rows, fields: Sequence[str] = ()) -> str:
    names = _columns(rows, fields)
    lines = [names, ["---"] * len(names)]
    lines += [[_markdown_cell(row.get(name)) for name in names] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


RENDERERS = {"json": to_json, "jsonl": to_jsonl, "markdown": to_markdown}


def _columns(rows: Rows, fields: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*fields, *(name for row in rows for name in row)]))


def _markdown_cell(value: Any) -> str:
    text = (
        f"{value:.4f}"
        if isinstance(value, float)
        else str(writers.one_cell("" if value is None else value))
    )
    return text.replace("|", "\\|").replace("\n", " ")


def to_table(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], caption: str = ""
) -> str:
    """A table as wide as the terminal at most. `columns`: headings with "left", "right" or "wrap".

    Only the "wrap" columns give way where the window is narrow.
    """
    has_header = any(name for name, _ in columns)
    if not sys.stdout.isatty():
        plain = _plain_table(columns, rows, caption, has_header)
        if plain is not None:
            return plain
    table = as_rich_table(columns, rows, has_header)
    return rendered([table, *captioned(caption)])


def _plain_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    caption: str,
    has_header: bool,
) -> str | None:
    """The same text as Rich's, which takes longer to be imported than a search to be answered; None
    where something would have to be styled, or cut.
    """
    lines = [[name for name, _ in columns]] if has_header else []
    lines += [
        [printable(cell) if isinstance(cell, str) else str(cell) for cell in row] for row in rows
    ]
    texts = [caption, *(cell for line in lines for cell in line)]
    is_plain = all(text.isprintable() and text == text.strip() for text in texts)
    widths = [max(map(places_of, cells)) for cells in zip(*lines, strict=True)]
    room = terminal_width()
    if not lines or not is_plain or not all(widths) or places_of(caption) > room:
        return None
    excess = sum(widths) + GAP * (len(widths) - 1) - room
    if excess > 0:
        flexible = [place for place, (_, way) in enumerate(columns) if way == "wrap"]
        if len(flexible) != 1:
            return None
        (place,) = flexible
        widths[place] -= excess
        if has_header and places_of(columns[place][0]) > widths[place]:
            return None  # names of columns stand at the bottom of theirs
        if not all(_wraps(line[place], widths[place]) for line in lines):
            return None
    table = "".join(_wrapped(line, widths, [way for _, way in columns]) for line in lines)
    return f"{table}{caption}\n" if caption else table


def places_of(text: str) -> int:
    """How many places of a line it takes in a terminal. Only of letters beyond ASCII does Rich know
    more than their number.
    """
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _wraps(text: str, width: int) -> bool:
    """Whether Rich and the standard library wrap a text in the same way."""
    return text.isascii() and "  " not in text and all(len(word) <= width for word in text.split())


def _wrapped(cells: Sequence[str], widths: Sequence[int], ways: Sequence[str]) -> str:
    """A row of a table, in as many lines as its longest cell has."""
    from textwrap import wrap

    columns = [
        wrap(cell, width, break_on_hyphens=False) if places_of(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    text = ""
    for parts in zip_longest(*columns, fillvalue=""):
        spaces = [
            " " * (width - places_of(part)) for part, width in zip(parts, widths, strict=True)
        ]
        aligned = [
            f"{space}{part}" if way == "right" else f"{part}{space}"
            for part, space, way in zip(parts, spaces, ways, strict=True)
        ]
        text += f"{(' ' * GAP).join(aligned).rstrip()}\n"
    return text


def captioned(caption: str) -> list[RenderableType]:
    """What stands below a table, if anything does."""
    from rich.text import Text

    return [Text(caption, style="dim")] if caption else []


def as_rich_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    has_header: bool = True,
    widths: Sequence[int] | None = None,
) -> RenderableType:
    """The table of `to_table`, not yet a text. widths: of the columns, where they are given."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=has_header)
    for place, (name, layout) in enumerate(columns):
        table.add_column(
            Text(printable(name)),
            justify="right" if layout == "right" else "left",
            no_wrap=layout != "wrap",
            overflow="fold" if layout == "wrap" else "ellipsis",
            width=None if widths is None else widths[place],
        )
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row)
        )
    return table


def rendered(parts: Iterable[RenderableType]) -> str:
    """As text, in colour where stdout is a terminal that has any."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(
        file=text, width=terminal_width(), force_terminal=sys.stdout.isatty(), highlight=False
    )
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def abreast(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Which columns stand side by side, part for part: as many as fit, at least one.

    >>> [part.stop - part.start for part in abreast([4, 4, 4, 30, 1], room=10)]
    [2, 1, 1, 1]
    """
    start = used = 0
    for place, width in enumerate(widths):
        if place > start and used + width > room:
            yield slice(start, place)
            start, used = place, 0
        used += width + GAP
    if widths:
        yield slice(start, len(widths))


def terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


# --- listings ---


def write_page(listing: Listing, k: int | None, kind: str, output: Output) -> None:
    """`write_listing`; where none of the k rows asked for is there, that is said."""
    if not listing and k != 0:
        settings().say(counted(listing, kind))
    write_listing(listing, kind, output)


def write_listing(listing: Listing, kind: str, output: Output) -> None:
    """The rows; a table ends with which of how many they are. kind: of what, such as "items"."""
    output.write(listing.to_records(), lambda: listing_table(listing, kind), listing.names)


def listing_table(listing: Listing, kind: str) -> str:
    """A line a row, however many there are: what gives way is cut, not folded."""
    from rich.cells import cell_len, set_cell_size

    if not listing:
        return ""
    names = listing.names
    layouts = [layout(name, [row[name] for row in listing]) for name in names]
    lines = [
        list(map(printable, names)),
        *([printable(shown(row[name])) for name in names] for row in listing),
    ]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    flexible = [place for place, way in enumerate(layouts) if way == "wrap"]
    narrowed(widths, flexible, terminal_width() - GAP * (len(names) - 1))

    def cell(text: str, place: int) -> str:
        room = widths[place] - cell_len(text)
        if room < 0:
            return f"{set_cell_size(text, widths[place] - 1)}…"
        return " " * room + text if layouts[place] == "right" else text + " " * room

    texts = [
        (" " * GAP).join(cell(text, place) for place, text in enumerate(line)).rstrip()
        for line in lines
    ]
    heading, *rows = texts
    caption = click.style(counted(listing, kind), dim=True)
    return "\n".join([click.style(heading, bold=True), *rows, caption]) + "\n"


def narrowed(widths: list[int], flexible: list[int], room: int) -> None:
    """Take from the widest of the flexible columns, in place, until all fit into the room.

    >>> widths = [6, 40, 30]
    >>> narrowed(widths, [1, 2], 40)
    >>> widths
    [6, 17, 17]
    """
    while sum(widths) > room and flexible:
        widest = max(flexible, key=lambda place: widths[place])
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1


def counted(listing: Listing, kind: str) -> str:
    """Which rows these are, of how many."""
    if not listing.total:
        return f"No {kind}."
    if not listing:
        return f"No {kind} from place {listing.offset + 1:,} on: there are {listing.total:,}."
    first, last = listing.offset + 1, listing.offset + len(listing)
    span = f"{first:,} of " if first == last else f"{first:,} to {last:,} of "
    part = "" if len(listing) == listing.total else span
    return f"{part}{listing.total:,} {kind if listing.total != 1 else kind.removesuffix('s')}"


def layout(name: str, cells: list[Any]) -> str:
    """How a column stands: numbers to the right, ids whole, all else gives way."""
    if any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells):
        return "right" if name != "id" else "left"
    return "left" if name in ("id", "user", "time", "recorded") else "wrap"


def shown(cell: Any, most: int = SHOWN) -> str:
    """In one line, cut where it is long."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, float):
        return f"{cell:.10g}" if abs(cell) >= 10 else f"{cell:.4g}"
    return shorten(" ".join(str(cell).split()), most)

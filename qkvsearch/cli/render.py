"""The output options of commands: rows as a table, JSON, JSON Lines, CSV, Markdown or Parquet, to
stdout or a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from qkvsearch._utils.files import replacing, write_file
from qkvsearch.cli.context import settings
from qkvsearch.tables import writers
from qkvsearch.terminal import printable

Records = Sequence[Mapping[str, Any]]

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
# Lessons can also be a page, slides or a notebook.
DOCUMENT_FORMATS = (*FORMATS, "html", "slides", "ipynb")
DOCUMENT_BY_SUFFIX = {**BY_SUFFIX, ".html": "html", ".ipynb": "ipynb"}
# Formats that do not escape control characters.
UNESCAPED = ("csv", "markdown")
# The decimals of a number in Markdown, which people read. Other formats have all of them.
MARKDOWN_DECIMALS = 4


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format`, `-o` and `--raw`; the command gets an `Output` as its argument `output`."""
    return _with_output(command, FORMATS, BY_SUFFIX)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options to a command that can also write documents."""
    return _with_output(command, DOCUMENT_FORMATS, DOCUMENT_BY_SUFFIX)


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options to a command that can also write a page."""
    return _with_output(command, (*FORMATS, "html"), {**BY_SUFFIX, ".html": "html"})


def picture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options to a command that can also write a page or a picture."""
    pictures = ("html", "svg", "png")
    by_suffix = {**BY_SUFFIX, **{f".{name}": name for name in pictures}}
    return _with_output(command, (*FORMATS, *pictures), by_suffix)


def _with_output(
    command: Callable[..., Any], formats: Sequence[str], by_suffix: Mapping[str, str]
) -> Callable[..., Any]:
    all_documents = (".html", ".svg", ".png", ".ipynb")
    documents = (suffix for suffix in all_documents if suffix in by_suffix)
    pages = "".join(f"{suffix}, " for suffix in documents)

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

    def write(self, rows: Records, table: Callable[[], str], fields: Sequence[str] = ()) -> None:
        """Write rows as requested. table: makes the table. fields: columns that come first."""
        match self.format:
            case "table":
                self._emit(table())
            case "json":
                self._emit(to_json(rows))
            case "jsonl":
                self._emit(writers.to_jsonl(rows))
            case "csv":
                self._emit(self._csv(rows, fields))
            case "markdown":
                self._emit(to_markdown(rows, fields))
            case "parquet":
                self._write_parquet(rows, fields)
            case _:
                raise click.UsageError(f"a list cannot be written as {self.format}")

    def write_one(
        self,
        whole: Mapping[str, Any],
        rows: Records,
        table: Callable[[], str],
        fields: Sequence[str] = (),
    ) -> None:
        """Write a single result: as JSON the object `whole`, in other formats its `rows`. fields:
        columns that come first.
        """
        if self.format == "json":
            self._emit(to_json(whole))
        else:
            self.write(rows, table, fields)

    def write_document(self, renderers: Mapping[str, Callable[[], str]]) -> None:
        """Write a document. renderers: makes it, by format."""
        if self.format not in renderers:
            formats = ", ".join(renderers)
            raise click.UsageError(f"this can be written as {formats}, not as {self.format}")
        self._emit(renderers[self.format]())

    def write_bytes(self, content: bytes) -> None:
        """Write a file that is no text. Raises `click.UsageError` where none is named."""
        if self.path is None:
            raise click.UsageError(f"{self.format} is not for a terminal: give -o FILE")
        write_file(self.path, content)

    def _emit(self, text: str) -> None:
        if self.path is None:
            if self.format in UNESCAPED:
                write_data(text)
            else:
                write_text(text)
            return
        if self.format == "table":  # made for a terminal, if stdout is one
            text = click.unstyle(text)
        if not text.endswith("\n"):
            text += "\n"
        with replacing(self.path) as file:
            if file.isatty():
                text = printable(text)
            file.write(text.encode())

    def _csv(self, rows: Records, fields: Sequence[str]) -> str:
        """Return rows as CSV, with a message about cells changed for spreadsheets."""
        names = _columns(rows, fields)
        lines = writers.CsvLines(names, self.raw)
        shown = map(writers.with_shown_sums, rows)
        text = lines.heading() + lines.text([row.get(name, "") for name in names] for row in shown)
        if note := writers.said_of_guarded(lines.guarded):
            settings().message(f"{note}; --raw writes all cells as they are, for programs.")
        return text

    def _write_parquet(self, rows: Records, fields: Sequence[str]) -> None:
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


def to_json(rows: Records | Mapping[str, Any]) -> str:
    return printable(json.dumps(rows, ensure_ascii=False, indent=1)) + "\n"


def to_markdown(rows: Records, fields: Sequence[str] = ()) -> str:
    names = _columns(rows, fields)
    lines = [names, ["---"] * len(names)]
    for row in rows:
        shown = writers.with_shown_sums(row, MARKDOWN_DECIMALS)
        lines.append([_markdown_cell(shown.get(name)) for name in names])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _columns(rows: Records, fields: Sequence[str]) -> list[str]:
    """Return the names of all columns: the given ones, then others in the order of the rows."""
    names = dict.fromkeys(fields)
    for row in rows:
        names.update(dict.fromkeys(row))
    return list(names)


def _markdown_cell(value: Any) -> str:
    if value is None:
        text = ""
    elif isinstance(value, float):
        text = f"{value:.{MARKDOWN_DECIMALS}f}"
    else:
        text = str(writers.one_cell(value))
    return text.replace("|", "\\|").replace("\n", " ")

"""The option `--report` of a build, and the report as a text and as a page."""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qkvsearch._utils.files import real_path, write_file
from qkvsearch.cli.output_file import checked_file
from qkvsearch.cli.stderr import spelled
from qkvsearch.cli.wrapping import TEXT_WIDTH, wrapped
from qkvsearch.errors import quantity
from qkvsearch.terminal import printable, shorten

if TYPE_CHECKING:
    from qkvsearch.lessons.markup import Html
    from qkvsearch.tables.build_report import BuildReport, ColumnReport, FileReport

SUFFIXES = (".json", ".html", ".txt")
TITLES = {True: "What would be built", False: "What was built"}
# Characters of a cell that are shown.
MAX_EXAMPLE = 60
# How a build calls the ways to read ambiguous cells.
CONVENTIONS = {".": "decimal point", ",": "decimal comma"}
# Rows of a file, by what became of them.
COUNTS = ("read", "kept", "combined", "skipped")

report_option = click.option(
    "--report",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=lambda context, option, path: checked_file(path, SUFFIXES, "a report"),
    help="Also write what became of every column, row and cell, to a .html, .txt or .json file; "
    "with --plan before anything is built.",
)


def write_report(report: BuildReport, path: Path) -> None:
    """Write a report in the format that the name of the file says. Raises `DataError`."""
    views: dict[str, Callable[[BuildReport], str]] = {
        ".json": to_json,
        ".html": to_page,
        ".txt": to_text,
    }
    text = views[path.suffix.lower()](_with_options(report))
    write_file(path, printable(text).encode("utf-8", "replace"))


def _with_options(report: BuildReport) -> BuildReport:
    """Return the report with parameters spelled as on the command line."""
    context = click.get_current_context()

    def say(text: str) -> str:
        return spelled(text, context, context.command)

    files = [
        replace(
            file,
            chosen=say(file.chosen),
            notes=list(map(say, file.notes)),
            warnings=list(map(say, file.warnings)),
        )
        for file in report.files
    ]
    return replace(report, files=files)


def refuse_to_replace(path: Path | None, sources: Sequence[str | None]) -> None:
    """Raise `click.UsageError` where the report would replace a file that is read, or would be one
    of the documents in a folder. sources: files, folders and patterns.
    """
    if path is None:
        return
    file = real_path(path)
    for source in filter(None, sources):
        if Path(source).is_dir():
            from qkvsearch.tables.documents.document_files import FORMAT_OF

            if path.suffix.lower() in FORMAT_OF and real_path(Path(source)) in file.parents:
                raise click.UsageError(f"--report {path} would be a document of {source}")
            continue
        named = [source, source.partition("#")[0], *glob.glob(source, recursive=True)]
        if any(real_path(Path(name)) == file for name in named):
            raise click.UsageError(f"--report {path} would replace a file that is read")


def to_json(report: BuildReport) -> str:
    return json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n"


# --- sentences that the text and the page share ---


def _summary(report: BuildReport) -> str:
    if report.planned:
        return f"Nothing was built; {report.workspace} would have {report.size}."
    return f"{report.workspace} has {report.size}."


def _uses(report: BuildReport) -> Iterator[str]:
    """Yield what is searched and what one can filter by."""
    yield f"Searched: {', '.join(report.searched) or 'nothing'}."
    if report.unsearched:
        reasons = [f"{name} ({reason})" for name, reason in report.unsearched.items()]
        yield f"Texts that are not searched: {', '.join(reasons)}."
    yield f"Filters: {', '.join(report.filtered) or 'none'}."


def _changes(column: ColumnReport) -> str:
    """Return how many cells of a column changed, and how."""
    kinds = [f"{what} ({count:,})" for what, count in column.facts.changed.items()]
    if not column.changed:
        return ", ".join(kinds)
    changed = f"{quantity(column.changed, 'cell')} changed"
    return f"{changed}: {', '.join(kinds)}" if kinds else changed


def _examples(column: ColumnReport) -> str:
    return ", ".join(repr(shorten(cell, MAX_EXAMPLE)) for cell in column.examples)


def _type(column: ColumnReport) -> str:
    """Return the type of a column, with its unit and how doubtful cells were read."""
    record = column.facts.to_record()
    more = str(record.get("unit") or _convention(column))
    return f"{column.facts.type} ({more})" if more else column.facts.type


def _convention(column: ColumnReport) -> str:
    """Return how doubtful cells were read; of events, a note tells what each counts."""
    convention = column.facts.convention.strip()
    if not convention or column.facts.role == "event":
        return ""
    if column.facts.type == "list":
        return f"separated by {convention}"
    return CONVENTIONS.get(convention, convention)


def _role(column: ColumnReport) -> str:
    uses = [column.facts.role] if column.facts.role not in ("", "text") else []
    if column.searched:
        uses.append("searched")
    if column.filtered:
        uses.append("filter")
    return ", ".join(uses)


def _skipped_examples(rows: Sequence[str]) -> str:
    return f"row {', '.join(rows)}" if rows else ""


# --- the text ---


def to_text(report: BuildReport) -> str:
    """Return the report in lines of 80 columns."""
    lines = [TITLES[report.planned], "", _summary(report), *_uses(report)]
    lines += [f"Warning: {warning}" for warning in report.warnings]
    for file in report.files:
        lines += ["", *_file_lines(file)]
    groups = (("items", report.columns), ("interactions", report.log_columns))
    for kind, columns in groups:
        if columns:
            lines += ["", f"Columns of the {kind}"]
            lines += [f"  {line}" for column in columns for line in _column_lines(column)]
    if report.lines:
        lines += ["", *report.lines]
    return "".join(f"{_in_lines(line)}\n" for line in lines)


def _in_lines(line: str) -> str:
    indent = len(line) - len(line.lstrip()) + 2
    return wrapped(line, TEXT_WIDTH, indent) if line else ""


def _file_lines(file: FileReport) -> Iterator[str]:
    yield (
        f"{file.file}: {quantity(file.read, file.unit)} read, {file.kept:,} kept, "
        f"{file.combined:,} combined with others, {file.n_skipped:,} skipped"
    )
    for each in file.skipped:
        examples = f": {_skipped_examples(each.rows)}" if each.rows else ""
        yield f"  skipped {each.count:,} {each.reason}{examples}"
    if file.chosen:
        yield f"  columns: {file.chosen}"
    for note in file.notes:
        yield f"  {note}"


def _column_lines(column: ColumnReport) -> Iterator[str]:
    facts = [_type(column), _role(column)]
    if column.empty:
        facts.append(f"{column.empty:,} empty")
    changes = _changes(column)
    if changes:
        facts.append(changes)
    line = f"{column.facts.name}: {'; '.join(fact for fact in facts if fact)}"
    yield f"{line}; such as {_examples(column)}" if column.examples else line


# --- the page ---


def to_page(report: BuildReport) -> str:
    """Return the report as a page of HTML in one file, without a network."""
    from qkvsearch.cli.page import page, section
    from qkvsearch.lessons.markup import element

    introduction = [element("p", _summary(report), class_="quiet")]
    introduction += [element("p", sentence) for sentence in _uses(report)]
    introduction += [
        element("p", element("strong", "Warning: "), warning) for warning in report.warnings
    ]
    body: list[Html] = [section("Rows", "rows", *_rows(report))]
    groups = (("items", report.columns), ("interactions", report.log_columns))
    for kind, columns in groups:
        if columns:
            title = f"Columns of the {kind}"
            body.append(section(title, kind, _columns_table(columns, title)))
    if report.lines:
        title = "The plan" if report.planned else "The build"
        body.append(section(title, "build", *(element("p", line) for line in report.lines)))
    return page(TITLES[report.planned], introduction, body)


def _rows(report: BuildReport) -> Iterator[Html]:
    """Yield tables of what became of the rows of each file, and the notes."""
    from qkvsearch.cli.page import records, table
    from qkvsearch.lessons.markup import element

    counts = [
        [file.file, *(f"{n:,}" for n in (file.read, file.kept, file.combined, file.n_skipped))]
        for file in report.files
    ]
    yield table(["file", *COUNTS], counts, label="Rows of each file")
    skipped = [
        [file.file, each.reason, f"{each.count:,}", _skipped_examples(each.rows)]
        for file in report.files
        for each in file.skipped
    ]
    if skipped:
        headings = ["file", "skipped", "rows", "such as"]
        yield records(headings, skipped, label="Rows that were skipped")
    for file in report.files:
        chosen = [f"columns: {file.chosen}"] if file.chosen else []
        for note in (*chosen, *file.notes):
            yield element("p", f"{file.file}: {note}", class_="quiet")


def _columns_table(columns: Sequence[ColumnReport], label: str) -> Html:
    from qkvsearch.cli.page import records

    headings = ["column", "type", "used as", "empty", "a cell", "changed", "as it was"]
    rows = [
        [
            column.facts.name,
            _type(column),
            _role(column),
            f"{column.empty:,}" if column.empty else "",
            shorten(column.facts.example, MAX_EXAMPLE),
            _changes(column),
            _examples(column),
        ]
        for column in columns
    ]
    return records(headings, rows, label=label)

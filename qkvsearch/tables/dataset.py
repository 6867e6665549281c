"""Read files and frames as a data set: a catalog, interactions, and reports on every row."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pandas as pd

from qkvsearch._utils.limits import LOG_ROWS, ROWS, Limit
from qkvsearch._utils.validation import require
from qkvsearch.errors import DataError
from qkvsearch.tables.catalog import Catalog, catalog_from_frame, catalog_of_ids
from qkvsearch.tables.column_facts import ColumnFacts
from qkvsearch.tables.columns import Columns, check_column, find_column, named
from qkvsearch.tables.documents.document_files import DocumentFiles, documents_of
from qkvsearch.tables.documents.lone_text import lone_text
from qkvsearch.tables.documents.reading import add_documents
from qkvsearch.tables.documents.texts_beside import with_texts
from qkvsearch.tables.fields import with_fields
from qkvsearch.tables.files.tables import read_into, sheets_of
from qkvsearch.tables.files.unpacking import matching
from qkvsearch.tables.frames import (
    as_text,
    check_width,
    text_lengths,
    without_long_cells,
)
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.joining import with_details
from qkvsearch.tables.layouts import LINES, in_rows, rows_of_objects
from qkvsearch.tables.log import interactions_from_table
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import LOG_TYPES
from qkvsearch.tables.table import Table, TableBuilder, different_rows

# A table with the report on how it was read.
ReadTable: TypeAlias = tuple[Table, ReadReport]
# Files and frames of a list are read as one table.
File: TypeAlias = "str | Path | pd.DataFrame"
Source: TypeAlias = "File | list[File] | tuple[File, ...]"
# Rows of a log that are looked at for a column with the titles of its items.
SAMPLE_ROWS = 100_000
# The name of a table that may be a catalog or a log.
SOURCE = "source"
# The name of tables that are joined to the items, and what stands for all sheets of a workbook.
JOIN = "join"
ALL_SHEETS = "#*"
COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst|zip)$", re.IGNORECASE)


class DistributedLog(Protocol):
    """A log that an engine holds in blocks, such as `engines.spark.spark_log.SparkLog`."""

    @property
    def n_users(self) -> int: ...

    def __len__(self) -> int: ...


@dataclass
class Dataset:
    """Items, interactions (or None), reports on files, and options that recorded files share."""

    catalog: Catalog
    interactions: Interactions | DistributedLog | None = None
    reports: list[ReadReport] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    def log_columns(self) -> list[ColumnFacts]:
        """Return the facts about the columns of the interactions."""
        return [
            column
            for report in self.reports
            for column in report.columns
            if column.role in LOG_TYPES
        ]

    def lines(self, *, of_log: bool) -> list[str]:
        """Return the reports on the files of interactions, or on the other files."""
        lines = []
        for report in self.reports:
            if _is_of_log(report) == of_log:
                lines += report.lines()
        return lines

    def name(self) -> str:
        """Return what people call the catalog: its file's name, without what stands for the format.
        "" for items of several files, of a frame, or named by interactions alone.
        """
        own = next((report for report in self.reports if not _is_of_log(report)), None)
        if own is None or own.files:
            return ""
        file = own.file.partition("#")[0]  # a sheet comes after it
        name = COMPRESSED.sub("", file.replace("\\", "/").rpartition("/")[2])
        stem, dot, _ = name.rpartition(".")
        return stem if dot else ""

    @property
    def scale_inferred(self) -> bool:
        """Whether the scale of the ratings is what the ratings say, and nobody declared it."""
        return any(report.scale_inferred for report in self.reports)


def _is_of_log(report: ReadReport) -> bool:
    return any(column.role in LOG_TYPES for column in report.columns)


def read_dataset(
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None = None,
    join: Source | None = None,
) -> Dataset:
    """Read a file or frame of items, of interactions, or both.

    With interactions alone, the items have the titles that the log names, or else their ids. join:
    tables that add columns to the items, by id.
    """
    columns = columns or Columns()
    if interactions is None:
        columns.refuse([*LOG_TYPES], "interactions")
    if items is None and columns.texts is not None:
        raise DataError("`texts` are the texts of `items`, which were not given")
    if items is None and interactions is None:
        raise DataError("nothing to build from: give a source, `items` or `interactions`")
    log = None if interactions is None else load(interactions, "interactions", columns)
    catalog, details = load_items(items, columns, join)
    return dataset_of(catalog, log, columns, details)


def dataset_of(
    items: ReadTable | None,
    log: ReadTable | None,
    columns: Columns,
    details: Sequence[ReadTable] = (),
) -> Dataset:
    """Make a data set of a table of items, one of interactions, or both. details: tables that add
    columns to the items, by id.
    """
    tables = [part for part in (log, items, *details) if part is not None]
    names = [name for table, _ in tables for name in table.columns]
    for name in columns.ignore:
        check_column(name, names, "ignored columns", "`ignore`")
    catalog, interactions = None, None
    reports: list[ReadReport] = []
    if items is not None:
        log_table = None if log is None else log[0]
        catalog = catalog_of(items, details, columns, log_table)
        reports += [items[1], *(report for _, report in details)]
    if log is not None:
        table, report = log
        if catalog is None:
            columns.refuse(("id",), "items")
            catalog = _titles_in_log(table, columns, report.file)
        item_ids = catalog.ids if catalog else None
        interactions = interactions_from_table(table, columns, report, item_ids)
        reports.append(report)
        catalog = catalog or catalog_of_ids(interactions.item_ids)
    assert catalog is not None
    for report in reports:
        report.conclude(columns.strict)
    return Dataset(catalog, interactions, reports, columns.options_of_log())


def catalog_of(
    items: ReadTable, details: Sequence[ReadTable], columns: Columns, log: Table | None
) -> Catalog:
    """Make a catalog of a table of items, with the columns that other tables add by id."""
    table, report = items
    frame = table.frame()
    if details:
        frame, columns = with_details(frame, details, columns, report, log)
    catalog = catalog_from_frame(frame, columns, report, log)
    report.require_roles(catalog.columns)
    return catalog


def _titles_in_log(table: Table, columns: Columns, file: str) -> Catalog | None:
    """Return the items of a log that has a column of their titles, or None."""
    names, item = columns.not_ignored(table.columns), None
    if columns.item is not None:  # it may be called title
        item = find_column("item", columns.item, names, file)
    title = find_column("title", columns.title, [name for name in names if name != item], file)
    if item is None:
        item = find_column("item", None, [name for name in names if name != title], file)
    if columns.title is None and item is not None:
        title = next(
            (name for name in named("title", names) if _are_titles(table, item, name)), None
        )
    if title is None or item is None:
        columns.refuse(("text",), "items")
        if columns.types:
            raise DataError("`types` is of the columns of `items`, which were not given")
        return None
    text = [check_column(name, names, file, "`text_columns`") for name in columns.text or [title]]
    rows = different_rows(table, list(dict.fromkeys([item, title, *text])))
    item_columns = Columns(id=item, title=title, text=text, types=columns.types)
    report = ReadReport(file, read=len(table))
    return catalog_from_frame(rows[rows[item].notna()], item_columns, report)


def _are_titles(table: Table, item: str, title: str) -> bool:
    """Return whether most items have one title each: they have several buyers and orders. Numbers
    such as #1001 are of orders.
    """
    if item == title:
        return False
    rows = table.frame([item, title], slice(0, SAMPLE_ROWS)).dropna()
    titles = rows.drop_duplicates().groupby(item).size()
    are_single = len(titles) > 0 and bool((titles == 1).mean() > 0.5)
    return are_single and not rows[title].str.fullmatch(r"\W*\d+").all()


def load_items(
    items: Source | None, columns: Columns, join: Source | None = None
) -> tuple[ReadTable | None, list[ReadTable]]:
    """Read the table of items, and those that add columns to it. `book.xlsx#*` is the first sheet
    and all those with the same columns, and the other sheets are joined.
    """
    if items is None:
        if join is not None:
            raise DataError("`join` adds columns to `items`, which were not given")
        return None, []
    own, others = split_sheets(items)
    details = [load(sheet, JOIN, columns, ROWS) for sheet in others]
    table = load(own, "items", columns, ROWS)
    is_alike = [set(part.columns) == set(table[0].columns) for part, _ in details]
    if any(is_alike):
        alike = [sheet for sheet, same in zip(others, is_alike, strict=True) if same]
        details = [part for part, same in zip(details, is_alike, strict=True) if not same]
        table = load([*own, *alike], "items", columns, ROWS)
    return table, [*details, *load_details(join, columns)]


def load_details(join: Source | None, columns: Columns) -> list[ReadTable]:
    """Read the tables that add columns to the items, each by itself."""
    if join is None:
        return []
    return [load(source, JOIN, columns, ROWS) for source in _sources(join, JOIN, columns)]


def split_sheets(items: Source) -> tuple[list[File], list[File]]:
    """Return the tables of items, and the sheets that `book.xlsx#*` adds: all but the first."""
    several = list(items) if isinstance(items, list | tuple) else [items]
    own: list[File] = []
    others: list[File] = []
    for each in several:
        if isinstance(each, str | Path) and str(each).endswith(ALL_SHEETS):
            path = str(each).removesuffix(ALL_SHEETS)
            first, *rest = [f"{path}#{name}" for name in sheets_of(path)]
            own.append(first)
            others += rest
        else:
            own.append(each)
    return own, others


def load(
    source: Source, name: str, columns: Columns | None = None, limit: Limit = LOG_ROWS
) -> ReadTable:
    """Read files or frames as one table that may be larger than memory: columns by their names,
    those that a file lacks empty there. name: what messages call a frame; "interactions" may be in
    another layout than rows, and `SOURCE` may be either: its objects stay as they are.
    """
    is_log = name == "interactions"
    columns = columns or Columns()
    layout = (columns.layout or "rows") if is_log else "rows"
    delimiter, header = LINES if layout == "lists" else (columns.delimiter, None)
    encoder = TableBuilder()
    reports: list[ReadReport] = []
    names: list[set[str]] = []
    sources = _sources(source, name, columns)
    for number, each in enumerate(sources, 1):
        if isinstance(each, DocumentFiles):
            report = add_documents(encoder, each, limit, columns.encoding)
        elif isinstance(each, pd.DataFrame):
            report = _add_frame(encoder, each, f"{name} {number}" if len(sources) > 1 else name)
        else:
            report = read_into(encoder, each, limit, delimiter, header, columns.encoding)
        if any(report.file == other.file for other in reports):
            report.file = str(each)
        reports.append(report)
        names.append(encoder.names)
        encoder.next_file()
    report = reports[0] if len(reports) == 1 else ReadReport.of_files(reports, names)
    table = encoder.table()
    if columns.texts is not None and name not in ("interactions", JOIN):
        if any(isinstance(each, DocumentFiles) for each in sources):
            raise DataError("`texts` are the texts of a table's items; these items are files")
        table = with_texts(table, columns, report)
    if layout != "rows":
        return in_rows(table, report, columns)
    if name == SOURCE:
        return table, report
    return rows_of_log(table, report, columns) if is_log else rows_of_items(table, report, columns)


def rows_of_log(table: Table, report: ReadReport, columns: Columns) -> ReadTable:
    """Return a log with a row for each object in a list of items, and a column for each field."""
    return with_fields(*rows_of_objects(table, report), columns.ignore)


def rows_of_items(table: Table, report: ReadReport, columns: Columns) -> ReadTable:
    """Return a catalog with a column for each field of the objects in its cells."""
    return with_fields(table, report, columns.ignore)


def _add_frame(encoder: TableBuilder, frame: pd.DataFrame, name: str) -> ReadReport:
    """Add a frame as text, without the rows that have too long cells. An index with a name is a
    column, and so is one of texts, such as ids.
    """
    has_name = any(level is not None for level in frame.index.names)
    if has_name or not pd.api.types.is_integer_dtype(frame.index.dtype):
        frame = frame.reset_index(allow_duplicates=True)
    check_width(frame.shape[1], name)
    report = ReadReport(name, read=len(frame))
    texts = as_text(frame, report)
    encoder.add(without_long_cells(texts, text_lengths(texts), report))
    return report


def _sources(source: Source, name: str, columns: Columns) -> list[File | DocumentFiles]:
    """Return files and frames, patterns replaced by the files that they match, and all documents as
    one. Raises `DataError` for a pattern that matches none, and for a file that is named twice.
    """
    several: list[Any] = list(source) if isinstance(source, list | tuple) and source else [source]
    known = str | PathLike | pd.DataFrame | DocumentFiles
    is_known = all(isinstance(each, known) for each in several)
    require(is_known, name, source, "a file, a pandas frame, or a list of them")
    names_columns = any((columns.id, columns.title, columns.text, columns.types))
    tells_layout = any((columns.user, columns.item, columns.layout, columns.delimiter))
    may_be_texts = name in ("items", SOURCE) and not (names_columns or tells_layout)
    sources: list[Any] = []
    documents: list[DocumentFiles] = []
    for each in several:
        if isinstance(each, pd.DataFrame):
            sources.append(each)
        elif isinstance(each, DocumentFiles):
            documents.append(each)
        elif name != "interactions" and (files := _documents(each, columns, may_be_texts)):
            documents.append(files)
        else:
            sources += matching(each)
    _refuse_repeated([*sources, *(path for files in documents for path in files.paths)], name)
    return [*sources, *([DocumentFiles.of_all(documents)] if documents else [])]


def _documents(source: str | Path, columns: Columns, may_be_text: bool) -> DocumentFiles | None:
    """Return the documents that a source means, None where it means tables. may_be_text: it may be
    one `.txt` file.
    """
    files = documents_of(source)
    return lone_text(source, columns.encoding) if files is None and may_be_text else files


def _refuse_repeated(sources: list[Any], name: str) -> None:
    """Raise `DataError` for a file or a frame that is named twice."""
    seen: set[object] = set()
    for each in sources if len(sources) > 1 else []:
        is_frame = isinstance(each, pd.DataFrame)
        key = id(each) if is_frame else os.path.realpath(str(each).replace("\0", ""))
        if key in seen:
            what = "a frame" if is_frame else each
            raise DataError(f"{what} is named twice in `{name}`: each row would count twice")
        seen.add(key)

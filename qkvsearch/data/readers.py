"""Files and frames of any origin to a `Catalog` and `Interactions`."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from qkvsearch._utils.validation import require
from qkvsearch.data.catalog import Catalog, catalog_from_frame, catalog_of_ids
from qkvsearch.data.columns import Columns, check_column, find_column, named
from qkvsearch.data.columns.choice import LOG_TYPES
from qkvsearch.data.columns.facts import ColumnFacts
from qkvsearch.data.files.encoded import EncodedTable, different_rows, encoded
from qkvsearch.data.files.frames import (
    as_text,
    check_width,
    text_lengths,
    without_long_cells,
)
from qkvsearch.data.files.tables import read_encoded, read_table
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.log import interactions_from_table
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

if TYPE_CHECKING:
    from qkvsearch.engines.spark.spark_log import SparkLog

Table: TypeAlias = tuple[pd.DataFrame, ReadReport]
Source: TypeAlias = "str | Path | pd.DataFrame | Table | tuple[EncodedTable, ReadReport]"
# So many rows of a log tell whether a column names its items.
ENOUGH_ROWS = 100_000


@dataclass
class Dataset:
    """What `build` needs: items, interactions (or None), and a report on every row read."""

    catalog: Catalog
    interactions: Interactions | SparkLog | None = None
    reports: list[ReadReport] = field(default_factory=list)

    def log_columns(self) -> list[ColumnFacts]:
        """Of the interactions, what each column was taken for."""
        return [
            column
            for report in self.reports
            for column in report.columns
            if column.role in LOG_TYPES
        ]


def read_dataset(
    items: Source | None, interactions: Source | None, columns: Columns | None = None
) -> Dataset:
    """From a file or frame of items, of a log, or both. With a log alone, ids are the titles."""
    columns = columns or Columns()
    catalog, log = None, None
    reports: list[ReadReport] = []
    if interactions is None:
        columns.refuse([*LOG_TYPES], "interactions")
    if items is None and interactions is None:
        raise DataError("nothing to build from: give a source, `items` or `interactions`")
    sign = columns.delimiter
    rows = None if interactions is None else load_encoded(interactions, "interactions", sign)
    if items is not None:
        frame, report = load(items, "items", sign)
        catalog = catalog_from_frame(frame, columns, report, None if rows is None else rows[0])
        reports.append(report)
    if rows is not None:
        table, report = rows
        if catalog is None:
            columns.refuse(("id",), "items")
            catalog = _titles_in_log(table, columns, report.file)
        log = interactions_from_table(table, columns, report, catalog.ids if catalog else None)
        reports.append(report)
        catalog = catalog or catalog_of_ids(log.item_ids)
    assert catalog is not None
    for report in reports:
        report.conclude(columns.strict)
    return Dataset(catalog, log, reports)


def _titles_in_log(table: EncodedTable, columns: Columns, file: str) -> Catalog | None:
    """The items that a log names beside their ids, or None where it names none."""
    names = list(table.columns)
    title = find_column("title", columns.title, names, file)
    item = find_column("item", columns.item, [name for name in names if name != title], file)
    if columns.title is None and item is not None:
        title = next((name for name in named("title", names) if _names(table, item, name)), None)
    if title is None or item is None:
        columns.refuse(("text",), "items")
        if columns.types:
            raise DataError("`types` is of the columns of `items`, which were not given")
        return None
    about = Columns(id=item, title=title, text=columns.text or [title], types=columns.types)
    text = [check_column(name, names, file, "`text_columns`") for name in about.text or ()]
    kept = different_rows(table, list(dict.fromkeys([item, title, *text])))
    return catalog_from_frame(kept[kept[item].notna()], about, ReadReport(file, read=len(table)))


def _names(table: EncodedTable, item: str, title: str) -> bool:
    """Whether items have one title each, as a buyer's name or an order's number would not be."""
    if item == title:
        return False
    rows = table.frame([item, title], slice(0, ENOUGH_ROWS)).dropna()
    titles = rows.drop_duplicates().groupby(item).size()
    return len(titles) > 0 and bool((titles == 1).mean() > 0.5)


def load(source: Source, name: str, delimiter: str | None = None) -> Table:
    """A file or a frame, as a frame of text; `name` is what messages call a frame."""
    if isinstance(source, tuple):
        return source
    if isinstance(source, pd.DataFrame):
        check_width(source.shape[1], name)
        report = ReadReport(name, read=len(source))
        frame = as_text(source, report)
        return without_long_cells(frame, text_lengths(frame), report), report
    require(isinstance(source, str | PathLike), name, source, "a file or a pandas frame")
    return read_table(source, delimiter=delimiter)


def load_encoded(
    source: Source, name: str, delimiter: str | None = None
) -> tuple[EncodedTable, ReadReport]:
    """The same, as a table that may be longer than memory."""
    if isinstance(source, tuple | pd.DataFrame):
        table, report = load(source, name)
        return table if isinstance(table, EncodedTable) else encoded(table), report
    require(isinstance(source, str | PathLike), name, source, "a file or a pandas frame")
    return read_encoded(source, delimiter=delimiter)

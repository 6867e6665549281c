"""The catalog: one row an item, sorted by id, with the columns that search reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qkvsearch.data.columns import (
    ColumnFacts,
    Columns,
    find_column,
    find_text_columns,
    require_column,
)
from qkvsearch.data.ids import Ids, case_note, id_texts, one_case
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# What spreadsheets write where a formula failed, such as an id that begins with "=" or "-".
SPREADSHEET_ERROR = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NULL!|NUM!)")
YEAR_IN_TITLE = r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)\s*$"


@dataclass(frozen=True)
class Catalog:
    """`frame`: columns id (text), title, then the source's own, with numbers as numbers.

    Rows are in the natural order of the ids, so that ties broken by row are broken by id.
    """

    ids: Ids
    frame: pd.DataFrame
    text_columns: tuple[str, ...]
    columns: tuple[ColumnFacts, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def texts(self) -> list[str]:
        """What search reads of each item: its text columns, one a line."""
        return ["\n".join(fields) for fields in zip(*self.fields(), strict=True)]

    def fields(self) -> list[list[str]]:
        """The text columns, each with one text an item."""
        parts = self.frame[list(self.text_columns)].astype(object).fillna("").astype(str)
        return [parts[name].tolist() for name in self.text_columns]


def catalog_from_frame(frame: pd.DataFrame, columns: Columns, report: ReadReport) -> Catalog:
    """Rows of text to a catalog. Of rows with one id the last is kept, blanks filled from earlier.

    Rows without an id, or with a spreadsheet's error as id, are skipped and counted in `report`.
    """
    report.require_rows()
    names = list(frame.columns)
    id_column = require_column("id", columns.id, names, report.file)
    title = find_column("title", columns.title, names, report.file) or id_column
    text_columns = find_text_columns(columns.text, title, names, report.file)

    ids = id_texts(frame[id_column])
    if columns.fold_ids:
        ids = one_case(ids)
    elif note := case_note(ids, "items"):
        report.notes.append(note)
    broken = ids.str.fullmatch(SPREADSHEET_ERROR).astype(bool)
    report.skip("without an id", int((ids == "").sum()))
    report.skip("with a spreadsheet error for an id", int(broken.sum()))
    frame = frame[(ids != "") & ~broken]
    if frame.empty:
        raise DataError(f"{report.file}: no rows with an id in column {id_column!r}; {report}")
    merged = frame.groupby(ids[frame.index], sort=False).last()
    report.merged += len(frame) - len(merged)

    order = Ids.sorted(merged.index, columns.fold_ids)
    merged = merged.loc[order.texts].reset_index(drop=True)
    renamed = _own_names(names, id_column, title)
    merged.insert(0, "\0id", order.texts)
    if title == id_column:
        merged["\0title"] = merged["\0id"]
        renamed |= {"\0title": "title"}
    merged = merged.drop(columns=id_column).rename(columns=renamed | {"\0id": "id"})
    rest = [name for name in merged.columns if name not in ("id", "title")]
    merged = merged[["id", "title", *rest]].copy()
    merged["title"] = merged["title"].fillna("").where(merged["title"].notna(), merged["id"])
    for name in rest:
        merged[name] = _numbers_if_all(merged[name])
    if "year" not in {name.casefold() for name in merged.columns}:
        merged = _with_year(merged)
    renamed |= {id_column: "id", title: "title"}
    searched = tuple(renamed[name] for name in text_columns)
    return Catalog(order, merged, searched)


def catalog_of_ids(ids: Ids) -> Catalog:
    """The items of a log that comes without a catalog: each has its id as title."""
    frame = pd.DataFrame({"id": ids.texts, "title": ids.texts})
    return Catalog(ids, frame, ("title",))


def _own_names(names: list[str], id_column: str, title: str) -> dict[str, str]:
    """New column names where two would be equal; SQL ignores case."""
    renamed, taken = {title: "title"}, {"id", "title", "_position"}  # the last is the workspace's
    for name in names:
        if name in (id_column, title):
            continue
        new, number = name, 2
        while new.casefold() in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new.casefold())
        renamed[name] = new
    return renamed


def _numbers_if_all(column: pd.Series) -> pd.Series:
    """Numbers where every cell is one; codes with leading zeros, such as 0042, stay text."""
    filled = column.dropna()
    if filled.empty or filled.str.match(r"[-+]?0\d").any():
        return column
    numbers = pd.to_numeric(filled, errors="coerce")
    if numbers.dtype.kind == "u" or not np.isfinite(numbers.astype(float)).all():
        return column
    if numbers.dtype.kind == "f" and (numbers % 1 == 0).all():
        if numbers.abs().max() >= 2**53:
            return column  # long codes, whose last digits a float would lose
        numbers = numbers.astype("Int64")
    if numbers.dtype.kind == "i":
        numbers = numbers.astype("Int64")
    return numbers.reindex(column.index)


def _with_year(frame: pd.DataFrame) -> pd.DataFrame:
    years = frame["title"].str.extract(YEAR_IN_TITLE, expand=False)
    if years.notna().any():
        frame.insert(2, "year", years.astype("Int64"))
    return frame

"""The rows of a file in the columns of a catalog that is already there."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from qkvsearch.data.catalog import _own_names, catalog_from_frame
from qkvsearch.data.columns import Columns, check_column, find_column, require_column
from qkvsearch.data.ids import id_texts
from qkvsearch.data.report import ReadReport
from qkvsearch.data.tables import as_text
from qkvsearch.errors import DataError


def rows_as_here(
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    former: pd.DataFrame,
    searched: Sequence[str],
) -> pd.DataFrame:
    """The items of `frame` as text, one a row, with the columns of `former` and no others.

    Rows are skipped, merged and reported, and columns guessed, as in a build. What the file lacks
    is left empty, but for a column that search reads: that raises `DataError`.
    """
    report.require_rows()
    frame = _with_search_columns(frame, columns.text, searched, report.file)
    names = list(frame.columns)
    named = None if columns.text and "title" in searched else columns.title
    id_column = require_column("id", columns.id, names, report.file)
    title = find_column("title", named, names, report.file) or id_column
    read = catalog_from_frame(frame, Columns(id=id_column, title=title), report)
    rows = frame.rename(columns=_own_names(names, id_column, title) | {id_column: "id"})
    rows = rows.assign(id=id_texts(rows["id"]))
    rows = rows[rows["id"].isin(read.ids.texts)].groupby("id", sort=False).last().reset_index()
    spelled = {name.casefold(): name for name in former.columns}
    rows = rows.rename(columns={name: spelled.get(name.casefold(), name) for name in rows})
    year = spelled.get("year")
    if year and year not in rows and "year" in read.frame:  # found in the titles
        years = pd.Series(as_text(read.frame[["year"]])["year"].to_numpy(), read.ids.texts)
        rows[year] = years.reindex(rows["id"]).to_numpy()
    _require_search_columns(rows, former, searched, report.file, names)
    _note_differences(rows, former, report)
    return rows.reindex(columns=former.columns)


def _with_search_columns(
    frame: pd.DataFrame, named: Sequence[str] | None, searched: Sequence[str], file: str
) -> pd.DataFrame:
    """With the names of the columns that search reads, where the file has others for them."""
    if named is None:
        return frame
    if len(named) != len(searched):
        raise DataError(
            f"{file}: search reads {len(searched)} columns here ({', '.join(searched)}), and "
            f"`text_columns` names {len(named)}: name as many, in that order"
        )
    names = list(frame.columns)
    found = [check_column(name, names, file, "`text_columns`") for name in named]
    in_the_way = [name for name in names if name in searched and name not in found]
    renamed = dict(zip(found, searched, strict=True))
    return frame.drop(columns=in_the_way).rename(columns=renamed)


def _require_search_columns(
    rows: pd.DataFrame,
    former: pd.DataFrame,
    searched: Sequence[str],
    file: str,
    names: Sequence[str],
) -> None:
    titled_by_id = former["title"].equals(former["id"])
    lacking = [
        name for name in searched if name not in rows and not (name == "title" and titled_by_id)
    ]
    if lacking:
        raise DataError(
            f"{file}: no column {', '.join(lacking)}, and search reads {', '.join(searched)} here; "
            "name those columns in that order with `text_columns`, or add them to the file "
            f"(columns: {', '.join(names)})"
        )


def _note_differences(rows: pd.DataFrame, former: pd.DataFrame, report: ReadReport) -> None:
    extra = [name for name in rows if name not in former]
    # A title may be the id, and a year come from titles that have one.
    known = {*rows, "title", "year"}
    absent = [name for name in former if name not in known]
    if extra:
        report.notes.append(f"left out, for the catalog has no such column: {', '.join(extra)}")
    if absent:
        report.notes.append(f"left empty, for the file has no such column: {', '.join(absent)}")

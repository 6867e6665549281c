"""Who is in the catalog from now on, and which row of the former build each one had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from qkvsearch.data.catalog import Catalog, _own_names, catalog_from_frame
from qkvsearch.data.columns import Columns, check_column, find_column, require_column
from qkvsearch.data.files.tables import as_text
from qkvsearch.data.ids import are_integers, id_texts
from qkvsearch.data.readers import load
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, QkvError
from qkvsearch.stored import BuildReader, Change
from qkvsearch.workspace import Snapshot

if TYPE_CHECKING:
    from qkvsearch.data.readers import Source


def with_items(build: Snapshot, source: Source, columns: Columns) -> Change:
    """The catalog with the items of a file or frame, each in the place of one with its id.

    Raises `DataError` for a file without an id column, or without those that search reads.
    """
    frame, report = load(source, "items")
    cells = _cells(build)
    former = as_text(cells)
    rows = _rows_as_here(frame, columns, report, former, build.facts["text_columns"])
    stays = ~former["id"].isin(rows["id"])
    by_id = pd.Series(former.index, index=former["id"])
    origin = np.concatenate(
        [np.flatnonzero(stays), by_id.reindex(rows["id"]).fillna(-1).to_numpy(np.int64)]
    )
    everyone = pd.concat([former[stays], rows], ignore_index=True)
    replaced = len(former) - int(stays.sum())
    return _change(build, cells, everyone, origin, replaced, [str(report)])


def without_items(build: Snapshot, leaving: np.ndarray) -> Change:
    """Without the items for which `leaving` (bool, n_items) is True. Raises `QkvError` if all."""
    require_some_left(build, leaving)
    cells = _cells(build)
    kept = np.flatnonzero(~leaving)
    return _change(build, cells, as_text(cells).iloc[kept], kept)


def require_some_left(build: Snapshot, leaving: np.ndarray) -> None:
    if leaving.all():
        raise QkvError(
            f"{build.workspace}: that is every item, and a workspace has at least one; "
            "build it again from other items, or delete the folder"
        )


def _cells(build: Snapshot) -> pd.DataFrame:
    """The former catalog as it is stored."""
    return pd.DataFrame(build.tables.cells(), columns=build.tables.columns, dtype=object)


def _change(
    build: Snapshot,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    origin: np.ndarray,
    replaced: int = 0,
    notes: Sequence[str] = (),
) -> Change:
    """`rows` as the catalog that a build would make of them: sorted by id, columns as numbers
    where every cell is one, and ids as whole numbers where every one is.
    """
    rows = rows.assign(id=id_texts(rows["id"]))
    everything = Columns(id="id", title="title", text=build.facts["text_columns"])
    catalog = catalog_from_frame(rows, everything, ReadReport("items", read=len(rows)))
    ordered = np.empty(len(catalog), dtype=np.int64)
    ordered[catalog.ids.positions(rows["id"])] = origin
    integer = catalog.ids.integer
    if integer != are_integers(map(str, cells["id"])):
        notes = [*notes, f"All ids are {'whole numbers' if integer else 'text'} from now on."]
    unread = _unread(cells, catalog, ordered)
    return Change(BuildReader(build), catalog, ordered, unread, replaced, list(notes))


def _unread(cells: pd.DataFrame, catalog: Catalog, origin: np.ndarray) -> np.ndarray:
    """True for new items, and where a text is not the one that the former build read."""
    unread = origin < 0
    kept = np.flatnonzero(~unread)
    for name, texts in zip(catalog.text_columns, catalog.fields(), strict=True):
        before = cells[name].map(lambda cell: "" if cell is None else str(cell)).to_numpy(object)
        unread[kept] |= before[origin[kept]] != np.array(texts, dtype=object)[kept]
    return unread


def _rows_as_here(
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    former: pd.DataFrame,
    searched: Sequence[str],
) -> pd.DataFrame:
    """The items of `frame` as text, one a row, with the columns of `former` and no others.

    Rows and columns are read as in a build. What the file lacks is left empty, but for a column
    that search reads: that raises `DataError`.
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

"""The items of a file, read as the catalog of a build has its own: same columns, same types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pandas as pd

from qkvsearch.data.catalog import Catalog, item_texts, years_in
from qkvsearch.data.columns import (
    ColumnFacts,
    Columns,
    check_column,
    find_column,
    require_column,
)
from qkvsearch.data.columns.facts import ColumnType
from qkvsearch.data.columns.numbers import stored_numbers
from qkvsearch.data.columns.types import typed
from qkvsearch.data.ids import Ids
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, listed_names
from qkvsearch.index import StoredModels
from qkvsearch.index.component import Addition
from qkvsearch.storage import Snapshot


def addition(
    snapshot: Snapshot, frame: pd.DataFrame, columns: Columns, report: ReadReport
) -> Addition:
    """The items of `frame`, text as a file has it, beside those of the build that they replace.

    Raises `DataError` for a file without an id column, or without those that search reads.
    """
    texts = _rows_as_here(frame, columns, report, snapshot)
    rows, facts = _as_types_here(texts, snapshot, report)
    known = snapshot.catalog.find_items(rows["id"])
    rows["id"] = _spelled_as_here(snapshot, rows["id"], known)
    ids = Ids.sorted(rows["id"], snapshot.facts.get("fold_ids", False))
    place = pd.Series(range(len(rows)), index=rows["id"])[ids.texts].to_numpy()
    positions = np.array([known.get(i, -1) for i in texts["id"]], dtype=np.int64)[place]
    rows = rows.iloc[place].reset_index(drop=True)
    for name in rows:
        if name != "id" and facts[name].type in ("number", "yes/no"):
            rows[name] = stored_numbers(rows[name])
    catalog = Catalog(ids, rows, tuple(snapshot.facts["text_columns"]), tuple(facts.values()))
    unread = _unread(snapshot, catalog, positions)
    return Addition(StoredModels(snapshot), catalog, positions, unread)


def _spelled_as_here(snapshot: Snapshot, texts: Sequence[str], known: dict[str, int]) -> list[str]:
    """Ids that are there are those of the build, whose case may be another."""
    there = list(known)
    ids, _ = snapshot.catalog.names([known[text] for text in there])
    spelled = dict(zip(there, map(str, ids), strict=True))
    return [spelled.get(text, text) for text in texts]


def _unread(snapshot: Snapshot, catalog: Catalog, positions: np.ndarray) -> np.ndarray:
    """True for new items, and where a text is not the one that the build read."""
    unread = positions < 0
    kept = np.flatnonzero(~unread)
    names = list(catalog.text_columns)
    before = snapshot.catalog.cells(positions[kept], names)
    now = catalog.frame[names].astype(object).fillna("").astype(str).to_numpy(object)
    for row, cells in zip(kept, before, strict=True):
        unread[row] = ["" if cell is None else str(cell) for cell in cells] != list(now[row])
    return unread


def column_facts(snapshot: Snapshot) -> dict[str, ColumnFacts]:
    """What is known of each column, by its stored name."""
    records = {fact.get("stored") or fact["name"]: fact for fact in snapshot.facts["columns"]}
    return {
        column.stored: ColumnFacts(
            column.name,
            column.role,
            "text" if column.stored == "id" else cast(ColumnType, column.type),
            empty=records.get(column.stored, {}).get("empty", 0.0),
            example=records.get(column.stored, {}).get("example", ""),
            changed=records.get(column.stored, {}).get("changed", {}),
            stored="" if column.stored == column.name else column.stored,
            convention=records.get(column.stored, {}).get("convention", ""),
        )
        for column in snapshot.catalog.catalog_columns
    }


def _rows_as_here(
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    snapshot: Snapshot,
) -> pd.DataFrame:
    """The items of `frame` as text, one a row, with the columns of the build and no others.

    Rows are read as in a build, and columns found by either name. What the file lacks is left
    empty, but for a column that search reads: that raises `DataError`.
    """
    report.require_rows()
    searched = snapshot.facts["text_columns"]
    frame = _with_search_columns(frame, columns.text, searched, report.file)
    names = list(frame.columns)
    named = None if columns.text and "title" in searched else columns.title
    usual = {column.role: column.name for column in snapshot.catalog.catalog_columns}
    id_column = require_column("id", columns.id or _among(names, usual["id"]), names, report.file)
    title = (
        find_column("title", named or _among(names, usual["title"]), names, report.file)
        or id_column
    )
    folds = snapshot.facts.get("fold_ids", False)
    about = Columns(id=id_column, title=title, text=[title], fold_ids=folds)
    items = item_texts(frame, about, report)
    rows = items.frame if title != id_column else items.frame.drop(columns="title")
    here = {column.name.casefold(): column.stored for column in snapshot.catalog.catalog_columns}
    here |= {name.casefold(): name for name in snapshot.catalog.columns}
    rows = rows.rename(columns={name: here.get(name.casefold(), name) for name in rows})
    year = here.get("year")
    if year and year not in rows and "title" in rows:
        years = years_in(rows["title"])
        if years.notna().any():
            rows[year] = years
    _require_search_columns(rows, snapshot, report.file, names)
    _note_differences(rows, snapshot.catalog.columns, report)
    return rows.reindex(columns=snapshot.catalog.columns)


def _among(names: Sequence[str], usual: str) -> str | None:
    """The owner's usual name for a column as the file spells it, None where it is not there."""
    return next((name for name in names if name.casefold() == usual.casefold()), None)


def _as_types_here(
    texts: pd.DataFrame, snapshot: Snapshot, report: ReadReport
) -> tuple[pd.DataFrame, dict[str, ColumnFacts]]:
    """Rows of text with each column as the type that it has in the build, and what is known of the
    columns from then on. Cells that do not fit are emptied, and noted.
    """
    rows, facts = {"id": texts["id"]}, column_facts(snapshot)
    for name, fact in list(facts.items())[1:]:
        column = typed(texts[name], fact.type, convention=fact.convention)
        if name == "title":
            column.name_blanks(texts["id"])
        rows[name] = column.cells.astype(object)
        report.notes.extend(column.emptied(fact.name, texts[name], texts["id"]))
        facts[name] = replace(fact, changed=dict(Counter(fact.changed) + column.changed))
    return pd.DataFrame(rows), facts


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
    rows: pd.DataFrame, snapshot: Snapshot, file: str, names: Sequence[str]
) -> None:
    searched = snapshot.facts["text_columns"]
    lacking = [
        name
        for name in searched
        if name not in rows and not (name == "title" and snapshot.catalog.is_titled_by_id())
    ]
    if lacking:
        raise DataError(
            f"{file}: no column {', '.join(lacking)}, and search reads {', '.join(searched)} here; "
            "name those columns in that order with `text_columns`, or add them to the file "
            f"(columns: {listed_names(names)})"
        )


def _note_differences(rows: pd.DataFrame, former: Sequence[str], report: ReadReport) -> None:
    extra = [name for name in rows if name not in former]
    # A title may be the id, and a year come from titles that have one.
    known = {*rows, "title", "year"}
    absent = [name for name in former if name not in known]
    if extra:
        report.notes.append(f"left out, for the catalog has no such column: {', '.join(extra)}")
    if absent:
        report.notes.append(f"left empty, for the file has no such column: {', '.join(absent)}")

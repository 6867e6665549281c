"""Who is in the catalog from now on, and which row of the former build each one had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

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
from qkvsearch.data.ids import Ids, are_integers, id_texts
from qkvsearch.data.readers import load
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, QkvError, listed_names
from qkvsearch.stored import BuildReader, Change
from qkvsearch.workspace import Snapshot

if TYPE_CHECKING:
    from qkvsearch.data.readers import Source


def with_items(build: Snapshot, source: Source, columns: Columns) -> Change:
    """The catalog with the items of a file or frame, each in the place of one with its id.

    Raises `DataError` for a file without an id column, or without those that search reads.
    """
    frame, report = load(source, "items")
    former = _cells(build)
    texts = _rows_as_here(frame, columns, report, former, build)
    rows, facts = _as_types_here(texts, build, report)
    known = build.tables.ids("items")
    rows = rows.assign(id=[known.texts[known.find(i)] if i in known else i for i in rows["id"]])
    stays = ~former["id"].isin(rows["id"])
    by_id = pd.Series(former.index, index=former["id"])
    origin = np.concatenate(
        [np.flatnonzero(stays), by_id.reindex(rows["id"]).fillna(-1).to_numpy(np.int64)]
    )
    everyone = pd.concat([former[stays], rows], ignore_index=True)
    replaced = len(former) - int(stays.sum())
    return _change(build, former, everyone, origin, facts, replaced, [str(report)])


def without_items(build: Snapshot, leaving: np.ndarray) -> Change:
    """Without the items for which `leaving` (bool, n_items) is True. Raises `QkvError` if all."""
    require_some_left(build, leaving)
    former = _cells(build)
    kept = np.flatnonzero(~leaving)
    return _change(build, former, former.iloc[kept], kept, _facts(build))


def require_some_left(build: Snapshot, leaving: np.ndarray) -> None:
    if leaving.all():
        raise QkvError(
            f"{build.workspace}: that is every item, and a workspace has at least one; "
            "build it again from other items, or delete the folder"
        )


def _cells(build: Snapshot) -> pd.DataFrame:
    """The former catalog as it is stored, with ids as text."""
    cells = pd.DataFrame(build.tables.cells(), columns=build.tables.columns, dtype=object)
    return cells.assign(id=id_texts(cells["id"]))


def _facts(build: Snapshot) -> dict[str, ColumnFacts]:
    """What is known of each column, by the name that the tables have for it."""
    records = {fact.get("stored") or fact["name"]: fact for fact in build.facts.get("columns", ())}
    return {
        column.stored: ColumnFacts(
            column.name,
            column.role,
            "text" if column.stored == "id" else cast(ColumnType, column.type),
            changed=records.get(column.stored, {}).get("changed", {}),
            stored="" if column.stored == column.name else column.stored,
            convention=records.get(column.stored, {}).get("convention", ""),
        )
        for column in build.tables.catalog_columns
    }


def _change(
    build: Snapshot,
    former: pd.DataFrame,
    rows: pd.DataFrame,
    origin: np.ndarray,
    facts: Mapping[str, ColumnFacts],
    replaced: int = 0,
    notes: Sequence[str] = (),
) -> Change:
    """`rows` as a catalog: sorted by id, each column of the type that it had, and ids as whole
    numbers where every one is.
    """
    ids = Ids.sorted(rows["id"], build.facts.get("fold_ids", False))
    place = pd.Series(range(len(rows)), index=rows["id"])[ids.texts].to_numpy()
    rows = rows.iloc[place].reset_index(drop=True)
    for name in rows:
        if name != "id" and facts[name].type in ("number", "yes/no"):
            rows[name] = stored_numbers(rows[name])
    described = tuple(fact.of_cells(rows[name]) for name, fact in facts.items())
    catalog = Catalog(ids, rows, tuple(build.facts["text_columns"]), described)
    if ids.integer != are_integers(former["id"]):
        notes = [*notes, f"All ids are {'whole numbers' if ids.integer else 'text'} from now on."]
    unread = _unread(former, catalog, origin[place])
    return Change(BuildReader(build), catalog, origin[place], unread, replaced, list(notes))


def _unread(cells: pd.DataFrame, catalog: Catalog, origin: np.ndarray) -> np.ndarray:
    """True for new items, and where a text is not the one that the former build read."""
    unread = origin < 0
    kept = np.flatnonzero(~unread)
    for name in catalog.text_columns:
        before, now = (
            frame[name].astype(object).fillna("").astype(str).to_numpy(object)
            for frame in (cells, catalog.frame)
        )
        unread[kept] |= before[origin[kept]] != now[kept]
    return unread


def _rows_as_here(
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    former: pd.DataFrame,
    build: Snapshot,
) -> pd.DataFrame:
    """The items of `frame` as text, one a row, with the columns of `former` and no others.

    Rows are read as in a build, and columns found by either name. What the file lacks is left
    empty, but for a column that search reads: that raises `DataError`.
    """
    report.require_rows()
    searched = build.facts["text_columns"]
    frame = _with_search_columns(frame, columns.text, searched, report.file)
    names = list(frame.columns)
    named = None if columns.text and "title" in searched else columns.title
    usual = {column.role: column.name for column in build.tables.catalog_columns}
    id_column = require_column("id", columns.id or _among(names, usual["id"]), names, report.file)
    title = (
        find_column("title", named or _among(names, usual["title"]), names, report.file)
        or id_column
    )
    folds = build.facts.get("fold_ids", False)
    about = Columns(id=id_column, title=title, text=[title], fold_ids=folds)
    items = item_texts(frame, about, report)
    rows = items.frame if title != id_column else items.frame.drop(columns="title")
    here = {column.name.casefold(): column.stored for column in build.tables.catalog_columns}
    here |= {name.casefold(): name for name in former}
    rows = rows.rename(columns={name: here.get(name.casefold(), name) for name in rows})
    year = here.get("year")
    if year and year not in rows and "title" in rows:
        years = years_in(rows["title"])
        if years.notna().any():
            rows[year] = years
    _require_search_columns(rows, former, searched, report.file, names)
    _note_differences(rows, former, report)
    return rows.reindex(columns=former.columns)


def _among(names: Sequence[str], usual: str) -> str | None:
    """The owner's usual name for a column as the file spells it, None where it is not there."""
    return next((name for name in names if name.casefold() == usual.casefold()), None)


def _as_types_here(
    texts: pd.DataFrame, build: Snapshot, report: ReadReport
) -> tuple[pd.DataFrame, dict[str, ColumnFacts]]:
    """Rows of text with each column as the type that it has in the build, and what is known of the
    columns from then on. Cells that do not fit are emptied, and noted.
    """
    rows, facts = {"id": texts["id"]}, _facts(build)
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
    rows: pd.DataFrame,
    former: pd.DataFrame,
    searched: Sequence[str],
    file: str,
    names: Sequence[str],
) -> None:
    titled_by_id = bool((former["title"] == former["id"]).all())
    lacking = [
        name for name in searched if name not in rows and not (name == "title" and titled_by_id)
    ]
    if lacking:
        raise DataError(
            f"{file}: no column {', '.join(lacking)}, and search reads {', '.join(searched)} here; "
            "name those columns in that order with `text_columns`, or add them to the file "
            f"(columns: {listed_names(names)})"
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

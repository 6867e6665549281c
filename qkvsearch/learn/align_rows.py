"""Read the items of a file with the columns and the types that a build's catalog has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd

from qkvsearch.errors import Count, DataError, UnknownIdError, listed_names, quantity
from qkvsearch.heads.component import Addition
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.learn.change_rules import REPLACE, ChangeRule
from qkvsearch.learn.kept_cells import AlignedRows
from qkvsearch.store import Snapshot
from qkvsearch.tables.catalog import (
    FOUND_IN_TITLES,
    ROW_NUMBERS,
    ROWS_OF_AN_ITEM,
    Catalog,
    item_texts,
    one_row_each,
    originals_of,
    without_moved_times,
    years_in,
)
from qkvsearch.tables.catalog_columns import OWN_NAMES, CatalogColumns, StoredColumn
from qkvsearch.tables.column_facts import ColumnFacts
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.column_types.inference import TypedColumn, typed
from qkvsearch.tables.columns import (
    Columns,
    check_column,
    find_column,
    require_column,
    text_times,
)
from qkvsearch.tables.columns.numbers import stored_numbers
from qkvsearch.tables.date_spans import UNCERTAIN
from qkvsearch.tables.report import ReadReport
from qkvsearch.terminal import shorten

# Ids that a message names.
MAX_LISTED = 3


def addition(
    snapshot: Snapshot,
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    rule: ChangeRule = REPLACE,
) -> Addition:
    """Return the items of `frame`, whose cells are text, and which items of the build they replace.

    rule: what of these stays. Raises `DataError` for a file without a column of ids or titles, or
    of texts that search reads, and `UnknownIdError` for new ids where the rule allows none.
    """
    texts = _align_columns(frame, columns, report, snapshot, rule)
    given = list(texts)
    of_texts = _stored_of_texts(snapshot, given, report, rule)
    texts = texts.reindex(columns=snapshot.catalog.columns)
    row_of = snapshot.catalog.find_items(texts["id"])
    if rule.known_only:
        _refuse_new_ids(texts["id"], row_of, report.file)
        _note_blanks(snapshot, texts[given], row_of, of_texts, report)
    texts["id"] = _align_ids(snapshot, texts["id"], row_of)
    cells, facts = _align_types(texts, snapshot, report, rule)
    ids, variants = one_row_each(texts["id"], cells, snapshot.facts.get("fold_ids", False), report)
    row_of = snapshot.catalog.find_items(ids.texts)
    positions = np.array([row_of.get(i, -1) for i in ids.texts], dtype=np.int64)
    read = pd.DataFrame({name: column.cells for name, column in cells.items()})
    new_rows = AlignedRows(ids.texts, read, variants, originals_of(cells), positions)
    is_without_text = None
    if of_texts:
        is_without_text = read[text_times.TEXT].isna().to_numpy() & (positions >= 0)
        _note_kept_texts(snapshot, new_rows, is_without_text, columns, report)
    new_rows = new_rows.with_kept_cells(snapshot, rule, given, of_texts, is_without_text)
    rows = new_rows.frame
    _empty_outdated_times(snapshot, rows, positions, given, rule, report)
    for name, fact in facts.items():
        if name != "id" and type_named(fact.type).is_numeric:
            rows[name] = stored_numbers(rows[name])
    searched = tuple(snapshot.facts["text_columns"])
    catalog = Catalog(
        ids, rows, searched, tuple(facts.values()), new_rows.variants, new_rows.originals
    )
    unread = _unread(snapshot, catalog, positions)
    return Addition(StoredModels(snapshot), catalog, positions, unread)


def _refuse_new_ids(ids: Sequence[str], row_of: Mapping[str, int], file: str) -> None:
    """Raise `UnknownIdError` where the build lacks an id."""
    unknown = [id_ for id_ in dict.fromkeys(ids) if id_ not in row_of]
    if unknown:
        listed = listed_names([repr(shorten(id_)) for id_ in unknown], MAX_LISTED)
        n = Count(len(unknown))
        raise UnknownIdError(
            f"{file}: {n} {n:id is|ids are} not in the catalog ({listed}), and nothing is changed: "
            f"`update` only changes items that are there; add {n:it|them} first, or leave "
            f"{n:its row|their rows} out"
        )


def _stored_of_texts(
    snapshot: Snapshot, given: Sequence[str], report: ReadReport, rule: ChangeRule
) -> list[str]:
    """Return the stored columns that files of texts gave, where the items without such a file keep
    theirs: a file may be missing for one night.
    """
    here = snapshot.catalog.catalog_columns
    if not rule.keeps_columns or text_times.TEXT not in {*report.of_texts} & {*given}:
        return []
    stored = [here.find(name).stored for name in report.of_texts if here.has(name)]
    return [name for name in stored if name in given]


def _note_kept_texts(
    snapshot: Snapshot,
    rows: AlignedRows,
    is_without_text: np.ndarray,
    columns: Columns,
    report: ReadReport,
) -> None:
    """Note the items that keep a text because there is no file of it."""
    without = np.flatnonzero(is_without_text)
    before = snapshot.catalog.cells(rows.positions[without], [text_times.TEXT])
    kept = [rows.ids[row] for row, (text,) in zip(without.tolist(), before, strict=True) if text]
    if kept:
        n = Count(len(kept))
        listed = listed_names([repr(shorten(id_)) for id_ in kept], MAX_LISTED)
        report.notes.append(
            f"{quantity(len(kept), 'item')} {n:keeps|keep} the text that {n:it has|they have}: no "
            f"file {columns.texts} with a text for {listed}"
        )


def _note_blanks(
    snapshot: Snapshot,
    texts: pd.DataFrame,
    row_of: Mapping[str, int],
    of_texts: Sequence[str],
    report: ReadReport,
) -> None:
    """Note the cells that are blank in the file, and for which an item loses a cell. of_texts: the
    columns that items without a text keep.
    """
    columns = snapshot.catalog.catalog_columns
    names = [name for name in texts if name != "id"]
    positions = [row_of[id_] for id_ in texts["id"]]
    before = snapshot.catalog.cells(positions, names)
    for number, name in enumerate(names):
        is_blank = texts[name].isna()
        if name in of_texts:
            is_blank &= texts[text_times.TEXT].notna()
        n_lost = sum(
            cells[number] is not None
            for cells, blank in zip(before, is_blank.tolist(), strict=True)
            if blank
        )
        report.note(
            n_lost,
            "column {column}: {n} {n:cell|cells} emptied, because the file has {n:it|them} empty",
            column=columns.name_of(name),
        )


def _empty_outdated_times(
    snapshot: Snapshot,
    rows: pd.DataFrame,
    positions: np.ndarray,
    given: Sequence[str],
    rule: ChangeRule,
    report: ReadReport,
) -> None:
    """Empty the times of texts that change while their times stay, and note it: they are of the
    places of another text. given: the stored columns that the file has.
    """
    times, text = _times_and_text(snapshot)
    # Times that the file has itself are those of its texts.
    if times is None or text is None or (times.stored in given and not rule.shown):
        return
    known = np.flatnonzero(positions >= 0)
    before = snapshot.catalog.cells(positions[known], [text.stored, times.stored])
    outdated = []
    for row, (text_before, times_before) in zip(known.tolist(), before, strict=True):
        has_same_times = times_before is not None and rows.at[row, times.stored] == times_before
        if has_same_times and rows.at[row, text.stored] != text_before:
            outdated.append(row)
    rows.loc[outdated, times.stored] = None
    report.note(
        len(outdated),
        "column {column}: {n} {n:cell|cells} emptied, for {n:its text|their texts} changed",
        column=times.name,
    )


def _align_ids(snapshot: Snapshot, texts: Sequence[str], row_of: dict[str, int]) -> list[str]:
    """Spell known ids as the build does: their case may differ."""
    ids, _ = snapshot.catalog.names(list(row_of.values()))
    spelled = dict(zip(row_of, map(str, ids), strict=True))
    return [spelled.get(text, text) for text in texts]


def _unread(snapshot: Snapshot, catalog: Catalog, positions: np.ndarray) -> np.ndarray:
    """Return True for new items and for items with a changed text, bool (n,)."""
    unread = positions < 0
    replacing = np.flatnonzero(~unread)
    names = list(catalog.text_columns)
    if not names:
        return unread
    before = snapshot.catalog.searched_texts(positions[replacing], names)
    now = list(zip(*catalog.fields(), strict=True))
    for row, texts in zip(replacing.tolist(), before, strict=True):
        unread[row] = tuple(texts) != now[row]
    return unread


def column_facts(snapshot: Snapshot) -> dict[str, ColumnFacts]:
    """Return the facts about each column by its stored name."""
    facts = [ColumnFacts(**record) for record in snapshot.facts["columns"]]
    return {fact.stored or fact.name: fact for fact in facts}


def _align_columns(
    frame: pd.DataFrame,
    columns: Columns,
    report: ReadReport,
    snapshot: Snapshot,
    rule: ChangeRule,
) -> pd.DataFrame:
    """Return the items of `frame` as text with those columns of the build that the file has.

    Rows are read as in a build; columns are found by their stored or their owner's name. There is a
    warning about a column that search reads and that the file lacks. Raises `DataError` for a file
    without ids, titles or texts, and where the rule needs only ids, without any other column.
    """
    report.require_rows()
    searched = snapshot.facts["text_columns"]
    here = snapshot.catalog.catalog_columns
    searched_names = [here.name_of(stored) for stored in searched]
    frame = _with_search_columns(frame, columns.text, searched_names, report.file)
    names = list(frame.columns)
    named = None if columns.text and "title" in searched else columns.title
    usual = {column.role: column.name for column in snapshot.catalog.catalog_columns}
    if column_facts(snapshot)["id"].convention == ROW_NUMBERS and columns.id is None:
        raise DataError(
            f"{report.file}: the ids of this workspace are the numbers of the rows that it was "
            "built from, and other rows would replace those items: name a column of ids with "
            "`id_column` here, or build again from all files"
        )
    id_column = require_column("id", columns.id or _among(names, usual["id"]), names, report.file)
    if id_column == "id" and report.possible_ids:
        frame = _with_known_ids(frame, snapshot, report)
    # Another column of the build is not the one of titles, though it may be called `title`.
    untaken = [name for name in names if not here.has(name) or here.find(name).stored in OWN_NAMES]
    title = named or _among(names, usual["title"])
    title = find_column("title", title, names if title else untaken, report.file) or id_column
    folds = snapshot.facts.get("fold_ids", False)
    about = Columns(id=id_column, title=title, text=[title], fold_ids=folds, ignore=columns.ignore)
    items = item_texts(frame, about, report)
    rows = items.frame if title != id_column else items.frame.drop(columns="title")
    rows = rows.rename(columns=_stored_names(rows, items.spelled, here))
    year = _column_of_years(snapshot, rule)
    if year and year not in rows and "title" in rows:
        years = years_in(rows["title"])
        if years.notna().any():
            rows[year] = years
    if rule.known_only:
        _require_a_column(rows, here, report)
    else:
        _require_search_columns(rows, snapshot, report, names, rule)
    _note_differences(rows, here, report, rule)
    if not searched:
        report.notes.append("no text is searched here: the build has no column of texts")
    return rows[[name for name in snapshot.catalog.columns if name in rows]]


def _with_known_ids(frame: pd.DataFrame, snapshot: Snapshot, report: ReadReport) -> pd.DataFrame:
    """Return documents with the ids that the build knows them by: the id of a file depends on the
    files beside it. Raises `DataError` where two files may be the same item of the build.
    """
    possible = report.possible_ids
    known = snapshot.catalog.find_items({*possible, *chain(*possible.values())})
    files_of: dict[str, list[str]] = defaultdict(list)
    for id_, others in possible.items():
        former = [other for other in others if other in known and other not in possible]
        if id_ not in known and former:
            files_of[former[-1]].append(id_)
    for former_id, files in files_of.items():
        if len(files) > 1:
            raise DataError(
                f"{report.file}: {listed_names(files, MAX_LISTED)} may each be the item "
                f"{former_id!r} of this workspace, and nothing is changed: rename all but that "
                "one, or build again"
            )
    if not files_of:
        return frame
    known_as = {files[0]: former_id for former_id, files in files_of.items()}
    report.unread_ids = [known_as.get(id_, id_) for id_ in report.unread_ids]
    return frame.assign(id=frame["id"].replace(known_as))


def _column_of_years(snapshot: Snapshot, rule: ChangeRule) -> str | None:
    """Return the stored column that gets the years of new titles where the file has no such column;
    None for none. Where columns stay, that is only one that a build has made of the titles.
    """
    columns = snapshot.catalog.catalog_columns
    if not columns.has("year"):
        return None
    stored = columns.find("year").stored
    is_of_titles = FOUND_IN_TITLES in column_facts(snapshot)[stored].changed
    return stored if is_of_titles or not rule.keeps_columns else None


def _require_a_column(rows: pd.DataFrame, columns: CatalogColumns, report: ReadReport) -> None:
    """Raise `DataError` for a file that has no column of the catalog beside the ids."""
    stored_names = {column.stored for column in columns} - {"id"}
    if stored_names.isdisjoint(rows):
        raise DataError(
            f"{report.file}: beside the ids, none of its columns is one of the catalog, so that it "
            f"changes nothing (columns of the catalog: {listed_names(columns.names)})"
        )


def _stored_names(
    rows: pd.DataFrame, spelled: Mapping[str, str], columns: CatalogColumns
) -> dict[str, str]:
    """Return the stored name of each column of a file, by its name in `rows`; a column that the
    build lacks keeps the name that the file has. spelled: those names, by the names in `rows`.
    """
    stored = {name: name for name in OWN_NAMES if name in rows}
    others = [name for name in rows if name not in stored]
    # Where a file has both `Price` and `price`, each is the column of its exact name.
    exact = {column.name for column in columns}
    for name in sorted(others, key=lambda name: spelled[name] not in exact):
        own = spelled[name]
        found = columns.find(own).stored if columns.has(own) else own
        is_taken = found in stored.values() or found in OWN_NAMES
        stored[name] = f"{own} (again)" if is_taken else found
    return stored


def _among(names: Sequence[str], usual: str) -> str | None:
    """Return the name of a column as the file spells it; None where the file lacks it. Case does
    not matter where no column has the exact name.
    """
    if usual in names:
        return usual
    return next((name for name in names if name.casefold() == usual.casefold()), None)


def _align_types(
    texts: pd.DataFrame, snapshot: Snapshot, report: ReadReport, rule: ChangeRule
) -> tuple[dict[str, TypedColumn], dict[str, ColumnFacts]]:
    """Convert the columns to the types of the build, and return the new facts about them. Cells
    that do not fit become empty, with a note; with a warning where the rule is to change only what
    the file has, since an item loses a cell by it. Raises `DataError` where the rule refuses them.
    """
    columns, facts = {"id": TypedColumn("text", texts["id"])}, column_facts(snapshot)
    for name, fact in list(facts.items())[1:]:
        # The cells are texts, of which several rows of an item make a list again.
        kind = "text" if fact.convention == ROWS_OF_AN_ITEM else fact.type
        column = typed(texts[name], kind, convention=fact.convention)
        columns[name] = column
        emptied = column.emptied(fact.name, texts[name], texts["id"])
        if emptied and rule.refuses_unfit:
            cells = column.examples_of_unfit(texts[name], texts["id"])
            raise DataError(f"column {fact.name}: {cells} is no {fact.type}")
        if rule.known_only:
            report.warnings.extend(emptied)
        else:
            report.notes.extend(emptied)
        report.notes.extend(column.other_percentages(fact.name, fact.changed))
        report.notes.extend(column.circa(fact.name))
        report.notes.extend(column.other_unit(fact.name, fact.unit))
        facts[name] = replace(fact, changed=dict(Counter(fact.changed) + column.changed))
        # The first uncertain date of a column: from now on its dates are compared as spans.
        if column.convention.startswith(UNCERTAIN):
            facts[name] = replace(facts[name], convention=column.convention)
    times, text = _times_and_text(snapshot)
    if times is not None and text is not None:
        columns[times.stored] = without_moved_times(
            times.name, columns[times.stored], texts[text.stored], columns[text.stored], report
        )
    return columns, facts


def _times_and_text(snapshot: Snapshot) -> tuple[StoredColumn | None, StoredColumn | None]:
    """Return the column of times and that of the texts which they belong to, None for none."""
    columns = snapshot.catalog.catalog_columns
    times = next((c for c in columns if c.role == text_times.ROLE), None)
    text = next((c for c in columns if c.name.casefold() == text_times.TEXT), None)
    return times, text


def _with_search_columns(
    frame: pd.DataFrame, named: Sequence[str] | None, searched: Sequence[str], file: str
) -> pd.DataFrame:
    """Rename the columns in `named` to the columns that search reads, in the same order."""
    if named is None:
        return frame
    if len(named) != len(searched):
        raise DataError(
            f"{file}: search reads {len(searched)} columns here ({listed_names(searched)}), and "
            f"`text_columns` names {len(named)}: name as many, in that order"
        )
    names = list(frame.columns)
    columns = [check_column(name, names, file, "`text_columns`") for name in named]
    replaced = [name for name in names if name in searched and name not in columns]
    renamed = dict(zip(columns, searched, strict=True))
    return frame.drop(columns=replaced).rename(columns=renamed)


def _require_search_columns(
    rows: pd.DataFrame,
    snapshot: Snapshot,
    report: ReadReport,
    names: Sequence[str],
    rule: ChangeRule,
) -> None:
    """Raise `DataError` for a file without titles, or without any text; warn of other columns."""
    searched = snapshot.facts["text_columns"]
    here = snapshot.catalog.catalog_columns
    lacking = [
        name
        for name in searched
        if name not in rows and not (name == "title" and snapshot.catalog.is_titled_by_id())
    ]
    if not lacking:
        return
    lacking_names = listed_names([here.name_of(stored) for stored in lacking])
    searched_names = listed_names([here.name_of(stored) for stored in searched])
    from_files = "name the files of the texts with `texts`, " if text_times.TEXT in lacking else ""
    message = (
        f"{report.file}: no column {lacking_names}, and search reads {searched_names}; {from_files}"
        "name those columns in that order with `text_columns`, `join` a table that has them, or "
        f"add them to the file (columns: {listed_names(names)})"
    )
    if "title" in lacking or not any(name in rows for name in searched):
        raise DataError(message)
    n_rows = quantity(len(rows), "row")
    outcome = "new items are empty there" if rule.keeps_columns else f"{n_rows} left empty there"
    report.warnings.append(f"{message}; {outcome}")


def _note_differences(
    rows: pd.DataFrame, columns: CatalogColumns, report: ReadReport, rule: ChangeRule
) -> None:
    stored_names = [column.stored for column in columns]
    extra = [name for name in rows if name not in stored_names]
    # The title may be the id, and the year may come from the titles.
    covered = {*rows, "title", "year"}
    absent = [columns.name_of(name) for name in stored_names if name not in covered]
    if extra:
        report.notes.append(f"left out, because the catalog has no such column: {', '.join(extra)}")
    if absent and not rule.known_only:
        outcome = "left as they are in the catalog" if rule.keeps_columns else "left empty"
        listed = ", ".join(absent)
        report.notes.append(f"{outcome}, because the file has no such column: {listed}")

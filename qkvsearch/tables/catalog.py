"""The catalog: one row an item, sorted by id, with the columns that search reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, repeat

import numpy as np
import pandas as pd

from qkvsearch.errors import Count, DataError, listed_names, quantity, suggest
from qkvsearch.tables.catalog_columns import OWN_NAMES, TRUTH_VALUES
from qkvsearch.tables.column_facts import LIST_SEPARATOR, ColumnFacts, examples_of
from qkvsearch.tables.column_types import NAMES, text_read, type_named
from qkvsearch.tables.column_types.inference import TypedColumn, typed
from qkvsearch.tables.columns import Columns, check_column, text_times
from qkvsearch.tables.columns.searched import why_unsearched
from qkvsearch.tables.columns.text_times import TEXT, are_times
from qkvsearch.tables.date_spans import UNCERTAIN, sort_key
from qkvsearch.tables.ids import (
    UNUSABLE_REASON,
    Ids,
    case_note,
    id_text,
    id_texts,
    is_usable_id,
    one_case,
)
from qkvsearch.tables.report import FILE_ROWS, ReadReport
from qkvsearch.tables.role_choice import (
    CatalogChoice,
    choose_catalog_columns,
    is_unique_in_files,
    users_column,
)
from qkvsearch.tables.table import Table
from qkvsearch.terminal import shorten

# What spreadsheets write where a formula failed, such as an id that begins with "=" or "-".
SPREADSHEET_ERROR = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NULL!|NUM!)")
# The id of a last row with the totals of the others.
TOTAL = re.compile(
    r"(grand |sub)?totals?|total general|totale|summe|gesamt|sum|итого|合计|合計|总计", re.I
)
# The convention of an id that is the number of its row.
ROW_NUMBERS = "row numbers"
# The convention of a column of texts whose lists come from several rows of an item: each cell of
# such a row is one entry.
ROWS_OF_AN_ITEM = "rows of an item"
# What the report of a build says of a column of years that it has made of the titles.
FOUND_IN_TITLES = "found in titles"
# A column of dates is searched where at least this share of its cells have words beside dates.
MIN_WITH_WORDS = 0.01
YEAR_IN_TITLE = r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)\s*$"


@dataclass(frozen=True)
class Catalog:
    """Items with their columns.

    Rows are in the natural order of the ids, so that ties broken by row are broken by id. frame:
    the columns id (text), title, then the source's own, each as its type. columns: the facts about
    each of them. variants: cells of items of several rows in columns that differ, under the row of
    the item: a filter matches an item if it matches any of them. originals: for each column with
    cells that are not shown as they were in the file, what these were there, under the row of the
    item.
    """

    ids: Ids
    frame: pd.DataFrame
    text_columns: tuple[str, ...]
    columns: tuple[ColumnFacts, ...] = ()
    variants: pd.DataFrame = field(default_factory=pd.DataFrame)
    originals: Mapping[str, pd.Series] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, is_taken: np.ndarray) -> Catalog:
        """Return the items for which `is_taken` (bool, n) holds."""
        texts = self.ids.texts
        taken = np.flatnonzero(is_taken)
        new_row = {row: number for number, row in enumerate(taken.tolist())}
        variants = self.variants.loc[self.variants.index.isin(taken)]
        return replace(
            self,
            ids=Ids([texts[row] for row in taken], self.ids.fold, self.ids.integer),
            frame=self.frame[is_taken].reset_index(drop=True),
            variants=variants.rename(index=new_row),
            originals={
                name: texts.loc[texts.index.isin(taken)].rename(index=new_row)
                for name, texts in self.originals.items()
            },
        )

    def texts(self) -> list[str]:
        """Return what search reads of each item: its text columns, one a line."""
        return ["\n".join(fields) for fields in zip(*self.fields(), strict=True)]

    def fields(self) -> list[list[str]]:
        """Return the text columns, one text an item; without any, a column of empty texts."""
        facts = {column.stored or column.name: column for column in self.columns}
        fields = []
        for name, cells in self.frame[list(self.text_columns)].astype(object).items():
            type_, unit = (facts[name].type, facts[name].unit) if name in facts else ("text", "")
            filled = cells.where(cells.notna(), None)
            originals: Iterable[str] = repeat("")
            if name in self.originals and type_named(type_).loses_words:
                originals = self.originals[name].reindex(cells.index).fillna("")
            read = (
                text_read(cell, type_, unit, original)
                for cell, original in zip(filled, originals, strict=False)
            )
            fields.append(list(read))
        return fields or [[""] * len(self)]


@dataclass(frozen=True)
class ItemCells:
    """The rows of a file of items, as text.

    ids: of each row. frame: the columns id, title, then the source's own, under names that differ
    in SQL. spelled: for each of them, its name in the source. searched: the columns that search
    reads; None if their contents decide. numbered: the numbers of the rows are the ids. titled:
    there is a column of titles; otherwise the ids stand in for them, and are no text.
    """

    ids: pd.Series
    frame: pd.DataFrame
    spelled: dict[str, str]
    searched: tuple[str, ...] | None
    numbered: bool = False
    titled: bool = True


def catalog_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: Table | None = None
) -> Catalog:
    """Make a catalog of rows of text, each column as its type.

    log: the interactions with these items, if any. Raises `DataError` where no cell is of the type
    that is requested for its column.
    """
    items = item_texts(frame, columns, report, log)
    known = {name: type_ for name, type_ in report.types.items() if name in items.frame}
    types = known | _requested_types(columns, items, report.file)
    times = [name for name in items.frame if are_times(items.spelled[name], items.frame[name])]
    types |= dict.fromkeys(times, "text")
    cells = {name: _typed(items, name, types.get(name), report) for name in items.frame}
    texts = [name for name in items.frame if items.spelled[name].casefold() == TEXT]
    for name, text in product(times, texts):
        cells[name] = without_moved_times(
            items.spelled[name], cells[name], items.frame[text], cells[text], report
        )
    _count_changes(cells, report)
    order, variants = one_row_each(items.ids, cells, columns.fold_ids, report)
    searched = items.searched
    if searched is None:
        own = {name: column for name, column in cells.items() if name not in times}
        searched = _searched(items, own, report)
    facts = []
    for name, column in cells.items():
        role = name if name in ("id", "title") else "text" if name in searched else ""
        if name in times and role != "text":
            role = text_times.ROLE
        facts.append(column.facts(items.spelled[name], role, name))
    if items.numbered:
        facts[0] = replace(facts[0], convention=ROW_NUMBERS)
    typed_frame = pd.DataFrame({name: column.cells for name, column in cells.items()})
    report.notes.extend(_notes_on_names(items))
    if "year" not in {name.casefold() for name in cells}:
        _add_year(typed_frame, facts)
    return Catalog(order, typed_frame, searched, tuple(facts), variants, originals_of(cells))


def _count_changes(columns: Mapping[str, TypedColumn], report: ReadReport) -> None:
    """Count the cells of each column that are not as they were in the file, row by row, with some
    of them as they were.
    """
    for name, column in columns.items():
        if column.original is None:
            continue
        originals = column.original.dropna()
        are_lost = column.cells[originals.index].isna().to_numpy(bool)
        report.changed_cells[name] = len(originals)
        report.examples[name] = examples_of(originals, are_lost)


def originals_of(columns: Mapping[str, TypedColumn]) -> dict[str, pd.Series]:
    """Return what the cells that are not shown as they were in the file were there, by column."""
    return {
        name: column.original.dropna()
        for name, column in columns.items()
        if column.original is not None
    }


def catalog_of_ids(ids: Ids) -> Catalog:
    """Make a catalog of ids alone, which are the titles as well and are no texts to search."""
    frame = pd.DataFrame({"id": ids.texts, "title": ids.texts})
    facts = tuple(TypedColumn("text", frame[name]).facts(name, name, name) for name in frame)
    return Catalog(ids, frame, (), facts)


def item_texts(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: Table | None = None
) -> ItemCells:
    """Choose the columns and return the rows of items.

    Rows without an id, with a spreadsheet's error for an id, or with totals are skipped and counted
    in `report`. Raises `DataError` where no row is left, and for a table that is a log.
    """
    report.require_rows()
    frame = frame[columns.not_ignored(frame)]
    if frame.columns.empty:
        raise DataError(f"{report.file}: its rows have no columns, or none that is not ignored")
    choice = choose_catalog_columns(frame, columns, report, log)
    if choice.id is None:
        _refuse_numbering(frame, report)
        ids = pd.Series(range(1, len(frame) + 1), frame.index).astype(str)
    else:
        report.require_plain("id", choice.id)
        ids = id_texts(frame[choice.id])
    if columns.fold_ids:
        ids = one_case(ids)
    elif note := case_note(ids, "items"):
        report.notes.append(note)
    titles = ids if choice.title in (None, choice.id) else frame[choice.title]
    names = frame.iloc[:, 0].fillna("") if choice.id is None else ids
    usable = _usable_rows(ids, names, titles, report).to_numpy()
    if not usable.any():
        which = "rows" if choice.id is None else f"rows with an id in column {choice.id!r}"
        raise DataError(f"{report.file}: no {which} to make items of; {report}")
    frame, ids, titles = (table[usable].reset_index(drop=True) for table in (frame, ids, titles))
    if log is None:
        _refuse_log(frame, ids, choice.id, report.file)

    stored = _stored_names(list(frame.columns), choice)
    texts = {"id": ids, "title": titles}
    texts |= {stored[name]: frame[name] for name in frame if stored[name] not in texts}
    spelled = {stored[name]: name for name in frame.columns} | {"id": choice.id or "id"}
    spelled.setdefault("title", "title")
    searched = None
    if columns.text is not None:
        named = [
            check_column(name, list(frame), report.file, "`text_columns`") for name in columns.text
        ]
        searched = tuple("title" if name == choice.title else stored[name] for name in named)
    return ItemCells(
        ids,
        pd.DataFrame(texts),
        spelled,
        searched,
        numbered=choice.id is None,
        titled=choice.title not in (None, choice.id),
    )


def _refuse_numbering(frame: pd.DataFrame, report: ReadReport) -> None:
    """Raise `DataError` where files with different columns have the same cells in one: they are
    tables about the same items, whose rows would be items of their own.
    """
    if not report.lacking:
        return
    for name, column in frame.items():
        if column.hasnans or not is_unique_in_files(column):
            continue
        if 2 * (len(column) - column.nunique()) >= column.nunique():
            raise DataError(
                f"{report.file}: no column is known to have ids, and the rows of one file have the "
                f"cells of another one in column {name}: name it, or the column of ids, with "
                "`id_column`, and these rows become one item; or read the first file alone and "
                "`join` the others"
            )


def one_row_each(
    ids: pd.Series, columns: dict[str, TypedColumn], fold: bool, report: ReadReport
) -> tuple[Ids, pd.DataFrame]:
    """Combine the rows of each id in place and sort them. Return the ids, and the variants."""
    variants = combine(ids, columns, report)
    order = Ids.sorted(ids.drop_duplicates(), fold)
    first = pd.Series(columns["id"].cells.index, columns["id"].cells)[order.texts]
    for column in columns.values():
        column.cells = column.cells.loc[first].reset_index(drop=True)
        if column.original is not None:
            column.original = column.original.loc[first].reset_index(drop=True)
    columns["title"].name_blanks(columns["id"].cells)
    row_of = {text: row for row, text in enumerate(order.texts)}
    return order, variants.rename(index=row_of)


def _refuse_log(frame: pd.DataFrame, ids: pd.Series, id_column: str | None, file: str) -> None:
    """Raise `DataError` where more than half of the rows repeat an id and a column has users."""
    n_repeated = len(ids) - ids.nunique()
    if 2 * n_repeated > len(ids) and (user := users_column(frame.drop(columns=id_column))):
        raise DataError(
            f"{file}: {n_repeated:,} of {len(ids):,} rows repeat an id of column {id_column}, and "
            f"column {user} has users: it is a log, to be read as `interactions`; if it has items, "
            f"`ignore` {user}"
        )


def without_moved_times(
    name: str, times: TypedColumn, texts: pd.Series, text: TypedColumn, report: ReadReport
) -> TypedColumn:
    """Return a column of times without those of texts that are not stored as they were in the file,
    such as without HTML: their places would be those of other words.

    name: what the note calls the column. texts: the texts as they were; text: as they are stored.
    """
    is_moved = texts.notna() & (texts != text.cells) & times.cells.notna()
    n = Count(int(is_moved.sum()))
    if not n:
        return times
    report.notes.append(
        f"column {name}: {n} {n:cell|cells} emptied, since HTML or spaces were taken out of the "
        f"{n:text|texts}"
    )
    original = times.cells.where(is_moved, None)
    if times.original is not None:
        original = times.original.where(~is_moved | times.original.notna(), times.cells)
    return replace(times, cells=times.cells.mask(is_moved, None), original=original)


def _searched(
    items: ItemCells, columns: Mapping[str, TypedColumn], report: ReadReport
) -> tuple[str, ...]:
    """Return the title and all columns of texts, lists, amounts with a unit, and dates with other
    words that search reads, the shortest first, and describe the choice in `report`. An id that
    stands in for a title is no text.
    """
    spelled = items.spelled
    lengths, unsearched = {}, {}
    for name, column in columns.items():
        if name in ("id", "title"):
            continue
        if column.unit:  # "128 GB" tells what an item is, as words do
            lengths[name] = column.cells.map(id_text).str.len().mean() + len(column.unit)
            continue
        if type_named(column.type).loses_words:
            if _have_lost_words(column):
                assert column.original is not None
                lengths[name] = column.original.str.len().mean()
            continue
        if not type_named(column.type).is_text:
            continue
        if reason := why_unsearched(column.cells, spelled[name]):
            unsearched[spelled[name]] = reason
        else:
            lengths[name] = column.cells.str.len().mean()
    texts = sorted(lengths, key=lambda name: lengths[name])
    searched = ("title", *texts) if items.titled else (*texts,)
    names = listed_names([spelled[name] for name in searched]) or "nothing: it has no texts"
    report.unsearched = unsearched
    report.chosen += f"; searched: {names}"
    if unsearched:
        others = [f"{name} ({reason})" for name, reason in unsearched.items()]
        report.chosen += f"; not searched: {listed_names(others)}"
    return searched


def _have_lost_words(column: TypedColumn) -> bool:
    """Return whether enough cells of a type that loses words had such words."""
    if column.original is None:
        return False
    originals = column.original.dropna()
    cells = column.cells[originals.index].astype(object)
    type_ = type_named(column.type)
    n_lost = sum(
        type_.has_lost_words(cell, original)
        for cell, original in zip(cells.where(cells.notna(), None), originals, strict=True)
    )
    n_cells = int((column.cells.notna() | column.original.notna()).sum())
    return n_lost > 0 and n_lost >= MIN_WITH_WORDS * n_cells


def _usable_rows(
    ids: pd.Series, names: pd.Series, titles: pd.Series, report: ReadReport
) -> pd.Series:
    """Return which rows are items, bool. names: cells of which the last one may be "Total"."""
    broken = ids.str.fullmatch(SPREADSHEET_ERROR).astype(bool)
    files = ids.index.to_numpy() // FILE_ROWS
    is_last = pd.Series(np.diff(files, append=-1) != 0, ids.index)
    untitled = titles.isna() | (titles == names)
    total = is_last & untitled & names.str.fullmatch(TOTAL).astype(bool)
    report.skip("without an id", ids.index[ids == ""])
    report.skip("with a spreadsheet error for an id", ids.index[broken])
    report.skip("that is a total", ids.index[total])
    usable = (ids != "") & ~broken & ~total
    unusable = usable & ~ids.map(is_usable_id).astype(bool)
    report.skip(UNUSABLE_REASON, ids.index[unusable])
    return usable & ~unusable


def _stored_names(names: Sequence[str], choice: CatalogChoice) -> dict[str, str]:
    """Return a name for each column that no other has in SQL, where case does not matter."""
    stored = {}
    if choice.title is not None:
        stored[choice.title] = "title"
    if choice.id is not None:
        stored[choice.id] = "id"
    taken = {*OWN_NAMES, *TRUTH_VALUES}
    for name in names:
        if name in stored:
            continue
        new, number = name, 2
        while new.casefold() in taken or (new != name and new in names):
            new, number = f"{name}_{number}", number + 1
        taken.add(new.casefold())
        stored[name] = new
    return stored


def _notes_on_names(items: ItemCells) -> list[str]:
    """Return a note on each column whose name means something else as well, or in another case."""
    own = {stored: name for stored, name in items.spelled.items() if stored not in OWN_NAMES}
    notes = []
    for stored, name in own.items():
        role = name.casefold()
        if role in OWN_NAMES:
            of_role = items.spelled[role]
            key = f", and is items.{name} in results" if name == role else ""
            notes.append(
                f"column {name} is asked for as {name}{key}; the {role} is column {of_role}"
            )
        elif role in TRUTH_VALUES:
            notes.append(f"column {name} is asked for as {stored} in a condition")
        elif stored != name:
            others = [other for other in own.values() if other.casefold() == role]
            notes.append(
                f"columns {listed_names(others)} differ only in case: each is asked for by its "
                "exact name"
            )
    return list(dict.fromkeys(notes))


# --- the types of the columns ---


def _requested_types(columns: Columns, items: ItemCells, file: str) -> dict[str, str]:
    """Return the types that the caller names, by the names in `items`. Raises `DataError`."""
    stored = {name: column for column, name in items.spelled.items()}
    types: dict[str, str] = {}
    for column, type_ in columns.types.items():
        name = stored[check_column(column, list(stored), file, "`types`")]
        if type_ not in NAMES:
            raise DataError(
                f"`types`: {column} is {type_!r}{suggest(type_, list(NAMES))} "
                f"(types: {', '.join(NAMES)})"
            )
        if name in ("id", "title") and type_ != "text":
            raise DataError(f"{file}: column {column!r} is the {name}, which is text (`types`)")
        types[name] = type_
    return types


def _typed(items: ItemCells, name: str, requested: str | None, report: ReadReport) -> TypedColumn:
    """Convert a column; emptied cells are noted. Raises `DataError` where all are emptied."""
    texts = items.frame[name]
    if name == "id":
        return TypedColumn("text", texts)
    if name == "title":
        return typed(texts, "text")
    spelled, ids = items.spelled[name], items.frame["id"]
    # Arrays of one entry each, as some programs write any value, are no lists.
    has_arrays = spelled in report.nested and texts.str.contains(LIST_SEPARATOR, regex=False).any()
    if requested is None and (spelled in report.lists or has_arrays):
        column = typed(texts, "list", convention=LIST_SEPARATOR)
    else:
        column = typed(texts, requested, searched=name in (items.searched or ()))
    if column.unfit.any() and column.cells.isna().all():
        raise DataError(
            f"{report.file}: column {spelled!r} is told to be {column.type} (`types`), and none "
            f"of its cells is: {column.examples_of_unfit(texts, ids)}"
        )
    report.notes.extend(column.emptied(spelled, texts, ids))
    report.notes.extend(column.circa(spelled))
    report.notes.extend(column.mixed_currencies(spelled))
    report.notes.extend(column.mixed_percentages(spelled))
    report.notes.extend(column.without_unit(spelled))
    return column


def _add_year(frame: pd.DataFrame, facts: list[ColumnFacts]) -> None:
    """Add the year that titles end in as a column, if most titles do and no column has it."""
    years = years_in(frame["title"])
    if 2 * years.notna().sum() <= len(years):
        return
    for fact in facts[2:]:
        cells = frame[fact.stored or fact.name].astype(str).str[:4]
        if type_named(fact.type).is_ordered and 2 * (cells == years).sum() > len(years):
            return
    frame.insert(2, "year", years.astype("Int64"))
    column = TypedColumn("number", frame["year"])
    column.changed[FOUND_IN_TITLES] = int(years.notna().sum())
    facts.insert(2, column.facts("year", "", "year"))


def years_in(titles: pd.Series) -> pd.Series:
    """Return the year, as text, that a title ends in; missing where it ends otherwise."""
    return titles.str.extract(YEAR_IN_TITLE, expand=False)


# --- rows of the same id, such as the variants of a product ---


# Texts of a column with longer ones are not listed: the first one counts.
MAX_LENGTH = 60
# Columns of the example in the report, and values of each.
SHOWN = 3


def combine(ids: pd.Series, columns: Mapping[str, TypedColumn], report: ReadReport) -> pd.DataFrame:
    """Combine rows in place, so that each column has one cell for each id, in the order of the
    first rows. Return the cells of the rows of items that have several of them, but titles and long
    texts, under the id.

    A cell is the first one of its item that is not empty. Where they differ, it is the smallest
    number, the earliest date, or the list of the short texts. Titles and long texts that differ are
    counted in `report`, which describes one combined item.
    """
    first = ids.drop_duplicates().index
    repeated = ids[ids.duplicated(keep=False)]
    report.merged += len(ids) - len(first)
    several: dict[str, pd.Series] = {}
    varying: dict[str, pd.Index] = {}
    for name, column in columns.items():
        if repeated.empty or name == "id":
            column.cells = column.cells.loc[first]
            if column.original is not None:
                column.original = column.original.loc[first]
            continue
        single = column.cells.groupby(ids, sort=False).first()
        cells = column.cells.loc[repeated.index].dropna()
        owners = repeated[cells.index]
        n_different = cells.groupby(owners).nunique()
        differing = n_different.index[n_different > 1]
        if not len(differing):
            pass
        elif not type_named(column.type).is_text:
            is_uncertain = column.convention.startswith(UNCERTAIN)
            cells_of_item = cells.groupby(owners)
            least = cells_of_item.agg(_earliest) if is_uncertain else cells_of_item.min()
            single[differing] = least[differing]
            several[name], varying[name] = column.cells, differing
        elif name != "title" and (column.type == "list" or cells.str.len().max() <= MAX_LENGTH):
            if column.type != "list":
                column.type, column.convention = "list", ROWS_OF_AN_ITEM
            listed = owners.isin(differing)
            single[differing] = cells[listed].groupby(owners[listed]).agg(_joined)[differing]
            several[name], varying[name] = column.cells, differing
        else:
            items = quantity(len(differing), "item")
            report.notes.append(f"{items} with several texts of {name}: the first one counts")
        if column.original is not None:
            column.original = _originals_of_items(column, single, ids)
        column.cells = single.set_axis(first)
    if len(repeated):
        report.notes.append(_example(repeated, several))
    rows = repeated[repeated.isin({id_ for index in varying.values() for id_ in index})]
    return pd.DataFrame({name: several[name][rows.index] for name in varying}).set_axis(rows)


def _earliest(dates: pd.Series) -> str:
    """Return the date that may be the earliest one."""
    return str(min(dates, key=sort_key))


def _originals_of_items(column: TypedColumn, single: pd.Series, ids: pd.Series) -> pd.Series:
    """Return the originals of items, under their first rows. single: the cell of each item.

    The original is that of the first row that has the item's cell, and of an empty cell the first
    one of all rows. A list that was joined from several rows has none.
    """
    assert column.original is not None
    of_item = single.reindex(ids).set_axis(ids.index)
    is_empty = of_item.isna() & column.cells.isna() & column.original.notna()
    is_cell = (of_item == column.cells).fillna(False).astype(bool)
    rows_with_cell = ids[is_empty | is_cell].drop_duplicates()
    originals = pd.Series(column.original[rows_with_cell.index].to_numpy(), rows_with_cell)
    return originals.reindex(single.index).set_axis(ids.drop_duplicates().index)


def _joined(cells: pd.Series) -> str:
    """Join the distinct texts, or entries of lists, of an item."""
    entries = (entry for cell in cells for entry in str(cell).split(LIST_SEPARATOR))
    return LIST_SEPARATOR.join(dict.fromkeys(entries))


def _example(repeated: pd.Series, several: Mapping[str, pd.Series]) -> str:
    """Describe how many rows were combined, and the first item of several rows."""
    id_ = repeated.iloc[0]
    rows = repeated.index[repeated == id_]
    values = (
        f"{name} {shorten(', '.join(dict.fromkeys(map(str, cells[rows].dropna()))))}"
        for name, cells in several.items()
    )
    example = "; ".join([value for value in values if "," in value][:SHOWN])
    return (
        f"{len(repeated):,} rows were combined into {quantity(repeated.nunique(), 'item')}, such "
        f"as {shorten(id_)} of {len(rows)} rows{f' ({example})' if example else ''}"
    )

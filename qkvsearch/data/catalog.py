"""The catalog: one row an item, sorted by id, with the columns that search reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from qkvsearch.data.columns import Columns, check_column, folded, words_of
from qkvsearch.data.columns.catalog_choice import choose_catalog_columns
from qkvsearch.data.columns.column_types import TypedColumn, typed
from qkvsearch.data.columns.facts import TYPES, ColumnFacts, ColumnType, text_read
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import Ids, case_note, id_texts, one_case
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, suggest

# What spreadsheets write where a formula failed, such as an id that begins with "=" or "-".
SPREADSHEET_ERROR = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NULL!|NUM!)")
# The id of a last row with the totals of the others.
TOTAL = re.compile(
    r"(grand |sub)?totals?|total general|totale|summe|gesamt|sum|итого|合计|合計|总计", re.I
)
YEAR_IN_TITLE = r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)\s*$"


@dataclass(frozen=True)
class Catalog:
    """Items with their columns.

    Rows are in the natural order of the ids, so that ties broken by row are broken by id. frame:
    the columns id (text), title, then the source's own, each as its type. columns: the facts about
    each of them.
    """

    ids: Ids
    frame: pd.DataFrame
    text_columns: tuple[str, ...]
    columns: tuple[ColumnFacts, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def texts(self) -> list[str]:
        """Return what search reads of each item: its text columns, one a line."""
        return ["\n".join(fields) for fields in zip(*self.fields(), strict=True)]

    def fields(self) -> list[list[str]]:
        """Return the text columns as search reads them, with one text an item."""
        types = {column.stored or column.name: column.type for column in self.columns}
        return [
            [text_read(None if pd.isna(cell) else cell, types.get(name, "text")) for cell in cells]
            for name, cells in self.frame[list(self.text_columns)].astype(object).items()
        ]


@dataclass(frozen=True)
class ItemTexts:
    """Items with their columns as text.

    frame: the columns id, title, then the source's own, under names that differ in SQL. spelled:
    for each of them, its name in the source. searched: the columns that search reads.
    """

    ids: Ids
    frame: pd.DataFrame
    spelled: dict[str, str]
    searched: tuple[str, ...]

    def role(self, name: str) -> str:
        """Return the role of a column, as in `ColumnFacts`."""
        return name if name in ("id", "title") else "text" if name in self.searched else ""


def catalog_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> Catalog:
    """Make a catalog of rows of text, each column as its type.

    log: the interactions with these items, if any. Raises `DataError` where no cell is of the type
    that is requested for its column.
    """
    items = item_texts(frame, columns, report, log)
    types = _requested_types(columns, items, report.file)
    cells, facts = {}, []
    for name in items.frame:
        column = _typed(items, name, types.get(name), report)
        cells[name] = column.cells
        facts.append(column.facts(items.spelled[name], items.role(name), name))
    typed_frame = pd.DataFrame(cells)
    if "year" not in {name.casefold() for name in cells}:
        _add_year(typed_frame, facts)
    return Catalog(items.ids, typed_frame, items.searched, tuple(facts))


def catalog_of_ids(ids: Ids) -> Catalog:
    """Make a catalog of ids alone, which are the titles as well."""
    frame = pd.DataFrame({"id": ids.texts, "title": ids.texts})
    facts = tuple(TypedColumn("text", frame[name]).facts(name, name, name) for name in frame)
    return Catalog(ids, frame, ("title",), facts)


def item_texts(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: EncodedTable | None = None
) -> ItemTexts:
    """Combine the rows of each id: the last one, its blank cells filled from earlier ones.

    Rows without an id, with a spreadsheet's error for an id, or with totals are skipped and counted
    in `report`. Raises `DataError` where no row is left.
    """
    report.require_rows()
    choice = choose_catalog_columns(frame, columns, report, log)
    report.require_plain("id", choice.id)
    if choice.id != choice.title:
        frame = with_product_cells(frame, choice.title, report)
    ids = id_texts(frame[choice.id])
    if columns.fold_ids:
        ids = one_case(ids)
    elif note := case_note(ids, "items"):
        report.notes.append(note)
    frame, ids = _usable_rows(frame, ids, choice.title, report)
    if frame.empty:
        raise DataError(f"{report.file}: no rows with an id in column {choice.id!r}; {report}")
    items = frame.groupby(ids, sort=False).last()
    report.merged += len(frame) - len(items)
    order = Ids.sorted(items.index, columns.fold_ids)
    items = items.loc[order.texts].reset_index(drop=True)

    stored = _stored_names(list(frame.columns), choice.id, choice.title)
    texts = {"id": pd.Series(order.texts, dtype=object)}
    texts["title"] = texts["id"] if choice.title == choice.id else items[choice.title]
    texts |= {stored[name]: items[name] for name in items if stored[name] not in texts}
    spelled = {stored[name]: name for name in frame.columns} | {"id": choice.id}
    if choice.title == choice.id:
        spelled["title"] = "title"
    searched = tuple("title" if name == choice.title else stored[name] for name in choice.text)
    return ItemTexts(order, pd.DataFrame(texts), spelled, searched)


def _usable_rows(
    frame: pd.DataFrame, ids: pd.Series, title: str, report: ReadReport
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the rows that are items, and their ids."""
    broken = ids.str.fullmatch(SPREADSHEET_ERROR).astype(bool)
    is_last = pd.Series(frame.index.isin(frame.index[-1:]), index=frame.index)
    untitled = frame[title].isna() | (frame[title] == ids)
    total = is_last & untitled & ids.str.fullmatch(TOTAL).astype(bool)
    report.skip("without an id", frame.index[ids == ""])
    report.skip("with a spreadsheet error for an id", frame.index[broken])
    report.skip("that is a total", frame.index[total])
    usable = (ids != "") & ~broken & ~total
    return frame[usable], ids[usable]


def _stored_names(names: Sequence[str], id_column: str, title: str) -> dict[str, str]:
    """Return a name for each column that no other has in SQL, where case does not matter."""
    stored = {title: "title"} | {id_column: "id"}
    taken = {"id", "title", "_position"}  # the last one is the workspace's own
    for name in names:
        if name in stored:
            continue
        new, number = name, 2
        while new.casefold() in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new.casefold())
        stored[name] = new
    return stored


def with_product_cells(frame: pd.DataFrame, title: str, report: ReadReport) -> pd.DataFrame:
    """Copy the cells of a product into the rows of its other variants.

    Some shops write a product's own cells in the row of its first variant alone. Rows without a
    title take the cells of the titled row with the same handle, in columns that are blank in all
    those rows and are not named as a variant's. Their number is noted in `report`.
    """
    handles = [name for name in frame if folded(name) == "handle" and name != title]
    if not handles:
        return frame
    handle, titled = handles[0], frame[frame[title].notna()]
    products = titled.drop_duplicates(handle).set_index(handle)
    rows = frame.index[frame[title].isna() & frame[handle].isin(products.index)]
    shared = [
        name
        for name in frame
        if name != handle
        and words_of(name)[:1] != ["variant"]
        and frame.loc[rows, name].isna().all()
    ]
    report.note(len(rows), "{n} rows took the cells of their product, by {column}", column=handle)
    filled = frame.copy()
    filled.loc[rows, shared] = products.loc[frame.loc[rows, handle], shared].to_numpy()
    return filled


# --- the types of the columns ---


def _requested_types(columns: Columns, items: ItemTexts, file: str) -> dict[str, ColumnType]:
    """Return the types that the caller names, by the names in `items`. Raises `DataError`."""
    stored = {name: column for column, name in items.spelled.items()}
    types: dict[str, ColumnType] = {}
    for column, type_ in columns.types.items():
        name = stored[check_column(column, list(stored), file, "`types`")]
        if type_ not in TYPES:
            raise DataError(
                f"`types`: {column} is {type_!r}{suggest(type_, list(TYPES))} "
                f"(types: {', '.join(TYPES)})"
            )
        if name in ("id", "title") and type_ != "text":
            raise DataError(f"{file}: column {column!r} is the {name}, which is text (`types`)")
        types[name] = type_
    return types


def _typed(
    items: ItemTexts, name: str, requested: ColumnType | None, report: ReadReport
) -> TypedColumn:
    """Convert a column; emptied cells are noted. Raises `DataError` where all are emptied."""
    texts = items.frame[name]
    if name == "id":
        return TypedColumn("text", texts)
    if name == "title":
        column = typed(texts, "text")
        column.name_blanks(items.frame["id"])
        return column
    column = typed(texts, requested, searched=name in items.searched)
    spelled, ids = items.spelled[name], items.frame["id"]
    if column.unfit.any() and column.cells.isna().all():
        raise DataError(
            f"{report.file}: column {spelled!r} is told to be {column.type} (`types`), and none "
            f"of its cells is: {column.examples_of_unfit(texts, ids)}"
        )
    report.notes.extend(column.emptied(spelled, texts, ids))
    report.notes.extend(column.mixed_currencies(spelled))
    return column


def _add_year(frame: pd.DataFrame, facts: list[ColumnFacts]) -> None:
    """Add the year that titles end in as a column, if any does."""
    years = years_in(frame["title"])
    if years.notna().any():
        frame.insert(2, "year", years.astype("Int64"))
        column = TypedColumn("number", frame["year"])
        column.changed["found in titles"] = int(years.notna().sum())
        facts.insert(2, column.facts("year", "", "year"))


def years_in(titles: pd.Series) -> pd.Series:
    """Return the year, as text, that a title ends in; missing where it ends otherwise."""
    return titles.str.extract(YEAR_IN_TITLE, expand=False)

"""The catalog: one row an item, sorted by id, with the columns that search reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from qkvsearch.data.columns import Columns, check_column, folded, words_of
from qkvsearch.data.columns.choice import choose_catalog_columns
from qkvsearch.data.columns.column_types import TypedColumn, typed
from qkvsearch.data.columns.facts import TYPES, ColumnFacts, ColumnType, text_read
from qkvsearch.data.ids import Ids, case_note, id_texts, one_case
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, suggest

# What spreadsheets write where a formula failed, such as an id that begins with "=" or "-".
SPREADSHEET_ERROR = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NULL!|NUM!)")
# What the id of a last row is that sums up the others.
TOTAL = re.compile(
    r"(grand |sub)?totals?|total general|totale|summe|gesamt|sum|итого|合计|合計|总计", re.I
)
YEAR_IN_TITLE = r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)\s*$"


@dataclass(frozen=True)
class Catalog:
    """`frame`: columns id (text), title, then the source's own, each as its type. `columns`: what
    is known of each of them.

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
        """The text columns, each with one text an item, as search reads them."""
        types = {column.stored or column.name: column.type for column in self.columns}
        return [
            [text_read(None if pd.isna(cell) else cell, types.get(name, "text")) for cell in cells]
            for name, cells in self.frame[list(self.text_columns)].astype(object).items()
        ]


@dataclass(frozen=True)
class ItemTexts:
    """What a file says of each item, as text: `frame` with the columns id, title, then the source's
    own under names that SQL can hold apart. spelled: what the source calls each of them. searched:
    those that search reads.
    """

    ids: Ids
    frame: pd.DataFrame
    spelled: dict[str, str]
    searched: tuple[str, ...]

    def role(self, name: str) -> str:
        """As in `ColumnFacts`."""
        return name if name in ("id", "title") else "text" if name in self.searched else ""


def catalog_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: pd.DataFrame | None = None
) -> Catalog:
    """Rows of text to a catalog, each column as its type. Raises `DataError` where no cell is of
    the type told for its column.
    """
    items = item_texts(frame, columns, report, log)
    told = _told_types(columns, items, report.file)
    cells, facts = {}, []
    for name in items.frame:
        column = _typed(items, name, told.get(name), report)
        cells[name] = column.cells
        facts.append(column.facts(items.spelled[name], items.role(name), name))
    typed_frame = pd.DataFrame(cells)
    if "year" not in {name.casefold() for name in cells}:
        typed_frame, facts = _with_year(typed_frame, facts)
    return Catalog(items.ids, typed_frame, items.searched, tuple(facts))


def item_texts(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, log: pd.DataFrame | None = None
) -> ItemTexts:
    """Of rows with one id the last is kept, blanks filled from earlier ones.

    Rows without an id, or with a spreadsheet's error as id, are skipped and counted in `report`.
    """
    report.require_rows()
    names = list(frame.columns)
    chosen = choose_catalog_columns(frame, columns, report, log)
    id_column, title, text_columns = chosen.id, chosen.title, chosen.text
    report.require_plain("id", id_column)
    if id_column != title:
        frame = with_product_cells(frame, title, report)

    ids = id_texts(frame[id_column])
    if columns.fold_ids:
        ids = one_case(ids)
    elif note := case_note(ids, "items"):
        report.notes.append(note)
    broken = ids.str.fullmatch(SPREADSHEET_ERROR).astype(bool)
    report.skip("without an id", frame.index[ids == ""])
    report.skip("with a spreadsheet error for an id", frame.index[broken])
    total = _is_total(frame, ids, title)
    report.skip("that is a total", frame.index[total])
    frame = frame[(ids != "") & ~broken & ~total]
    if frame.empty:
        raise DataError(f"{report.file}: no rows with an id in column {id_column!r}; {report}")
    merged = frame.groupby(ids[frame.index], sort=False).last()
    report.merged += len(frame) - len(merged)

    order = Ids.sorted(merged.index, columns.fold_ids)
    merged = merged.loc[order.texts].reset_index(drop=True)
    renamed = _own_names(names, id_column, title) | {id_column: "id", title: "title"}
    spelled = {stored: name for name, stored in renamed.items()} | {"id": id_column}
    texts = {"id": pd.Series(order.texts, dtype=object)}
    texts |= {stored: merged[name] for stored, name in spelled.items() if stored != "id"}
    if title == id_column:
        texts["title"], spelled["title"] = texts["id"], "title"
    kept = pd.DataFrame(texts)[list(dict.fromkeys(["id", "title", *texts]))]
    searched = tuple(renamed[name] for name in text_columns)
    return ItemTexts(order, kept, spelled, searched)


def _is_total(frame: pd.DataFrame, ids: pd.Series, title: str) -> pd.Series:
    """Whether a row is the last one and sums up the others: no item, for it has no title."""
    is_last = pd.Series(frame.index.isin(frame.index[-1:]), index=frame.index)
    untitled = frame[title].isna() | (frame[title] == ids)
    return is_last & untitled & ids.str.fullmatch(TOTAL).astype(bool)


def catalog_of_ids(ids: Ids) -> Catalog:
    """The items of a log that comes without a catalog: each has its id as title."""
    frame = pd.DataFrame({"id": ids.texts, "title": ids.texts})
    facts = tuple(TypedColumn("text", frame[name]).facts(name, name, name) for name in frame)
    return Catalog(ids, frame, ("title",), facts)


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


def _told_types(columns: Columns, items: ItemTexts, file: str) -> dict[str, ColumnType]:
    """By the names in `items`, the types that the caller names. Raises `DataError`."""
    stored = {name: column for column, name in items.spelled.items()}
    told: dict[str, ColumnType] = {}
    for given, type_ in columns.types.items():
        name = stored[check_column(given, list(stored), file, "`types`")]
        if type_ not in TYPES:
            known = ", ".join(TYPES)
            raise DataError(
                f"`types`: {given} is {type_!r}{suggest(type_, list(TYPES))} (types: {known})"
            )
        if name in ("id", "title") and type_ != "text":
            raise DataError(f"{file}: column {given!r} is the {name}, which is text (`types`)")
        told[name] = type_
    return told


def _typed(items: ItemTexts, name: str, told: ColumnType | None, report: ReadReport) -> TypedColumn:
    """A column as its type; what was emptied is noted. Raises `DataError` where all was."""
    texts = items.frame[name]
    if name == "id":
        return TypedColumn("text", texts)
    if name == "title":
        column = typed(texts, "text")
        column.name_blanks(items.frame["id"])
        return column
    column = typed(texts, told, searched=name in items.searched)
    spelled, ids = items.spelled[name], items.frame["id"]
    if column.unfit.any() and column.cells.isna().all():
        raise DataError(
            f"{report.file}: column {spelled!r} is told to be {column.type} (`types`), and none "
            f"of its cells is: {column.named_unfit(texts, ids)}"
        )
    report.notes.extend(column.emptied(spelled, texts, ids))
    report.notes.extend(column.mixed_currencies(spelled))
    return column


def _with_year(
    frame: pd.DataFrame, facts: list[ColumnFacts]
) -> tuple[pd.DataFrame, list[ColumnFacts]]:
    """With the year that titles end in as a column, where any does."""
    years = years_in(frame["title"])
    if not years.notna().any():
        return frame, facts
    frame.insert(2, "year", years.astype("Int64"))
    found = TypedColumn("number", frame["year"])
    found.changed["found in titles"] = int(years.notna().sum())
    return frame, [*facts[:2], found.facts("year", "", "year"), *facts[2:]]


def years_in(titles: pd.Series) -> pd.Series:
    """The year, as text, that a title ends in; missing where it does not."""
    return titles.str.extract(YEAR_IN_TITLE, expand=False)


def with_product_cells(frame: pd.DataFrame, title: str, report: ReadReport) -> pd.DataFrame:
    """Rows without a title, with what the titled row of the same handle says of their product.

    Of the product are the columns that are blank in all those rows, but for what is named as a
    variant's own. How many rows took cells is noted in `report`.
    """
    handles = [name for name in frame if folded(name) == "handle" and name != title]
    if not handles:
        return frame
    handle, titled = handles[0], frame[frame[title].notna()]
    product = titled.drop_duplicates(handle).set_index(handle)
    rows = frame.index[frame[title].isna() & frame[handle].isin(product.index)]
    of_product = [
        name
        for name in frame
        if name != handle
        and words_of(name)[:1] != ["variant"]
        and frame.loc[rows, name].isna().all()
    ]
    report.note(len(rows), "{n} rows took the cells of their product, by {column}", column=handle)
    filled = frame.copy()
    filled.loc[rows, of_product] = product.loc[frame.loc[rows, handle], of_product].to_numpy()
    return filled

"""Put, change and delete items, record and undo interactions, erase a user: all changes."""

from dataclasses import asdict, replace
from typing import Annotated, Any

import pandas as pd
from fastapi import APIRouter, Body, Header, Path
from pydantic import Discriminator, Field, FiniteFloat, StrictFloat, StrictInt, Tag
from starlette.responses import Response

from qkvsearch._utils.validation import displayed
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, listed_names, quantity, suggest
from qkvsearch.learn.add import Revision
from qkvsearch.learn.change_rules import PATCH, ChangeRule
from qkvsearch.learn.erase import Forgotten
from qkvsearch.learn.recording import NewRow, Recording
from qkvsearch.rank.listing import Listing
from qkvsearch.rank.ranking import own_key
from qkvsearch.tables.catalog_columns import OWN_NAMES, CatalogColumns, StoredColumn
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.ids import check_new_id, id_text
from qkvsearch.terminal import shorten
from qkvsearch.web.api.request_parameters import (
    BATCH,
    NAMES,
    AnyId,
    ItemPath,
    LimitedSize,
    LimitedText,
    Parameters,
    UserPath,
)
from qkvsearch.web.api.responses import (
    RequestService,
    Rows,
    as_change,
    as_json,
    described_by,
    listing_fields,
)
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.hot_reload import HotReloadEngine
from qkvsearch.web.problems import Problem

router = APIRouter(route_class=StrictRoute)
Cell = str | bool | StrictInt | FiniteFloat | None
# Objects are only what `GET` adds to an item.
NewCells = dict[str, Cell | list[Cell] | Annotated[dict[str, Cell | list[Cell]], LimitedSize]]
Item = Annotated[NewCells, LimitedSize]
EXAMPLE = [{"id": "d9", "title": "Lemon tart"}]
# What `GET` adds to an item, beside the numbers and dates of its variants.
ADDED_KEYS = ("users", "original")
OF_VARIANTS = " of variants"


@router.put(
    "/items", tags=["items"], responses=described_by(Revision), summary="Add or replace items"
)
async def put_items(
    service: RequestService,
    items: Annotated[list[Item], NAMES, Field(min_length=1), Body(examples=[EXAMPLE])],
) -> Response:
    """Each is an object: its cells by the names of columns, or `id` and `title`. An item whose id
    exists is replaced as a whole and keeps its interactions. An item that `GET` returned can be put
    back: what `GET` adds is left out, and cells that are as it has them stay. All are stored when
    this answers.
    """

    def add(engine: HotReloadEngine) -> Response:
        columns = engine.catalog.catalog_columns
        id_name = columns[0].name
        searched = engine.snapshot.facts["text_columns"]
        rows = _by_column(engine, items, id_name)
        shown = {row[id_name]: _by_stored_column(engine, row) for row in rows}
        frame = pd.DataFrame(rows, dtype=object)
        lacking = [
            column.name
            for column in columns
            if column.stored in searched and column.name not in frame
        ]
        # `add` refuses a file without titles. Here they are empty, as every column that no object
        # has, and a warning says so.
        for name in lacking:
            frame[name] = None
        revision = engine.revise(frame, Columns(id=id_name), ChangeRule(shown=shown))
        if lacking:
            n_items = quantity(len(frame), "item")
            warning = (
                f"Warning: no item here has {listed_names(lacking)}, which search reads: "
                f"{n_items} left empty there"
            )
            revision = replace(revision, notes=[*revision.notes, warning])
        return as_change(asdict(revision), "gone")

    return await service.change(add)


@router.patch(
    "/items/{item:path}",
    tags=["items"],
    responses=described_by(dict[str, Any]),
    summary="Change some columns of an item",
)
async def patch_item(
    service: RequestService,
    item: ItemPath,
    cells: Annotated[Item, Field(min_length=1), Body(examples=[{"title": "Lemon tart"}])],
) -> Response:
    """An object with the new cells by the names of their columns, null for an empty one. All other
    columns stay, and so do cells that are as `GET` shows them. A cell that is not of the type of
    its column is refused, as is a column that the catalog lacks. Returns the item as `GET` does.
    """

    def change(engine: HotReloadEngine) -> Response:
        position = engine.catalog.titles.item_position(item)
        (id_,), _ = engine.catalog.names([position])
        id_name = engine.catalog.catalog_columns[0].name
        row = _changed_cells(engine, cells, id_)
        frame = pd.DataFrame([{id_name: id_text(id_), **row}], dtype=object)
        shown = {id_text(id_): _by_stored_column(engine, row)}
        engine.revise(frame, Columns(id=id_name), replace(PATCH, shown=shown))
        return as_json(engine.show(id_))

    return await service.change(change)


def _changed_cells(engine: Engine, cells: NewCells, id_: Any) -> dict[str, Any]:
    """Return the cells that a request changes, by the owner's names of columns. Raises `Problem`
    for a column that the catalog lacks, the id, and a cell that is an object, and names it.
    """
    columns = engine.catalog.catalog_columns
    id_column = columns[0]
    row: dict[str, Any] = {}
    for key, cell in cells.items():
        column = _column_of(columns, key, cells)
        if column is None:
            near = suggest(key, columns.names)
            listed = listed_names(columns.names)
            raise Problem(422, f"`{shorten(key)}`: no such column{near} (columns: {listed})")
        if isinstance(cell, dict):
            raise Problem(422, f"`{shorten(key)}`: a cell is a value or a list, not an object")
        if column.name in row:
            raise Problem(422, f"`{shorten(key)}`: the column is named twice")
        if column is not id_column:
            row[column.name] = cell
        elif id_text(cell, whole=engine.catalog.are_whole("items")) != id_text(id_):
            raise Problem(422, f"`{shorten(key)}`: an id stays: delete the item, and put another")
    return row


def _by_column(engine: Engine, items: list[NewCells], id_name: str) -> list[dict[str, Any]]:
    """Return the cells of items by the owner's names of columns. Raises `Problem` for an item
    without an id, and for an id or a column that is named twice.
    """
    columns = engine.catalog.catalog_columns
    has_whole_ids = engine.catalog.are_whole("items")
    rows: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(items, 1):
        row = _own_cells(columns, item, number)
        cell = row.get(id_name)
        if isinstance(cell, bool | list):
            shown = displayed(cell)
            raise Problem(
                422, f"`items`: the `id` of item {number} must be a text or a number, not {shown}"
            )
        id_ = id_text(cell, whole=has_whole_ids)
        if not id_:
            # `id` may be another column of the owner.
            is_id = columns.find("id") is columns[0]
            spellings = f"`{id_name}` or `id`" if is_id and id_name != "id" else f"`{id_name}`"
            raise Problem(422, f"`items`: item {number} has no id: give its {spellings}")
        try:
            check_new_id("id", id_)
        except DataError as error:
            raise Problem(422, f"`items`: item {number}: {error}") from None
        row[id_name] = id_
        if rows.setdefault(id_, row) is not row:
            raise Problem(422, f"`items`: the id {id_!r} occurs twice")
    return list(rows.values())


def _own_cells(columns: CatalogColumns, item: NewCells, number: int) -> dict[str, Any]:
    """Return the cells of an item without what `GET` adds, by the owner's names of columns, and by
    its own names for columns that the catalog lacks. Raises `Problem` for a column that has two
    cells, and for a cell that is an object.
    """
    row: dict[str, Any] = {}
    for key, cell in item.items():
        column = _column_of(columns, key, item)
        if column is None and _is_added(columns, key):
            continue
        if isinstance(cell, dict):
            refused = f"item {number}: `{shorten(key)}` is an object: give a value or a list"
            raise Problem(422, f"`items`: {refused}")
        name = key if column is None else column.name
        # `GET` shows an id as `id`, and under the name of its column.
        if name in row and row[name] != cell:
            raise Problem(422, f"`items`: item {number} names column `{name}` twice")
        row[name] = cell
    return row


def _column_of(columns: CatalogColumns, key: str, item: NewCells) -> StoredColumn | None:
    """Return the column that a key of an item means, None for none. Where an item has `items.id`,
    as `GET` shows a column of the owner called `id`, its `id` is that of the item.
    """
    for column in columns:
        if own_key(column.name) == key != column.name:
            return column
    if own_key(key) in item and own_key(key) != key:
        return columns.stored_as(key) if key in OWN_NAMES else None
    return columns.find(key) if columns.has(key) else None


def _is_added(columns: CatalogColumns, key: str) -> bool:
    """Return whether `GET` adds a key to an item, which is no column."""
    return key in ADDED_KEYS or (
        key.endswith(OF_VARIANTS) and columns.has(key.removesuffix(OF_VARIANTS))
    )


def _by_stored_column(engine: Engine, row: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of an item by the stored columns, without its id."""
    columns = engine.catalog.catalog_columns
    of_columns = [column for column in columns[1:] if column.name in row]
    return {column.stored: row[column.name] for column in of_columns}


@router.delete(
    "/items/{item:path}", tags=["items"], responses=described_by(Revision), summary="Delete an item"
)
async def delete_item(service: RequestService, item: ItemPath) -> Response:
    """With its interactions. What was recorded stays, and counts again if the item comes back."""

    def remove(engine: Engine) -> Response:
        return as_change(asdict(engine.remove([item])), "gone")

    return await service.change(remove)


Key = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="A request that repeats a key and its body records nothing more, and gets the "
        "same answer, until what it recorded is undone or erased. With another body the key is "
        "refused.",
    ),
]


class Interaction(Parameters):
    """One interaction."""

    user: Annotated[AnyId, Field(description="A user; a new one is created.", examples=["w001"])]
    item: Annotated[AnyId, Field(description="By id or title.", examples=["v001"])]
    rating: Annotated[
        StrictFloat | None,
        Field(description="On the log's scale; refused where it has no ratings."),
    ] = None
    weight: Annotated[
        StrictFloat | None,
        Field(
            description="Such as a quantity, negative for a refund; refused where the log has no "
            "weights. With neither, it is a plain like."
        ),
    ] = None
    event: Annotated[
        LimitedText | None,
        Field(
            min_length=1,
            description="What it is, such as purchase, where the log has events: it has the weight "
            "that the build gave such events, times `weight`, if any. Refused without a weight.",
        ),
    ] = None


class InteractionBatch(Parameters):
    """Several interactions: all are recorded, or none."""

    interactions: Annotated[list[Interaction], Field(min_length=1), BATCH]


def _kind(body: Any) -> str:
    many = isinstance(body, InteractionBatch) or (isinstance(body, dict) and "interactions" in body)
    return "many" if many else "one"


Kinds = Annotated[Interaction, Tag("one")] | Annotated[InteractionBatch, Tag("many")]
RecordBody = Annotated[Kinds, Discriminator(_kind), Body()]


class Recorded(Rows):
    """The interactions that were recorded or undone, and the number of their batch."""

    batch: int


@router.post(
    "/record", tags=["record"], responses=described_by(Recorded), summary="Record interactions"
)
async def record(
    service: RequestService, body: RecordBody, idempotency_key: Key = None
) -> Response:
    """Returns what was recorded. It is on disk then, and counts in the next recommendation."""
    interactions = body.interactions if isinstance(body, InteractionBatch) else [body]
    rows = [NewRow(row.user, row.item, row.rating, row.weight, row.event) for row in interactions]

    def do(engine: Engine) -> Response:
        return as_change(_fields(_recording(engine).record(rows, idempotency_key)), "rows")

    return await service.record(do)


@router.delete(
    "/record/{batch}", tags=["record"], responses=described_by(Recorded), summary="Undo a record"
)
async def undo(
    service: RequestService,
    batch: Annotated[int, Path(ge=1, lt=2**63, description="The number that `record` returned.")],
) -> Response:
    """Delete a batch that was recorded over HTTP. Returns its rows, without the users."""

    def do(engine: Engine) -> Response:
        fields = _fields(_recording(engine).undo(batch))
        rows = [{name: row[name] for name in row if name != "user"} for row in fields["rows"]]
        return as_change({**fields, "rows": rows}, "rows")

    return await service.record(do)


def _recording(engine: Engine) -> Recording:
    return Recording(engine.workspace, engine.current_build.histories, over_http=True)


def _fields(listing: Listing) -> dict[str, Any]:
    return {**listing_fields(listing), "batch": listing[0]["batch"]}


@router.delete(
    "/users/{user:path}",
    tags=["users"],
    responses=described_by(Forgotten),
    summary="Erase a user's data",
)
async def forget(service: RequestService, user: UserPath) -> Response:
    """Deletes their interactions and records and all previous builds. The notes say what stays."""

    return as_json(await service.change(lambda engine: asdict(engine.forget(user))))

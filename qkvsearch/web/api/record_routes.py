"""Put and delete items, record and undo interactions, erase a user: what changes the workspace."""

from dataclasses import asdict, replace
from typing import Annotated, Any

import pandas as pd
from fastapi import APIRouter, Body, Header, Path
from pydantic import Discriminator, Field, FiniteFloat, StrictFloat, StrictInt, Tag
from starlette.responses import Response

from qkvsearch._utils.validation import displayed
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, listed_names, quantity
from qkvsearch.learn.add import Revision
from qkvsearch.learn.erase import Forgotten
from qkvsearch.learn.recording import Recording
from qkvsearch.rank.listing import Listing
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.ids import check_new_id, id_text
from qkvsearch.web.api.request_parameters import (
    BATCH,
    NAMES,
    AnyId,
    ItemPath,
    LimitedSize,
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
from qkvsearch.web.problems import Problem

router = APIRouter(route_class=StrictRoute)
Cell = str | bool | StrictInt | FiniteFloat | None
Item = Annotated[dict[str, Cell | list[Cell]], LimitedSize]
EXAMPLE = [{"id": "d9", "title": "Lemon tart"}]


@router.put(
    "/items", tags=["items"], responses=described_by(Revision), summary="Add or replace items"
)
async def put_items(
    service: RequestService,
    items: Annotated[list[Item], NAMES, Field(min_length=1), Body(examples=[EXAMPLE])],
) -> Response:
    """Each is an object: its cells by the names of columns, or `id` and `title`. An item whose id
    exists is replaced as a whole and keeps its interactions. All are stored when this answers.
    """

    def add(engine: Engine) -> Response:
        columns = engine.catalog.catalog_columns
        id_name = columns[0].name
        searched = engine.snapshot.facts["text_columns"]
        frame = pd.DataFrame(_by_column(engine, items, id_name), dtype=object)
        lacking = [
            column.name
            for column in columns
            if column.stored in searched and column.name not in frame
        ]
        # `add` refuses a file without titles. Here they are empty, as every column that no object
        # has, and a warning says so.
        for name in lacking:
            frame[name] = None
        revision = engine.add(frame, Columns(id=id_name))
        if lacking:
            n_items = quantity(len(frame), "item")
            warning = (
                f"Warning: no item here has {listed_names(lacking)}, which search reads: "
                f"{n_items} left empty there"
            )
            revision = replace(revision, notes=[*revision.notes, warning])
        return as_change(asdict(revision), "gone")

    return await service.change(add)


def _by_column(engine: Engine, items: list[Item], id_name: str) -> list[dict[str, Any]]:
    """Return the cells of items by the owner's names of columns. Raises `Problem` for an item
    without an id, and for an id or a column that is named twice.
    """
    columns = engine.catalog.catalog_columns
    has_whole_ids = engine.catalog.are_whole("items")
    rows: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(items, 1):
        row = {
            columns.find(name).name if columns.has(name) else name: cell
            for name, cell in item.items()
        }
        if len(row) < len(item):
            raise Problem(422, f"`items`: item {number} names a column twice")
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


class Interactions(Parameters):
    """Several interactions: all are recorded, or none."""

    interactions: Annotated[list[Interaction], Field(min_length=1), BATCH]


def _kind(body: Any) -> str:
    many = isinstance(body, Interactions) or (isinstance(body, dict) and "interactions" in body)
    return "many" if many else "one"


Kinds = Annotated[Interaction, Tag("one")] | Annotated[Interactions, Tag("many")]
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
    interactions = body.interactions if isinstance(body, Interactions) else [body]
    rows = [(row.user, row.item, row.rating, row.weight) for row in interactions]

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

"""`items`, `facets` and a user's history: what the catalog and the log contain."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch._utils.deadline import check_deadline
from qkvsearch.engine import Engine
from qkvsearch.rank.listing import own_columns
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.web.api.filters import Filters, condition, filter_notes
from qkvsearch.web.api.request_parameters import (
    Fields,
    HitCount,
    ItemPath,
    LimitedText,
    Offset,
    Parameters,
    UserPath,
    Where,
)
from qkvsearch.web.api.responses import (
    RequestService,
    Rows,
    as_json,
    check_count,
    described_by,
    listing_fields,
)
from qkvsearch.web.api.strict_route import StrictRoute

router = APIRouter(route_class=StrictRoute)


class ItemsParameters(Parameters):
    """Which items, and which of their columns."""

    where: Where = None
    k: HitCount = 20
    offset: Offset = 0
    fields: Fields = ""
    filter: Filters = ()
    sort: Annotated[
        LimitedText | None,
        Field(
            description="A column, -COLUMN for the greatest first, or users for the most popular."
        ),
    ] = None


@router.get("/items", tags=["items"], responses=described_by(Rows), summary="List the items")
async def items(
    service: RequestService, parameters: Annotated[ItemsParameters, Query()]
) -> Response:
    """In the order of their ids, or by `sort`."""
    check_count(service, parameters.k)

    def page(engine: Engine) -> Response:
        where = condition(engine, parameters.filter, parameters.where)
        options = {**parameters.options(), "where": where}
        fields = listing_fields(engine.items.list(**options))
        fields["notes"] = [*filter_notes(engine, parameters.filter), *fields["notes"]]
        return as_json(fields)

    return await service.ask(page)


@router.get(
    "/items/{item:path}",
    tags=["items"],
    responses=described_by(dict[str, Any]),
    summary="Show one item",
)
async def item(service: RequestService, item: ItemPath) -> Response:
    """All its columns, and its number of users; by id or title. `original`, if any, has the cells
    that are not shown as they were in the owner's file, by column.
    """
    return await service.ask(lambda engine: as_json(engine.show(item)))


# --- facets ---


class FacetsParameters(Parameters):
    """Which columns, and which items."""

    columns: Annotated[
        Fields, Field(description="Separated by commas; by default the columns that suit filters.")
    ] = ""
    where: Where = None
    filter: Filters = ()


class CountedColumn(BaseModel):
    """A column that was counted. unit: seconds, minutes, hours, a currency, another unit as the
    owner's file writes it, or "". is_price: whether it has the price of an item. least, most: the
    smallest and the largest number of all items; null for columns that are not of numbers.
    """

    name: str
    type: str
    unit: str
    is_price: bool
    least: float | None
    most: float | None


class AddressColumn(BaseModel):
    """A column of web addresses. display: how the search page displays it."""

    name: str
    type: str
    display: Literal["image", "link"]


class FacetCounts(BaseModel):
    """columns: the columns counted. facets: for each column, how many items have each value.
    newest: the column with the date of an item, if there is one. addresses: columns of web
    addresses, which are not counted.
    """

    columns: list[CountedColumn]
    addresses: list[AddressColumn]
    facets: dict[str, dict[str, int]]
    newest: str | None


@router.get(
    "/facets",
    tags=["items"],
    responses=described_by(FacetCounts),
    summary="Count the values of columns",
)
async def facets(
    service: RequestService, parameters: Annotated[FacetsParameters, Query()]
) -> Response:
    """The most frequent values; numbers in ranges. A column's own filter does not limit its counts,
    so that its other values can be chosen.
    """
    return await service.ask(lambda engine: as_json(count_values(engine, parameters)))


def count_values(engine: Engine, parameters: FacetsParameters) -> dict[str, Any]:
    """Count the values of each column among the items that pass the filters of all others."""
    items = engine.items
    # A name with a comma in it cannot be told from two where several are named.
    default = [name for name in items.facet_columns() if "," not in name]
    columns = own_columns(engine.catalog, parameters.columns or default, "columns")
    price = items.price_column()
    counts: dict[str, dict[str, int]] = {}
    for column in columns:
        check_deadline()
        where = condition(engine, parameters.filter, parameters.where, column)
        counts |= items.facets([column.name], where=where)
    return {
        "columns": [_described(engine, column, column.name == price) for column in columns],
        "addresses": [one for one in items.address_columns() if "," not in one["name"]],
        "facets": counts,
        "newest": items.newest_column(),
    }


def _described(engine: Engine, column: StoredColumn, is_price: bool) -> dict[str, Any]:
    """Return the fields of a `CountedColumn`."""
    least, most = engine.items.extent(column.name) or (None, None)
    return {
        "name": column.name,
        **type_named(column.type).for_pages(),
        "unit": engine.items.unit(column.name),
        "is_price": is_price,
        "least": least,
        "most": most,
    }


# --- users: no route lists them ---


class HistoryParameters(Parameters):
    """Which rows of the history."""

    k: HitCount = 20
    offset: Offset = 0


@router.get(
    "/users/{user:path}/history",
    tags=["users"],
    responses=described_by(Rows),
    summary="List a user's interactions",
)
async def history(
    service: RequestService, user: UserPath, parameters: Annotated[HistoryParameters, Query()]
) -> Response:
    """The latest first."""
    check_count(service, parameters.k)
    options = parameters.options()
    return await service.ask(
        lambda engine: as_json(listing_fields(engine.history(user, **options)))
    )

"""`facets`: how the items spread over the values of columns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch._utils.deadline import check_deadline
from qkvsearch.engine import Engine
from qkvsearch.search.listing import own_columns
from qkvsearch.web.api.answers import Asked, as_json, shown
from qkvsearch.web.api.filters import Filters, condition
from qkvsearch.web.api.questions import Fields, QueryParameters, Where

router = APIRouter(tags=["items"])


class FacetsQuestion(QueryParameters):
    """Of which columns, and of which items."""

    columns: Annotated[
        Fields, Field(description="With commas between them; by default those worth counting.")
    ] = ""
    where: Where = None
    filter: Filters = ()


class CountedColumn(BaseModel):
    """A column that was counted."""

    name: str
    type: str


class FacetCounts(BaseModel):
    """columns: what was counted. facets: by column, how many items have which value. newest: the
    column that says when an item came, if there is one.
    """

    columns: list[CountedColumn]
    facets: dict[str, dict[str, int]]
    newest: str | None


@router.get("/facets", responses=shown(FacetCounts), summary="Count the values of columns")
async def facets(service: Asked, question: Annotated[FacetsQuestion, Query()]) -> Response:
    """The most frequent values, numbers in ranges. Of a column that is filtered the other values
    are counted as well, so that they can be chosen.
    """
    return await service.ask(lambda engine: as_json(answer(engine, question)))


def answer(engine: Engine, question: FacetsQuestion) -> dict[str, Any]:
    """Counts of each column, by the filters of all others."""
    items = engine.items
    # A name with a comma in it cannot be told from two where several are named.
    worth = [name for name in items.facet_columns() if "," not in name]
    columns = own_columns(engine.catalog, question.columns or worth, "columns")
    counted: dict[str, dict[str, int]] = {}
    for column in columns:
        check_deadline()
        where = condition(engine, question.filter, question.where, column.name)
        counted |= items.facets([column.name], where=where)
    return {
        "columns": [{"name": column.name, "type": column.type} for column in columns],
        "facets": counted,
        "newest": items.newest_column(),
    }

"""`items`, one of them or a listing: what is there."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.web.api.answers import Asked, Listed, as_json, check_count, listed, shown
from qkvsearch.web.api.filters import Filters, condition
from qkvsearch.web.api.questions import Fields, ItemPath, ListedQuestion, Text

router = APIRouter(tags=["items"])


class ItemsQuestion(ListedQuestion):
    """Which items, and what of them."""

    fields: Fields = ""
    filter: Filters = ()
    sort: Annotated[
        Text | None,
        Field(description="A column, -COLUMN for the greatest first, or users for the most met."),
    ] = None


@router.get("/items", responses=shown(Listed), summary="List the items")
async def items(service: Asked, question: Annotated[ItemsQuestion, Query()]) -> Response:
    """In the order of their ids, or by `sort`."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(answer(engine, question)))


def answer(engine: Engine, question: ItemsQuestion) -> dict[str, Any]:
    """A page of rows."""
    where = condition(engine, question.filter, question.where)
    return listed(engine.items.list(**{**question.options("filter"), "where": where}))


@router.get("/items/{item:path}", responses=shown(dict[str, Any]), summary="One item")
async def item(service: Asked, item: ItemPath) -> Response:
    """All its columns, and how many users met it; by id or title."""
    return await service.ask(lambda engine: as_json(engine.show(item)))

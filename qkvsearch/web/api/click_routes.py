"""Clicks on the hits of a search, and what people searched for: where the server logs searches."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.web.api.request_parameters import (
    MAX_OFFSET,
    AnyId,
    LimitedText,
    Offset,
    Parameters,
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
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["searches"], route_class=StrictRoute)
NO_LOG = "this server logs no searches: it would with `--log-searches`"


class Click(Parameters):
    """A click on a hit."""

    query_id: Annotated[LimitedText, Field(description="Of the answer that has the hit.")]
    item: Annotated[AnyId, Field(description="By id or title.", examples=["v001"])]
    position: Annotated[
        int, Field(strict=True, ge=1, le=MAX_OFFSET, description="The rank of the hit.")
    ]


class Clicked(BaseModel):
    """Whether the click is in the log: not where that cannot be written."""

    logged: bool


@router.post("/clicks", responses=described_by(Clicked), summary="Log a click on a hit")
async def click(service: RequestService, body: Click) -> Response:
    """It counts once for a `query_id` and an item, however often it is sent. Nothing is logged of
    who clicked.
    """
    searches = service.searches
    if searches is None:
        raise Problem(404, NO_LOG)
    if not searches.log.is_known(body.query_id):
        raise Problem(404, "`query_id`: no search of today or yesterday has it")

    def add(engine: Engine) -> Response:
        position = engine.catalog.titles.item_position(body.item)
        (item,), _ = engine.catalog.names([position])
        return as_json({"logged": searches.log.add_click(body.query_id, item, body.position)})

    return await service.ask(add)


class SearchesParameters(Parameters):
    """Which queries of the log."""

    k: Annotated[int, Field(ge=0, description="How many.")] = 20
    offset: Offset = 0
    only: Annotated[
        Literal["no_hits", "no_clicks"] | None,
        Field(
            description="Those without hits, or those whose first three hits nobody clicked on in "
            "three searches or more."
        ),
    ] = None


@router.get("/searches", responses=described_by(Rows), summary="List what people searched for")
async def searched(
    service: RequestService, parameters: Annotated[SearchesParameters, Query()]
) -> Response:
    """The most frequent queries first, from the log beside the workspace."""
    check_count(service, parameters.k)
    return await service.ask(
        lambda engine: as_json(listing_fields(engine.searches(**parameters.options()))), True
    )

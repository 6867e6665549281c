"""The owner's rules: list, add and remove them."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, StrictFloat
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.learn.rule_changes import MAX_NAME
from qkvsearch.web.api.request_parameters import AnyIds, LimitedText, Parameters
from qkvsearch.web.api.responses import (
    RequestService,
    Rows,
    as_change,
    as_json,
    described_by,
    listing_fields,
)
from qkvsearch.web.api.strict_route import StrictRoute

router = APIRouter(tags=["rules"], route_class=StrictRoute)


class NewRule(Parameters):
    """A rule: a `pin` or a `bury` with `items`, or a `boost` with `by`."""

    pin: Annotated[
        LimitedText | None,
        Field(description="A query for which the items come first.", examples=["sourdough"]),
    ] = None
    bury: Annotated[LimitedText | None, Field(description="A query for which they come last.")] = (
        None
    )
    items: Annotated[
        AnyIds, Field(description="Ids or titles, in their order.", examples=[["v001"]])
    ] = ()
    boost: Annotated[
        LimitedText | None, Field(description="A condition on columns, as in `where` of a search.")
    ] = None
    by: Annotated[
        StrictFloat | None, Field(description="How many standard deviations a boost adds.")
    ] = None
    name: Annotated[
        str | None,
        Field(max_length=MAX_NAME, description="What the reasons of a hit call it."),
    ] = None


@router.get("/rules", responses=described_by(Rows), summary="List the owner's rules")
async def rules(service: RequestService) -> Response:
    """By their numbers. A rule that cannot be applied has a `problem`."""
    return await service.ask(lambda engine: as_json(listing_fields(engine.rules())))


@router.post("/rules", responses=described_by(Rows), summary="Add a rule of the owner")
async def add_rule(service: RequestService, body: NewRule) -> Response:
    """Returns it with its number. It counts in the next question."""

    def add(engine: Engine) -> Response:
        return as_change(listing_fields(engine.add_rule(**body.options())), "rows")

    return await service.change(add)


@router.delete("/rules/{number}", responses=described_by(Rows), summary="Remove a rule")
async def remove_rule(
    service: RequestService,
    number: Annotated[int, Path(ge=1, lt=2**63, description="Its number.")],
) -> Response:
    """Returns what it was."""

    def remove(engine: Engine) -> Response:
        return as_change(listing_fields(engine.remove_rule(number)), "rows")

    return await service.change(remove)

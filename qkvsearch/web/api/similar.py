"""`similar`: neighbours of an item or of several, and users who are alike."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.retrieval import Ranking
from qkvsearch.web.api.answers import Asked, Ranked, as_json, check_count, ranked, shown
from qkvsearch.web.api.filters import Filters, condition
from qkvsearch.web.api.questions import Names, RankedQuestion, example_of, option

router = APIRouter(tags=["similar"])


class SimilarQuestion(RankedQuestion):
    """To which items."""

    items: Annotated[
        Names,
        Field(
            min_length=1,
            description="To these; repeatable.",
            json_schema_extra=example_of("items.id"),
        ),
    ]
    exclude: Names = option("exclude")
    filter: Filters = ()


def ask(engine: Engine, question: SimilarQuestion) -> Ranking:
    """Its ranking."""
    asked = question.options("explain", "filter")
    where = condition(engine, question.filter, question.where)
    return engine.similar(**{**asked, "where": where})


def answer(engine: Engine, question: SimilarQuestion) -> dict[str, Any]:
    """Notes and hits."""
    return ranked(ask(engine, question), question.explain)


@router.get("/similar", responses=shown(Ranked), summary="Neighbours of items")
async def similar(service: Asked, question: Annotated[SimilarQuestion, Query()]) -> Response:
    """By who met them, and by what they are called and tagged."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(answer(engine, question)), question.explain)

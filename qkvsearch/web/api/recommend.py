"""`recommend`: items for a known user, or for someone new from what they like and rate."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.retrieval.score_components import MAX_LISTED
from qkvsearch.web.api.answers import (
    Asked,
    Ranked,
    answer_each,
    as_json,
    check_count,
    ranked,
    shown,
)
from qkvsearch.web.api.questions import (
    BATCH,
    NAMES,
    AnyId,
    AnyIds,
    Few,
    Name,
    Names,
    QueryParameters,
    RankedQuestion,
    Text,
    example_of,
    option,
)
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["recommend"])
Rating = Annotated[str, Field(max_length=2100, examples=["m042=4.5"])]


class HowToRecommend(RankedQuestion):
    """What counts, and how the hits are shown."""

    seen: bool = option("seen")
    model: Literal["preferences", "next-item"] = option("model")
    recent: float | None = option("recent", le=1e9)
    damping: float = option("damping")
    diversity: float = option("diversity")
    because: int = option("because", MAX_LISTED, le=50)


class RecommendQuestion(HowToRecommend):
    """For whom, and by which of what they did."""

    user: Text | None = option("user", json_schema_extra=example_of("users.id"))
    likes: Names = option("likes")
    rate: Annotated[
        tuple[Rating, ...],
        NAMES,
        Field(description="ITEM=RATING, as if recorded now; repeatable."),
    ] = ()
    without: Names = option("without")
    exclude: Names = option("exclude")

    def options(self, *without: str) -> dict[str, Any]:
        return {**super().options("rate", *without), "ratings": ratings_of(self.rate)}


class RecommendBody(HowToRecommend):
    """The same as JSON, where ids may be numbers, and of ratings there is an object."""

    user: AnyId | None = option("user", json_schema_extra=example_of("users.id"))
    likes: AnyIds = option("likes")
    ratings: Annotated[
        dict[Name, float],
        Few,
        Field(description="Of items the rating, as if recorded now."),
    ] = Field(default_factory=dict)
    without: AnyIds = option("without")
    exclude: AnyIds = option("exclude")


class RecommendQuestions(QueryParameters):
    """Several questions, answered in their order."""

    questions: Annotated[list[RecommendBody], BATCH]


class AllRanked(BaseModel):
    """An answer for each question."""

    answers: list[Ranked]


def ratings_of(pairs: tuple[str, ...]) -> dict[str, float]:
    """By item. Raises `Problem` for what is no ITEM=RATING, and for an item that is rated twice.

    >>> ratings_of(("m042=4.5", "a=b=1"))
    {'m042': 4.5, 'a=b': 1.0}
    """
    found: dict[str, float] = {}
    for pair in pairs:
        item, _, rating = pair.rpartition("=")
        try:
            value = float(rating)
        except ValueError:
            value = float("nan")
        if not item or not isfinite(value):
            raise Problem(400, f"`rate`: an item, = and a number, such as m042=4.5, not {pair!r}")
        if item in found:
            raise Problem(400, f"`rate`: {item!r} is there twice")
        found[item] = value
    return found


def answer(engine: Engine, question: HowToRecommend) -> dict[str, Any]:
    """Notes and hits."""
    return ranked(engine.recommend(**question.options()), question.explain)


@router.get("/recommend", responses=shown(Ranked), summary="Recommend items")
async def recommend(service: Asked, question: Annotated[RecommendQuestion, Query()]) -> Response:
    """An exact solve on the current history; with `explain`, what each item of it adds."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(answer(engine, question)), question.explain)


@router.post("/recommend", responses=shown(AllRanked), summary="Several recommendations at once")
async def recommend_batch(service: Asked, asked: RecommendQuestions) -> Response:
    """An answer for each; one that cannot be asked refuses them all."""
    return await answer_each(service, asked.questions, answer)

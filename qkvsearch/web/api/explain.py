"""`explain`: why one hit has its score, with all parts, and in plain words."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.retrieval import Ranking
from qkvsearch.web.api.answers import Asked, RankedItem, as_json, shown
from qkvsearch.web.api.recommend import RecommendBody, RecommendQuestion
from qkvsearch.web.api.search import SearchQuestion
from qkvsearch.web.api.search import ask as ask_search
from qkvsearch.web.api.similar import SimilarQuestion
from qkvsearch.web.api.similar import ask as ask_similar
from qkvsearch.web.api.word_map import word_map
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["search"])
# How many items of a history an explained recommendation lists.
MAX_BECAUSE = 1000
Rank = Annotated[int, Field(ge=1, le=100_000, description="Which hit, from 1.")]


class ExplainSearchQuestion(SearchQuestion):
    """The search, and which of its hits."""

    rank: Rank = 1

    def options(self, *without: str) -> dict[str, Any]:
        return super().options("rank", *without)


class ExplainSimilarQuestion(SimilarQuestion):
    """To which items, and which of the hits."""

    rank: Rank = 1

    def options(self, *without: str) -> dict[str, Any]:
        return super().options("rank", *without)


class ExplainRecommendQuestion(RecommendQuestion):
    """For whom, and which of the hits."""

    rank: Rank = 1

    def options(self, *without: str) -> dict[str, Any]:
        return super().options("rank", *without)


class ExplainRecommendBody(RecommendBody):
    """The same as JSON."""

    rank: Rank = 1

    def options(self, *without: str) -> dict[str, Any]:
        return super().options("rank", *without)


class ReasonInWords(BaseModel):
    """What adds `value` to the score, in words."""

    text: str
    value: float


class WordMap(BaseModel):
    """values: what each pair of words adds, by head, word of the query and word of the item; where
    `cut` is not 0 the last entry is of that many other words. constant: what every item gets, by
    head. other: what is of no word, such as a taste. All together are the score.
    """

    heads: list[str]
    query: list[str]
    keys: list[str]
    cut: dict[str, int]
    values: list[list[list[float]]]
    constant: list[float]
    other: list[float]


class ExplainedHit(RankedItem):
    """A hit with its reasons."""

    reasons: list[ReasonInWords]
    map: WordMap


class Explained(BaseModel):
    """The hit at that rank."""

    hit: ExplainedHit


class BecauseOf(BaseModel):
    """What an item of the history adds to the score; without an id what damping or diversity do."""

    id: str | int | None
    title: str
    contribution: float


class ExplainedRecommendation(RankedItem):
    """A hit with all that adds to its score."""

    reasons: list[ReasonInWords]
    because: list[BecauseOf]


class RecommendationExplained(BaseModel):
    """The hit at that rank."""

    hit: ExplainedRecommendation


def explained(ranking: Ranking) -> dict[str, Any]:
    """Its one hit. Raises `Problem` where there is none."""
    if not ranking:
        raise Problem(404, "`rank`: there are fewer hits")
    parts = ranking.parts(0)
    reasons = [reason._asdict() for reason in ranking.reasons(0, parts)]
    return {"hit": {**ranking.to_records()[0], "reasons": reasons, "map": word_map(parts)}}


@router.get("/explain/search", responses=shown(Explained), summary="Why a hit of a search")
async def explain_search(
    service: Asked, question: Annotated[ExplainSearchQuestion, Query()]
) -> Response:
    """What each pair of words adds to the score; hits are those that `search` gives."""
    asked = question.model_copy(update={"k": 1, "offset": question.rank - 1, "facets": ""})
    return await service.ask(lambda engine: as_json(explained(ask_search(engine, asked))), True)


@router.get("/explain/similar", responses=shown(Explained), summary="Why a neighbour")
async def explain_similar(
    service: Asked, question: Annotated[ExplainSimilarQuestion, Query()]
) -> Response:
    """What each pair of words of the two texts adds, and what people do; hits are those that
    `similar` gives.
    """
    asked = question.model_copy(update={"k": 1, "offset": question.rank - 1})
    return await service.ask(lambda engine: as_json(explained(ask_similar(engine, asked))), True)


def _recommended(
    engine: Engine, question: ExplainRecommendQuestion | ExplainRecommendBody
) -> dict[str, Any]:
    one = {"k": 1, "offset": question.rank - 1, "explain": True, "because": MAX_BECAUSE}
    ranking = engine.recommend(**{**question.options(), **one})
    if not ranking:
        raise Problem(404, "`rank`: there are fewer hits")
    return {"hit": ranking.explained_records()[0]}


@router.get(
    "/explain/recommend", responses=shown(RecommendationExplained), summary="Why a recommendation"
)
async def explain_recommend(
    service: Asked, question: Annotated[ExplainRecommendQuestion, Query()]
) -> Response:
    """What each item of the history adds to the score, those that add most one by one (up to
    1,000), the others as one; hits are those that `recommend` gives.
    """
    return await service.ask(lambda engine: as_json(_recommended(engine, question)), True)


@router.post(
    "/explain/recommend", responses=shown(RecommendationExplained), summary="The same, sent as JSON"
)
async def explain_recommend_body(service: Asked, question: ExplainRecommendBody) -> Response:
    """For long histories."""
    return await service.ask(lambda engine: as_json(_recommended(engine, question)), True)

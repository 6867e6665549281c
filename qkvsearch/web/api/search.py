"""`search`: items ranked for a text query, or for several at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.retrieval import Ranking
from qkvsearch.web.api.answers import (
    Asked,
    Ranked,
    answer_each,
    as_json,
    check_count,
    ranked,
    shown,
)
from qkvsearch.web.api.filters import Filters, by_column, condition
from qkvsearch.web.api.questions import (
    BATCH,
    QueryParameters,
    RankedQuestion,
    Text,
    example_of,
    option,
)

router = APIRouter(tags=["search"])


class SearchQuestion(RankedQuestion):
    """One search."""

    q: Annotated[
        Text,
        Field(
            description='Words; "a phrase", -word, field:word and word* must hold.',
            examples=["sourdough bread"],
            json_schema_extra=example_of("items.title"),
        ),
    ]
    heads: Text | None = option("heads")
    fusion: Literal["scores", "ranks"] = option("fusion")
    user: Text | None = option("user")
    prefix: bool = option("prefix")
    facets: Text = option("facets", "")
    filter: Filters = ()
    snippet: bool = option("snippet")
    matches: Annotated[
        bool, Field(description="Of each column the words in which the query's are found.")
    ] = False
    anyway: bool = option("anyway")


class SearchQuestions(QueryParameters):
    """Several searches, answered in their order."""

    searches: Annotated[list[SearchQuestion], BATCH]


class Found(Ranked):
    """The answer to a search. corrections: words that were read as others. facets: by column, how
    many of the items that match have which value; of a column that is filtered all values are
    counted.
    """

    query: str
    corrections: list[dict[str, Any]]
    facets: dict[str, dict[str, int]]


class AllFound(BaseModel):
    """An answer for each search."""

    answers: list[Found]


def ask(engine: Engine, question: SearchQuestion, **instead: Any) -> Ranking:
    """Its ranking; `instead`: other values of the engine's parameters."""
    asked = question.options("q", "filter", "matches")
    asked["where"] = condition(engine, question.filter, question.where)
    asked["explain"] |= question.matches
    return engine.search(question.q, **{**asked, **instead})


def answer(engine: Engine, question: SearchQuestion) -> dict[str, Any]:
    """The envelope that the command line gives, too."""
    ranking = ask(engine, question)
    found = ranking.envelope(ranked(ranking, question.explain)["hits"])
    for column in by_column(engine, question.filter):
        if column.name in found["facets"]:
            others = condition(engine, question.filter, question.where, column.name)
            once_more = {"where": others, "facets": [column.name], "k": 0, "offset": 0}
            found["facets"] |= ask(engine, question, **once_more).facets
    return found


@router.get("/search", responses=shown(Found), summary="Rank the items for a query")
async def search(service: Asked, question: Annotated[SearchQuestion, Query()]) -> Response:
    """Hits for one query, and what of it was read otherwise than it was typed."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(answer(engine, question)), question.explain)


@router.post("/search", responses=shown(AllFound), summary="Several searches at once")
async def search_batch(service: Asked, questions: SearchQuestions) -> Response:
    """An answer for each; one that cannot be asked refuses them all."""
    return await answer_each(service, questions.searches, answer)

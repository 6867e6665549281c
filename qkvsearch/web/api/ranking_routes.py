"""`search`, `recommend` and `similar`, each for one question; the first two also for a batch."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StrictFloat, model_validator
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.rank.found import NoHitsReason
from qkvsearch.rank.options import parse_ratings
from qkvsearch.rank.questions import Model, RecommendQuestion
from qkvsearch.rank.ranking import Ranking
from qkvsearch.scores.components import MAX_LISTED
from qkvsearch.web.api.filters import Filters, by_column, condition, filter_notes
from qkvsearch.web.api.request_parameters import (
    BATCH,
    NAMES,
    AnyId,
    AnyIds,
    ExplainLevel,
    Flag,
    HeadNames,
    LimitedSize,
    LimitedText,
    Name,
    Parameters,
    RankingParameters,
    option,
)
from qkvsearch.web.api.responses import (
    RankedItems,
    RequestService,
    answer_batch,
    as_json,
    check_count,
    described_by,
    ranking_fields,
)
from qkvsearch.web.api.search_parameters import EXPLAIN_OR_SMALLEST, SearchParameters
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.rights import IS_HEAD, check_users
from qkvsearch.web.service import Service

router = APIRouter(route_class=StrictRoute)


# --- search ---


class SearchBatch(Parameters):
    """Several searches, answered in their order."""

    searches: Annotated[list[SearchParameters], BATCH]


class WhyNoHits(BaseModel, extra="forbid"):
    """Why a query has no hits, and what would help."""

    reason: NoHitsReason = Field(
        description="unknown_words: neither a text nor an encoder knows one of the `words`. "
        "filtered_out: there are `total` hits without the conditions, which are `where`, `filter` "
        "or the query's `operators`. not_answered: no item answers the words, or only weakly; "
        "`anyway` lists what comes nearest. too_common: all `words` are too common to be searched "
        "for alone. no_words: the query has only signs. no_texts: the items have no texts to "
        "search."
    )
    words: list[str] = Field([], description="The words of the query that it is about.")
    where: str | None = Field(None, description="The condition that leaves nothing.")
    filter: list[str] = Field([], description="The filters that leave nothing.")
    operators: list[str] = Field([], description="The operators of the query that leave nothing.")
    total: int | None = Field(None, description="How many hits there are without these.")


class SearchResults(RankedItems):
    """The answer to a search. corrections: words that were read as others. total: how many hits
    there are on all pages, without weak ones. total_weak: how many weak ones there are; `weak`
    lists them. no_hits: why there are none on any page; null where there are some. facets: for each
    column, how many of the hits that are listed on all pages have each value; a column's own filter
    does not limit its counts.
    """

    query: str
    corrections: list[dict[str, Any]]
    total: int
    total_weak: int
    no_hits: WhyNoHits | None
    facets: dict[str, dict[str, int]]
    query_id: str | None = Field(
        None,
        description="By which `POST /api/v1/clicks` says which hit was clicked on. Only where the "
        "server logs searches.",
    )


class SearchAnswers(BaseModel):
    """An answer for each search."""

    answers: list[SearchResults]


def rank_for_query(engine: Engine, parameters: SearchParameters, **instead: Any) -> Ranking:
    """Search as a request asks. instead: values of options that replace those of the request."""
    options = parameters.options()
    options["where"] = condition(engine, parameters.filter, parameters.where)
    # The engine's `explain` finds the matching words, which reasons name as well.
    options["explain"] = parameters.explain or parameters.matches
    return engine.search(parameters.q, **options | instead)


def answer_search(engine: Engine, question: SearchParameters) -> dict[str, Any]:
    """Return the envelope that the command line writes as well."""
    ranking = rank_for_query(engine, question)
    results = ranking.envelope(ranking_fields(ranking, question.explain)["hits"])
    for column in by_column(engine, question.filter):
        if column.name in results["facets"]:
            others = condition(engine, question.filter, question.where, column)
            again = {"where": others, "facets": [column.name], "k": 0, "offset": 0}
            results["facets"] |= rank_for_query(engine, question, **again).facets
    results["notes"] = [*filter_notes(engine, question.filter), *results["notes"]]
    if results["no_hits"] is not None and question.filter:
        results["no_hits"] = as_asked(results["no_hits"], question)
    return results


def as_asked(no_hits: dict[str, Any], question: SearchParameters) -> dict[str, Any]:
    """Return why there are no hits with the condition as the request has it: `filter` and `where`,
    which are one to the engine.
    """
    if "where" not in no_hits:
        return no_hits
    asked: dict[str, Any] = {"filter": list(question.filter)}
    if question.where is not None:
        asked["where"] = question.where
    return {**{name: no_hits[name] for name in no_hits if name != "where"}, **asked}


def answering_search(
    service: Service, request: Request
) -> Callable[[Engine, SearchParameters], dict[str, Any]]:
    """Return what answers the searches of a request, and logs them where the server does so.

    HEAD asks what an answer would be like: nobody searches by it.
    """
    searches = service.searches
    if searches is None or IS_HEAD in request.scope:
        return answer_search
    visitor = searches.visitor(request)

    def answer_and_log(engine: Engine, question: SearchParameters) -> dict[str, Any]:
        results = answer_search(engine, question)
        return {**results, "query_id": searches.add(visitor, question, results)}

    return answer_and_log


@router.get(
    "/search",
    tags=["search"],
    responses=described_by(SearchResults),
    summary="Rank the items for a query",
)
async def search(
    service: RequestService, request: Request, parameters: Annotated[SearchParameters, Query()]
) -> Response:
    """Hits for a query, with its corrections; weak ones only with `weak`. An empty query lists all
    items.
    """
    check_count(service, parameters.k)
    answer = answering_search(service, request)
    return await service.ask(lambda engine: as_json(answer(engine, parameters)), parameters.is_slow)


@router.post(
    "/search",
    tags=["search"],
    responses=described_by(SearchAnswers),
    summary="Several searches at once",
)
async def search_batch(service: RequestService, request: Request, batch: SearchBatch) -> Response:
    """An answer for each. If one of them is invalid, none is answered."""
    return await answer_batch(service, batch.searches, answering_search(service, request))


# --- recommend ---

Rating = Annotated[str, Field(max_length=2100, examples=["m042=4.5"])]


class RecommendOptions(RankingParameters):
    """How items are scored, and how the hits are shown."""

    explain: Annotated[ExplainLevel, EXPLAIN_OR_SMALLEST] = False  # type: ignore[assignment]
    strict_user: Flag = option("strict_user")
    seen: Flag = option("seen")
    model: Model = option("model")
    heads: LimitedText | None = option("heads", of=RecommendQuestion)
    recent: float | None = option("recent", le=1e9)
    damping: float = option("damping")
    diversity: float = option("diversity")
    rules: Flag = option("rules", of=RecommendQuestion)
    because: int = option("because", MAX_LISTED, le=50)


class RecommendParameters(RecommendOptions):
    """For whom, and from which of their interactions."""

    user: LimitedText | None = option("user")
    likes: HeadNames = option("likes")
    rate: Annotated[
        tuple[Rating, ...],
        NAMES,
        Field(description="ITEM=RATING, as if it were recorded now; repeatable.", exclude=True),
    ] = ()
    without: HeadNames = option("without")
    exclude: HeadNames = option("exclude")

    def options(self) -> dict[str, Any]:
        return {**super().options(), "ratings": parse_ratings(self.rate)}


class RecommendBody(RecommendOptions):
    """The same as JSON: ids may be numbers, and ratings are an object."""

    user: AnyId | None = option("user")
    likes: AnyIds = option("likes")
    ratings: Annotated[
        dict[Name, StrictFloat],
        LimitedSize,
        Field(description="The rating of each item, as if it were recorded now."),
    ] = Field(default_factory=dict)
    without: AnyIds = option("without")
    exclude: AnyIds = option("exclude")


class RecommendBatch(RecommendBody):
    """Either several `questions`, or several `users` with the same options; answered in their
    order.
    """

    questions: Annotated[
        list[RecommendBody], BATCH, Field(description="Each with options of its own.")
    ] = Field(default_factory=list)
    users: Annotated[
        tuple[AnyId, ...],
        BATCH,
        Field(
            description="Ids of users. The other options are those of each.", examples=[["w001"]]
        ),
    ] = ()

    @model_validator(mode="after")
    def _either(self) -> Self:
        """Refuse questions beside users, and options that no question would have."""
        given = self.model_fields_set
        if "questions" in given and len(given) > 1:
            other = sorted(given - {"questions"})[0]
            raise PydanticCustomError(
                "both",
                "either `questions` or `users`: {other} is in each question",
                {"other": other},
            )
        if "questions" not in given and "users" not in given:
            raise PydanticCustomError("neither", "give `questions`, or `users`")
        if "user" in given:
            raise PydanticCustomError("both", "either `user` in a question, or `users`")
        return self

    def each(self) -> Sequence[RecommendBody]:
        """Return the questions."""
        if "questions" in self.model_fields_set:
            return self.questions
        shared = {name: getattr(self, name) for name in RecommendBody.model_fields}
        return [RecommendBody.model_construct(**{**shared, "user": user}) for user in self.users]


class RecommendAnswers(BaseModel):
    """An answer for each question, or for each user."""

    answers: list[RankedItems]


def answer_recommend(engine: Engine, question: RecommendOptions) -> dict[str, Any]:
    """Return notes and hits."""
    return ranking_fields(engine.recommend(**question.options()), question.explain)


@router.get(
    "/recommend", tags=["recommend"], responses=described_by(RankedItems), summary="Recommend items"
)
async def recommend(
    service: RequestService, parameters: Annotated[RecommendParameters, Query()]
) -> Response:
    """By the current history; with `explain`, what each item of it adds. An unknown user gets the
    most popular items, as `weak` hits and with a note; with `strict_user` a 404.
    """
    check_count(service, parameters.k)
    return await service.ask(
        lambda engine: as_json(answer_recommend(engine, parameters)), parameters.is_slow
    )


@router.post(
    "/recommend",
    tags=["recommend"],
    responses=described_by(RecommendAnswers),
    summary="Several recommendations at once",
)
async def recommend_batch(
    request: Request, service: RequestService, batch: RecommendBatch
) -> Response:
    """An answer for each of `questions`, or for each of `users`. If one of them is invalid, none is
    answered.
    """
    questions = batch.each()
    check_users(request.scope, [question.user for question in questions])
    return await answer_batch(service, questions, answer_recommend)


# --- similar ---


class SimilarParameters(RankingParameters):
    """The items whose neighbours are listed."""

    items: Annotated[
        HeadNames,
        Field(
            min_length=1,
            description="The items whose neighbours are listed; repeatable.",
            examples=[["v001"]],
        ),
    ]
    exclude: HeadNames = option("exclude")
    filter: Filters = ()


def rank_similar(engine: Engine, parameters: SimilarParameters) -> Ranking:
    """Rank the neighbours of items. Their scores always have components."""
    options = parameters.options()
    del options["explain"]
    options["where"] = condition(engine, parameters.filter, parameters.where)
    return engine.similar(**options)


@router.get(
    "/similar", tags=["similar"], responses=described_by(RankedItems), summary="Find similar items"
)
async def similar(
    service: RequestService, parameters: Annotated[SimilarParameters, Query()]
) -> Response:
    """By their users and by their texts."""
    check_count(service, parameters.k)

    def answer(engine: Engine) -> Response:
        fields = ranking_fields(rank_similar(engine, parameters), parameters.explain)
        fields["notes"] = [*filter_notes(engine, parameters.filter), *fields["notes"]]
        return as_json(fields)

    return await service.ask(answer, parameters.is_slow)

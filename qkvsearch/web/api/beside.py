"""What lies beside the pages: their content as JSON, at the address of each with `.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.web.api import attend, facets, items, map, recommend, search, similar, state
from qkvsearch.web.api.answers import Asked, as_json, check_count, ranked
from qkvsearch.web.api.filters import Filters
from qkvsearch.web.api.questions import Count, Name, QueryParameters, Text
from qkvsearch.web.pages.attend import facts as attend_facts
from qkvsearch.web.service import Service

# What a page shows, to be written as JSON.
Answer = dict[str, Any]


class SearchPage(QueryParameters):
    """What the page's address says: a search, the neighbours of an item, or what is there."""

    q: Text = ""
    prefix: bool = False
    anyway: bool = False
    filter: Filters = ()
    where: Text | None = None
    heads: Text | None = None
    user: Text | None = None
    similar: Name | None = None
    sort: Text | None = None
    k: Count = 20
    # What is open, and in which language, changes nothing of the answer.
    open: Text = ""
    lang: Text = ""


async def search_page(service: Asked, question: Annotated[SearchPage, Query()]) -> Response:
    """The answer that the page of this address shows."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(_searched(engine, question)))


def _searched(engine: Engine, question: SearchPage) -> Answer:
    """As the page asks: with the columns that are worth counting, and their counts."""
    counting = facets.FacetsQuestion(filter=question.filter, where=question.where or None)
    counted = facets.answer(engine, counting)
    columns = ",".join(column["name"] for column in counted["columns"])
    common: dict[str, Any] = {
        "filter": question.filter, "where": question.where or None, "k": question.k,
        "fields": columns,
    }  # fmt: skip
    if question.similar:
        near = similar.SimilarQuestion(items=(question.similar,), **common)
        return ranked(similar.ask(engine, near), near.explain)
    if question.q.strip():
        return search.answer(
            engine,
            search.SearchQuestion(
                q=question.q, prefix=question.prefix, anyway=question.anyway,
                heads=question.heads or None, user=question.user or None, facets=columns,
                snippet=True, matches=True, **common,
            ),
        )  # fmt: skip
    sort = _order(engine, question.sort, counted["newest"])
    listed = items.answer(engine, items.ItemsQuestion(sort=sort, **common))
    return {**listed, "facets": counted["facets"]}


def _order(engine: Engine, wanted: str | None, newest: str | None) -> str | None:
    """That of the page: by default the most met are first, or else the newest."""
    if not wanted:
        has_users = engine.snapshot.facts.get("n_users")
        return "users" if has_users else newest and f"-{newest}"
    return None if wanted == "id" else wanted


class RecommendPage(recommend.RecommendQuestion):
    """What the address of the page that recommends says: its hits come with their reasons."""

    k: Count = 12
    explain: bool = True
    because: Annotated[int, Query(ge=1, le=50)] = 3
    lang: Text = ""

    def options(self, *without: str) -> dict[str, Any]:
        return super().options("lang", *without)


async def recommend_page(service: Asked, question: Annotated[RecommendPage, Query()]) -> Response:
    """The list that the page of this address shows."""
    return await recommend.recommend(service, question)


class MapPage(map.MapQuestion):
    """What the map's address says; an item that was chosen takes the place of who is placed."""

    item: Name = ""
    lang: Text = ""


async def map_page(service: Asked, question: Annotated[MapPage, Query()]) -> Response:
    """The map; `similar`: the neighbours of the item that was chosen."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(_mapped(engine, question)))


def _mapped(engine: Engine, question: MapPage) -> Answer:
    if not question.item:
        return map.mapped(engine.index, question)
    alone = question.model_copy(update={"query": "", "user": ""})
    near = similar.SimilarQuestion(items=(question.item,), k=question.k)
    found = ranked(similar.ask(engine, near), near.explain)
    return {**map.mapped(engine.index, alone), "similar": found}


class AttendPage(attend.AttendQuestion):
    """What the page's address says; which word is looked at, and how, changes no weight."""

    word: Text = ""
    view: Text = ""
    lang: Text = ""


async def attend_page(service: Asked, question: Annotated[AttendPage, Query()]) -> Response:
    """The maps, by default through the encoder that the page has first."""
    return await service.ask(lambda engine: as_json(_attended(service, engine, question)))


def _attended(service: Service, engine: Engine, question: AttendPage) -> Answer:
    encoder = question.encoder or attend_facts(service)["encoders"][0]
    return attend.attended(engine, question.model_copy(update={"encoder": encoder}))


async def inside(service: Asked) -> Response:
    """What the page `inside` shows."""
    return as_json(await service.ask(_inside))


def _inside(engine: Engine) -> dict[str, Any]:
    return {"info": state.facts(engine), "builds": state.all_builds(engine)}


def add_routes(app: FastAPI) -> None:
    """One for each page; those of the course are with its lessons."""
    found: dict[str, Callable[..., Any]] = {
        "search": search_page,
        "recommend": recommend_page,
        "map": map_page,
        "attend": attend_page,
        "inside": inside,
        "docs": app.openapi,
    }
    for name, answer in found.items():
        app.add_api_route(f"/{name}.json", answer, include_in_schema=False)

"""What lies beside the pages: their content as JSON, at the address of each with `.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.web.api import attend, items, map, recommend, search, similar, state
from qkvsearch.web.api.answers import Asked, as_json
from qkvsearch.web.api.filters import Filters
from qkvsearch.web.api.questions import Name, QueryParameters, Text


class PageQuestion(QueryParameters):
    """What the page's address says: a search, the neighbours of an item, or what is there."""

    q: Text = ""
    prefix: bool = False
    filter: Filters = ()
    where: Text | None = None
    heads: Text | None = None
    user: Text | None = None
    similar: Name | None = None
    sort: Text | None = None
    k: Annotated[int, Query(ge=0)] = 20
    # What is open, and in which language, changes nothing of the answer.
    open: Text = ""
    lang: Text = ""


async def search_page(service: Asked, question: Annotated[PageQuestion, Query()]) -> Response:
    """The answer that the page of this address shows."""
    asked = question.options("similar", "sort", "open", "lang")
    common = {name: asked[name] for name in ("filter", "where", "k")}
    if question.similar is not None:
        near = similar.SimilarQuestion(items=(question.similar,), **common)
        return await similar.similar(service, near)
    if question.q:
        return await search.search(service, search.SearchQuestion(**asked))
    return await items.items(service, items.ItemsQuestion(sort=question.sort, **common))


async def inside(service: Asked) -> Response:
    """What the page `inside` shows."""
    return as_json(await service.ask(_inside))


def _inside(engine: Engine) -> dict[str, Any]:
    return {"info": state.facts(engine), "builds": state.all_builds(engine)}


def add_routes(app: FastAPI) -> None:
    """One for each page; those of the course are with its lessons."""
    found: dict[str, Callable[..., Any]] = {
        "search": search_page,
        "recommend": recommend.recommend,
        "map": map.item_map,
        "attend": attend.attend,
        "inside": inside,
        "docs": app.openapi,
    }
    for name, answer in found.items():
        app.add_api_route(f"/{name}.json", answer, include_in_schema=False)

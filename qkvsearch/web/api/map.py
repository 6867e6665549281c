"""`map`: the items in two dimensions, coloured by a column, with a query or a user among them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine.index import Index
from qkvsearch.engine.projection import ItemMap, MapPoint
from qkvsearch.recommend.recommend import HEAD as COLLABORATIVE
from qkvsearch.terminal import shorten
from qkvsearch.web.api.answers import Asked, RankedItem, as_json, check_count, shown
from qkvsearch.web.api.questions import Count, QueryParameters, Text
from qkvsearch.web.colours import colours

router = APIRouter(tags=["map"])
DECIMALS = 4
# Characters of a title: the map of a large catalog is mostly titles.
LONGEST_TITLE = 100
NO_COLOUR = "-"


class MapQuestion(QueryParameters):
    """By which head, coloured by what, and who is placed on it."""

    head: Annotated[
        Text | None,
        Field(description="A dense head, or collaborative; by default the main one."),
    ] = None
    colour: Annotated[
        Text | None,
        Field(description="A column; - for none; by default the one most worth counting."),
    ] = None
    query: Annotated[Text, Field(description="A text to place.", examples=["bread"])] = ""
    user: Annotated[Text, Field(description="A user to place.")] = ""
    k: Count = 10
    items: Annotated[
        bool, Field(description="Without them there is only the place that was asked for.")
    ] = True


class ColourCodes(BaseModel):
    """What the items' colours mean. codes: of each item, from 0, which label it has, -1 for none of
    them. kind: "values", the most frequent first, or "ranges" of about as many items each.
    """

    column: str
    kind: str
    labels: list[str]
    codes: list[int]


class PlacedHit(RankedItem):
    """An item near by, and where it is."""

    x: float
    y: float


class Placed(BaseModel):
    """Where a query or a user is, and the items whose keys it weighs most, by this head alone."""

    x: float
    y: float
    hits: list[PlacedHit]


class PlacedItems(BaseModel):
    """One entry an item in each list. x, y: the farthest is 1 from the middle."""

    ids: list[str | int]
    titles: list[str]
    x: list[float]
    y: list[float]


class Mapped(BaseModel):
    """The items on the first two principal components of their keys. explained: the share of the
    variance that each axis keeps.
    """

    head: str
    heads: list[str]
    columns: list[str]
    built: str
    notes: list[str]
    explained: list[float]
    n: int
    items: PlacedItems | None
    colour: ColourCodes | None
    point: Placed | None


@router.get("/map", responses=shown(Mapped), summary="The items in two dimensions")
async def item_map(service: Asked, question: Annotated[MapQuestion, Query()]) -> Response:
    """What lies apart differs; what lies close together need not be alike."""
    check_count(service, question.k)
    return await service.ask(lambda engine: as_json(mapped(engine.index, question)))


def mapped(build: Index, question: MapQuestion) -> dict[str, Any]:
    """The answer. Raises `QkvError`."""
    query, user = question.query.strip() or None, question.user.strip() or None
    found = build.map(question.head, query=query, user=user, k=question.k)
    names = list(build.models.head_weights)[1:]
    heads = [*names, COLLABORATIVE] if build.models.implicit is not None else names
    columns = build.items.facet_columns()
    return {
        "head": found.head,
        "heads": heads,
        "columns": columns,
        "built": build.snapshot.created,
        "notes": list(found.notes),
        "explained": _rounded(found.explained),
        "n": len(found.items),
        "items": _items(build, found) if question.items else None,
        "colour": _colour(build, found, columns, question) if question.items else None,
        "point": None if found.point is None else _point(found.point),
    }


def _items(build: Index, found: ItemMap) -> dict[str, Any]:
    ids, titles = build.catalog.names(found.items)
    return {
        "ids": ids,
        "titles": [shorten(title, LONGEST_TITLE) for title in titles],
        "x": _rounded(found.positions[:, 0]),
        "y": _rounded(found.positions[:, 1]),
    }


def _colour(
    build: Index, found: ItemMap, columns: list[str], question: MapQuestion
) -> dict[str, Any] | None:
    name = question.colour
    if name is None and columns:
        name = columns[0]
    if name is None or (name == NO_COLOUR and not build.catalog.catalog_columns.has(name)):
        return None
    column = build.catalog.catalog_columns.find(name, "colour")
    return {"column": column.name, **colours(build.catalog, column, found.items)}


def _point(point: MapPoint) -> dict[str, Any]:
    x, y = _rounded(point.position)
    hits = [
        {**hit, "title": shorten(hit["title"], LONGEST_TITLE), "x": place[0], "y": place[1]}
        for hit, place in zip(
            point.hits.to_records(), np.round(point.places.astype(np.float64), DECIMALS).tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return {"x": x, "y": y, "hits": hits}


def _rounded(numbers: np.ndarray) -> list[float]:
    found: list[float] = numbers.astype(np.float64).round(DECIMALS).tolist()
    return found

"""`map`: the items in two dimensions, coloured by a column, with a query or a user among them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.engine.projection import ItemMap, MapPoint
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.rank.answerable import NEAREST
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.ranking import OWN_PREFIX
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.terminal import shorten
from qkvsearch.web.api.request_parameters import Fields, HitCount, LimitedText, Parameters
from qkvsearch.web.api.responses import (
    RankedItem,
    RequestService,
    as_json,
    check_count,
    described_by,
)
from qkvsearch.web.api.strict_route import StrictRoute

router = APIRouter(tags=["map"], route_class=StrictRoute)
DECIMALS = 4
# Characters of a title: the map of a large catalog is mostly titles.
MAX_TITLE = 100
AXES = ("x", "y")
NO_COLOUR = "-"
# Values with a colour and a shape of their own, which people tell apart, whatever their eyes;
# shades of ranges, which have an order; characters of their labels.
MAX_COLOURS, MAX_RANGES, MAX_LABEL = 13, 6, 40
# The code of an item without a colour.
NO_CODE = -1
# Characters of a date: a day is as exact as a range of dates needs.
DAY = len("2024-01-01")


class MapParameters(Parameters):
    """The head, the colours, and what is placed on the map."""

    head: Annotated[
        LimitedText | None,
        Field(description="A dense head, or collaborative; by default the main one."),
    ] = None
    colour: Annotated[
        LimitedText | None,
        Field(description="A column; - for none; by default the one that suits filters best."),
    ] = None
    query: Annotated[LimitedText, Field(description="A text to place.", examples=["bread"])] = ""
    user: Annotated[LimitedText, Field(description="A user to place.")] = ""
    k: HitCount = 10
    fields: Fields = ""
    items: Annotated[
        bool,
        Field(
            description="Whether to return the items too, or only the position of query or user."
        ),
    ] = True


class ColourCodes(BaseModel):
    """What the colours mean. codes: for each item the index of its label, -1 for none. kind:
    "values", the most frequent first, or "ranges" of about as many items each.
    """

    column: str
    kind: str
    labels: list[str]
    codes: list[int]


class PlacedHit(RankedItem):
    """A hit and its position."""

    x: float
    y: float


class MapPosition(BaseModel):
    """The position of a query or a user, and its best items by this head alone."""

    x: float
    y: float
    hits: list[PlacedHit]


class PlacedItems(BaseModel):
    """Each list has an entry for each item. x, y: the farthest item is 1 from the middle."""

    ids: list[str | int]
    titles: list[str]
    x: list[float]
    y: list[float]


class MapLabel(BaseModel):
    """The words of a cluster of items, and its middle."""

    words: str
    x: float
    y: float


class MappedItems(BaseModel):
    """Items placed by t-SNE. neighbours_kept: the share of the ten items most similar to an item
    that are among its ten nearest here.
    """

    head: str
    heads: list[str]
    columns: list[str]
    built: str
    notes: list[str]
    neighbours_kept: float
    labels: list[MapLabel]
    n: int
    items: PlacedItems | None
    colour: ColourCodes | None
    point: MapPosition | None


@router.get("/map", responses=described_by(MappedItems), summary="Draw the items in two dimensions")
async def item_map(
    service: RequestService, parameters: Annotated[MapParameters, Query()]
) -> Response:
    """Similar items are near each other. The first map of a build takes some seconds."""
    check_count(service, parameters.k)
    # It would hold up searches for as long as it takes to make the first map.
    return await service.ask(lambda engine: as_json(map_items(engine, parameters)), is_slow=True)


def map_items(engine: Engine, parameters: MapParameters) -> dict[str, Any]:
    """Return the fields of `MappedItems`. Raises `QkvError`."""
    query, user = parameters.query.strip() or None, parameters.user.strip() or None
    # A wrong name is told at once, and where nothing is placed too.
    fields = own_columns(engine.catalog, parameters.fields)
    item_map = engine.map(parameters.head, query=query, user=user, k=parameters.k)
    names = engine.models.dense_heads
    heads = [*names, COLLABORATIVE] if engine.models.implicit is not None else names
    columns = engine.items.facet_columns()
    wants_items = parameters.items
    notes = list(item_map.notes)
    if item_map.point is not None and query is not None and not _is_answered(engine, query):
        notes.append(NEAREST)
    return {
        "head": item_map.head,
        "heads": heads,
        "columns": columns,
        "built": engine.snapshot.created,
        "notes": notes,
        "neighbours_kept": item_map.neighbours_kept,
        "labels": [label._asdict() for label in item_map.labels] if wants_items else [],
        "n": len(item_map.items),
        "items": _items(engine, item_map) if wants_items else None,
        "colour": _colour(engine, item_map, columns, parameters.colour) if wants_items else None,
        "point": None if item_map.point is None else _point(engine, item_map.point, fields),
    }


def _is_answered(engine: Engine, query: str) -> bool:
    """Return whether a search has an answer: a text has a position, whatever it is about."""
    none = engine.search(query, k=1).no_hits
    return none is None or none.reason not in ("not_answered", "unknown_words")


def _items(engine: Engine, item_map: ItemMap) -> dict[str, Any]:
    ids, titles = engine.catalog.names(item_map.items)
    return {
        "ids": ids,
        "titles": [shorten(title, MAX_TITLE) for title in titles],
        "x": _rounded(item_map.positions[:, 0]),
        "y": _rounded(item_map.positions[:, 1]),
    }


def _point(engine: Engine, point: MapPoint, fields: Sequence[StoredColumn]) -> dict[str, Any]:
    """Return the fields of `MapPosition`. A column named x or y is `items.x` or `items.y` in a hit,
    whose own place these are.
    """
    x, y = _rounded(point.position)
    hits = []
    records = with_fields(point.hits, engine.catalog, fields).to_records()
    for record, position in zip(records, _rounded(point.hit_positions), strict=True):
        hit = {f"{OWN_PREFIX}{name}" if name in AXES else name: record[name] for name in record}
        hit |= {"title": shorten(record["title"], MAX_TITLE)}
        hits.append(hit | dict(zip(AXES, position, strict=True)))
    return {"x": x, "y": y, "hits": hits}


def _rounded(numbers: np.ndarray) -> list[Any]:
    return numbers.astype(np.float64).round(DECIMALS).tolist()


# --- colours ---


def _colour(
    engine: Engine, item_map: ItemMap, columns: list[str], name: str | None
) -> dict[str, Any] | None:
    if name is None and columns:
        name = columns[0]
    if name is None or (name == NO_COLOUR and not engine.catalog.catalog_columns.has(name)):
        return None
    column = engine.catalog.catalog_columns.find(name, "colour")
    return {"column": column.name, **colour_codes(engine.catalog, column, item_map.items)}


def colour_codes(catalog: StoredCatalog, column: StoredColumn, items: np.ndarray) -> dict[str, Any]:
    """Return how a column colours items. `kind`: "values" for its most frequent values, or "ranges"
    of numbers and dates. `labels`: their names. `codes`: for each item its index among the labels,
    -1 for another value or none.
    """
    cells = catalog.values.cells(column.stored)
    codes = cells.codes[items]
    counts = np.bincount(codes, minlength=len(cells.distinct))
    column_type = type_named(column.type)
    is_ordered = column_type.is_ordered
    if is_ordered:
        labels, code_of_cell = _by_ranges(cells.distinct, counts, column_type.place)
    else:
        labels, code_of_cell = _by_values(cells.distinct, counts, column_type.entries)
    return {
        "kind": "ranges" if is_ordered else "values",
        "labels": labels,
        "codes": code_of_cell[codes].tolist(),
    }


def _by_values(
    cells: Any, counts: np.ndarray, read: Callable[[Any], list[str]]
) -> tuple[list[str], np.ndarray]:
    """Return labels of the most frequent values, and the code of each cell: of a list, the code of
    its most frequent value.
    """
    entries_of = [[] if cell is None else read(cell) for cell in cells]
    total: Counter[str] = Counter()
    for entries, n in zip(entries_of, counts.tolist(), strict=True):
        for entry in entries:
            total[entry] += n
    ranked = sorted((-n, value) for value, n in total.items() if n)[:MAX_COLOURS]
    code_of = {value: code for code, (_, value) in enumerate(ranked)}
    codes = [
        min((code_of[entry] for entry in entries if entry in code_of), default=NO_CODE)
        for entries in entries_of
    ]
    labels = [shorten(value, MAX_LABEL) for value in code_of]
    return labels, np.array(codes, dtype=np.int64)


def _by_ranges(
    cells: Any, counts: np.ndarray, read: Callable[[Any], Any]
) -> tuple[list[str], np.ndarray]:
    """Return labels of ranges with about as many items each, and the code of each cell."""
    used = [index for index, cell in enumerate(cells) if cell is not None and counts[index]]
    codes = np.full(len(cells), NO_CODE, dtype=np.int64)
    if not used:
        return [], codes
    order = sorted(used, key=lambda index: read(cells[index]))
    # For each cell, the share of the items that come before the middle of its own.
    sizes = counts[order]
    middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    ranges = np.minimum((middles * MAX_RANGES).astype(np.int64), MAX_RANGES - 1)
    # Equal cells stay together, so that some ranges may be empty.
    _, ranges = np.unique(ranges, return_inverse=True)
    codes[order] = ranges
    texts = [_label(read(cells[index])) for index in order]
    labels = []
    for code in range(int(ranges.max()) + 1):
        inside = [text for text, its in zip(texts, ranges, strict=True) if its == code]
        labels.append(inside[0] if inside[0] == inside[-1] else f"{inside[0]} – {inside[-1]}")
    return labels, codes


def _label(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"

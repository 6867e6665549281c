"""`box`: what a search box on another site's page shows of a hit."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.web.api.responses import RequestService, as_json, described_by
from qkvsearch.web.api.strict_route import StrictRoute

router = APIRouter(tags=["search"], route_class=StrictRoute)


class PriceColumn(BaseModel):
    """The column of the price. unit: a currency, as a code or a sign, or "" where none is known."""

    name: str
    unit: str


class BoxColumns(BaseModel):
    """The columns that a search box shows: of an image, of the address where an item is, and of its
    price; null where the catalog has none.
    """

    image: str | None
    link: str | None
    price: PriceColumn | None


@router.get(
    "/box", responses=described_by(BoxColumns), summary="Name the columns that a search box shows"
)
async def box(service: RequestService) -> Response:
    """As `/box.js` asks before the first search; its tag may name others."""
    return await service.ask(lambda engine: as_json(box_columns(engine)))


def box_columns(engine: Engine) -> dict[str, Any]:
    """Return the columns by what they are for. Names with a comma cannot be asked for by `fields`,
    where several are named.
    """
    items = engine.items
    addresses = [one for one in items.address_columns() if "," not in one["name"]]
    first = {one["display"]: one["name"] for one in reversed(addresses)}
    name = items.price_column()
    price = None if name is None or "," in name else {"name": name, "unit": items.unit(name)}
    return {"image": first.get("image"), "link": first.get("link"), "price": price}

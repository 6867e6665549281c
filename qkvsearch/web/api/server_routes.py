"""`health`, `metrics`, `info` and `builds`: the state of the server and of its workspace."""

import asyncio
import logging
import re
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from qkvsearch.engine import Engine
from qkvsearch.web import prometheus
from qkvsearch.web.api.responses import RequestService, Rows, as_json, described_by, listing_fields
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.rights import Holder

log = logging.getLogger("qkvsearch.web")
router = APIRouter(tags=["state"], route_class=StrictRoute)


class Health(BaseModel):
    """The state of the server, its number of items and when they were built. A server with a token
    tells only the status to those who do not send it.
    """

    status: str
    items: int | None = None
    built: str | None = None


@router.get("/health", responses=described_by(Health), summary="Check that the server answers")
async def health(service: RequestService, request: Request) -> Response:
    """Also the number of items and the time of the build, if the token is sent or there is none."""
    build = await asyncio.to_thread(
        lambda: service.engine.current_build
    )  # which may have to be opened
    tokens = service.tokens
    authorization = request.headers.get("authorization", "")
    if tokens is not None and tokens.holder(authorization) is not Holder.OWNER:
        return as_json({"status": "ok"})
    return as_json({"status": "ok", "items": build.n_items, "built": build.snapshot.created})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Counts and times for Prometheus",
)
async def all_metrics(service: RequestService) -> Response:
    """Of all worker processes together."""
    return Response(await asyncio.to_thread(service.metrics.text), media_type=prometheus.MEDIA_TYPE)


@router.get("/info", responses=described_by(dict[str, Any]), summary="Describe the build")
async def info(service: RequestService) -> Response:
    """When it was built and from what: counts, columns, heads and their weights."""
    return as_json(await service.ask(public_info))


@router.get("/builds", responses=described_by(Rows), summary="List the builds")
async def builds(service: RequestService) -> Response:
    """The latest first; `megabytes` is what each one added on disk."""
    return as_json(await service.ask(list_builds))


def public_info(engine: Engine) -> dict[str, Any]:
    """Return the build's facts without paths and examples of the log, which may be users' ids."""
    info = engine.info()
    info.pop("workspace")
    columns = info["interaction_columns"]
    info["interaction_columns"] = [{**column, "example": ""} for column in columns]
    for name in ("encoder", "keys"):
        if name in info:
            info[name] = without_folders(info[name])
    return info


def without_folders(address: str) -> str:
    """Return the last name of a path: an encoder may be a folder, and keys may be in a file. Of the
    address of a server, return the host and the port.

    >>> without_folders("/home/ann/models/bert"), without_folders("minilm")
    ('bert', 'minilm')
    >>> without_folders("https://ann:secret@keys.example:19530/shop")
    'https://keys.example:19530'
    """
    scheme, is_url, rest = address.partition("://")
    if is_url:
        host = rest.partition("/")[0].rpartition("@")[2]
        return f"{scheme}://{host}"
    return re.split(r"[/\\]", address.rstrip("/\\"))[-1]


def list_builds(engine: Engine) -> dict[str, Any]:
    """Return the builds; the notes name damaged ones, and the log says which files are damaged."""
    builds = listing_fields(engine.builds())
    damaged = [row["id"] for row in builds["rows"] if row["segments"] is None]
    if damaged:
        log.error("%s", " ".join(builds["notes"]))
        builds["notes"] = [f"damaged: {', '.join(damaged)}; the server's log names the files"]
    return builds

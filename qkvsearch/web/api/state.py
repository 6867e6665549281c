"""What the server says of itself and of its build: health, metrics, info."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from qkvsearch.engine import Engine
from qkvsearch.web import metrics
from qkvsearch.web.api.answers import Asked, Listed, as_json, listed, shown

log = logging.getLogger("qkvsearch.web")
router = APIRouter(tags=["state"])


class Health(BaseModel):
    """That it answers, and from which build, which a server with a token tells with that alone."""

    status: str
    items: int | None = None
    built: str | None = None


@router.get("/health", responses=shown(Health), summary="Whether it answers")
async def health(service: Asked, request: Request) -> Response:
    """From which build, and of how many items; of a server with a token without it neither."""
    build = await asyncio.to_thread(lambda: service.engine.index)  # which may have to be opened
    if service.token and not service.token.is_in(request.headers.get("authorization", "")):
        return as_json({"status": "ok"})
    return as_json({"status": "ok", "items": build.n_items, "built": build.snapshot.created})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Counts and times, as Prometheus reads them",
)
async def all_metrics(service: Asked) -> Response:
    """Of all worker processes together."""
    return Response(await asyncio.to_thread(service.metrics.text), media_type=metrics.MEDIA_TYPE)


@router.get("/info", responses=shown(dict[str, Any]), summary="What was built, when, from what")
async def info(service: Asked) -> Response:
    """Counts, columns, heads and their weights; without the folder's name."""
    return as_json(await service.ask(facts))


@router.get("/builds", responses=shown(Listed), summary="Which builds there are")
async def builds(service: Asked) -> Response:
    """The latest first; `megabytes` is what each one added on disk."""
    return as_json(await service.ask(all_builds))


def facts(engine: Engine) -> dict[str, Any]:
    """Those of the build, but for where it lies."""
    found = engine.info()
    found.pop("workspace")
    return found


def all_builds(engine: Engine) -> dict[str, Any]:
    """All rows, and how many of them are damaged; which files are is for the server's log."""
    found = listed(engine.builds())
    damaged = [row["id"] for row in found["rows"] if row["segments"] is None]
    if damaged:
        log.error("%s", " ".join(found["notes"]))
        found["notes"] = [f"damaged: {', '.join(damaged)}; the server's log names the files"]
    return found

"""What the routes share: answers as JSON, and how OpenAPI describes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel
from starlette.responses import Response

from qkvsearch._utils.deadline import deadline
from qkvsearch.retrieval import Ranking
from qkvsearch.search.listing import Listing
from qkvsearch.web.problems import MEDIA_TYPE, Problem
from qkvsearch.web.service import Service, service_of

Asked = Annotated[Service, Depends(service_of)]

# How many times the hits of one question a batch may ask for.
HITS_OF_A_BATCH = 10
# Characters of all queries of a batch.
MAX_BATCH_TEXT = 40_000
_DETAILS = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
    },
}
# The errors that any request may get. OpenAPI describes them once, and each operation refers there.
ERROR_RESPONSES = {
    "Error": {
        "description": "An error: `detail` says what is wrong, and names the parameter. 400: a "
        "value cannot be used. 401: the token is missing or wrong. 404: there is no such id or "
        "title. 409: an Idempotency-Key is in use, or what it recorded is gone. 413, 414: the "
        "body or the address is too long. 422: a parameter is missing, unknown or of another "
        "type. 429: too many requests at once; Retry-After says when to try again. 503: no answer "
        "now, or not in time.",
        "content": {MEDIA_TYPE: {"schema": _DETAILS}},
    }
}
ANY_ERROR: dict[int | str, dict[str, Any]] = {
    "default": {"$ref": "#/components/responses/Error", "description": "An error."}
}


class RankedItem(BaseModel, extra="allow"):
    """One ranked item; columns named by `fields` come beside, and what only some questions add."""

    rank: int
    id: str | int
    title: str
    score: float
    weight: float


class Ranked(BaseModel):
    """An answer with hits, best first."""

    notes: list[str]
    hits: list[RankedItem]


class Listed(BaseModel):
    """Rows from place `offset` on, of `total`."""

    total: int
    offset: int
    notes: list[str]
    rows: list[dict[str, Any]]


def shown(model: Any) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI describes the answer of a route that writes its JSON itself."""
    return {200: {"model": model, "description": "The answer."}}


def as_json(value: Any, status: int = 200) -> Response:
    """With UTF-8 as it is; numbers unrounded."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def ranked(ranking: Ranking, explain: bool) -> dict[str, Any]:
    """Notes and hits; with `explain` the parts of each score, and the reasons in plain words."""
    hits = ranking.explained_records() if explain else ranking.to_records()
    return {"notes": list(ranking.notes), "hits": hits}


def listed(listing: Listing) -> dict[str, Any]:
    """A page of rows."""
    return {
        "total": listing.total,
        "offset": listing.offset,
        "notes": list(listing.notes),
        "rows": listing.to_records(),
    }


def check_count(service: Service, k: int) -> None:
    """Raise `Problem` for more than the server gives at once."""
    if k > service.settings.hits:
        most = f"`k`: this server gives at most {service.settings.hits} at once; `offset` goes on"
        raise Problem(400, most)


async def answer_each(
    service: Service, questions: Sequence[Any], answer: Callable[..., Any]
) -> Response:
    """The answers to a batch, each in its turn, so that others are answered between them. Raises
    `Problem` for too many hits, and where they are not all there in time.
    """
    limits = service.settings
    for question in questions:
        check_count(service, question.k)
    n_characters = sum(len(getattr(question, "q", "")) for question in questions)
    if n_characters > MAX_BATCH_TEXT:
        raise Problem(400, f"`q`: at most {MAX_BATCH_TEXT:,} characters in a batch")
    most = HITS_OF_A_BATCH * limits.hits
    if sum(question.k for question in questions) > most:
        raise Problem(400, f"`k`: at most {most:,} hits in a batch")
    try:
        async with asyncio.timeout(limits.seconds):
            with deadline(limits.seconds):
                found = [
                    await service.ask(partial(answer, question=question), question.explain)
                    for question in questions
                ]
    except TimeoutError:
        late = f"no answers within {limits.seconds:g} seconds: ask fewer at once"
        raise Problem(503, late) from None
    return await service.ask(lambda _: as_json({"answers": found}))

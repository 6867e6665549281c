"""What the routes share: JSON responses, batches, and how OpenAPI describes them."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch._utils.deadline import deadline
from qkvsearch.engine import Engine
from qkvsearch.errors import duration
from qkvsearch.rank.listing import Listing
from qkvsearch.rank.ranking import Ranking
from qkvsearch.web.problems import MEDIA_TYPE, Problem
from qkvsearch.web.service import Service, service_of
from qkvsearch.web.unread import UNREAD

RequestService = Annotated[Service, Depends(service_of)]

# How many times the hits of one question a batch may ask for.
HITS_OF_A_BATCH = 10
# Characters of all queries of a batch.
MAX_BATCH_TEXT = 40_000
# Bytes of an answer: a column may hold texts of a book's length.
MAX_ANSWER = 10_000_000
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
        "title. 413, 414: the body or the address is too long. 422: a parameter is missing, "
        "unknown, given twice or of another type. 429: too many requests at once; Retry-After says "
        "when to try again. 503: no answer now, or not in time.",
        "content": {MEDIA_TYPE: {"schema": _DETAILS}},
    }
}
ANY_ERROR: dict[int | str, dict[str, Any]] = {
    "default": {"$ref": "#/components/responses/Error", "description": "An error."}
}


class RankedItem(BaseModel, extra="allow"):
    """A ranked item. It also has the columns named by `fields`, and what only some routes add."""

    rank: int
    id: str | int
    title: str
    score: float
    weight: float
    match: Literal["strong", "good", "weak"] | None = Field(
        None, description="How well the item answers the text of a search."
    )


class RankedItems(BaseModel):
    """An answer with hits, best first."""

    notes: list[str]
    hits: list[RankedItem]


class Rows(BaseModel):
    """Rows from `offset` on, of `total`."""

    total: int
    offset: int
    notes: list[str]
    rows: list[dict[str, Any]]


def described_by(model: Any) -> dict[int | str, dict[str, Any]]:
    """Describe the answer of a route that writes its JSON itself."""
    return {200: {"model": model, "description": "The answer."}}


def as_json(value: Any) -> Response:
    """Return JSON in UTF-8 with unrounded numbers. Raises `Problem` where it is too long."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    content = text.encode("utf-8", "replace")
    check_size(len(content))
    return Response(content, media_type="application/json")


def as_change(fields: dict[str, Any], rows: str) -> Response:
    """Return the answer to a change as JSON. The change is done, so that an answer that is too long
    is no error: it has no `rows`, and a note says so.
    """
    try:
        return as_json(fields)
    except Problem:
        note = f"`{rows}` is left out: an answer has at most {MAX_ANSWER:,} bytes"
        return as_json({**fields, rows: [], "notes": [*fields["notes"], note]})


def check_size(n_bytes: int) -> None:
    """Raise `Problem` for an answer of more than `MAX_ANSWER` bytes."""
    if n_bytes > MAX_ANSWER:
        detail = f"an answer has at most {MAX_ANSWER:,} bytes: ask for fewer hits or `fields`"
        raise Problem(400, detail)


def ranking_fields(ranking: Ranking, explain: bool | str) -> dict[str, Any]:
    """Return notes and hits; with `explain` also the parts of each score, and reasons in words."""
    hits = ranking.explained_records() if explain else ranking.to_records()
    return {"notes": list(ranking.notes), "hits": hits}


def listing_fields(listing: Listing) -> dict[str, Any]:
    """Return the fields of `Rows`."""
    return {
        "total": listing.total,
        "offset": listing.offset,
        "notes": list(listing.notes),
        "rows": listing.to_records(),
    }


def check_count(service: Service, k: int) -> None:
    """Raise `Problem` for more hits than the server gives at once."""
    limit = service.settings.hits
    if k > limit:
        raise Problem(400, f"`k`: this server gives at most {limit} at once; `offset` goes on")


async def answer_batch(
    service: Service, questions: Sequence[Any], answer: Callable[..., Any]
) -> Response:
    """Answer the questions one after another, so that others are answered between them. Raises
    `Problem` for too many hits, and where the answers are not complete in time.
    """
    limits = service.settings
    for question in questions:
        check_count(service, question.k)
    n_characters = sum(len(getattr(question, "q", "")) for question in questions)
    if n_characters > MAX_BATCH_TEXT:
        raise Problem(400, f"`q`: at most {MAX_BATCH_TEXT:,} characters in a batch")
    max_hits = HITS_OF_A_BATCH * limits.hits
    if sum(question.k for question in questions) > max_hits:
        raise Problem(400, f"`k`: at most {max_hits:,} hits in a batch")

    def json_answer(engine: Engine, question: Any) -> bytes:
        return bytes(as_json(answer(engine, question)).body)

    answers: list[bytes] = []
    try:
        async with asyncio.timeout(limits.seconds):
            with deadline(limits.seconds), UNREAD.holding() as held:
                for question in questions:
                    ask = partial(json_answer, question=question)
                    answers.append(await service.ask(ask, question.is_slow))
                    held.add(len(answers[-1]))
                    check_size(sum(map(len, answers)))
    except TimeoutError:
        late = f"no answers within {duration(limits.seconds)}: ask fewer at once"
        raise Problem(503, late) from None
    content = b'{"answers":[%b]}' % b",".join(answers)
    return Response(content, media_type="application/json")

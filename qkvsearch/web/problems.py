"""Errors as problem details (RFC 9457): what is wrong and what to do, nothing of the machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from qkvsearch.errors import QkvError, UnknownIdError, WorkspaceError
from qkvsearch.terminal import shorten

log = logging.getLogger("qkvsearch.web")
MEDIA_TYPE = "application/problem+json"
# A message has at most so many characters of what was sent.
LONGEST = 500
BUG = HTTPStatus.INTERNAL_SERVER_ERROR, "this should not have happened"
UNAVAILABLE = (
    "the workspace cannot answer this now; whoever runs the server finds the cause in its log"
)


class Problem(HTTPException):
    """A request that is refused with this status, and why."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer: `title` names the status, `detail` says what is wrong."""
    told = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body = json.dumps({**told, "detail": shorten(detail, LONGEST)}, ensure_ascii=False)
    return Response(body, status, headers, MEDIA_TYPE)


def handlers() -> dict[Any, Any]:
    """What an app does with errors: every one becomes a problem."""
    return {Problem: _problem, QkvError: _of_the_engine, HTTPException: _of_the_framework}


def problem_of(refused: Problem) -> Response:
    """The answer that it is."""
    return problem(refused.status_code, refused.detail, refused.headers)


async def _problem(_: Request, error: Any) -> Response:
    return problem_of(error)


async def _of_the_engine(_: Request, error: Any) -> Response:
    """The same message as in Python and on the command line, but for what names files."""
    if isinstance(error, WorkspaceError) and _names_a_file(str(error)):
        log.error("%s", error)
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, UNAVAILABLE)
    is_unknown = isinstance(error, UnknownIdError)
    return problem(HTTPStatus.NOT_FOUND if is_unknown else HTTPStatus.BAD_REQUEST, str(error))


def _names_a_file(message: str) -> bool:
    return "/" in message or "\\" in message


async def of_a_parameter(_: Request, error: Any) -> Response:
    """The first that does not fit, by its name."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "body"
    said = first["msg"][:1].lower() + first["msg"][1:]
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"`{place}`: {said}")


async def of_a_bug(_: Request, error: Any) -> Response:
    """What an app says that is asked by another, which logs it."""
    return problem(*BUG)


async def _of_the_framework(request: Request, error: Any) -> Response:
    said = {
        HTTPStatus.NOT_FOUND: "there is no such page; the API is described at /docs",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not understood here; see /docs",
    }
    detail = said.get(error.status_code, str(error.detail))
    allowed = _methods(request) if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else ""
    return problem(error.status_code, detail, {"Allow": allowed} if allowed else error.headers)


def _methods(request: Request) -> str:
    """What the API has at this address, by any of its routes; "" for what is no part of it."""
    if not hasattr(request.app, "openapi"):
        return "GET, HEAD"  # a page
    found = [
        method.upper()
        for path, methods in request.app.openapi()["paths"].items()
        if compile_path(path)[0].match(request.url.path)
        for method in methods
    ]
    return ", ".join(found)

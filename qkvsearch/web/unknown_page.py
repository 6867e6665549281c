"""The page of an address that leads nowhere, for whoever opens it in a browser."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qkvsearch.lessons.messages import language
from qkvsearch.web.pages import language_of, render, words
from qkvsearch.web.problems import Problem, handlers
from qkvsearch.web.rights import wants_page
from qkvsearch.web.service import Service

Handler = Callable[[Request, Any], Awaitable[Response]]


def handlers_with_page(service: Service) -> dict[Any, Any]:
    """Return the handlers of errors; those of an address that is unknown answer browsers by a
    page, and all others by a problem.
    """
    found = handlers()
    for kind in (Problem, HTTPException):
        found[kind] = _with_page(service, found[kind])
    return found


def _with_page(service: Service, problem: Handler) -> Handler:
    async def answer(request: Request, error: Any) -> Response:
        is_unknown = error.status_code == HTTPStatus.NOT_FOUND
        if not (is_unknown and wants_page(request.scope, request.headers)):
            return await problem(request, error)
        with language(language_of(request)):
            title = words("unknown")["title"]
            page = render(service, "unknown", path=request.url.path, title=title, facts={})
        page.status_code = HTTPStatus.NOT_FOUND
        page.headers["Vary"] = "Accept, Accept-Language"
        return page

    return answer

"""Routes that refuse a value that is given twice: all but one would be ignored without a word.

This holds for keys of an object of JSON, for parameters of the address that are no lists, and for
headers that a route reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, get_origin, get_type_hints

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from qkvsearch.terminal import shorten
from qkvsearch.web.api.request_parameters import Parameters
from qkvsearch.web.problems import Problem

# Headers that routes read.
HEADERS = ("Idempotency-Key",)


class UniqueKeysRequest(Request):
    """A request whose JSON is refused where a key occurs twice."""

    async def json(self) -> Any:
        """Return the body. Raises `Problem` that names the key, and `JSONDecodeError`."""
        return json.loads(await self.body(), object_pairs_hook=unique_keys)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises `Problem` for a key that occurs twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                twice = f"`{shorten(key)}` occurs twice in one object"
                raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, twice)
            seen.add(key)
    return fields


class StrictRoute(APIRoute):
    """A route of the API that refuses values that are given twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        lists = names_of_lists(self.endpoint)

        async def check_and_handle(request: Request) -> Response:
            check_given_once(request, lists)
            return await handle(UniqueKeysRequest(request.scope, request.receive))

        return check_and_handle


def names_of_lists(endpoint: Callable[..., Any]) -> set[str]:
    """Return the names of a route's parameters that may be given several times."""
    return {
        name
        for model in get_type_hints(endpoint).values()
        if isinstance(model, type) and issubclass(model, Parameters)
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is tuple
    }


def check_given_once(request: Request, lists: set[str]) -> None:
    """Raise `Problem` for a parameter that is no list, or a header, that is given twice."""
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name in seen and name not in lists:
            detail = f"`{shorten(name)}` is given more than once: give one value"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
        seen.add(name)
    for name in HEADERS:
        if len(request.headers.getlist(name)) > 1:
            detail = f"`{name}` is given more than once: send one key for one request"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)

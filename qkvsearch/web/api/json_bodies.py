"""Bodies of JSON in which no object has a key twice: the last one would win without a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from qkvsearch.terminal import shorten
from qkvsearch.web.problems import Problem


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


class JsonRoute(APIRoute):
    """A route of the API that reads its body by `UniqueKeysRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            return await handle(UniqueKeysRequest(request.scope, request.receive))

        return read_and_handle

"""Errors as problem details (RFC 9457): what is wrong and what to do, nothing of the machine."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount

from qkvsearch import errors
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.terminal import shorten
from qkvsearch.web.client import CLIENT_LEFT, ClientLeftError

log = logging.getLogger("qkvsearch.web")
MEDIA_TYPE = "application/problem+json"
# The methods that routes may have. HEAD is answered wherever GET is, and OPTIONS everywhere.
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# How pydantic begins to say what a value should be.
EXPECTED = "input should be "
# Characters of a detail, which may quote what was sent.
MAX_DETAIL = 500
BUG = HTTPStatus.INTERNAL_SERVER_ERROR, errors.BUG
# Seconds after which a client that got no answer for now tries again.
RETRY_AFTER = "5"


class Problem(HTTPException):
    """A request that is refused with this status, and why."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response: `title` names the status, `detail` says what is wrong."""
    fields = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body = json.dumps({**fields, "detail": shorten(detail, MAX_DETAIL)}, ensure_ascii=False)
    return Response(body, status, headers, MEDIA_TYPE)


def handlers() -> dict[Any, Any]:
    """Return an app's exception handlers: each makes a problem of an error."""
    return {
        Problem: _refused,
        ClientLeftError: _left,
        QkvError: _engine_error,
        RequestValidationError: _invalid_parameter,
        HTTPException: _framework_error,
    }


def problem_of(refused: Problem) -> Response:
    """Return a refusal as a response."""
    return problem(refused.status_code, refused.detail, refused.headers)


async def _refused(_: Request, error: Any) -> Response:
    return problem_of(error)


async def _left(_: Request, __: Any) -> Response:
    """Nobody receives this: it is for the log."""
    return Response(status_code=CLIENT_LEFT)


async def _engine_error(_: Request, error: Any) -> Response:
    """Give the same message as Python and the command line. An error of the workspace is not the
    fault of the request, and its message names files: that one is for the log.
    """
    if isinstance(error, UnknownIdError):
        return problem(HTTPStatus.NOT_FOUND, str(error))
    message = errors.for_others(error)
    if errors.is_of_workspace(error):
        log.error("%s", error)
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, message, {"Retry-After": RETRY_AFTER})
    return problem(HTTPStatus.BAD_REQUEST, message)


async def _invalid_parameter(_: Request, error: Any) -> Response:
    """Name the first parameter that is not valid."""
    found = error.errors()
    body = getattr(error, "body", None)
    keys_of = [_keys(each, body) for each in found]
    keys = keys_of[0]
    if keys:
        # A list in place of a text or of a list has an error for itself and for its entry.
        inside = (other for other in keys_of if other[: len(keys)] == keys)
        keys = max(inside, key=len)
    names = [str(key) for key in keys] or ["body"]
    if not names[-1]:
        nameless = "a value has no name: give each one, as in name=value"
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, nameless)
    # A value of none of several types has an error for each of them.
    same = [each for each, those in zip(found, keys_of, strict=True) if those == keys]
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"`{'.'.join(names)}`: {_reason(same)}")


def _reason(same: Sequence[Mapping[str, Any]]) -> str:
    """Return what is wrong with one value. same: its errors, one for each type that it may have."""
    first = same[0]
    if first["type"] == "json_invalid":
        place, why = first["loc"][-1], first["ctx"]["error"]
        return f"not valid JSON at character {place + 1}: {_uncapitalized(why)}"
    # What is a number, but NaN or infinite, is not told that it should be a text.
    same = [each for each in same if each["type"] == "finite_number"] or same
    messages = [*dict.fromkeys(_uncapitalized(each["msg"]) for each in same)]
    *alternatives, last = [message.removeprefix(EXPECTED) for message in messages]
    if not alternatives or not all(message.startswith(EXPECTED) for message in messages):
        return messages[0]
    return f"{EXPECTED}{', '.join(alternatives)} or {last}"


def _uncapitalized(message: str) -> str:
    """Return a sentence as it stands after a colon.

    >>> _uncapitalized("Field required"), _uncapitalized("JSON decode error")
    ('field required', 'JSON decode error')
    """
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def _keys(error: Mapping[str, Any], body: Any) -> list[Any]:
    """Return the keys that lead to what is not valid: of the request's body, or of its address.

    Between them pydantic puts names of its own, such as `constrained-str`, for the type that it
    tried of several.
    """
    where, *keys = error["loc"]
    if where != "body":
        return keys
    found, value = [], body
    for key in keys:
        is_in_object = isinstance(value, dict) and key in value
        is_in_list = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if is_in_object or is_in_list:
            found.append(key)
            value = value[key]
    if keys and error["type"] == "missing":
        found.append(keys[-1])
    return found


async def _framework_error(request: Request, error: Any) -> Response:
    """Answer OPTIONS, which no route has, and describe other errors of the framework."""
    docs = f"{request.app.state.service.settings.root_path}/docs"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = {"Allow": ", ".join(_methods(request))}
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=allowed)
        detail = f"{request.method} is not allowed here; see {docs}"
        return problem(error.status_code, detail, allowed)
    if error.status_code == HTTPStatus.NOT_FOUND:
        nowhere = f"there is no such page; the API is described at {docs}"
        return problem(error.status_code, nowhere, error.headers)
    return problem(error.status_code, str(error.detail), error.headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of an address, by the routes that match it with each."""
    allowed = []
    # A folder of files has changed where the path begins.
    whole = {**request.scope, "root_path": request.scope.get("app_root_path", "")}
    for method in METHODS:
        scope = {**whole, "method": method}
        matching = [route for route in request.app.routes if route.matches(scope)[0] is Match.FULL]
        # A folder of files matches every method, and answers GET alone.
        if any(method == "GET" or not isinstance(route, Mount) for route in matching):
            allowed.append(method)
    if "GET" in allowed:
        allowed.append("HEAD")
    return [*allowed, "OPTIONS"]

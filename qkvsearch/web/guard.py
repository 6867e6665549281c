"""What every request goes through: limits of size and time, the token, safe headers, the log."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qkvsearch.web.problems import BUG, Problem, log, problem, problem_of
from qkvsearch.web.service import Service
from qkvsearch.web.settings import LOOPBACK

access = logging.getLogger("qkvsearch.access")
LONGEST_TARGET = 16_384
# How long the rest of a request may take to arrive.
ARRIVES = 10.0
# How many times the largest body is read before a connection is given up.
READ_ANYWAY = 10
# Nothing from elsewhere, nothing inline; pictures may be drawn by the page itself.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
API = "/api/v1"
# Others are told of together: a client could make up as many as it likes.
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
READING = ("GET", "HEAD", "OPTIONS")
# Of another port of this machine a browser says "same-site".
OWN_SITE = ("same-origin", "none")
# What needs no token: of the workspace it holds what it is called, and which encoder it has.
OPEN = ("/static/", "/learn/")
OPEN_PAGES = ("/", "/learn.json", "/docs.json", "/api/v1/health", "/openapi.json", "/favicon.ico")


class Guard:
    """Middleware around the whole app. pages: paths that are open to everyone."""

    def __init__(self, app: ASGIApp, service: Service, pages: tuple[str, ...] = ()) -> None:
        self.app, self.service, self.pages = app, service, (*OPEN_PAGES, *pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, is_whole = time.perf_counter(), 0, False
        self.service.metrics.began()

        async def with_headers(message: Message) -> None:
            nonlocal status, is_whole
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                for name, value in SAFE.items():
                    headers[name] = value
                kept = "no-cache" if scope["path"].startswith(OPEN) else "no-store"
                headers.setdefault("Cache-Control", kept)
                message["headers"] = headers.raw
            else:
                is_whole = not message.get("more_body", False)
            await send(message)

        try:
            self._check(scope)
            if scope["method"] not in READING and scope["path"].startswith(API):
                receive = _again(await _whole(receive, self.service.settings.body), receive)
            await self.app(scope, receive, with_headers)
        except Problem as refused:
            await problem_of(refused)(scope, receive, with_headers)
        except Exception as bug:
            log.error("a request failed", exc_info=bug)
            if not status:
                await problem(*BUG)(scope, receive, with_headers)
            elif not is_whole:  # a part of the answer is gone already
                raise
        finally:
            self._tell(scope, status, time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        """Raise `Problem` for what is not even looked at."""
        headers = Headers(scope=scope)
        if len(scope["query_string"]) + len(scope["raw_path"]) > LONGEST_TARGET:
            longest = f"an address has at most {LONGEST_TARGET:,} bytes: send long ones by POST"
            raise Problem(HTTPStatus.REQUEST_URI_TOO_LONG, longest)
        path, token = scope["path"], self.service.token
        _check_origin(headers, scope["method"], token is not None)
        is_open = path in self.pages or path.startswith(OPEN)
        if token and not is_open and not token.is_in(headers.get("authorization", "")):
            wanted = {"WWW-Authenticate": 'Bearer realm="qkvsearch"'}
            said = "this server demands its token, as the header: Authorization: Bearer TOKEN"
            raise Problem(HTTPStatus.UNAUTHORIZED, said, wanted)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        """One line of JSON, without what was asked for unless that is wanted."""
        own: str = scope["path"] if scope["path"] in self.pages else "other"
        route = getattr(scope.get("route"), "path", own) or own
        if scope["path"].startswith(API) and not route.startswith(API):
            route = f"{API}{route}"  # a router's own path has no prefix
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.service.metrics.ended(route, method, status, seconds)
        if not access.isEnabledFor(logging.INFO):
            return
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": (scope.get("client") or ("",))[0],
            "method": method,
            "path": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if self.service.settings.log_queries:
            line["target"] = scope["path"] + "?" + scope["query_string"].decode("latin-1")
        access.info(json.dumps(line, ensure_ascii=True))


def _check_origin(headers: Headers, method: str, has_token: bool) -> None:
    """Raise `Problem` for what a page of another site would have a browser of this machine send: to
    a name of its own that leads here (DNS rebinding), or across sites to change something.
    """
    try:
        name = urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        name = None
    if not has_token and name not in LOOPBACK:
        own = (
            "without a token this server answers to the names of this machine, as 127.0.0.1, alone"
        )
        raise Problem(HTTPStatus.MISDIRECTED_REQUEST, own)
    if method not in READING and headers.get("sec-fetch-site", "none") not in OWN_SITE:
        raise Problem(HTTPStatus.FORBIDDEN, "pages of other sites change nothing here")


async def _whole(receive: Receive, most: int) -> bytes:
    """The body, once it is here. Raises `Problem` where it is too large, or late."""
    try:
        async with asyncio.timeout(ARRIVES):
            return await _arriving(receive, most)
    except TimeoutError:
        late = "the request did not arrive in time"
        raise Problem(HTTPStatus.REQUEST_TIMEOUT, late) from None


async def _arriving(receive: Receive, most: int) -> bytes:
    """What is too large is read for a while all the same: a client that sends sees no answer."""
    parts, n, more = [], 0, True
    while more and n <= READ_ANYWAY * most:
        message = await receive()
        n, more = n + len(message.get("body", b"")), message.get("more_body", False)
        if n <= most:
            parts.append(message.get("body", b""))
    if n > most:
        largest = f"a request has at most {most:,} bytes: send fewer at once"
        raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, largest)
    return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` for the app: the body, and then what comes."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give

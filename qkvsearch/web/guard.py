"""The guard of every request: limits of size and time, origin, token, safe headers, and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qkvsearch.errors import duration
from qkvsearch.web.client import begin_request
from qkvsearch.web.problems import BUG, Problem, log, problem, problem_of
from qkvsearch.web.rights import API, IS_HEAD, MCP, PAGE_FILES, check_rights, leads_nowhere
from qkvsearch.web.service import Service
from qkvsearch.web.settings import LOOPBACK, ServerSettings
from qkvsearch.web.unread import UNREAD, HeldBytes, NoRoomError

access = logging.getLogger("qkvsearch.access")
MAX_TARGET = 16_384
# Nothing from elsewhere, nothing inline; pictures may be drawn by the page itself. The search page
# of a catalog with a column of images may load these (`pages.py`).
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
# Other methods are counted together, since a client can make up any number.
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
READING = ("GET", "HEAD")
# What pages of an allowed origin may do.
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "600",
}


class Guard:
    """Middleware around the whole app. pages: their paths, which are open to everyone."""

    def __init__(self, app: ASGIApp, service: Service, pages: tuple[str, ...] = ()) -> None:
        self.app = app
        self.service = service
        self.pages = (*pages, "/favicon.ico")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin_request(scope)
        start = time.perf_counter()
        self.service.metrics.begin()
        method = scope["method"]
        is_head = method == "HEAD"
        if is_head:  # is answered as a GET, and the body is left out
            scope = {**scope, "method": "GET", IS_HEAD: True}
        request_headers = Headers(scope=scope)
        body = Body(request_headers, receive, self.service.settings)

        def add_headers(headers: MutableHeaders) -> None:
            for name, value in SAFE.items():
                headers.setdefault(name, value)
            caching = "no-cache" if scope["path"].startswith(PAGE_FILES) else "no-store"
            headers.setdefault("Cache-Control", caching)
            self._allow_origin(request_headers, headers)
            if not body.is_complete:  # nobody reads the rest of it
                headers["Connection"] = "close"

        with UNREAD.holding() as held:
            answer = GuardedAnswer(send, add_headers, held, is_head)
            try:
                await self._answer(scope, request_headers, body, answer)
            finally:
                seconds = time.perf_counter() - start
                self._log(scope, method, answer.status, seconds)

    async def _answer(
        self, scope: Scope, headers: Headers, body: Body, answer: GuardedAnswer
    ) -> None:
        """Answer a request by the app, or refuse it."""
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        try:
            self._check_address(scope)
            self._check_host(headers)
            self._check_site(scope, headers)
            if is_preflight and self._is_allowed(headers):
                preflight = Response(None, HTTPStatus.NO_CONTENT, PREFLIGHT)
                await preflight(scope, body.receive, answer.send)
            else:
                is_page = self._is_page(scope["path"]) or leads_nowhere(scope, headers)
                is_public = self.service.settings.public
                check_rights(self.service.tokens, scope, headers, is_page, is_public)
                await self.app(scope, body.receive, answer.send)
        except Problem as refused:
            await problem_of(refused)(scope, body.receive, answer.send)
        except NoRoomError as full:
            await problem_of(full.problem)(scope, body.receive, answer.send)
        except Exception as bug:
            log.error("a request failed", exc_info=bug)
            if not answer.status:
                await problem(*BUG)(scope, body.receive, answer.send)
            elif not answer.is_complete:  # a part of the answer is gone already
                raise

    def _check_address(self, scope: Scope) -> None:
        """Raise `Problem` for an address that is too long."""
        if len(scope["query_string"]) + len(scope["raw_path"]) > MAX_TARGET:
            too_long = f"an address has at most {MAX_TARGET:,} bytes: send long ones by POST"
            raise Problem(HTTPStatus.REQUEST_URI_TOO_LONG, too_long)

    def _check_host(self, headers: Headers) -> None:
        """Raise `Problem` for a foreign name that leads to this machine (DNS rebinding)."""
        if self.service.tokens is None and _host_name(headers) not in LOOPBACK:
            only_local = (
                "without a token this server answers only to the names of this machine, such as "
                "127.0.0.1"
            )
            raise Problem(HTTPStatus.MISDIRECTED_REQUEST, only_local)

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        """Raise `Problem` for a page of another site that uses the API."""
        reads_a_page = scope["method"] in READING and self._is_page(scope["path"])
        if reads_a_page or not _is_foreign(headers) or self._is_allowed(headers):
            return
        site = headers.get("origin", "another site")
        raise Problem(
            HTTPStatus.FORBIDDEN,
            f"pages of {site} may link to the pages here, but not use the API, unless the "
            "server is started with `--allow-origin` and their origin",
        )

    def _is_page(self, path: str) -> bool:
        return path in self.pages or path.startswith(PAGE_FILES)

    def _is_allowed(self, headers: Headers) -> bool:
        return headers.get("origin") in self.service.settings.allow_origins

    def _allow_origin(self, request_headers: Headers, headers: MutableHeaders) -> None:
        if self.service.settings.allow_origins:
            headers.add_vary_header("Origin")
        if self._is_allowed(request_headers):
            headers["Access-Control-Allow-Origin"] = request_headers["origin"]
            headers["Access-Control-Expose-Headers"] = "Retry-After"

    def _log(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request and log a line of JSON, without the query unless the settings want it."""
        route = self._route(scope)
        if method not in METHODS:
            method = "other"
        self.service.metrics.end(route, method, status, seconds)
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

    def _route(self, scope: Scope) -> str:
        """Return the path of the route that answered, without what stands for its {names}."""
        route: str = getattr(scope.get("route"), "path", "")
        path = scope["path"]
        if not route:  # refused before, or unknown: any client could make up a path
            return path if path in (*self.pages, MCP) else "other"
        if path.startswith(API) and not route.startswith(API):
            return f"{API}{route}"  # a router's own path has no prefix
        return route


def _host_name(headers: Headers) -> str | None:
    """Return the name by which the client reached the server; None where it is no valid one."""
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None


def _is_foreign(headers: Headers) -> bool:
    """Return whether a page of another origin sends this, as far as the browser tells."""
    site = headers.get("sec-fetch-site", "none")
    if site != "none":  # of another port of the same machine it says "same-site"
        return site != "same-origin"
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host")


class GuardedAnswer:
    """The answer to a request, as the app sends it. status: 0 before it begins.

    add_headers: adds those of every answer. held: counts its bytes. is_head: the body is left out.
    """

    def __init__(
        self,
        send: Send,
        add_headers: Callable[[MutableHeaders], None],
        held: HeldBytes,
        is_head: bool,
    ) -> None:
        self._send = send
        self._add_headers = add_headers
        self._held = held
        self._is_head = is_head
        self.status = 0
        self.is_complete = False

    async def send(self, message: Message) -> None:
        """Send the next part. Raises `NoRoomError` instead of a large answer where other clients
        have not read theirs.
        """
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            if not self._is_head:
                self._held.add(int(headers.get("content-length", "0")))
            self.status = message["status"]
            self._add_headers(headers)
            message["headers"] = headers.raw
        else:
            self.is_complete = not message.get("more_body", False)
            if self._is_head:
                message["body"] = b""
        await self._send(message)


class Body:
    """The body of a request, as the app receives it."""

    def __init__(self, headers: Headers, receive: Receive, settings: ServerSettings) -> None:
        self._receive = receive
        self._settings = settings
        length = headers.get("content-length", "0")
        self._n_declared = int(length) if length.isdecimal() else 0
        self._n_bytes = 0
        self._deadline = asyncio.get_running_loop().time() + settings.body_seconds
        self.is_complete = not self._n_declared and "transfer-encoding" not in headers

    async def receive(self) -> Message:
        """Receive the next piece. Raises `Problem` where the body is too large, or late."""
        if self.is_complete:
            return await self._receive()
        self._check_size(self._n_declared)
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            late = f"the body did not arrive within {duration(self._settings.body_seconds)}"
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, late) from None
        self._n_bytes += len(message.get("body", b""))
        self._check_size(self._n_bytes)
        self.is_complete = not message.get("more_body", False)
        return message

    def _check_size(self, n_bytes: int) -> None:
        limit = self._settings.body
        if n_bytes > limit:
            too_large = f"a request has at most {limit:,} bytes: send fewer at once"
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_large)

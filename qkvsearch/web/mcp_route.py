"""`/mcp`: the tools for agents over HTTP, behind the same guard as the API, with the same limits.

Each request is answered by itself: there are no sessions, so that any worker process may answer it,
and no streams. Clients of all versions of the protocol are answered by the SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError
from qkvsearch.mcp.sdk_server import make_server
from qkvsearch.mcp.tool_answers import ToolAnswer
from qkvsearch.mcp.tools import Tool, tools_for
from qkvsearch.web.client import ClientLeftError
from qkvsearch.web.problems import Problem
from qkvsearch.web.rights import MCP, Holder, holder_of
from qkvsearch.web.service import Service


class AgentTools:
    """The tools of one server, by who asks. `running` spans the life of the app."""

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        self._owners = self._manager(tools_for(allow_record=settings.allow_record, over_http=True))
        # A token to search with is public: what is recommended to a user shows what they have.
        self._everyones = self._manager(tools_for(names_users=False))

    def _manager(self, tools: list[Tool]) -> StreamableHTTPSessionManager:
        """Return what answers requests with these tools."""
        server = make_server(self._ask, tools, name=self._service.settings.name)
        return StreamableHTTPSessionManager(
            server,
            stateless=True,
            json_response=True,
            max_request_body_size=self._service.settings.body,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests within the block."""
        async with self._owners.run(), self._everyones.run():
            yield

    def route(self) -> Route:
        """Return the route of the tools. There is nothing to GET: no stream is open."""
        return Route(MCP, self, methods=["POST"], name="mcp")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI). Its body is read here, where the guard refuses a long one."""
        body = await Request(scope, receive).body()
        is_given = False

        async def receive_again() -> Message:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        manager = self._everyones if holder_of(scope) is Holder.SEARCH else self._owners
        await manager.handle_request(scope, receive_again, send)

    async def _ask(self, tool: Tool, answer: Callable[[Engine], ToolAnswer]) -> ToolAnswer:
        """Answer in the threads of the API. Raises `QkvError`, which a tool can tell."""
        try:
            if tool.reads_only:
                return await self._service.ask(answer, tool.is_slow)
            return await self._service.record(answer)
        except Problem as refused:
            raise QkvError(refused.detail) from None
        except ClientLeftError:
            raise QkvError("nobody waits for the answer any more") from None

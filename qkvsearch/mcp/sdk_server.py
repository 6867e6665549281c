"""The tools as a server of the official SDK, whichever transport carries its messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from qkvsearch._utils.version import __version__
from qkvsearch.engine import Engine
from qkvsearch.errors import BUG, QkvError, for_others, is_of_workspace, suggest
from qkvsearch.mcp.tool_answers import ToolAnswer, as_text
from qkvsearch.mcp.tool_arguments import read_arguments, schema_of
from qkvsearch.mcp.tools import INSTRUCTIONS, Tool
from qkvsearch.rank.request_limits import MAX_LENGTH
from qkvsearch.terminal import shorten

log = logging.getLogger("qkvsearch.mcp")
# Characters of an error, which may quote what was sent.
MAX_ERROR = 1000
# Runs what a tool answers, beside the event loop: from the tool and what is to be run.
Ask = Callable[[Tool, Callable[[Engine], ToolAnswer]], Awaitable[ToolAnswer]]


def make_server(ask: Ask, tools: Sequence[Tool], *, name: str) -> Server[Any]:
    """Return a server that has these tools. name: of the catalog."""
    by_name = {tool.name: tool for tool in tools}
    schemas = {tool.name: schema_of(tool.options, with_help=tool.with_help) for tool in tools}
    listed = types.ListToolsResult(tools=_described(tools, schemas))

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        tool = by_name.get(call.name)
        if tool is None:
            known = ", ".join(by_name)
            near = suggest(call.name[:MAX_LENGTH], list(by_name))
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"there is no tool {shorten(call.name)!r}{near} (tools: {known})",
            )
        return await _called(ask, tool, call.arguments or {})

    server: Server[Any] = Server(
        "qkvsearch",
        version=__version__,
        title=name,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )
    # The SDK's own is OpenTelemetry, which costs time in every call.
    server.middleware.clear()
    return server


def _described(tools: Sequence[Tool], schemas: Mapping[str, dict[str, Any]]) -> list[types.Tool]:
    """Return the tools as a client lists them."""
    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=schemas[tool.name],
            annotations=types.ToolAnnotations(
                read_only_hint=tool.reads_only,
                destructive_hint=False,
                idempotent_hint=tool.reads_only,
                open_world_hint=False,
            ),
        )
        for tool in tools
    ]


async def _called(ask: Ask, tool: Tool, sent: Mapping[str, Any]) -> types.CallToolResult:
    """Return what a tool answers, or its error: a model reads both."""
    try:
        arguments = read_arguments(tool.options, sent)
        answer = await ask(tool, lambda engine: tool.answer(engine, **arguments))
    except QkvError as error:
        if is_of_workspace(error):
            log.error("%s", error)
        return _error(for_others(error))
    except Exception as bug:
        log.error("a tool failed", exc_info=bug)
        return _error(BUG)
    text = as_text(answer)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character, which no message can carry
        text = text.encode("utf-8", "replace").decode()
        answer = json.loads(text)
    return _result(text, structured_content=answer)


def _error(message: str) -> types.CallToolResult:
    """Return an error. It is quoted as the other answers are, since it may name a title."""
    answer = {"error": shorten(message, MAX_ERROR)}
    return _result(as_text(answer), structured_content=answer, is_error=True)


def _result(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)

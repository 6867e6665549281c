"""The tools over stdin and stdout, for a host that starts a command for each of its sessions."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server

from qkvsearch._utils.deadline import deadline
from qkvsearch.engine import Engine
from qkvsearch.mcp.sdk_server import make_server
from qkvsearch.mcp.tool_answers import ToolAnswer
from qkvsearch.mcp.tools import Tool, tools_for

# Seconds that an answer may take.
SECONDS = 30.0
STOPPED = 130


def serve(engine: Engine, name: str, *, allow_record: bool) -> None:
    """Answer until stdin ends, or nobody reads stdout. name: of the catalog. Messages alone are
    written to stdout.
    """
    handler = signal.signal(signal.SIGINT, _stop)
    try:
        anyio.run(partial(_serve, engine, name, allow_record))
    except* BrokenPipeError:  # the host has ended
        pass
    finally:
        signal.signal(signal.SIGINT, handler)


async def _serve(engine: Engine, name: str, allow_record: bool) -> None:
    async def ask(_: Tool, answer: Callable[[Engine], ToolAnswer]) -> ToolAnswer:
        return await run_sync(_answered, engine, answer)

    server = make_server(ask, tools_for(allow_record=allow_record), name=name)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def _answered(engine: Engine, answer: Callable[[Engine], ToolAnswer]) -> ToolAnswer:
    with deadline(SECONDS):
        return answer(engine)


def _stop(*_: Any) -> None:
    """End at once: a thread waits for a line of stdin, and Python would wait for the thread."""
    sys.stderr.write("Stopped.\n")
    sys.stderr.flush()
    os._exit(STOPPED)

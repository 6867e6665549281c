"""Agents: the SDK's own client, beside a server in this process or one that it starts."""

import asyncio
import json
import os
import sys
from functools import partial

import pytest

pytest.importorskip("mcp", reason="needs qkvsearch[mcp]")

from anyio.to_thread import run_sync
from mcp import Client, StdioServerParameters

from qkvsearch.mcp.sdk_server import make_server
from qkvsearch.mcp.tools import tools_for


class Agent:
    """Asks one question at a time. server: what the SDK's client connects to."""

    def __init__(self, server):
        self.server = server

    def run(self, do):
        """What `do` returns, which gets the connected client."""

        async def connected():
            async with Client(self.server(), read_timeout_seconds=300) as client:
                return await do(client)

        return asyncio.run(connected())

    def tools(self):
        """The tools by their names."""
        return {tool.name: tool for tool in self.run(lambda client: client.list_tools()).tools}

    def results(self, *calls):
        """What several calls return, in one connection. calls: pairs of a tool and arguments."""

        async def ask(client):
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

        return self.run(ask)

    def answer(self, tool, **arguments):
        """The object that a tool answers, which is the same as text."""
        (result,) = self.results((tool, arguments))
        (block,) = result.content
        assert not result.is_error, block.text
        assert json.loads(block.text) == result.structured_content
        return result.structured_content

    def error(self, tool, **arguments):
        """The error that a tool answers with."""
        (result,) = self.results((tool, arguments))
        assert result.is_error
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content["error"]


async def _ask(engine, tool, answer):
    return await run_sync(answer, engine)


@pytest.fixture(scope="session")
def agent_of():
    """An agent beside a server in this process, over an engine."""

    def of(engine, **which):
        server = make_server(partial(_ask, engine), tools_for(**which), name="tests")
        return Agent(lambda: server)

    return of


@pytest.fixture
def starting(home):
    """An agent that starts `qkvsearch` with these words."""

    def start(*words, command=sys.executable, before=("-P", "-m", "qkvsearch", "-q")):
        arguments = [*before, *map(str, words)]
        environment = os.environ | {"HOME": str(home)}
        return Agent(
            lambda: StdioServerParameters(command=command, args=arguments, env=environment)
        )

    return start

"""Agents: what a call over MCP takes beside the same question in Python, and what calls leave.

The bundled videos with the static encoder. Five tasks of somebody who looks for something, each
asked by the SDK's own client over stdin and stdout, and over HTTP, and by `Engine` in this process
with the reasons of all hits; one after the other, turn by turn, so that a busy moment hits all.
*More than `Engine`* is the median of the differences. Memory is what the process of the server has
for itself alone (Linux), after 1,000 searches less that after 200.

python benchmarks --only agents    (two minutes)
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client, StdioServerParameters

import qkvsearch as qkv
from benchmarks.support.http_load import serving
from benchmarks.support.memory import own
from benchmarks.support.results import Row
from benchmarks.support.script import main

# Turns of each task, and searches of which the memory is measured, after those that warm up.
TURNS, N_CALLS, N_WARM_UP = 100, 1000, 200
CONDITION = "seconds < 900"
QUERIES = ["sourdough bread", "guitar chords", "attention in transformers", "river walks"]
Task = tuple[str, dict[str, Any], Callable[[qkv.Engine], Any]]
# What the tools show in `describe`.
COLUMNS = ["channel", "category", "tags", "seconds"]


def tasks() -> dict[str, Task]:
    """The tasks: a tool, its arguments, and the same of an engine."""
    search = {"query": "bread", "where": CONDITION, "k": 5}
    likes = ["v018", "v001"]
    return {
        "find a short video": (
            "search",
            search,
            lambda engine: explained(engine.search(**search)),
        ),
        "what is like this one": (
            "similar",
            {"items": ["v018"], "k": 5},
            lambda engine: explained(engine.similar("v018", k=5)),
        ),
        "recommend for these two": (
            "recommend",
            {"likes": likes, "k": 5},
            lambda engine: explained(engine.recommend(likes=likes, k=5)),
        ),
        "which channels are there": (
            "describe",
            {},
            lambda engine: engine.items.facets(COLUMNS),
        ),
        "why is this first": (
            "why",
            {**search, "rank": 1},
            lambda engine: explained(engine.search(**search | {"k": 1})),
        ),
    }


def explained(ranking: Any) -> list[Any]:
    """The reasons of all hits."""
    return [ranking.reasons(index) for index in range(len(ranking))]


@cache
def workspace() -> Path:
    path = Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-")) / "ws"
    qkv.build(path, "sample:videos", encoder="static").close()
    return path


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Client]:
    words = ["-m", "qkvsearch", "-q", "-w", str(workspace()), "mcp"]
    async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
        yield client


@asynccontextmanager
async def over_http() -> AsyncIterator[Client]:
    with serving(workspace(), "--mcp") as port:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            yield client


WAYS = {"stdio": over_stdio, "HTTP": over_http}


def calls() -> list[Row]:
    """What a call takes more than the engine."""
    return [row for way in WAYS for row in asyncio.run(_calls(way))]


async def _calls(way: str) -> list[Row]:
    engine = qkv.open(workspace())
    rows = []
    async with WAYS[way]() as client:
        for name, (tool, arguments, ask) in tasks().items():
            alone, more = [], []
            for turn in range(TURNS + 10):
                began = time.perf_counter()
                ask(engine)
                between = time.perf_counter()
                await client.call_tool(tool, arguments)
                if turn >= 10:
                    alone.append(between - began)
                    more.append(time.perf_counter() - between - alone[-1])
            task = f"{name}: `{tool}` over {way}, 375 videos, static"
            rows.append(Row(task, "`Engine` with reasons", "ms", 1e3 * median(alone)))
            rows.append(Row(task, "more than `Engine`", "ms", 1e3 * median(more)))
    return rows


def memory() -> list[Row]:
    """What searches leave in the memory of a server."""
    return [asyncio.run(_memory(way)) for way in WAYS]


async def _memory(way: str) -> Row:
    async with WAYS[way]() as client:
        before = 0
        for number in range(N_CALLS):
            if number == N_WARM_UP:
                before = _of_server()
            await client.call_tool("search", {"query": QUERIES[number % len(QUERIES)], "k": 5})
        task = f"{N_CALLS - N_WARM_UP} searches over {way}"
        return Row(task, "left in memory", "MB", (_of_server() - before) / 1e6)


def _of_server() -> int:
    """The bytes that the server started by this process has for itself."""
    (server,) = [pid for pid in children() if str(workspace()) in words_of(pid)]
    return own(server)


def children() -> list[int]:
    text = Path("/proc/self/task").glob("*/children")
    return [int(pid) for file in text for pid in file.read_text().split()]


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


PARTS = {"calls": calls, "memory": memory}
if __name__ == "__main__":
    main(__file__, PARTS, peers=["mcp"])

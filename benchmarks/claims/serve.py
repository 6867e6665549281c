"""The server: searches at a steady rate, beside a build that is published, and beside slow clients.

10,000 items with titles and tags of a real vocabulary, static encoder, two worker processes; the
clients share the machine's cores with them. 60 requests a second, each on a connection of its own,
its time counted from when it was due. The queries are TED's dev queries, in turn. What HTTP adds is
the median of a request on a connection that stays open, less that of `Engine.search`, by one
client. The first paint is Chromium's, from the start of the server's process.

python benchmarks --only serve    (five minutes)
"""

from __future__ import annotations

import http.client
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median
from urllib.parse import quote

import qkvsearch as qkv
from benchmarks.support.http_load import Load, load, serving
from benchmarks.support.large_log import write_large_log
from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main

N_ITEMS, RATE, SECONDS = 10_000, 60, 60
TASK = f"{RATE} searches a second over HTTP, {N_ITEMS:,} items, static, two workers"
TWO = ("--workers", "2")
SLOW_CLIENTS = 10_000
TURNS = 5


@cache
def folder() -> Path:
    """A workspace of its own for the run, and the items of it."""
    made = Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-"))
    items, log = write_large_log(made, N_ITEMS, 2_000, 40_000)
    qkv.build(made / "ws", items=items, interactions=log, encoder="static").close()
    return made


@cache
def queries() -> list[str]:
    return list(ted("dev").queries.values())[:200]


def steady() -> list[Row]:
    with serving(folder() / "ws", *TWO) as port:
        load(port, queries(), RATE, 5)
        return rows(TASK, load(port, queries(), RATE, SECONDS))


def published() -> list[Row]:
    """While the workspace is built again, and items are added, by processes of their own."""
    copy = folder() / "copy"
    shutil.copytree(folder() / "ws", copy)
    command = [sys.executable, "-m", "qkvsearch", "-q", "-w", str(copy)]
    files = [str(folder() / name) for name in ("items.csv", "interactions.csv")]
    build = ["build", "--items", files[0], "--interactions", files[1], "--encoder", "static"]
    with serving(copy, *TWO) as port:
        load(port, queries(), RATE, 5)
        building = subprocess.Popen([*command, *build])
        meanwhile = load(port, queries(), RATE, SECONDS / 2)
        building.wait()
        adding = subprocess.Popen([*command, "add", files[0]])
        after = load(port, queries(), RATE, SECONDS / 2)
        adding.wait()
    both = Load(sorted(meanwhile.seconds + after.seconds), meanwhile.errors + after.errors)
    return rows(f"{TASK}, while a build is published and items are added", both)


def rows(task: str, found: Load) -> list[Row]:
    return [
        Row(task, "median", "ms", 1e3 * found.quantile(0.5)),
        Row(task, "99th percentile", "ms", 1e3 * found.quantile(0.99)),
        Row(task, "failed", "requests", found.errors),
    ]


def overhead() -> list[Row]:
    task = f"one client, {N_ITEMS:,} items, static, words met before"
    engine = qkv.open(folder() / "ws")
    with serving(folder() / "ws", "--workers", "1") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def over_http(query: str) -> None:
            if query == queries()[0]:  # the server closes what was idle meanwhile
                connection.close()
            connection.request("GET", f"/api/v1/search?q={quote(query)}&k=10")
            connection.getresponse().read()

        ways = {"`Engine.search`": engine.search, "over HTTP": over_http}
        for ask in ways.values():
            timed(ask)
        took = {name: [median(timed(ask)) for _ in range(TURNS)] for name, ask in ways.items()}
    medians = {name: median(times) for name, times in took.items()}
    return [Row(task, name, "ms", 1e3 * seconds) for name, seconds in medians.items()]


def timed(ask: object) -> list[float]:
    found = []
    for query in queries():
        began = time.perf_counter()
        ask(query)  # type: ignore[operator]
        found.append(time.perf_counter() - began)
    return found


def first_paint() -> list[Row]:
    """Of the search page, from a cold start; and what the page's own files weigh."""
    from playwright.sync_api import sync_playwright

    task, chromium = "the search page, from the start of the server", shutil.which("chromium")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium)
        found = [_painted(browser) for _ in range(TURNS)]
        browser.close()
    seconds = median(seconds for seconds, _ in found)
    return [
        Row(task, "first paint", "s", seconds),
        Row(task, "its own files", "kB", max(size for _, size in found) / 1000),
    ]


def _painted(browser: object) -> tuple[float, int]:
    page = browser.new_page()  # type: ignore[attr-defined]
    sizes: list[int] = []
    page.on("response", lambda r: sizes.append(len(r.body())) if "/api/" not in r.url else None)
    began = time.time()
    with serving(folder() / "ws") as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_load_state("networkidle")
        paint = page.evaluate(
            "performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0]"
            ".startTime"
        )
        page.close()
    return paint / 1000 - began, sum(sizes)


def slow_clients() -> list[Row]:
    """Connections that send half a request and wait, while one client asks as it should."""
    task = f"searches beside {SLOW_CLIENTS:,} connections that send half a request"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with serving(folder() / "ws", *TWO) as port, ExitStack() as opened:
        refused = 0
        for _ in range(SLOW_CLIENTS):
            try:
                other = socket.create_connection(("127.0.0.1", port), timeout=5)
                opened.enter_context(other)
                other.send(b"GET / HT")
            except OSError:
                refused += 1
        found = load(port, queries(), 20, 10)
    return [*rows(task, found), Row(task, "slow ones refused", "connections", refused)]


PARTS = {
    "steady": steady,
    "published": published,
    "overhead": overhead,
    "first_paint": first_paint,
    "slow_clients": slow_clients,
}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["fastapi", "uvicorn", "playwright"])

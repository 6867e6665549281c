"""An exported site: what a page reads before the first result, and a result after a key press.

20,000 items with titles and tags of a real vocabulary; the site has words, LSA and the contrastive
encoder. Files come from a host of files on the same machine, uncompressed. Bytes are those of the
page, its scripts and all data until the first hits of a link with a query are shown. A key press is
timed in Chromium, from the event to the hits in the page: the first time, when words and titles are
still to be fetched, and again with all that it needs in memory.

python benchmarks --only site    (three minutes)
"""

from __future__ import annotations

import functools
import http.server
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import qkvsearch as qkv
from benchmarks.support.large_log import write_large_log
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.web.site.writing import export_site

N_ITEMS = 20_000
QUERIES = ("global health", "music and the brain", "climate change", "design", "future of war")
TASK = f"an exported site, {N_ITEMS:,} items"
# From the event of a key to the hits of what is typed then: milliseconds.
TYPED = """async (text) => {
  const box = document.getElementById("box");
  const shown = new Promise((done) => {
    const watcher = new MutationObserver(() => {
      if (document.body.dataset.asking) return;
      watcher.disconnect();
      done();
    });
    watcher.observe(document.body, { attributes: true, attributeFilter: ["data-asking"] });
  });
  box.value = text;
  const began = performance.now();
  box.dispatchEvent(new Event("input"));
  await shown;
  return performance.now() - began;
}"""


class _Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass


@cache
def folder() -> Path:
    """A site of its own for the run."""
    made = Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-"))
    items, _ = write_large_log(made, N_ITEMS, 2_000, 40_000)
    engine = qkv.build(made / "ws", items=items, encoder="corpus")
    export_site(engine.build, made / "site", title="Talks", fields="tags,year")
    return made / "site"


@contextmanager
def visited(path: str) -> Iterator[tuple[Any, list[int]]]:
    """A page of the site, and what came over the network: bytes."""
    from playwright.sync_api import sync_playwright

    handler = functools.partial(_Files, directory=folder())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sizes: list[int] = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.on("response", lambda r: sizes.append(int(r.headers.get("content-length", 0))))
        page.goto(f"http://127.0.0.1:{server.server_port}/{path}")
        yield page, sizes
        browser.close()
    server.shutdown()


def first_result() -> list[Row]:
    """With the keys held back, so that only what the first hits need is read."""
    found = []
    for query in QUERIES:
        with visited("site.json") as (page, sizes):
            page.route("**/data-*/lsa/*", lambda route: None)
            address = page.url.replace("site.json", f"index.html?q={quote(query)}")
            sizes.clear()
            page.goto(address)
            page.wait_for_selector("#hits li[data-row]")
            found.append(sum(sizes))
    with visited(f"index.html?q={quote(QUERIES[0])}") as (page, sizes):
        page.wait_for_selector("body[data-ready=all]")
        every = sum(sizes)
    return [
        Row(TASK, "before the first result, most of five queries", "MB", max(found) / 1e6),
        Row(TASK, "until all heads have answered", "MB", every / 1e6),
    ]


def key_press() -> list[Row]:
    with visited("index.html") as (page, _):
        page.wait_for_selector("body[data-ready=all]")
        typed = [query[:n] for query in QUERIES for n in range(1, len(query) + 1)]
        first = [page.evaluate(TYPED, text) for text in typed]
        again = sorted(page.evaluate(TYPED, text) for text in typed)
    return [
        Row(TASK, "a key press, its files fetched, median", "ms", median(first)),
        Row(TASK, "a key press, median", "ms", median(again)),
        Row(TASK, "a key press, 95th percentile", "ms", again[int(0.95 * len(again))]),
    ]


PARTS = {"first_result": first_result, "key_press": key_press}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["playwright"])

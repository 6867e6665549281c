"""An exported site in Chromium: its numbers are NumPy's, and its reasons add up to them."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from qkvsearch.texts.analysis import known_tokens
from tests.web.site_reader import Site
from tests.web.test_site import HEADS, QUERIES

HITS = "entries => entries.map(one => [+one.dataset.row, +one.dataset.score])"
VALUES = "rows => rows.map(row => +row.dataset.value)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def host(exported):
    """A host of files alone, with the site in a folder of it."""
    handler = functools.partial(Quiet, directory=exported.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/some%20where")
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(visit, host):
    with visit(host, "/index.html", viewport={"width": 1000, "height": 900}) as found:
        found.wait_for_selector("body[data-ready=all]")
        yield found


def ask(page, query):
    """Hits as (row, score), of the query as it stands."""
    page.fill("#box", "")
    page.wait_for_selector("body[data-shown='']")
    page.fill("#box", query)
    page.press("#box", "Enter")
    page.wait_for_function("typed => document.body.dataset.shown === typed", arg=query)
    # What was typed is shown first as if it went on, and then what was entered.
    page.wait_for_function("() => !document.body.dataset.asking")
    return page.eval_on_selector_all("#hits li", HITS)


def test_the_page_computes_what_numpy_does_from_the_same_files(page, exported, videos):
    site = Site(exported)
    for query in QUERIES[:20]:
        tokens = [token.text for token in videos.models.analyzer.query_tokens(query)]
        words = [token for token in tokens if token in site.lookup_of]
        hits = ask(page, " ".join(words))
        assert [row for row, _ in hits] == site.best(words)
        scores = site.fused(words)[[row for row, _ in hits]]
        np.testing.assert_allclose([score for _, score in hits], scores, atol=2e-4)


def test_its_best_ten_are_the_engines(page, videos):
    shared = []
    for query in QUERIES:
        own = videos.search(query, heads=HEADS).positions.tolist()
        if own:
            found = [row for row, _ in ask(page, query)]
            shared.append(len(set(own) & set(found)) / len(own))
    assert len(shared) >= 50
    assert np.mean(shared) >= 0.95


def test_reasons_add_up_to_the_score_by_keyboard(page):
    ask(page, "guitar gitar attention")
    assert "gitar" in page.inner_text("#notes")
    page.keyboard.press("Escape")
    for place in range(3):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        entry = page.locator("#hits li").nth(place)
        values = entry.locator("tbody tr").evaluate_all(VALUES)
        score = float(entry.get_attribute("data-score"))
        assert sum(values) == pytest.approx(score, abs=1e-5 * max(1, sum(map(abs, values))))
    page.keyboard.press("Enter")
    assert page.locator(".why").count() == 2
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "box"


def test_words_are_told_apart_as_the_engine_does_it(page, videos):
    texts = [
        "The Cafés of Montréal aren't running", "C++ and C# or AC/DC, R&B; 24/7 3.5mm v2.0 .NET",
        "l'amour d'Artagnan d'you", "Beyoncé’s ＤＪ 𝐀𝐁 straße ΣΑΣ ﬁne", "注意力机制 猫 ab猫cd",
        "1.2.3abcdef a/b/cdefgh abcdef/x x+++y a.b.c ..net 10.5.2", "it", "ไทย हिन्दी עברית",
        "foo_bar __x__ #tag ##", *QUERIES,
    ]  # fmt: skip
    known = {"c++", "24/7", "v2.0"}
    found = page.evaluate(
        """async ([texts, known]) => {
            const { reader } = await import("./read.js");
            const facts = await (await fetch("site.json")).json();
            const { tokens } = reader(facts);
            return texts.map(text => tokens(text, one => known.includes(one)).map(one => one.text));
        }""",
        [texts, list(known)],
    )
    analyzer = videos.models.analyzer
    for text, words in zip(texts, found, strict=True):
        tokens = known_tokens(analyzer.query_tokens(text), known.__contains__)
        assert words == [token.text for token in tokens], text


def test_what_is_typed_is_completed_and_the_address_says_it(page, videos):
    page.keyboard.press("/")
    page.keyboard.type("guita")
    page.wait_for_selector("body[data-shown='guita']")
    best = videos.search("guitar", heads=HEADS).positions[0]
    page.wait_for_selector(f"#hits li:first-child[data-row='{best}']")
    assert page.url.endswith("?q=guita")
    page.reload()
    page.wait_for_selector("body[data-shown='guita']")
    assert page.input_value("#box") == "guita"


def test_words_answer_before_the_keys_are_there(visit, host, exported, until):
    facts = json.loads((exported / "site.json").read_bytes())
    pieces = -(-facts["n_items"] // facts["shard_keys"])
    with visit(host, "/index.html") as page:
        held = []
        page.route(f"**/{facts['data']}/contrastive/*", lambda route: held.append(route))
        page.goto(f"{host.url}/index.html?q=guitar")
        page.wait_for_selector("#hits li[data-row]")
        page.wait_for_function("() => document.querySelector('#told').textContent.includes('lsa')")
        assert "Still loading: contrastive" in page.inner_text("#told")
        before = page.eval_on_selector_all("#hits li", HITS)
        until(page, lambda: len(held) == pieces)
        for route in held:
            route.continue_()
        page.wait_for_selector("body[data-ready=all]")
        assert "Still loading" not in page.inner_text("#told")
        assert page.eval_on_selector_all("#hits li", HITS) != before


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_is_wider_than_the_page(visit, host, width):
    with visit(host, "/index.html?q=guitar", viewport={"width": width, "height": 800}) as page:
        page.wait_for_selector("body[data-ready=all]")
        page.click("button.hit >> nth=0")
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert page.evaluate(wide)

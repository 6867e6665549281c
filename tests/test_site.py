"""The documentation as a site: strict, whole, without a network, and readable on a phone."""

import doctest
import os
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from qkvsearch._utils.style import tokens
from tests.scripts import script

ROOT = Path(__file__).parent.parent
# MkDocs in a process that cannot connect to anything.
OFFLINE = """
import socket, sys

def refuse(*args):
    raise AssertionError(f"the build connects to {args[1:]}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(sys.argv[1:])
"""
# Elements that a browser fetches by itself, and the attribute with the address.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="not run from a checkout"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    pytest.importorskip("mkdocs", reason="needs qkvsearch[docs]")
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-c", OFFLINE, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, encoding="utf-8", env=os.environ)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


class Links(HTMLParser):
    """What a page links to, what it fetches, and the places in it that one can link to."""

    def __init__(self, page):
        super().__init__()
        self.links, self.fetched, self.places = [], [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        if tag in FETCHED and of.get(FETCHED[tag]):
            self.fetched.append(of[FETCHED[tag]])
        self.places |= {of[name] for name in ("id", "name") if of.get(name)}


@pytest.fixture(scope="module")
def pages(site):
    return {page: Links(page) for page in site.rglob("*.html")}


def test_every_page_of_the_documentation_is_there(site, pages):
    written = [page.relative_to(ROOT / "docs") for page in ROOT.glob("docs/**/*.md")]
    assert {site / page.with_suffix(".html") for page in written} < set(pages)
    assert "softmax(QKᵀ/√d + mask)·V" in (site / "index.html").read_text(encoding="utf-8")
    assert not list(site.rglob("*.py"))


def test_every_link_within_the_site_leads_to_a_page_and_a_place(site, pages):
    broken = []
    for page, found in pages.items():
        # Addresses of the page for what is not found begin at the root, wherever that will be.
        start = "/" if page.name == "404.html" else f"/{page.relative_to(site).as_posix()}"
        for link in (*found.links, *found.fetched):
            if urlsplit(link).scheme:
                continue
            address, place = urldefrag(urljoin(start, link))
            target = site / unquote(address.lstrip("/"))
            target = target / "index.html" if target.is_dir() else target
            there = target.is_file()
            if there and place and target.suffix == ".html":
                there = unquote(place) in pages[target].places
            if not there:
                broken.append(f"{page.name}: {link}")
    assert not broken


def test_a_page_asks_for_nothing_from_elsewhere(pages):
    asked = {link for page in pages.values() for link in page.fetched if urlsplit(link).netloc}
    assert not asked


def test_python_is_documented_from_its_docstrings(site):
    text = (site / "python-reference.html").read_text(encoding="utf-8")
    from qkvsearch import Engine

    public = [name for name in vars(Engine) if not name.startswith("_")]
    assert public
    missing = [name for name in public if f'id="qkvsearch.engine.Engine.{name}"' not in text]
    assert not missing
    # A parameter is an item of a list, and an example is code.
    assert "<li><code>query</code>: the text.</li>" in text
    assert "<p>&gt;&gt;&gt;" not in text


def test_the_example_of_how_a_docstring_is_read_is_true():
    pytest.importorskip("griffe", reason="needs qkvsearch[docs]")
    done = doctest.testmod(script("docstrings"))
    assert done.attempted
    assert not done.failed


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def paper(colours):
    """The ground of the pages of `serve`, as a browser says it."""
    light, dark, _ = re.findall(r"--paper: #(\w{6})", tokens())
    red, green, blue = bytes.fromhex(light if colours == "light" else dark)
    return f"rgb({red}, {green}, {blue})"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_site_is_readable_on_a_phone(browsing, site, pages, address, colours):
    with browsing(viewport={"width": 390, "height": 844}, color_scheme=colours) as context:
        page = context.new_page()
        elsewhere, wide, grounds = [], [], set()
        page.on(
            "request",
            lambda asked: asked.url.startswith(address) or elsewhere.append(asked.url),
        )
        # How wide a page is does not depend on its colours.
        seen = sorted(pages) if colours == "light" else [site / "index.html"]
        for path in seen:
            page.goto(f"{address}/{path.relative_to(site).as_posix()}")
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(path.name)
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert not elsewhere
    assert not wide
    assert grounds == {paper(colours)}


def test_the_site_is_searched_without_a_server_elsewhere(browsing, address):
    with browsing(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.goto(f"{address}/index.html")
        page.get_by_role("textbox", name="Search").fill("synonyms")
        page.locator(".md-search-result__item").first.wait_for()
        assert "guide.html" in page.locator(".md-search-result__link").first.get_attribute("href")

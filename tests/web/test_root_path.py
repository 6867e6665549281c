"""A server behind a reverse proxy, under a path and elsewhere."""

import json
import logging
import re
from urllib.parse import urljoin

import pytest

from qkvsearch.errors import QkvError
from qkvsearch.web import box, pages
from qkvsearch.web.settings import proxy_of, root_path_of

LINK = re.compile(r"""(?:href|src|action)="([^"#]+)""")
FORWARDED = {
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Prefix": "/evil",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "203.0.113.9",
    "Forwarded": "host=evil.example",
}


@pytest.fixture(scope="module")
def under(asking, videos_path):
    with asking(videos_path, root_path="/shop/search") as client:
        yield client


@pytest.mark.parametrize("path", [*pages.PAGES, "/learn/softmax"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_link_of_a_page_begins_with_the_path_and_leads_somewhere(under, path, language):
    page = under.get(path, params={"lang": language})
    assert page.status_code == 200
    links = [link for link in LINK.findall(page.text) if not link.startswith("?")]
    assert links
    for link in dict.fromkeys(links):
        assert urljoin(f"/shop/search{path}", link).startswith("/shop/search/"), link
        assert under.get(link.removeprefix("/shop/search")).status_code == 200
    facts = re.search(r'<script[^>]* id="facts"[^>]*>(.*?)</script>', page.text, re.DOTALL)
    assert json.loads(facts[1])["root"] == "/shop/search"


def test_what_scripts_ask_for_begins_with_the_path():
    absolute = re.compile(r"""["'`]/[a-z]{2}""")
    found = [
        (file.name, line)
        for file in sorted(pages.FILES.rglob("*.js"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if absolute.search(line)
    ]
    assert found == []


def test_the_description_of_the_api_and_errors_name_the_path(under, client):
    assert under.get("/openapi.json").json()["servers"] == [{"url": "/shop/search"}]
    assert "servers" not in client.get("/openapi.json").json()
    assert "/shop/search/docs" in under.get("/nothing").json()["detail"]
    assert "/shop/search/docs" in under.delete("/").json()["detail"]
    assert "/shop/search/openapi.json" in under.get("/").text


def test_a_path_is_written_one_way():
    assert root_path_of("/search/") == root_path_of("/search") == "/search"
    for text in (
        "search",
        "//",
        "/a//b",
        "/a?b",
        "/../a",
        "/a b",
        "/ü",
        "https://shop.example/a",
        '/"',
    ):
        if text == "//":
            assert root_path_of(text) == ""
            continue
        with pytest.raises(QkvError, match="root_path"):
            root_path_of(text)


def test_a_proxy_is_an_address_or_a_network():
    assert proxy_of("10.0.0.0/8") == "10.0.0.0/8"
    for text in ("*", "localhost", "10.0.0.1/8", "", "proxy.example"):
        with pytest.raises(QkvError, match="proxies"):
            proxy_of(text)


def test_headers_of_a_proxy_change_no_page(client):
    for path in ("/", "/docs", "/openapi.json", box.ADDRESS):
        assert client.get(path, headers=FORWARDED).content == client.get(path).content


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((), "127.0.0.1"),
        (("--proxy", "10.0.0.0/8"), "127.0.0.1"),
        (("--proxy", "127.0.0.1"), "203.0.113.9"),
    ],
)
def test_the_client_is_whom_a_named_proxy_names(serving, videos_path, options, seen):
    with serving(videos_path, *options) as server:
        server.get("/api/v1/search?q=bread", **FORWARDED)
        _, log = server.stop()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    asked = [line for line in lines if line["path"] == "/api/v1/search"]
    assert [line["client"] for line in asked] == [seen]


def test_options_and_405_name_the_methods_of_an_address(client):
    methods = {
        "/": "GET, HEAD, OPTIONS",
        "/static/base.css": "GET, HEAD, OPTIONS",
        "/learn/softmax": "GET, HEAD, OPTIONS",
        "/openapi.json": "GET, HEAD, OPTIONS",
        box.ADDRESS: "GET, HEAD, OPTIONS",
        "/api/v1/search": "GET, POST, HEAD, OPTIONS",
        "/api/v1/items/a/b": "GET, PATCH, DELETE, HEAD, OPTIONS",
        "/api/v1/record": "POST, OPTIONS",
    }
    for path, allowed in methods.items():
        answer = client.options(path)
        assert (answer.status_code, answer.headers["allow"]) == (204, allowed), path
        assert answer.content == b""
        refused = client.request("PURGE", path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed), path
    assert client.options("/nothing").status_code == 404


def test_options_of_a_read_only_server_have_no_changes(asking, videos_path):
    with asking(videos_path, read_only=True) as client:
        assert client.options("/api/v1/items/v018").headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", [*pages.PAGES, box.ADDRESS, "/openapi.json", "/api/v1/items/v018"])
def test_head_is_get_without_a_body(client, path, caplog):
    with caplog.at_level(logging.ERROR):
        got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == got.headers[name]
    assert caplog.messages == []

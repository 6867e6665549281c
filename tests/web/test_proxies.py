"""The configurations of nginx, Caddy and systemd in docs/server.md, as they stand there."""

import gzip
import http.client
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.web import pages

pytestmark = pytest.mark.slow

DOCS = (Path(__file__).parents[2] / "docs/server.md").read_text(encoding="utf-8")
NGINX = """
daemon off; pid nginx.pid; error_log stderr; worker_processes 1;
events {{ }}
http {{
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {{ listen 127.0.0.1:{port}; {block} }}
}}
"""
ODD = ["a/b c", "50%", "ü?#&", "x+y"]


def block(language):
    """The first block of a language in the documentation."""
    return re.search(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)[1]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def nginx(folder, port, backend):
    text = NGINX.format(port=port, block=block("nginx").replace("127.0.0.1:8000", backend))
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def caddy(folder, port, backend):
    text = block("caddyfile").replace("127.0.0.1:8000", backend)
    text = text.replace("shop.example", f"http://127.0.0.1:{port}")
    path = folder / "Caddyfile"
    path.write_text("{\n\tadmin off\n}\n" + text, encoding="utf-8")
    return ["run", "--adapter", "caddyfile", "--config", str(path)]


def asked(url, method="GET", **headers):
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


@pytest.fixture(scope="module")
def backend(serving, tmp_path_factory):
    """A server under /search, of items with odd ids."""
    path = tmp_path_factory.mktemp("shop") / "ws"
    items = pd.DataFrame({"id": ODD, "title": [f"A tent, {one}" for one in ODD]})
    qkvsearch.build(path, items=items, encoder="corpus")
    with serving(path, "--root-path", "/search", "--proxy", "127.0.0.1") as server:
        yield server


@contextmanager
def running(name, backend, folder):
    """The address of a proxy before the server."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if program is None:
        pytest.skip(f"no {name} on the path")
    port = free_port()
    arguments = {"nginx": nginx, "caddy": caddy}[name](folder, port, f"127.0.0.1:{backend.port}")
    log = (folder / "log").open("w")
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen([program, *arguments], stderr=log, stdout=log, env=environment)
    try:
        end = time.monotonic() + 60
        while True:
            with socket.socket() as trying:
                if not trying.connect_ex(("127.0.0.1", port)):
                    break
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request, backend, tmp_path_factory):
    with running(request.param, backend, tmp_path_factory.mktemp(request.param)) as address:
        yield address


def test_pages_and_the_api_are_there_under_the_path(proxy):
    for path in pages.PAGES:
        status, _, text = asked(f"{proxy}/search{path}")
        assert status == 200
        for link in re.findall(r'(?:href|src|action)="(/[^"#?]*)', text.decode()):
            assert link.startswith("/search/")
            assert asked(proxy + link)[0] == 200
    assert asked(f"{proxy}/search")[0] == 200  # redirected to the slash
    _, _, text = asked(f"{proxy}/search/openapi.json")
    assert json.loads(text)["servers"] == [{"url": "/search"}]
    assert b"qkvsearch" not in asked(f"{proxy}/recommend")[2]
    status, headers, _ = asked(f"{proxy}/search/api/v1/search", "OPTIONS")
    assert (status, headers["Allow"]) == (204, "GET, POST, HEAD, OPTIONS")
    status, headers, body = asked(f"{proxy}/search/api/v1/search?q=tent", "HEAD")
    assert (status, body) == (200, b"")


@pytest.mark.parametrize("item", ODD)
def test_odd_ids_pass_through(proxy, item):
    _, _, text = asked(f"{proxy}/search/api/v1/items/{quote(item, safe='')}")
    assert json.loads(text)["id"] == item


def test_what_a_page_of_the_site_sends_is_no_other_sites(proxy):
    body = json.dumps({"searches": [{"q": "tent"}]}).encode()
    for origin, status in ((proxy, 200), ("http://evil.example", 403)):
        request = urllib.request.Request(
            f"{proxy}/search/api/v1/search",
            data=body,
            headers={"Origin": origin, "Content-Type": "application/json"},
        )
        try:
            found = urllib.request.urlopen(request, timeout=60).status
        except urllib.error.HTTPError as error:
            found = error.code
        assert found == status


def test_answers_are_compressed_on_the_way(proxy):
    _, _, plain = asked(f"{proxy}/search/box.js")
    _, headers, text = asked(f"{proxy}/search/box.js", **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(text) == plain
    assert len(text) < len(plain) / 2


def test_a_proxy_says_who_asks_and_a_client_cannot(proxy, backend):
    before = len(clients_of_heads(backend))
    # From another address than that of the proxy, whom the server believes.
    host, port = urlsplit(proxy).netloc.split(":")
    client = http.client.HTTPConnection(host, int(port), source_address=("127.0.0.2", 0))
    client.request("HEAD", "/search/api/v1/facets", headers={"X-Forwarded-For": "203.0.113.9"})
    assert client.getresponse().status == 200
    client.close()
    end = time.monotonic() + 60
    while len(clients := clients_of_heads(backend)) == before:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert clients[before:] == ["127.0.0.2"]


def clients_of_heads(backend):
    """Who asked by HEAD for the facets: nobody else does, and lines come later than answers."""
    lines = [json.loads(line) for line in backend.written().splitlines() if line.startswith("{")]
    asks = [line for line in lines if line["method"] == "HEAD" and line["path"].endswith("facets")]
    return [line["client"] for line in asks]


def test_the_search_page_works_under_the_path(proxy, browsing, expect):
    with browsing() as context:
        page = context.new_page()
        failed = []
        page.on("response", lambda got: got.status >= 400 and failed.append(got.url))
        for path in pages.PAGES:
            page.goto(f"{proxy}/search{path}")
            expect(page.locator("h1").first).to_be_attached()
        page.goto(f"{proxy}/search/?q=tent")
        expect(page.locator("#hits li[data-id]").first).to_be_visible()
        page.goto(f"{proxy}/search/docs")
        expect(page.locator(".opblock").first).to_be_visible()
        assert page.locator(".servers option").first.text_content() == "/search"
        assert failed == []


def test_systemd_accepts_the_service(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on the path")
    text = block("ini")
    told = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)[1]
    unit = tmp_path / "qkvsearch.service"
    unit.write_text(text.replace(told, "/bin/true"), encoding="utf-8")
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "qkvsearch.service" in line]
    assert (done.returncode, complaints) == (0, [])

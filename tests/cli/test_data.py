"""`qkvsearch data`: lists what can be fetched, fetches it, says where it is."""

import hashlib
import http.server
import threading
import zipfile
from functools import partial

import pytest

from qkvsearch.data import download as downloads
from qkvsearch.data.download import Download


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A known data set `tiny`, on a server on loopback."""
    served = tmp_path / "served"
    served.mkdir()
    with zipfile.ZipFile(served / "tiny.zip", "w") as archive:
        archive.writestr("tiny/movies.csv", "movieId,title,genres\n1,Kettle,Drama\n2,Anchor,War\n")
        archive.writestr("tiny/ratings.csv", "userId,movieId,rating\n1,1,4\n1,2,5\n2,2,3\n")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=served)
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *a: None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        md5 = hashlib.md5((served / "tiny.zip").read_bytes()).hexdigest()
        address = f"http://127.0.0.1:{server.server_port}/tiny.zip"
        monkeypatch.setitem(
            downloads.DOWNLOADS, "tiny", Download("tiny", "two films", address, 0.1, md5)
        )
        yield
        server.shutdown()


def test_fetch_prints_where_and_build_knows_it(qkv, tiny):
    answer = qkv("data", "fetch", "tiny", "--to", "here")
    assert (answer.code, answer.stdout) == (0, "here/tiny\n")
    assert "Terms: " in answer.stderr
    assert qkv("-w", "ws", "build", "here/tiny").code == 0


def test_a_set_that_is_there_already_exits_1(qkv, tiny):
    qkv("data", "fetch", "tiny")
    answer = qkv("data", "fetch", "tiny")
    assert (answer.code, answer.stdout) == (1, "")
    assert "is there already" in answer.stderr


def test_list_names_samples_and_downloads(qkv):
    rows = qkv("data", "list", "--format", "json").json()
    assert {"sample:movies", "sample:videos", "ml-latest-small", "ml-1m"} <= {
        row["name"] for row in rows
    }
    table = qkv("data", "list").stdout
    assert "ml-latest-small" in table
    assert all(len(line) <= 80 for line in table.splitlines())

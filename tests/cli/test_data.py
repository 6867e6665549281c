"""`qkvsearch data`: lists what can be fetched, fetches it, says where it is."""

import hashlib
import zipfile

import pytest

from qkvsearch.tables import download as downloads
from qkvsearch.tables.download import Download


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A known data set `tiny`, to be had from a file."""
    path = tmp_path / "tiny.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny/movies.csv", "movieId,title,genres\n1,Kettle,Drama\n2,Anchor,War\n")
        archive.writestr("tiny/ratings.csv", "userId,movieId,rating\n1,1,4\n1,2,5\n2,2,3\n")
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    known = Download("tiny", "two films", path.as_uri(), 0.1, md5)
    monkeypatch.setitem(downloads.DOWNLOADS, "tiny", known)


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

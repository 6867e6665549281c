"""Downloads from a server on loopback: checked, unpacked, and nothing left half done."""

import contextlib
import hashlib
import http.client
import io
import socket
import threading
import urllib.error
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.download import DOWNLOADS, Download, fetch, find_download
from qkvsearch.tables.sources import read_movielens

MOVIES = b"movieId,title,genres\n1,Kettle (1999),Drama\n2,Anchor (2004),War\n"
RATINGS = b"userId,movieId,rating,timestamp\n1,1,4,10\n1,2,5,11\n2,2,3,12\n"


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


GOOD = zipped({"tiny/movies.csv": MOVIES, "tiny/ratings.csv": RATINGS})


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; a file in `server.cut` stops half-way."""

    def do_GET(self):
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path in self.server.cut else content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.cut = {"/tiny.zip": GOOD}, set()
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def tiny(server):
    address = f"http://127.0.0.1:{server.server_port}/tiny.zip"
    return Download("tiny", "two films", address, 0.1, hashlib.md5(GOOD).hexdigest())


def with_md5(download, md5):
    return Download(download.name, download.about, download.address, download.megabytes, md5)


def test_a_fetched_set_is_unpacked_and_can_be_read(tiny, tmp_path):
    seen = []
    path = fetch(tiny, tmp_path / "data", lambda *step: seen.append(step))
    assert path == tmp_path / "data" / "tiny"
    assert len(read_movielens(path).interactions) == 3
    assert seen[-1] == ("downloading", len(GOOD), len(GOOD))
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["tiny"]


@pytest.mark.parametrize("text", ["{md5}  tiny.zip\n", "MD5 (tiny.zip) = {md5}\n"])
def test_a_set_that_changes_is_checked_against_the_sum_beside_it(server, tiny, tmp_path, text):
    server.files["/tiny.zip.md5"] = text.format(md5=tiny.md5).encode()
    assert fetch(with_md5(tiny, None), tmp_path).is_dir()


def leaves_nothing(download, folder, message):
    with pytest.raises(DataError, match=message):
        fetch(download, folder)
    assert list(folder.iterdir()) == []


def hostile(server, tiny, archive):
    server.files["/tiny.zip"] = archive
    return with_md5(tiny, hashlib.md5(archive).hexdigest())


def test_an_archive_made_to_fill_the_disk_leaves_nothing(server, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "1_000_000")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/movies.csv", b"0" * 30_000_000)
    bomb = hostile(server, tiny, buffer.getvalue())
    leaves_nothing(bomb, tmp_path, "more than 1,000,000 bytes unpacked")


def test_a_download_without_end_leaves_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_DOWNLOAD", "100")
    leaves_nothing(tiny, tmp_path, r"tiny\.zip: more than 100 bytes of a download")


def test_links_and_paths_in_an_archive_lead_nowhere(server, tiny, tmp_path):
    secret, inside = tmp_path / "secret", tmp_path / "in"
    secret.write_text("outside")
    link = zipfile.ZipInfo("tiny/movies.csv")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(link, str(secret))
        archive.writestr("../../secret", b"overwritten")
        archive.writestr("tiny/../../../secret", b"overwritten")
    with contextlib.suppress(DataError):
        fetch(hostile(server, tiny, buffer.getvalue()), inside)
    assert secret.read_text() == "outside"
    content = zipped({"../../evil.txt": b"x", "tiny/movies.csv": MOVIES})
    path = fetch(hostile(server, tiny, content), tmp_path / "a" / "b")
    assert [entry.name for entry in path.iterdir()] == ["movies.csv"]
    assert not list(tmp_path.rglob("evil.txt"))
    assert not any(path.is_symlink() for path in inside.rglob("*"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"md5": "0" * 32}, "checksum is .* published is 0{32}"),
        ({"md5": None}, "answered 404"),
        ({"cut": True}, "checksum|IncompleteRead|bytes"),
        ({"gone": True}, r"tiny\.zip: the server answered 404"),
    ],
)
def test_a_download_that_fails_leaves_nothing(server, tiny, tmp_path, damage, message):
    if "cut" in damage:
        server.cut.add("/tiny.zip")
    elif "gone" in damage:
        del server.files["/tiny.zip"]
    leaves_nothing(with_md5(tiny, damage.get("md5", tiny.md5)), tmp_path, message)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (urllib.error.URLError("no route to host"), "no route to host"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError("timed out"), r"TimeoutError\('timed out'\)"),
        (http.client.BadStatusLine("gibberish"), r"BadStatusLine\('gibberish'\)"),
    ],
)
def test_a_failure_says_its_reason(tiny, tmp_path, monkeypatch, error, said):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", fail)
    leaves_nothing(tiny, tmp_path, rf"tiny\.zip: {said}; check the connection")


def test_no_server_leaves_nothing_and_says_what_to_do(tiny, server, tmp_path):
    server.shutdown()
    server.server_close()
    leaves_nothing(tiny, tmp_path, "check the connection, or download it by hand")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip at all", "not a zip archive"),
        (zipped({"a/x": b"1", "b/y": b"2"}), "2 folders instead of one"),
        (zipped({"x": b"1"}), "0 folders instead of one"),
        (GOOD.replace(b"Kettle", b"Kettl3"), "not a zip archive"),
        (zipped({f"tiny/{i}": b"" for i in range(11)}), "more than 10 files in an archive"),
    ],
    # An archive holds its time: as a name it would differ from one collecting process to the next.
    ids=["not a zip", "two folders", "no folder", "damaged", "many files"],
)
def test_an_archive_of_another_shape_leaves_nothing(
    server, tiny, tmp_path, monkeypatch, content, message
):
    monkeypatch.setenv("QKVSEARCH_MAX_FILES", "10")
    leaves_nothing(hostile(server, tiny, content), tmp_path, message)


def test_an_interruption_leaves_nothing(tiny, tmp_path):
    def interrupt(*step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(tiny, tmp_path, interrupt)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_is_not_touched(tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="is there already; remove it"):
        fetch(tiny, tmp_path)
    assert [entry.name for entry in (tmp_path / "tiny").iterdir()] == ["mine.txt"]


def test_every_known_set_names_its_official_address_and_a_whole_sum():
    assert {"ml-latest-small", "ml-100k", "ml-1m"} <= set(DOWNLOADS)
    for name, download in DOWNLOADS.items():
        assert download.address == f"https://files.grouplens.org/datasets/movielens/{name}.zip"
        assert download.md5 is None or len(bytes.fromhex(download.md5)) == 16


def test_a_misspelt_name_suggests_the_right_one():
    with pytest.raises(DataError, match=r"no data set 'ml-lm'; did you mean ml-1m"):
        find_download("ml-lm")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\ncut",
        b"this is no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\nshort",
    ],
    ids=["a chunk cut", "no HTTP", "no length"],
)
def test_a_server_that_misbehaves_leaves_nothing_and_is_no_crash(tiny, tmp_path, answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/tiny.zip"
        leaves_nothing(replace(tiny, address=address), tmp_path, "tiny\\.zip: ")

"""Real connections: answers that nobody reads, heads that are too long or ambiguous, and HEAD."""

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.web import unread
from qkvsearch.web.strict_requests import MAX_HEAD
from qkvsearch.web.unread import MAX_UNREAD, PATIENCE, NoRoomError, UnreadAnswers

HOST = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LARGE = b"GET /api/v1/items?k=100&fields=body"
# Bytes of a large answer.
N_BYTES = 9_000_000
# Seconds that a test waits at most.
PATIENT = 60


@pytest.fixture(scope="module")
def server(serving, tmp_path_factory):
    """A server over 100 long items."""
    path = tmp_path_factory.mktemp("long") / "ws"
    rows = {
        "id": [f"x{n}" for n in range(100)],
        "title": [f"Item {n}" for n in range(100)],
        "body": ["x" * (N_BYTES // 100)] * 100,
    }
    columns = qkv.Columns(id="id", title="title", text=["title"])
    qkv.build(path, items=pd.DataFrame(rows), columns=columns, encoder="corpus").close()
    with serving(path) as server:
        yield server


def connected(server):
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(PATIENT)
    return connection


def exchange(server, *parts):
    """All that the server sends until it closes the connection, for what is sent in parts."""
    with connected(server) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            client.sendall(part)
        try:
            return b"".join(iter(lambda: client.recv(65536), b""))
        except TimeoutError:
            raise AssertionError("the connection stays open") from None


# --- answers that nobody reads ---


def megabytes_of(server):
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_answers_that_nobody_reads_hold_bounded_memory(server):
    server.get(f"/{LARGE.decode().partition('/')[2]}")
    before = megabytes_of(server)
    refused = 0
    with ExitStack() as opened:
        for _ in range(30):
            client = opened.enter_context(connected(server))
            client.sendall(LARGE + HOST + b"\r\n")
            begin = client.recv(1000)  # the head alone
            if b" 503 " in begin.partition(b"\r\n")[0]:
                assert b"retry-after" in begin.lower()
                refused += 1
        grown = megabytes_of(server) - before
        assert refused  # this server drops nobody who reads nothing, but only bounds what is unread
        assert grown < MAX_UNREAD / 1e6 + 110  # also what the allocator keeps
        assert server.get("/api/v1/health")[0] == 200
        assert server.get("/api/v1/search?q=item&k=3")[0] == 200
    for _ in range(10):  # those who have left hold nothing
        assert len(server.get(f"/{LARGE.decode().partition('/')[2]}")[2]) > N_BYTES


class Client:
    """A connection that was idle for so many seconds."""

    def __init__(self, answers, n_unread, idle_seconds):
        self.n_unread, self.idle_seconds = n_unread, idle_seconds
        self.answers = answers
        answers.readers[self] = None

    def drop(self):
        del self.answers.readers[self]


def test_clients_that_have_stopped_reading_make_room_and_others_stay():
    answers = UnreadAnswers()
    times = PATIENCE + 1, PATIENCE + 7, PATIENCE / 4
    idle, idler, reading = (Client(answers, 20_000_000, seconds) for seconds in times)
    with answers.holding() as held:
        held.add(10_000_000)
        assert [*answers.readers] == [idle, reading]
        held.add(20_000_000)
        assert [*answers.readers] == [reading]
        with pytest.raises(NoRoomError):
            held.add(20_000_000)
        held.add(unread.MIN_COUNTED - 1)  # an error is always sent
        assert answers.n_bytes == 50_000_000
    assert answers.n_bytes == reading.n_unread
    assert idler not in answers.readers


# --- heads ---


def head_of(n_bytes):
    """A head of that many bytes."""
    begin, end = b"GET /api/v1/health" + HOST + b"Connection: close\r\na: ", b"\r\n\r\n"
    return begin + b"x" * (n_bytes - len(begin) - len(end)) + end


@pytest.mark.parametrize("n_pieces", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("n_bytes", "status"),
    [(MAX_HEAD, b"200"), (MAX_HEAD + 1, b"431"), (MAX_HEAD + 9000, b"431"), (49_000, b"431")],
)
def test_a_head_has_a_limit_however_it_is_split(server, n_bytes, status, n_pieces):
    head = head_of(n_bytes)
    size = -(-n_bytes // n_pieces)
    parts = [head[start : start + size] for start in range(0, n_bytes, size)]
    assert exchange(server, *parts).split()[1] == status


def test_many_short_lines_and_spaces_count_too(server):
    for filler in (b"a:\r\n" * 9000, b"a:" + b" " * 36_000 + b"\r\n"):
        answer = exchange(server, b"GET /api/v1/health" + HOST + filler + b"\r\n")
        assert answer.split()[1] == b"431"


SMUGGLED = b"GET /api/v1/metrics" + HOST + b"\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        b"transfer-encoding:chunked\r\ncontent-length:0\r\n",
        b"Content-Length: 4\r\nContent-Length: 4\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        b"Content-Length: 4, 4\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 0x4\r\n",
        b"Content-Length: -4\r\n",
        b"Content-Length : 4\r\n",
        b"Content-Length: 4\r\n 0\r\n",
        b"Transfer-Encoding:\r\n chunked\r\n",
        b"X: a\r\n\tb\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: identity, chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
    ],
)
def test_an_ambiguous_end_of_a_request_is_refused_and_closed(server, lines):
    sent = b"POST /api/v1/search" + HOST + lines + b"\r\n0\r\n\r\n" + SMUGGLED
    answer = exchange(server, sent)
    assert answer.split()[1] in (b"400", b"501")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("size", [b"-1", b"0x1", b"+1", b" 1", b"1 2", b"g", b"", b"1" * 30])
def test_a_bad_size_of_a_chunk_is_refused_and_closed(server, size):
    head = b"POST /api/v1/search" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = exchange(server, head + size + b"\r\nx\r\n0\r\n\r\n" + SMUGGLED)
    assert answer.split()[1] in (b"400", b"413")
    assert answer.count(b"HTTP/1.1") == 1


def test_chunks_are_no_part_of_http_1_0(server):
    head = b"POST /api/v1/search HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = exchange(server, head + b"0\r\n\r\n" + SMUGGLED)
    assert answer.split()[1] == b"400"
    assert answer.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("version", [b"0.9", b"1.2", b"2.0", b"3.7", b"9.9"])
def test_other_versions_of_http_are_refused(server, version):
    head = b"GET /api/v1/health HTTP/" + version + b"\r\nHost: 127.0.0.1\r\n\r\n"
    answer = exchange(server, head + SMUGGLED)
    assert answer.split()[1] == b"400"
    assert answer.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("sign", [b"\r", b"\x00", b"\x0b", b"\x7f", b"\x1b"])
@pytest.mark.parametrize("place", [b"4;a=%bb\r\nbody\r\n0\r\n\r\n", b"4\r\nbody\r\n0;%bb\r\n\r\n"])
def test_control_characters_beside_the_size_of_a_chunk_are_refused(server, sign, place):
    head = b"POST /api/v1/search" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    answer = exchange(server, head + place % sign + SMUGGLED)
    assert answer.split()[1] == b"400"
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("n_bytes", [1, 2, 7])
def test_a_body_in_chunks_may_come_in_any_packets(server, n_bytes):
    # The body has control characters too, which JSON allows between its tokens.
    content = b'{"searches":\r\n\t[{"q": "item", "k": 1}]}'
    head = b"POST /api/v1/search" + HOST + b"Content-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    pieces = [content[:9], content[9:]]
    chunks = b"".join(b"%x;name=value\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    sent = head + chunks + b"0\r\n\r\n"
    packets = [sent[start : start + n_bytes] for start in range(0, len(sent), n_bytes)]
    assert exchange(server, *packets).split()[1] == b"200"


def test_requests_after_one_another_are_answered(server):
    body = b'{"searches": [{"q": "item", "k": 1}]}'
    post = b"POST /api/v1/search" + HOST + b"Content-Type: application/json\r\n"
    plain = post + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    last = b"GET /api/v1/health" + HOST + b"Connection: close\r\n\r\n"
    answer = exchange(server, plain + chunked + last)
    assert answer.count(b"HTTP/1.1 200") == 3


# --- HEAD ---

ADDRESSES = (
    "/api/v1/health", "/api/v1/search?q=item", "/api/v1/items", "/api/v1/items/x1",
    "/api/v1/items/none", "/api/v1/nothing", "/api/v1/search?k=0", "/api/v1/info", "/", "/map",
    "/learn", "/static/base.css", "/static/none.css", "/openapi.json", "/nothing",
)  # fmt: skip


def test_head_is_get_without_the_body(server):
    for address in ADDRESSES:
        ends = HOST + b"Connection: close\r\n\r\n"
        head, _, rest = exchange(server, b"HEAD " + address.encode() + ends).partition(b"\r\n\r\n")
        got, _, body = exchange(server, b"GET " + address.encode() + ends).partition(b"\r\n\r\n")
        assert sorted(head.splitlines()) == sorted(got.splitlines()), address
        assert rest == b""
        assert b"content-length: %d" % len(body) in head.lower(), address


def test_head_is_counted_and_needs_the_token_as_get_does(asking, videos_path, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    with asking(videos_path, token_file=token) as client:
        assert client.head("/api/v1/items").status_code == 401
        with_token = {"Authorization": f"Bearer {token.read_text()}"}
        answer = client.head("/api/v1/items", headers=with_token)
        assert (answer.status_code, answer.content) == (200, b"")
        assert client.head("/").status_code == 200
        assert "HEAD" in client.post("/api/v1/items", headers=with_token).headers["allow"]


def test_a_refused_method_is_a_problem(server):
    status, _, body = server.get("/api/v1/record")
    assert (status, json.loads(body)["status"]) == (405, 405)

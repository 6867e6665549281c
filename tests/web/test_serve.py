"""Real servers: they come up, share the work, answer beside slow clients, and stop cleanly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import qkvsearch
from qkvsearch.web import metrics
from qkvsearch.web.slow_clients import MAX_WAITING, BoundedProtocol

# Servers are processes: `make test-all` starts them.
pytestmark = pytest.mark.slow

# Seconds: a machine may have other work.
WITHIN = 300


def counted(server, name, *others):
    """What the server's metrics say of that."""
    lines = server.get("/api/v1/metrics")[2].decode().splitlines()
    found = [one for one in lines if one.startswith(name) and all(word in one for word in others)]
    return float(found[0].rpartition(" ")[2]) if found else 0


def until(holds):
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_stops_when_told_and_leaves_nothing(serving, videos_path, workers):
    with serving(videos_path, "--workers", workers) as server:
        status, _, body = server.get("/api/v1/search?q=bread&k=1")
        assert status == 200
        assert json.loads(body)["hits"]
        shared = {path.name for path in Path("/tmp").glob("qkvsearch-serve-*")}
        code, log = server.stop()
    assert code == 0
    assert "Traceback" not in log
    assert '"path": "/api/v1/search"' in log
    assert len({path.name for path in Path("/tmp").glob("qkvsearch-serve-*")} & shared) < max(
        1, len(shared)
    )


def test_workers_count_together(serving, videos_path):
    with serving(videos_path, "--workers", "2") as server:
        for _ in range(12):
            server.get("/api/v1/items?k=1")
        # A worker counts an answer once it is sent.
        until(lambda: counted(server, "qkvsearch_requests_total", "items") == 12)


def test_slow_and_broken_clients_do_not_block_others(serving, videos_path):
    with serving(videos_path) as server, ExitStack() as opened:
        for i in range(300):
            other = opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            other.send([b"GET / HT", b"\x00\xff\x16", b"POST /api/v1/search HTTP/1.1\r\nHo"][i % 3])
        assert server.get("/api/v1/search?q=bread")[0] == 200


def test_a_client_that_never_finishes_is_hung_up_on(serving, videos_path):
    with (
        serving(videos_path) as server,
        socket.create_connection(("127.0.0.1", server.port)) as slow,
    ):
        slow.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        slow.settimeout(WITHIN)
        assert slow.recv(100) == b""


def test_bodies_that_never_end_make_room_for_others(serving, videos_path):
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\n{"
    with serving(videos_path) as server, ExitStack() as opened:
        others = []
        for _ in range(MAX_WAITING + 50):
            other = socket.create_connection(("127.0.0.1", server.port))
            others.append(opened.enter_context(other))
            other.send(head)
        others[0].settimeout(WITHIN)
        with suppress(ConnectionResetError):  # what it sent may be unread when it is closed
            assert others[0].recv(100) == b""  # and no word that its body is late
        assert server.get("/api/v1/search?q=bread")[0] == 200


@pytest.mark.parametrize(("left", "goes_on"), [([90_000, 10_000], True), ([99_999], False)])
def test_an_answer_may_be_read_slowly_but_not_never(left, goes_on):
    """left: bytes that are still to be read, after each of the looks."""
    connection, later, aborted = BoundedProtocol.__new__(BoundedProtocol), [], []
    sizes = iter([100_000, *left])
    connection.transport = SimpleNamespace(
        get_write_buffer_size=lambda: next(sizes), abort=lambda: aborted.append(True)
    )
    connection.loop = SimpleNamespace(call_later=lambda _, do, *of: later.append((do, of)))
    connection.flow = SimpleNamespace(pause_writing=lambda: None)
    connection.pause_writing()
    for _ in left:
        do, of = later.pop()
        do(*of)
    assert bool(later) == goes_on
    assert bool(aborted) == (not goes_on)


def test_requests_of_a_killed_worker_are_running_no_more(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    files = [tmp_path / f"gauge_livesum_{pid}.db" for pid in (ended.pid, os.getpid())]
    for file in files:
        file.touch()
    metrics._forget_ended(tmp_path)
    assert [file.exists() for file in files] == [False, True]


def test_answers_on_their_way_finish_before_it_stops(serving, videos_path):
    asked = "/api/v1/search?q=bread+and+guitar&explain=true&k=100"
    with serving(videos_path) as server, ThreadPoolExecutor(4) as threads:
        running = [threads.submit(server.get, asked) for _ in range(4)]
        until(lambda: counted(server, "qkvsearch_requests_running") > 1 or running[0].done())
        code, _ = server.stop()
        answers = [future.exception() or future.result()[0] for future in running]
    assert code == 0
    assert 200 in answers


def test_no_request_fails_while_builds_are_published(serving, tmp_path):
    path = tmp_path / "ws"
    qkvsearch.build(path, "sample:videos", encoder="corpus")
    with serving(path) as server, ThreadPoolExecutor(2) as threads:
        ended = False

        def ask():
            statuses = []
            while not ended:
                statuses.append(server.get("/api/v1/search?q=bread+oven")[0])
            return statuses

        running = [threads.submit(ask) for _ in range(2)]
        qkvsearch.build(path, "sample:videos", encoder="corpus")
        qkvsearch.Engine(path).remove("v018")
        ended = True
        statuses = [status for future in running for status in future.result()]
    assert statuses
    assert set(statuses) == {200}


def test_other_hosts_demand_a_token(qkv, videos_path, tmp_path):
    refused = qkv("-w", videos_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert "--token-file" in refused.stderr
    short = tmp_path / "token"
    short.write_text("abc\n")
    refused = qkv("-w", videos_path, "serve", "--token-file", short, "--port", "0")
    assert refused.code == 1
    assert "16 or more" in refused.stderr


def test_a_port_that_is_taken_is_named(qkv, videos_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = qkv("-w", videos_path, "serve", "--port", port)
    assert refused.code == 1
    assert str(port) in refused.stderr
    assert "--port" in refused.stderr

"""Real servers: they come up, share the work, answer beside slow clients, and stop cleanly."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from uvicorn.supervisors import Multiprocess

import qkvsearch
from qkvsearch.web.server import KILLED, Workers, shared_folder
from qkvsearch.web.slow_clients import (
    LOOKS_EVERY,
    MAX_WAITING,
    MIN_READ_RATE,
    NO_READ_SECONDS,
    SECONDS,
    UnreadAnswer,
)

# `make test` starts one server; `make test-all` those that take long or several processes.
slow = pytest.mark.slow

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


@slow
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


@slow
def test_workers_count_together(serving, videos_path):
    with serving(videos_path, "--workers", "2") as server:
        for _ in range(12):
            server.get("/api/v1/items?k=1")
        # A worker counts an answer once it is sent.
        until(lambda: counted(server, "qkvsearch_requests_total", "items") == 12)


@slow
def test_slow_and_broken_clients_do_not_block_others(serving, videos_path):
    with serving(videos_path) as server, ExitStack() as opened:
        for i in range(300):
            other = opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            other.send([b"GET / HT", b"\x00\xff\x16", b"POST /api/v1/search HTTP/1.1\r\nHo"][i % 3])
        assert server.get("/api/v1/search?q=bread")[0] == 200


@slow
def test_a_client_that_never_finishes_is_hung_up_on(serving, videos_path):
    with (
        serving(videos_path) as server,
        socket.create_connection(("127.0.0.1", server.port)) as slow,
    ):
        slow.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        slow.settimeout(WITHIN)
        assert slow.recv(100) == b""


def exchange(server, *parts):
    """What a server answers to a client that first sends everything, and then reads to the end."""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(WITHIN)
        for part in parts:
            client.sendall(part)
        return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.fixture(scope="module")
def one_server(serving, videos_path):
    with serving(videos_path) as server:
        yield server


HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"POST /api/v1/search", b"413"),
        (b"POST /api/v1/nothing", b"404"),
        (b"DELETE /api/v1/search", b"405"),
        (b"GET /api/v1/health", b"200"),
        (b"POST /", b"405"),
    ],
)
def test_a_body_in_tiny_chunks_is_read_no_further(one_server, request_line, status):
    tiny = b"1\r\n \r\n" * 20_000
    answer = exchange(one_server, request_line + CHUNKED, tiny, tiny, tiny)
    assert answer.split()[1] in (status, b"413")  # whichever was first
    assert one_server.get("/api/v1/health")[0] == 200


def test_a_body_in_a_few_chunks_is_read(one_server):
    body = json.dumps({"searches": [{"q": "bread", "k": 1}]}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer = exchange(one_server, b"POST /api/v1/search" + head, chunks)
    assert b'"answers"' in answer
    assert not {b"server", b"date"} & {line.split(b":")[0] for line in answer.splitlines()}


@pytest.mark.parametrize("connection", [b"", b"Connection: close\r\n"])
def test_a_client_that_sends_first_sees_why_its_body_is_refused(one_server, connection):
    head = HEAD + connection + b"Content-Length: 5000000\r\n\r\n"
    answer = exchange(one_server, b"POST /api/v1/search" + head, b" " * 5_000_000)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"1,000,000 bytes" in answer


def test_what_is_too_large_is_asked_for_no_further(one_server):
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n"
    assert exchange(one_server, b"POST /api/v1/search" + head).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 200_000 + HEAD + b"\r\n", b"431"),
        (b"GET /" + HEAD + b"a:\r\n" * 60_000 + b"\r\n", b"431"),
        (b"POST /api/v1/search" + CHUNKED + b"no size\r\n", b"400"),
    ],
)
def test_what_is_no_http_is_a_problem(one_server, sent, status):
    head, _, body = exchange(one_server, sent).partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert json.loads(body)["status"] == int(status)


@slow
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


@pytest.fixture
def system():
    """A socket in which the system holds nothing."""
    with socket.socket() as unconnected:
        yield unconnected


def test_a_client_that_reads_no_answer_or_too_slowly_is_dropped(system):
    timers, dropped = [], []
    n_unread, now = 500_000, 0.0

    def call_later(seconds, action):
        timers[:] = [(seconds, action)]
        return SimpleNamespace(cancel=timers.clear)

    def wait():
        nonlocal now
        ((seconds, action),) = timers
        timers.clear()
        now += seconds
        action()

    loop = SimpleNamespace(call_later=call_later, time=lambda: now)
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: n_unread,
        abort=lambda: dropped.append(now),
        get_extra_info=lambda _: system,
    )
    answer = UnreadAnswer(loop, transport)
    answer.watch()
    while timers:  # nothing is read
        wait()
    assert NO_READ_SECONDS < dropped.pop() <= NO_READ_SECONDS + 2 * LOOKS_EVERY
    answer.watch()
    begun = now
    while timers:  # too little is read
        n_unread -= MIN_READ_RATE // 10
        wait()
    assert dropped.pop() - begun <= SECONDS + 500_000 / MIN_READ_RATE + 2 * LOOKS_EVERY
    answer.watch()
    answer.stop_watching()
    assert (timers, dropped) == ([], [])


def test_folders_of_killed_servers_are_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with shared_folder() as running:
        killed, starting = (tmp_path / f"{running.name}-{name}" for name in ("killed", "starting"))
        killed.mkdir()
        starting.mkdir()
        (killed / "lock").touch()
        with shared_folder() as other:
            assert {running, starting, other} == {*tmp_path.iterdir()}
            assert not other.stat().st_mode & 0o077


FAULT = """
import os, signal
from qkvsearch.web.server import report_faults
report_faults()
os.kill(os.getpid(), signal.{})
"""


@slow
@pytest.mark.parametrize(
    ("name", "message"),
    [("SIGBUS", "a file of the workspace was truncated"), ("SIGSEGV", "line 5")],
)
def test_a_fault_ends_no_server_without_a_word(name, message):
    ended = subprocess.run(
        [sys.executable, "-c", FAULT.format(name)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -getattr(signal, name)
    assert message in ended.stderr


def workers_of(server):
    """The processes that answer, of those of a server that has several."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [
        int(number)
        for number in children.split()
        if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes()
    ]


def is_running(number):
    with suppress(OSError):
        os.kill(number, 0)
        return "zombie" not in Path(f"/proc/{number}/status").read_text()
    return False


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, -signal.SIGBUS, "was ended by SIGBUS"),  # while the workers were asked
        (None, KILLED, "did not answer and was killed"),
        (KILLED, KILLED, f"was ended by {signal.Signals(-KILLED).name}"),
        (3, 3, "ended with exit code 3"),
        (None, 3, "ended with exit code 3"),
    ],
)
def test_a_replaced_worker_is_reported_by_how_it_ended(
    monkeypatch, tmp_path, caplog, before, after, said
):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    worker = SimpleNamespace(pid=71, exitcode=before)
    workers = Workers.__new__(Workers)
    workers.processes = [worker]

    def replaced(_):
        worker.exitcode = after
        workers.processes = [SimpleNamespace(pid=72, exitcode=None)]

    monkeypatch.setattr(Multiprocess, "keep_subprocess_alive", replaced)
    workers.keep_subprocess_alive()
    assert f"worker process 71 {said}" in caplog.text
    assert len(caplog.records) == 1
    assert not workers.failed


@slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for processes")
class TestWorkers:
    def test_one_that_ends_is_reported_and_replaced(self, serving, videos_path):
        running = "qkvsearch_requests_running"
        with (
            serving(videos_path, "--workers", "2") as server,
            socket.create_connection(("127.0.0.1", server.port)) as half_sent,
        ):
            half_sent.sendall(
                b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
            )
            until(lambda: counted(server, running) > 1)
            for worker in workers_of(server):
                os.kill(worker, signal.SIGBUS)
            until(lambda: server.written().count("was ended by SIGBUS") == 2)
            assert server.get("/api/v1/search?q=bread")[0] == 200
            until(lambda: counted(server, running) == 1)  # the question itself
            assert "Traceback" not in server.stop()[1]

    def test_they_end_with_the_process_that_started_them(self, serving, videos_path):
        with serving(videos_path, "--workers", "2") as server:
            workers = workers_of(server)
            server.process.kill()
            until(lambda: not any(map(is_running, workers)))

    def test_none_that_opens_ends_the_server_with_one_line(self, serving, videos_path, tmp_path):
        path = shutil.copytree(videos_path, tmp_path / "ws")
        with serving(path, "--workers", "2") as server:
            os.truncate(next(path.rglob("items.db")), 0)
            for worker in workers_of(server):
                os.kill(worker, signal.SIGKILL)
            assert server.process.wait(WITHIN) == 1
            assert "items.db: damaged" in server.written()
            assert "Traceback" not in server.written()


@slow
def test_answers_on_their_way_finish_before_it_stops(serving, videos_path):
    asked = "/api/v1/search?q=bread+and+guitar&explain=true&k=100"
    with serving(videos_path) as server, ThreadPoolExecutor(4) as threads:
        running = [threads.submit(server.get, asked) for _ in range(4)]
        until(lambda: counted(server, "qkvsearch_requests_running") > 1 or running[0].done())
        code, _ = server.stop()
        answers = [future.exception() or future.result()[0] for future in running]
    assert code == 0
    assert 200 in answers


@slow
def test_it_ends_although_an_answer_cannot_be_stopped():
    code = """if True:
    import sys, threading, uvicorn
    from concurrent.futures import ThreadPoolExecutor
    from qkvsearch.web import server
    def run(*_, **options):
        ThreadPoolExecutor().submit(threading.Event().wait)
        sys.exit(0)
    server.STOPS_WITHIN, uvicorn.Server.run = 0.1, run
    server.listen(uvicorn.Config("none"), "127.0.0.1", 0, 1, print)
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=WITHIN).returncode == 0


@slow
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


def test_other_hosts_demand_a_token(qkv, videos_path):
    refused = qkv("-w", videos_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert "--token-file" in refused.stderr


def test_a_port_that_is_taken_is_named(qkv, videos_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = qkv("-w", videos_path, "serve", "--port", port)
    assert refused.code == 1
    assert str(port) in refused.stderr
    assert "--port" in refused.stderr

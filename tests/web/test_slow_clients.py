"""Clients that read nothing of their answers, or read slowly, over real connections."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn", reason="needs qkvsearch[web]")

import uvicorn

from qkvsearch.web import server as web_server
from qkvsearch.web import slow_clients
from qkvsearch.web.server import IDLE_SECONDS, limit_connections
from qkvsearch.web.slow_clients import BoundedProtocol
from qkvsearch.web.unread import UNREAD

# Seconds that a test waits at most.
PATIENT = 60
# Bytes that asyncio lets wait before it takes notice by itself.
UNNOTICED = 65_536
LARGE = 9_000_000


# The sizes of all answers so far.
answered = []


async def app(scope, receive, send):
    """Answer `/N` with N bytes."""
    n_bytes = int(scope["path"][1:])
    head = [(b"content-length", b"%d" % n_bytes)]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": bytes(n_bytes)})
    answered.append(n_bytes)


def request(n_bytes, *lines):
    return b"\r\n".join([b"GET /%d HTTP/1.1" % n_bytes, b"Host: 127.0.0.1", *lines, b"", b""])


@pytest.fixture
def server():
    """A server of this process. `one()`: its only connection."""
    config = uvicorn.Config(
        app, port=0, http=BoundedProtocol, ws="none", lifespan="off", log_config=None,
        timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=1,
    )  # fmt: skip
    listener = config.bind_socket()
    limit_connections(listener)
    listener.listen()
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
    thread.start()
    connections = running.server_state.connections

    def one():
        until(lambda: connections)
        return next(iter(connections))

    yield SimpleNamespace(address=listener.getsockname(), connections=connections, one=one)
    running.should_exit = True
    thread.join()


@contextmanager
def reading_nothing(server):
    """A client with a small buffer of its own."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENT)
        client.connect(server.address)
        yield client


def until(is_so, seconds=PATIENT):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def n_here(connection):
    """The bytes that wait in the server, without those that the system has taken."""
    return connection._socket_transport.get_write_buffer_size()


def leave_a_little(client, connection):
    """Ask until some bytes, fewer than asyncio takes notice of, wait in the server."""
    while not still_waiting(connection):
        n_before = len(answered)
        client.sendall(request(10_000))
        until(lambda before=n_before: len(answered) > before)
    assert n_here(connection) < UNNOTICED


def still_waiting(connection):
    """Whether bytes wait in the server, and go on to."""
    if n_here(connection):
        time.sleep(0.05)
    return n_here(connection)


def read_all(client):
    while client.recv(65_536):
        pass


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(slow_clients, "NO_READ_SECONDS", 0.3)
    monkeypatch.setattr(slow_clients, "LOOKS_EVERY", 0.05)


def test_a_client_that_reads_nothing_is_dropped_however_little_it_left(server, impatient):
    with reading_nothing(server) as client:
        leave_a_little(client, server.one())
        until(lambda: not server.connections, 5)


def test_one_whose_connection_is_to_be_closed_is_dropped_too(server, impatient):
    with reading_nothing(server) as client:
        connection = server.one()
        leave_a_little(client, connection)
        connection.loop.call_soon_threadsafe(connection.close)
        until(lambda: not server.connections, 5)


def test_what_the_system_holds_of_a_dropped_answer_is_discarded(server, impatient):
    with reading_nothing(server) as client:
        client.sendall(request(LARGE))
        server.one()
        until(lambda: not server.connections)
        with pytest.raises(ConnectionResetError):
            read_all(client)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_what_the_system_holds_is_bounded_and_counted(server):
    with reading_nothing(server) as client:
        client.sendall(request(LARGE))
        connection = server.one()
        until(lambda: connection.unread in UNREAD.readers)
        n_in_kernel = connection.unread.n_unread - n_here(connection)
        assert 0 < n_in_kernel < 1_000_000
        assert n_in_kernel == pytest.approx(LARGE - n_here(connection), abs=100_000)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_a_little_that_is_read_counts_as_reading(server):
    """The system takes more of the server only when a large part of its own is read."""
    with reading_nothing(server) as client:
        client.sendall(request(LARGE))
        connection = server.one()
        until(lambda: connection.unread in UNREAD.readers)
        until(lambda: connection.unread.idle_seconds > 0.2)
        n_waiting = n_here(connection)
        n_read = 0
        while n_read < 30_000:
            n_read += len(client.recv(1000))
        until(lambda: connection.unread.idle_seconds < 0.2, 5)
        assert n_here(connection) == n_waiting


@pytest.fixture
def forgetful(monkeypatch):
    """For servers after it: the system gives up soon what a client does not take."""
    monkeypatch.setattr(web_server, "UNSENT_MS", 500)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_what_the_system_holds_of_a_closed_connection_is_given_up(forgetful, server):
    with reading_nothing(server) as client:
        n_before = len(answered)
        client.sendall(request(100_000, b"Connection: close"))
        until(lambda: len(answered) > n_before and not server.connections)
        time.sleep(3)  # the system has tried to send it several times
        with pytest.raises(ConnectionResetError):
            read_all(client)


@pytest.mark.slow
def test_a_client_that_reads_steadily_gets_all_of_its_answer(server, monkeypatch):
    """It reads faster than it has to, and slower than the system makes room in large lumps."""
    monkeypatch.setattr(slow_clients, "NO_READ_SECONDS", 1.0)
    monkeypatch.setattr(slow_clients, "LOOKS_EVERY", 0.1)
    with socket.create_connection(server.address, PATIENT) as client:
        client.sendall(request(LARGE, b"Connection: close"))
        n_read = 0
        while n_read < 2_400_000:
            n_read += len(client.recv(30_000))
            time.sleep(0.05)
        while received := client.recv(1_000_000):
            n_read += len(received)
    assert n_read > LARGE

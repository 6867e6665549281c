"""Clients that leave before their answer, and those that send no more but still read."""

import asyncio
import socket
import struct
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("uvicorn", reason="needs qkvsearch[web]")

import uvicorn

from qkvsearch.rank.ranking import Ranking
from qkvsearch.web.app import make_app
from qkvsearch.web.server import limit_connections
from qkvsearch.web.slow_clients import BoundedProtocol

PATIENT = 60
HOST = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SLOW = "/api/v1/search?q=bread&k=100&explain=true&anyway=true"


@contextmanager
def running_server(settings, videos_path):
    """A server of this process: its address and its service."""
    app = make_app(settings(videos_path, threads=2, waiting=6, seconds=60))
    config = uvicorn.Config(
        app,
        port=0,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        timeout_graceful_shutdown=PATIENT,
    )
    listener = config.bind_socket()
    limit_connections(listener)
    listener.listen()
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])))
    thread.start()
    yield listener.getsockname(), app.state.service
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def server(settings, videos_path):
    with running_server(settings, videos_path) as server:
        yield server


@pytest.fixture
def explained(monkeypatch):
    """What is explained, each in a tenth of a second."""
    explained = []

    def slow(ranking, index):
        explained.append(index)
        time.sleep(0.1)
        return ranking.head.parts(int(ranking.positions[index]))

    monkeypatch.setattr(Ranking, "parts", slow)
    return explained


def asking(address, target):
    client = socket.create_connection(address, PATIENT)
    client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


def until(is_so):
    end = time.monotonic() + PATIENT
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["closed", "reset"])
def test_nothing_more_is_computed_for_clients_that_have_left(server, explained, leave):
    address, service = server
    clients = [asking(address, SLOW) for _ in range(6)]
    until(lambda: service.answers.n == 6)
    for client in clients:
        leave(client)
    until(lambda: service.answers.n == 0)
    assert len(explained) < 60, "of 600"
    with asking(address, "/api/v1/health") as client:
        assert client.recv(15) == b"HTTP/1.1 200 OK"


def test_who_sends_no_more_is_answered(server):
    address, _ = server
    with asking(address, "/api/v1/search?q=bread") as client:
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b"}")


def test_two_requests_at_once_are_both_answered(server):
    address, _ = server
    one = b"GET /api/v1/search?q=bread HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(address, PATIENT) as client:
        client.sendall(one + one)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_a_change_goes_on_though_its_client_has_left(server):
    _, service = server
    began, done = threading.Event(), threading.Event()

    async def leave_amid_it():
        from qkvsearch.web.client import begin_request, client_of

        scope = {}
        begin_request(scope)
        goes_on = threading.Event()

        def change(_):
            began.set()
            assert goes_on.wait(PATIENT)
            done.set()

        task = asyncio.create_task(service.change(change))
        await asyncio.to_thread(began.wait, PATIENT)
        client_of(scope).leave()
        goes_on.set()
        await task

    asyncio.run(leave_amid_it())
    assert done.is_set()


def test_requests_that_have_not_arrived_do_not_delay_the_end(settings, videos_path):
    head = b"POST /api/v1/search" + HOST + b"Content-Type: application/json\r\n"
    with ExitStack() as clients:
        with running_server(settings, videos_path) as (address, _):
            for sent in (head, head + b"Content-Length: 500\r\n\r\n{", b""):
                client = clients.enter_context(socket.create_connection(address, PATIENT))
                client.sendall(sent)
            with asking(address, "/api/v1/health") as client:
                assert client.recv(15) == b"HTTP/1.1 200 OK"
            began = time.monotonic()
        assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("sent", "status", "named"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400", b"versions 1.0 and 1.1"),
        (b"GET /api/v1/search?q=red&=blue" + HOST + b"\r\n", b"422", b"no name"),
        (b"GET /static/search.css" + HOST + b"Range: bytes=zz\r\n\r\n", b"200", b""),
        (b"GET /static/search.css" + HOST + b"Range: bytes=9999999-\r\n\r\n", b"200", b""),
    ],
)
def test_unusual_requests_get_an_answer_that_says_what_is_wrong(server, sent, status, named):
    address, _ = server
    with socket.create_connection(address, PATIENT) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ", 2)[1] == status
    assert named in answer


def test_a_first_line_in_two_packets_is_read(server):
    address, _ = server
    with socket.create_connection(address, PATIENT) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (b"GET /api/v1/health HTTP/1.", b"1\r", b"\nHost: 127.0.0.1\r\n\r\n"):
            client.sendall(part)
            time.sleep(0.05)
        assert client.recv(15) == b"HTTP/1.1 200 OK"

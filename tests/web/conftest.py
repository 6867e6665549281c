"""Apps over built workspaces, asked without a network, and real servers on ports of loopback."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import pytest

import qkvsearch

pytest.importorskip("fastapi", reason="needs qkvsearch[web]")

from starlette.testclient import TestClient

from qkvsearch.web.app import make_app
from qkvsearch.web.settings import ServerSettings

# Seconds: a machine may have other work.
WITHIN = 300
# `qkvsearch serve`, which gives up no question, answer or client because the machine is slow.
SERVE = f"""
from dataclasses import replace
from qkvsearch.__main__ import process
from qkvsearch.web import server, slow_clients, unread
slow_clients.NO_READ_SECONDS = unread.PATIENCE = {WITHIN}
serve, patient = server.serve, dict(seconds={WITHIN}, body_seconds={WITHIN})
server.serve = lambda settings, *how: serve(replace(settings, **patient), *how)
server.STOPS_WITHIN = {WITHIN}
process()
"""
# Texts that try to be more than texts.
MARKUP = 'rain <img src=x onerror="document.title=1"'
RTL = "\u202eniar gnidaer\u2066 מעיל גשם rain"
ENDLESS = "rain " + "x" * 100_000
KINDS = ['coat & <img src=x onerror="a()"', 'O\'Brien: "x" | y', "a..b"]


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    """Settings of a workspace, others than the defaults by name."""

    def of(path, **other):
        shared = tmp_path_factory.mktemp("shared")
        return replace(ServerSettings(Path(path), "tests", shared), **other)

    return of


@pytest.fixture(scope="session")
def asking(settings):
    """A client of an app over a workspace."""

    @contextmanager
    def to(path, **other):
        app = make_app(settings(path, **other))
        with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
            yield client

    return to


@pytest.fixture(scope="session")
def client(asking, videos_path):
    """Of the videos."""
    with asking(videos_path) as found:
        yield found


class Server:
    """`qkvsearch serve` as a process; `url` is where it answers."""

    def __init__(self, path, *options, home):
        self.log = Path(mkdtemp(dir=home)) / "log"
        command = [sys.executable, "-c", SERVE, "-w", str(path), "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            env=os.environ | {"HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("w"),
        )
        said = self._wait(lambda: " at http://" in self.written() and self.written())
        self.url = said.split(" at ")[1].split("/ ")[0]
        self.port = int(self.url.rpartition(":")[2])
        self._wait(self._answers)

    def written(self):
        """To stderr, so far."""
        return self.log.read_text()

    def _answers(self):
        with suppress(OSError):
            return self.get("/api/v1/health")

    def _wait(self, until):
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            if found := until():
                return found
            assert self.process.poll() is None, self.written()
            time.sleep(0.02)
        raise AssertionError(f"it did not come up: {self.written()}")

    def get(self, path, **headers):
        """Status, headers, body."""
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def stop(self):
        """What it ended with, and what it had written."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WITHIN), self.written()


@pytest.fixture(scope="session")
def serving(home):
    """A server over a workspace, with options; ended where it still runs."""

    @contextmanager
    def over(path, *options):
        server = Server(path, *options, home=home)
        try:
            yield server
        finally:
            server.stop()

    return over


@pytest.fixture(scope="session")
def hostile_path(tmp_path_factory):
    """A workspace of 60 items with a column of every type; three have titles that are no titles."""
    titles = [MARKUP, RTL, ENDLESS, *(f"Rain coat number {n}" for n in range(3, 60))]
    columns = {
        "id": [f'<i>"{n}"' if n % 7 == 0 else f"x{n}" for n in range(60)],
        "title": titles,
        "kind": [KINDS[n % 3] for n in range(60)],
        "tags": [f"rain|{['red', 'green', 'Big blue'][n % 3]}" for n in range(60)],
        "price": [n + 0.25 * (n % 2) for n in range(60)],
        "added": [f"20{10 + n % 5}-03-0{1 + n % 9}" for n in range(60)],
        "sold": [["yes", "no"][n % 2] for n in range(60)],
    }
    path = tmp_path_factory.mktemp("hostile") / "ws"
    qkvsearch.build(path, items=pd.DataFrame(columns), encoder="corpus")
    return path

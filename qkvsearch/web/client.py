"""The client of a request: what is computed for it stops when it has left."""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Where the scope of a request has its client.
CLIENT = "qkvsearch.client"
# What a request has as its status in the log and the metrics where its client has left before the
# answer, as nginx writes it. It is never sent.
CLIENT_LEFT = 499


class ClientLeftError(Exception):
    """Nobody waits for the answer any more."""


class Client:
    """The other side of a connection, during one request."""

    def __init__(self) -> None:
        self.has_left = False
        self._stops: list[Callable[[], object]] = []

    def leave(self) -> None:
        """Stop what is computed for the client."""
        self.has_left = True
        for stop in list(self._stops):
            stop()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop` where the client leaves during a block, or has left before."""
        self._stops.append(stop)
        try:
            if self.has_left:
                stop()
            yield
        finally:
            self._stops.remove(stop)


_client: ContextVar[Client] = ContextVar("client")


def client_of(scope: MutableMapping[str, Any]) -> Client:
    """Return the client of a request, to whom its connection says when it has left."""
    client: Client = scope.setdefault(CLIENT, Client())
    return client


def begin_request(scope: MutableMapping[str, Any]) -> None:
    """Make the client of a request that of the running task."""
    _client.set(client_of(scope))


def current_client() -> Client:
    """Return the client for whom the running task works; without a request, one that stays."""
    return _client.get(None) or Client()

"""HTTP connections that cannot hold the server up: slow for ten seconds at most, and bounded."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# How long a connection may be open without a whole request, and how many may be open in a process.
SECONDS, MOST = 10.0, 2000
# Bytes a second that a client must read of an answer.
SLOWEST = 1000


class BoundedProtocol(H11Protocol):
    """Closes what sends no whole request in time and, above `MOST`, what has waited longest."""

    # Connections of this process that sent no whole request yet, the oldest first.
    _idle: dict[BoundedProtocol, None] = {}  # noqa: RUF012
    _timer: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # asyncio does so for sockets that it made itself: without, an answer's body waits 40 ms for
        # the receipt of its head (Nagle's algorithm and delayed acknowledgements).
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waits()
        while len(self._idle) > MOST:
            next(iter(self._idle))._close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._goes_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_answering():
            if self._timer is None:
                self._waits()
        elif not self.cycle.more_body:
            self._goes_on()
        elif self._timer is not None:  # how long a body may take, the guard says
            self._timer.cancel()
            self._timer = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering() and not self.transport.is_closing():
            self._waits()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _waits(self) -> None:
        self._goes_on()
        self._idle[self] = None
        self._timer = self.loop.call_later(SECONDS, self._close)

    def _goes_on(self) -> None:
        self._idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._goes_on()
        if not self.transport.is_closing():
            self.transport.close()
        self.loop.call_later(SECONDS, self.transport.abort)  # where the client reads nothing either

    def pause_writing(self) -> None:
        """A client may read slowly, but not stop."""
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def _look_again(self, left: int) -> None:
        self._reads = self.loop.call_later(SECONDS, self._look, left)

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if before - left < SLOWEST * SECONDS:
            self.transport.abort()
        else:
            self._look_again(left)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reads is not None:
            self._reads.cancel()
            self._reads = None

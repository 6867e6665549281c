"""HTTP connections that no client can hold the server up with: limits on time and bytes.

uvicorn's own settings (`server.py`) close idle connections. It has none for clients that never
finish a request, or do not read the answer. `strict_requests` parses what arrives.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from contextlib import suppress
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from qkvsearch.web.client import client_of
from qkvsearch.web.problems import problem
from qkvsearch.web.strict_requests import StrictParser
from qkvsearch.web.unread import UNREAD

# Seconds in which a whole request must arrive.
SECONDS = 10.0
# How many connections of a process may wait for the rest of a request. Above that number the oldest
# are closed.
MAX_WAITING = 2000
# Bytes parsed at a time.
PARSED_BYTES = 16_384
# After a refusal, what the client still sends is discarded, for so many seconds and bytes.
DISCARD_SECONDS = 2.0
DISCARD_BYTES = 10_000_000
# Seconds in which an answer must be ready for a client that sends no more.
HALF_CLOSED_SECONDS = 1.0
# Bytes a second that a client must read of an answer.
MIN_READ_RATE = 20_000
# Seconds between two looks at what a client has read.
LOOKS_EVERY = 1.0
# Seconds after which a client that reads nothing is dropped. The client's system acknowledges what
# is read in lumps, of up to 230 kB on the same machine: at the least rate one comes in 12 seconds.
NO_READ_SECONDS = 15.0
# A socket with this option discards what it has to send when it is closed, and resets the
# connection. The integers of the option are shorter on Windows.
LINGER_ZERO = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class UnreadAnswer:
    """What the client of a connection has not read yet of its answers.

    It is watched from `watch` until `stop_watching`. A client that reads nothing for
    `NO_READ_SECONDS`, or on the whole less than `MIN_READ_RATE`, is dropped.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: Any) -> None:
        self._loop = loop
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None
        # When all of the answer must be read.
        self._deadline = 0.0
        # How much was unread at the last look at it, and when the client last read anything.
        self._last_unread = 0
        self._last_read = 0.0

    @property
    def n_unread(self) -> int:
        """The bytes that the client has not read: those in this process, and those that the system
        has taken.

        The system takes more only when a third of its own are read, so that the first number alone
        stands still while a slow client reads.
        """
        n_here = int(self._transport.get_write_buffer_size())
        return n_here + n_in_kernel(self._transport.get_extra_info("socket"))

    @property
    def idle_seconds(self) -> float:
        """Seconds since the client last read anything."""
        n_unread = self.n_unread
        now = self._loop.time()
        if n_unread < self._last_unread:
            self._last_unread = n_unread
            self._last_read = now
        return now - self._last_read

    def watch(self) -> None:
        """Begin to look at what the client reads."""
        now = self._loop.time()
        self._last_unread = self.n_unread
        self._last_read = now
        self._deadline = now + SECONDS + self._last_unread / MIN_READ_RATE
        UNREAD.readers[self] = None
        self._look_later()

    def stop_watching(self) -> None:
        UNREAD.readers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(LOOKS_EVERY, self._look)

    def _look(self) -> None:
        is_idle = self.idle_seconds > NO_READ_SECONDS
        is_late = self._loop.time() > self._deadline
        if is_idle or is_late:
            self.drop()
        else:
            self._look_later()

    def drop(self) -> None:
        """Close the connection at once, and free what the client has not read."""
        self.stop_watching()
        connection = self._transport.get_extra_info("socket")
        # Otherwise the system keeps its part for minutes, and tries to send it.
        with suppress(OSError):  # macOS refuses where the client has left
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        self._transport.abort()


def n_in_kernel(connection: Any) -> int:
    """Return the bytes that the system holds of what was sent, because the other side has not
    acknowledged them; 0 where the system does not tell.
    """
    if sys.platform != "linux":
        return 0
    import fcntl
    import termios

    answer = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


class LingeringTransport:
    """A transport that its protocol closes, because uvicorn would close it too early."""

    def __init__(self, inner: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._inner = inner
        self.close = protocol.close
        self.is_closing = protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class BoundedProtocol(H11Protocol):
    """Closes connections that send or read too slowly, or whose request is refused early."""

    conn: StrictParser
    # Connections of this process that wait for the rest of a request, the oldest first.
    _waiting: ClassVar[dict[BoundedProtocol, None]] = {}
    # The transport itself; `transport` is the one that uvicorn closes.
    _socket_transport: Any = None
    # Ends the wait for the rest of a request.
    _read_timer: asyncio.TimerHandle | None = None
    # Set once the client sends no more.
    _leave_timer: asyncio.TimerHandle | None = None
    # How many more bytes are discarded, once the connection is closing.
    _discard: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictParser()

    def connection_made(self, transport: Any) -> None:
        self._socket_transport = transport
        self.unread = UnreadAnswer(self.loop, transport)
        # Any byte that waits in this process starts the look at its client. By default asyncio
        # takes no notice of less than 64 KiB, which a client could leave there for ever.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        self._wait(SECONDS)
        while len(self._waiting) > MAX_WAITING:
            oldest = next(iter(self._waiting))
            oldest._close_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.unread.stop_watching()
        self._leave()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that sends no more. Most have left, but some (`nc -N`) still read, and
        get what is ready soon.
        """
        if not self._is_answering() or self.cycle.more_body:
            return None
        if self._leave_timer is None:
            self._leave_timer = self.loop.call_later(HALF_CLOSED_SECONDS, self._leave)
        return True

    def _leave(self) -> None:
        """Stop what is computed for the client."""
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        if self._is_answering():
            client_of(self.cycle.scope).leave()  # type: ignore[arg-type]

    # --- reading ---

    def data_received(self, data: bytes) -> None:
        """Parse a piece at a time, so that the limits hold before all of it is parsed."""
        for start in range(0, len(data), PARSED_BYTES):
            if self._discard is None:
                if self.is_closing():
                    return
                super().data_received(data[start : start + PARSED_BYTES])
            if self._discard is not None:  # before, or since this piece was refused
                self._discard_bytes(len(data) - start)
                return
        self._wait_for_the_rest()

    def _discard_bytes(self, n_bytes: int) -> None:
        assert self._discard is not None
        self._discard -= n_bytes
        if self._discard < 0:
            self._stop_waiting()
            self.unread.drop()

    def _wait_for_the_rest(self) -> None:
        """Limit the time of a head that is not complete; the guard limits that of a body."""
        if not self._is_answering():
            if self._read_timer is None:
                self._wait(SECONDS)
        elif not self.cycle.more_body:
            self._stop_waiting()
        elif self._read_timer is not None:
            # It stays among those that wait, which may be closed where there are too many.
            self._read_timer.cancel()
            self._read_timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too much of it. Once an answer has begun, only close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status, detail = self.conn.refusal()
            answer = problem(status, detail, {"Connection": "close"})
            head = h11.Response(
                status_code=status, headers=answer.raw_headers, reason=status.phrase.encode()
            )
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def on_response_complete(self) -> None:
        sends_no_more = self._leave_timer is not None and not self.conn.trailing_data[0]
        if self.conn.their_state is h11.SEND_BODY or sends_no_more:  # nobody reads the rest of it
            self.transport.close()
        super().on_response_complete()

    def _wait(self, seconds: float) -> None:
        """Wait for the rest of a request, or for the end of what is discarded."""
        self._stop_waiting()
        self._waiting[self] = None
        self._read_timer = self.loop.call_later(seconds, self._close_soon)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- closing ---

    def is_closing(self) -> bool:
        return self._discard is not None or self._socket_transport.is_closing()

    def close(self) -> None:
        """Close the connection once the answer is sent.

        Closing a socket with bytes unread resets the connection, and the client may lose the
        answer. Where a request has not ended, its rest is therefore discarded for a moment.
        """
        if self.is_closing():
            return
        if self.conn.their_state not in (h11.SEND_BODY, h11.ERROR):
            self._close_soon()
            return
        self._discard = DISCARD_BYTES
        self._wait(DISCARD_SECONDS)
        self._socket_transport.write_eof()
        self._socket_transport.resume_reading()

    def shutdown(self) -> None:
        """End when the answer is sent, and at once where the request has not arrived."""
        is_arriving = self._is_answering() and self.cycle.more_body
        if self._discard is not None or is_arriving:
            self._close_soon()
        else:
            super().shutdown()

    def _close_soon(self) -> None:
        """Close the connection, whatever the client still sends.

        What it has not read of an answer is still sent. `UnreadAnswer` drops it if it reads too
        slowly.
        """
        self._stop_waiting()
        self._socket_transport.close()

    # --- writing ---

    def pause_writing(self) -> None:
        """Let a client read slowly, but not stop."""
        super().pause_writing()
        self.unread.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread.stop_watching()

"""HTTP connections that no client can hold the server up with: limits on time, bytes and chunks.

uvicorn's own settings (`server.py`) close idle connections. It has none for clients that never
finish a request, send it in tiny chunks, or do not read the answer. Requests whose end a proxy may
see elsewhere than this server are refused (request smuggling).
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import sys
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from qkvsearch.web.client import client_of
from qkvsearch.web.problems import problem
from qkvsearch.web.unread import UNREAD

# Seconds in which a whole request must arrive, and how many connections of a process may wait for
# the rest of one; above that number the oldest are closed.
SECONDS, MAX_WAITING = 10.0, 2000
# Bytes parsed at a time, and of the request line and headers together.
PARSED_BYTES, MAX_HEAD = 16_384, 32_768
# h11 takes about as long for each chunk of a body as for a header, however short it is.
MAX_CHUNKS = 1000
# After a refusal, what the client still sends is discarded, for so many seconds and bytes.
DISCARD_SECONDS, DISCARD_BYTES = 2.0, 10_000_000
# Seconds in which an answer must be ready for a client that sends no more.
HALF_CLOSED_SECONDS = 1.0
# Bytes a second that a client must read of an answer, and how often that is looked at, in seconds.
MIN_READ_RATE, LOOKS_EVERY = 20_000, 1.0
# Seconds after which a client that reads nothing is dropped. The client's system acknowledges what
# is read in lumps, of up to 230 kB on the same machine: at the least rate one comes in 12 seconds.
NO_READ_SECONDS = 15.0
# A socket with this option discards what it has to send when it is closed, and resets the
# connection. The integers of the option are shorter on Windows.
LINGER_ZERO = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
# Lines of a head that continue the line before, and those that say how long the body is.
FOLDED = re.compile(rb"\n[ \t]")
# What no line before a chunk has: control characters, which programs read in different ways. The
# end of a line may be in the next packet.
NOT_IN_LINES = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n|\Z)")
VERSIONS = (b"1.0", b"1.1")
# The first line of a request in another version than these, such as HTTP/2's own.
OTHER_VERSION = re.compile(rb"(?:\r?\n)?[A-Z]+ \S+ HTTP/(?!1\.[01]\r?\n)\d\.\d\r?\n")
LENGTHS = re.compile(rb"\n(?:content-length|transfer-encoding):([^\r\n]*)", re.IGNORECASE)

NOT_HTTP = "the request is not valid HTTP"
LONG_HEAD = f"the request line and headers have at most {MAX_HEAD:,} bytes: send long texts by POST"
AMBIGUOUS = "the request does not say in one way alone where it ends"
VERSION = "this server speaks versions 1.0 and 1.1 of HTTP"
MANY_CHUNKS = f"a body has at most {MAX_CHUNKS:,} chunks: send larger ones, or a Content-Length"


class BoundedParser(h11.Connection):
    """A parser of requests that checks heads, counts chunks and keeps the error that ended it."""

    n_chunks = 0
    error: h11.RemoteProtocolError | None = None
    _has_chunks = False

    def next_event(self) -> Any:
        is_checked = self.their_state is h11.IDLE or self._has_chunks
        received = self.trailing_data[0] if is_checked else b""
        try:
            if OTHER_VERSION.match(received):
                raise h11.RemoteProtocolError(VERSION)
            event = super().next_event()
            if is_checked:
                n_rest = len(self.trailing_data[0])
                self._check(event, received[: len(received) - n_rest])
        except h11.RemoteProtocolError as error:
            self.error = error
            raise
        return event

    def _check(self, event: Any, consumed: bytes) -> None:
        """Raise `RemoteProtocolError` for what h11 lets pass. consumed: what the event was read
        from, or what was read without an event so far.
        """
        if isinstance(event, h11.Request):
            check_head(consumed, event)
            self.n_chunks = 0
            self._has_chunks = any(name == b"transfer-encoding" for name, _ in event.headers)
            return
        if not self._has_chunks:
            return
        n_data = len(event.data) if isinstance(event, h11.Data) else 0
        if NOT_IN_LINES.search(consumed[: len(consumed) - n_data]):
            raise h11.RemoteProtocolError(NOT_HTTP)
        if isinstance(event, h11.Data) and event.chunk_start:
            self.n_chunks += 1
            if self.n_chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError(MANY_CHUNKS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if isinstance(event, h11.EndOfMessage):
            self._has_chunks = False


def check_head(head: bytes, request: h11.Request) -> None:
    """Raise `RemoteProtocolError` for a head that is too long, however it was split into packets,
    and for one that another program may read as a request of another length.
    """
    if len(head) > MAX_HEAD:
        code = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise h11.RemoteProtocolError(LONG_HEAD, error_status_hint=code)
    lengths = LENGTHS.findall(head)
    has_several = len(lengths) > 1 or any(b"," in length for length in lengths)
    names = [name for name, _ in request.headers]
    is_old = request.http_version < b"1.1" and b"transfer-encoding" in names
    if has_several or is_old or FOLDED.search(head) or request.http_version not in VERSIONS:
        raise h11.RemoteProtocolError(AMBIGUOUS)


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
    """A transport that its protocol closes."""

    def __init__(self, inner: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._inner, self.close, self.is_closing = inner, protocol.close, protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class BoundedProtocol(H11Protocol):
    """Closes connections that send or read too slowly, or whose request is refused early."""

    conn: BoundedParser
    # Connections of this process that wait for the rest of a request, the oldest first.
    _waiting: ClassVar[dict[BoundedProtocol, None]] = {}
    # The transport itself; `transport` is the one that uvicorn closes.
    _socket_transport: Any = None
    _read_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    # Set once the client sends no more.
    _leave_timer: asyncio.TimerHandle | None = None
    # When all of the answer must be read; how much was unread at the last look at it, and when the
    # client last read anything.
    _write_deadline = 0.0
    _last_unread = 0
    _last_read = 0.0
    # How many more bytes are discarded, once the connection is closing.
    _discard: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedParser(h11.SERVER, MAX_HEAD)

    def connection_made(self, transport: Any) -> None:
        self._socket_transport = transport
        # Any byte that waits in this process starts the look at its client. By default asyncio
        # takes no notice of less than 64 KiB, which a client could leave there for ever.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        self._wait(SECONDS)
        while len(self._waiting) > MAX_WAITING:
            next(iter(self._waiting))._drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_looking()
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
        for begin in range(0, len(data), PARSED_BYTES):
            if self._discard is None:
                if self.is_closing():
                    return
                super().data_received(data[begin : begin + PARSED_BYTES])
            if self._discard is not None:
                self._discard -= len(data) - begin
                if self._discard < 0:
                    self.drop()
                return
        if not self._is_answering():
            if self._read_timer is None:
                self._wait(SECONDS)
        elif not self.cycle.more_body:
            self._stop_waiting()
        elif self._read_timer is not None:  # the guard limits how long a body takes
            self._read_timer.cancel()
            self._read_timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too much of it. Once an answer has begun, only close."""
        error = self.conn.error
        status = HTTPStatus.BAD_REQUEST if error is None else HTTPStatus(error.error_status_hint)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            known = LONG_HEAD, MANY_CHUNKS, AMBIGUOUS, VERSION
            details = {431: LONG_HEAD, 413: MANY_CHUNKS}
            detail = str(error) if str(error) in known else details.get(status, NOT_HTTP)
            answer = problem(status, detail, {"Connection": "close"})
            for event in (
                h11.Response(
                    status_code=status, headers=answer.raw_headers, reason=status.phrase.encode()
                ),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            ):
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

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- closing ---

    def is_closing(self) -> bool:
        return self._discard is not None or self._socket_transport.is_closing()

    def close(self) -> None:
        """Close the connection once the answer is sent. Closing a socket with bytes unread resets
        the connection, and the client may lose the answer: where a request has not ended, its rest
        is discarded for a moment.
        """
        if self.is_closing():
            return
        if self.conn.their_state not in (h11.SEND_BODY, h11.ERROR):
            self._stop_waiting()
            self._socket_transport.close()
            return
        self._discard = DISCARD_BYTES
        self._wait(DISCARD_SECONDS)
        self._socket_transport.write_eof()
        self._socket_transport.resume_reading()

    def shutdown(self) -> None:
        """End when the answer is sent, and at once where the request has not arrived."""
        is_arriving = self._is_answering() and self.cycle.more_body
        if self._discard is not None or is_arriving:
            self._drop()
        else:
            super().shutdown()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._waiting[self] = None
        self._read_timer = self.loop.call_later(seconds, self._drop)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _drop(self) -> None:
        """Close the connection, whatever the client still sends. What it has not read of an answer
        is still sent, and `_look` drops it if it reads too slowly.
        """
        self._stop_waiting()
        self._socket_transport.close()

    # --- writing ---

    def pause_writing(self) -> None:
        """Let a client read slowly, but not stop."""
        super().pause_writing()
        self._last_unread, self._last_read = self.n_unread, self.loop.time()
        self._write_deadline = self._last_read + SECONDS + self._last_unread / MIN_READ_RATE
        UNREAD.readers[self] = None
        self._look_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking()

    @property
    def n_unread(self) -> int:
        """The bytes of answers that the client has not read: those in this process, and those that
        the system has taken. The system takes more only when a third of its own are read, so that
        the first number alone stands still while a slow client reads.
        """
        n_here = int(self._socket_transport.get_write_buffer_size())
        return n_here + n_in_kernel(self._socket_transport.get_extra_info("socket"))

    @property
    def idle_seconds(self) -> float:
        """Seconds since the client last read anything."""
        n_unread, now = self.n_unread, self.loop.time()
        if n_unread < self._last_unread:
            self._last_unread, self._last_read = n_unread, now
        return now - self._last_read

    def drop(self) -> None:
        """Close the connection at once, and free what the client has not read."""
        self._stop_waiting()
        self._stop_looking()
        connection = self._socket_transport.get_extra_info("socket")
        # Otherwise the system keeps its part for minutes, and tries to send it.
        with suppress(OSError):  # macOS refuses where the client has left
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        self._socket_transport.abort()

    def _stop_looking(self) -> None:
        UNREAD.readers.pop(self, None)
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _look_later(self) -> None:
        self._write_timer = self.loop.call_later(LOOKS_EVERY, self._look)

    def _look(self) -> None:
        """Drop a client that reads nothing, or too slowly."""
        if self.idle_seconds > NO_READ_SECONDS or self.loop.time() > self._write_deadline:
            self.drop()
        else:
            self._look_later()

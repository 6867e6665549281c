"""HTTP connections that no client can hold the server up with: limits on time, bytes and chunks."""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from qkvsearch.web.problems import problem

# Seconds that a connection may be open without a whole request, and how many such connections a
# process keeps; above that number the oldest are closed.
SECONDS, MAX_WAITING = 10.0, 2000
# Bytes read at a time, and of the request line and headers together.
READ_BYTES, MAX_HEAD = 16_384, 32_768
# h11 takes about as long for each chunk of a body as for a header, however short it is.
MAX_CHUNKS = 1000
# After a refusal: for how long, and how many bytes of, what the client still sends is thrown away.
DISCARD_SECONDS, DISCARD_BYTES = 2.0, 10_000_000
# Bytes a second that a client must read of an answer.
MIN_READ_RATE = 1000

NOT_HTTP = "the request is not valid HTTP"
LONG_HEAD = f"the request line and headers have at most {MAX_HEAD:,} bytes: send long texts by POST"
MANY_CHUNKS = f"a body has at most {MAX_CHUNKS:,} chunks: send larger ones, or a Content-Length"


class BoundedParser(h11.Connection):
    """A parser of requests that counts chunks, and keeps the error that ended it."""

    n_chunks = 0
    error: h11.RemoteProtocolError | None = None

    def next_event(self) -> Any:
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.error = error
            raise
        if isinstance(event, h11.Request):
            self.n_chunks = 0
        elif isinstance(event, h11.Data) and event.chunk_start:
            self.n_chunks += 1
            if self.n_chunks > MAX_CHUNKS:
                self.error = h11.RemoteProtocolError(
                    MANY_CHUNKS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                )
                raise self.error
        return event


class LingeringTransport:
    """A transport that its protocol closes."""

    def __init__(self, inner: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._inner, self.close, self.is_closing = inner, protocol.close, protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class BoundedProtocol(H11Protocol, asyncio.BufferedProtocol):
    """Closes connections that send no whole request in time, that read no answer, or whose request
    is refused before it has arrived.
    """

    conn: BoundedParser
    # The transport itself; `transport` is the one that uvicorn closes.
    _socket_transport: Any = None
    # Connections of this process that wait for the rest of a request, the oldest first.
    _waiting: dict[BoundedProtocol, None] = {}  # noqa: RUF012
    _timer: asyncio.TimerHandle | None = None
    _slow_reader: asyncio.TimerHandle | None = None
    # Once it is closing: how many more bytes are read and thrown away.
    _discard: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedParser(h11.SERVER, MAX_HEAD)
        self._buffer = bytearray(READ_BYTES)

    def connection_made(self, transport: Any) -> None:
        self._socket_transport = transport
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        # asyncio does so for sockets that it made itself: without, an answer's body waits 40 ms for
        # the receipt of its head (Nagle's algorithm and delayed acknowledgements).
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait(SECONDS)
        while len(self._waiting) > MAX_WAITING:
            next(iter(self._waiting))._drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        # Otherwise it stays until the garbage collector finds the cycle of protocol and transport.
        self._buffer = bytearray()

    # --- reading ---

    def get_buffer(self, sizehint: int) -> bytearray:
        """Where asyncio reads to: by itself it reads 256 KB, and all of it is parsed at once."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._discard is None:
            super().data_received(data)
        if self._discard is not None:
            self._discard -= len(data)
            if self._discard < 0:
                self.transport.abort()
        elif not self._is_answering():
            if self._timer is None:
                self._wait(SECONDS)
        elif not self.cycle.more_body:
            self._stop_waiting()
        elif self._timer is not None:  # the guard limits how long a body takes
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too much of it. Once an answer has begun, only close."""
        error = self.conn.error
        status = HTTPStatus.BAD_REQUEST if error is None else HTTPStatus(error.error_status_hint)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            known = {431: LONG_HEAD, 413: MANY_CHUNKS}
            answer = problem(status, known.get(status, NOT_HTTP), {"Connection": "close"})
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
        if self.conn.their_state is h11.SEND_BODY:  # nobody wants the rest of it
            self.transport.close()
        super().on_response_complete()
        if not self._is_answering() and not self.is_closing():
            self._wait(SECONDS)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- closing ---

    def is_closing(self) -> bool:
        return self._discard is not None or self._socket_transport.is_closing()

    def close(self) -> None:
        """Close the connection once the answer is sent. A socket that is closed with bytes unread
        resets the connection, and the client may lose the answer: where a request has not ended,
        its rest is thrown away for a moment.
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
        if self._discard is None:
            super().shutdown()
        else:
            self._drop()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._waiting[self] = None
        self._timer = self.loop.call_later(seconds, self._drop)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        """Close the connection, whatever the client still sends."""
        self._stop_waiting()
        self._socket_transport.close()
        self.loop.call_later(SECONDS, self.transport.abort)  # where the client reads nothing either

    # --- writing ---

    def pause_writing(self) -> None:
        """A client may read slowly, but not stop."""
        super().pause_writing()
        self._check_later(self.transport.get_write_buffer_size())

    def _check_later(self, left: int) -> None:
        self._slow_reader = self.loop.call_later(SECONDS, self._check_reading, left)

    def _check_reading(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if before - left < MIN_READ_RATE * SECONDS:
            self.transport.abort()
        else:
            self._check_later(left)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._slow_reader is not None:
            self._slow_reader.cancel()
            self._slow_reader = None

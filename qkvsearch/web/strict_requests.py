"""A parser of requests that refuses what another program may read differently.

A proxy in front of this server may see the end of a request elsewhere (request smuggling), so that
a request that does not say in one way alone where it ends is refused.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import h11

# Bytes of the request line and the headers together.
MAX_HEAD = 32_768
# h11 takes about as long for each chunk of a body as for a header, however short it is.
MAX_CHUNKS = 1000
VERSIONS = (b"1.0", b"1.1")
# The first line of a request in another version than these, such as HTTP/2's own.
OTHER_VERSION = re.compile(rb"(?:\r?\n)?[A-Z]+ \S+ HTTP/(?!1\.[01]\r?\n)\d\.\d\r?\n")
# Lines of a head that continue the line before.
FOLDED = re.compile(rb"\n[ \t]")
# Lines of a head that say how long the body is.
LENGTHS = re.compile(rb"\n(?:content-length|transfer-encoding):([^\r\n]*)", re.IGNORECASE)
# What no line before a chunk has: control characters, which programs read in different ways. The
# end of a line may be in the next packet.
NOT_IN_LINES = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n|\Z)")

NOT_HTTP = "the request is not valid HTTP"
LONG_HEAD = f"the request line and headers have at most {MAX_HEAD:,} bytes: send long texts by POST"
VERSION = "this server speaks versions 1.0 and 1.1 of HTTP"
AMBIGUOUS = "the request does not say in one way alone where it ends"
MANY_CHUNKS = f"a body has at most {MAX_CHUNKS:,} chunks: send larger ones, or a Content-Length"


class StrictParser(h11.Connection):
    """A parser that checks heads, counts chunks and keeps the error that ended it."""

    n_chunks = 0
    error: h11.RemoteProtocolError | None = None
    _has_chunks = False

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD)

    def next_event(self) -> Any:
        """Return the next event, as h11 does. Raises `RemoteProtocolError` also for what h11 lets
        pass.
        """
        # A body with a length has no lines, and is not searched.
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
        """Raise `RemoteProtocolError` for what h11 lets pass.

        consumed: the bytes that the event was read from, or that were read without an event so far.
        """
        if isinstance(event, h11.Request):
            check_head(consumed, event)
            self.n_chunks = 0
            self._has_chunks = any(name == b"transfer-encoding" for name, _ in event.headers)
        elif self._has_chunks:
            self._check_chunk(event, consumed)

    def _check_chunk(self, event: Any, consumed: bytes) -> None:
        n_data = len(event.data) if isinstance(event, h11.Data) else 0
        lines = consumed[: len(consumed) - n_data]
        if NOT_IN_LINES.search(lines):
            raise h11.RemoteProtocolError(NOT_HTTP)
        if isinstance(event, h11.Data) and event.chunk_start:
            self.n_chunks += 1
            if self.n_chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError(MANY_CHUNKS, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if isinstance(event, h11.EndOfMessage):
            self._has_chunks = False

    def refusal(self) -> tuple[HTTPStatus, str]:
        """Return the status and the sentence that answer what could not be parsed."""
        if self.error is None:
            return HTTPStatus.BAD_REQUEST, NOT_HTTP
        status = HTTPStatus(self.error.error_status_hint)
        message = str(self.error)
        if message in (LONG_HEAD, MANY_CHUNKS, AMBIGUOUS, VERSION):
            return status, message
        # h11's own words are not those of this server.
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            return status, LONG_HEAD
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return status, MANY_CHUNKS
        return status, NOT_HTTP


def check_head(head: bytes, request: h11.Request) -> None:
    """Raise `RemoteProtocolError` for a head that is too long, however it was split into packets,
    and for one that another program may read as a request of another length.
    """
    if len(head) > MAX_HEAD:
        code = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise h11.RemoteProtocolError(LONG_HEAD, error_status_hint=code)
    lengths = LENGTHS.findall(head)
    has_several_lengths = len(lengths) > 1 or any(b"," in length for length in lengths)
    names = [name for name, _ in request.headers]
    is_old_with_chunks = request.http_version < b"1.1" and b"transfer-encoding" in names
    has_folded_lines = FOLDED.search(head) is not None
    is_of_unknown_version = request.http_version not in VERSIONS
    if has_several_lengths or is_old_with_chunks or has_folded_lines or is_of_unknown_version:
        raise h11.RemoteProtocolError(AMBIGUOUS)

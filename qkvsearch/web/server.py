"""The processes: one listens, or several that share the socket, until they are told to stop."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import uvicorn
from uvicorn.supervisors import Multiprocess

from qkvsearch.errors import QkvError
from qkvsearch.web.protocol import BoundedProtocol
from qkvsearch.web.settings import LOOPBACK, Settings
from qkvsearch.web.token import BearerToken

# How long answers that are on their way may take when the server is told to stop.
STOPS_WITHIN = 8
ENOUGH_FILES = 10_240
APP = "qkvsearch.web.app:served"


def serve(
    settings: Settings, host: str, port: int, workers: int, announce: Callable[[str], None]
) -> None:
    """Answer until SIGTERM or SIGINT, then finish what is being answered. `announce` is told the
    address. Raises `QkvError`.
    """
    if settings.token_file is not None:
        BearerToken(settings.token_file)
    elif host not in LOOPBACK:
        raise QkvError(
            f"`host` {host} can be reached from other machines: give a `token_file`, a file whose "
            "first line is the token that clients must send"
        )
    allow_connections()
    with (
        tempfile.TemporaryDirectory(prefix="qkvsearch-serve-") as folder,
        replace(settings, shared=Path(folder)).publishing(),
    ):
        config = uvicorn.Config(
            APP,
            factory=True,
            host=host,
            port=port,
            workers=workers,
            http=BoundedProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=10,
            # A long address is read to its end and refused by the guard: a connection closed before
            # would be reset, and the client would not see why.
            h11_max_incomplete_event_size=262_144,
            timeout_graceful_shutdown=STOPS_WITHIN,
        )
        listen(config, host, port, workers, announce)


def allow_connections() -> None:
    """As many open files as the system lets a process have: each connection is one."""
    try:
        import resource
    except ImportError:  # Windows counts none
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where a system has no limit, it may refuse to have none at all, as macOS does.
    least = ENOUGH_FILES if most == resource.RLIM_INFINITY else most
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


def listen(
    config: uvicorn.Config, host: str, port: int, workers: int, announce: Callable[[str], None]
) -> None:
    """Take the address, announce it, and answer there."""
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise QkvError(
            f"`port` {port} of {host} cannot be taken: another program listens there, or it is "
            "reserved; name another"
        ) from None
    socket.listen(config.backlog)  # whoever follows the address at once waits, and is not refused
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{socket.getsockname()[1]}/")
    if workers > 1:
        Multiprocess(config, sockets=[socket]).run()
        return
    # The server ends by the signal that stopped it; what the caller has to tidy comes after.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = uvicorn.Server(config)
    server.run(sockets=[socket])
    if not server.started:
        sys.exit(1)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING

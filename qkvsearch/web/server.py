"""Server processes: one, or several that share a socket, until they are told to stop."""

import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from qkvsearch.errors import QkvError
from qkvsearch.web.settings import LOOPBACK, BearerToken, Settings
from qkvsearch.web.slow_clients import BoundedProtocol

log = logging.getLogger("qkvsearch.web")
# How long answers that are on their way may take when the server is told to stop.
STOPS_WITHIN = 8
ENOUGH_FILES = 10_240
# After which a connection without a request is closed.
IDLE_SECONDS = 10
APP = "qkvsearch.web.app:create_app"


def serve(
    settings: Settings, host: str, port: int, workers: int, announce: Callable[[str], None]
) -> None:
    """Answer until SIGTERM or SIGINT. announce: called with the address. Raises `QkvError`."""
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
            log_level=logging.ERROR,  # a request that is not HTTP is answered, and is no news
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=STOPS_WITHIN,
        )
        listen(config, host, port, workers, announce)


def allow_connections() -> None:
    """Raise the limit of open files as far as the system allows: each connection is one."""
    try:
        import resource
    except ImportError:  # Windows counts none
        return
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Where a system has no limit, it may refuse to have none at all, as macOS does.
    limit = ENOUGH_FILES if hard_limit == resource.RLIM_INFINITY else hard_limit
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))


def listen(
    config: uvicorn.Config, host: str, port: int, workers: int, announce: Callable[[str], None]
) -> None:
    """Bind the address, announce it, and answer there."""
    try:
        listener = config.bind_socket()
    except SystemExit:
        raise QkvError(
            f"`port` {port} of {host} cannot be taken: another program listens there, or it is "
            "reserved; name another"
        ) from None
    # Connections inherit it. Without, an answer's body waits 40 ms for the receipt of its head
    # (Nagle's algorithm and delayed acknowledgements).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.listen(config.backlog)  # whoever follows the address at once waits, and is not refused
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{listener.getsockname()[1]}/")
    if workers > 1:
        processes = Workers(config, sockets=[listener])
        processes.run()
        if processes.failed:
            sys.exit(1)
        return
    # The server ends by the signal that stopped it; what the caller has to tidy comes after.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[listener])
    finally:
        # Python waits for threads without end, and an answer may be in one that cannot be stopped.
        end = Timer(STOPS_WITHIN, os._exit, (0,))
        end.daemon = True
        end.start()
    if not server.started:
        sys.exit(1)


class Workers(Multiprocess):
    """Worker processes. Where one ends by itself, another takes its place, and the log says why."""

    failed = False

    def keep_subprocess_alive(self) -> None:
        running = []
        for process in self.processes:
            if process.exitcode is None:
                running.append(process)
            elif process.exitcode != STARTUP_FAILURE:
                _log_end(process.pid, f"ended with exit code {process.exitcode}")
        super().keep_subprocess_alive()
        for process in running:
            if process not in self.processes:
                _log_end(process.pid, "did not answer and was killed")
        self.failed = any(process.exitcode == STARTUP_FAILURE for process in self.processes)


def _log_end(number: int | None, how: str) -> None:
    """Log how a worker ended, and count its requests as running no more."""
    from prometheus_client.multiprocess import mark_process_dead  # reads the settings at import

    mark_process_dead(number)
    log.error("worker process %s %s; another one starts", number, how)

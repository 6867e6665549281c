"""Server processes: one, or several that share a socket, until they are told to stop."""

import faulthandler
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from qkvsearch.errors import QkvError
from qkvsearch.store.locks import lock
from qkvsearch.web.rights import Tokens
from qkvsearch.web.settings import LOOPBACK, ServerSettings
from qkvsearch.web.slow_clients import BoundedProtocol

log = logging.getLogger("qkvsearch.web")
# Seconds that answers on their way may take when the server is told to stop.
STOPS_WITHIN = 8
# The limit of open files where the system has none.
ENOUGH_FILES = 10_240
# Seconds after which a connection without a request is closed.
IDLE_SECONDS = 10
# Bytes of answers that the system takes for each connection, whether or not the client reads them.
# Linux allows itself twice as many. Without a limit it takes megabytes.
SEND_BUFFER = 131_072
# Milliseconds after which the system gives up a connection whose client takes nothing of what it
# was sent. This holds also for what is left when the server has closed the connection.
UNSENT_MS = 20_000
APP = "qkvsearch.web.app:create_app"
# The folder that the worker processes share begins so, in the system's folder for temporary files.
FOLDER = "qkvsearch-serve-"
# A file in it that a server holds locked as long as it lives, however it ends.
LOCK = "lock"
TRUNCATED = (
    "was ended by SIGBUS: a file of the workspace was truncated while it was read; see what is "
    "damaged with qkvsearch info --verify"
)
HUNG = "did not answer and was killed"
KILLED = -getattr(signal, "SIGKILL", signal.SIGTERM)  # what Windows has of it
REPORT = """
import sys
fault = sys.stdin.read()
if fault:
    print(sys.argv[1] if "Bus error" in fault else fault, file=sys.stderr)
"""


def serve(
    settings: ServerSettings, host: str, port: int, workers: int, announce: Callable[[str], None]
) -> None:
    """Answer until SIGTERM or SIGINT. announce: called with the address. Raises `QkvError`."""
    if Tokens.of(settings) is None and host not in LOOPBACK:
        raise QkvError(
            f"`host` {host} can be reached from other machines: give a `token_file`, a file whose "
            "first line is the token that clients must send"
        )
    allow_connections()
    with shared_folder() as folder, replace(settings, shared=folder).publishing():
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
            # uvicorn alone would believe 127.0.0.1, and an environment variable.
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=STOPS_WITHIN,
        )
        listen(config, host, port, workers, announce)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Make a private folder, removed at the end; first remove those of killed servers."""
    with tempfile.TemporaryDirectory(prefix=FOLDER) as name:
        folder = Path(name)
        for other in folder.parent.glob(f"{FOLDER}*"):
            with suppress(OSError):
                _remove_abandoned(other, folder.stat().st_uid)
        new = folder / "new"
        with new.open("wb") as file:
            lock(file)
            new.rename(folder / LOCK)  # whoever sees it finds it locked
            yield folder


def _remove_abandoned(folder: Path, owner: int) -> None:
    """Remove the folder of an ended server; one without a lock is starting. Raises `OSError`."""
    if folder.lstat().st_uid != owner:
        return
    with (folder / LOCK).open("rb") as file:
        if lock(file, wait=False):
            shutil.rmtree(folder)


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


def limit_connections(listener: socket.socket) -> None:
    """Set the options that the connections of a listening socket inherit."""
    # Without, an answer's body waits 40 ms for the receipt of its head (Nagle's algorithm and
    # delayed acknowledgements).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNSENT_MS)


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
    limit_connections(listener)
    listener.listen(config.backlog)  # whoever follows the address at once waits, and is not refused
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{listener.getsockname()[1]}/")
    if workers > 1:
        processes = Workers(config, sockets=[listener])
        processes.run()
        if processes.failed:
            sys.exit(1)
        return
    report_faults()
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


def report_faults() -> None:
    """Start a process that reports a fault such as SIGBUS, after which no Python code runs here."""
    command = [sys.executable, "-ISc", REPORT, f"Error: the server {TRUNCATED}"]
    reporter = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert reporter.stdin is not None
    faulthandler.enable(reporter.stdin, all_threads=False)


class Workers(Multiprocess):
    """Worker processes. Where one ends by itself, another takes its place, and the log says why."""

    failed = False

    def keep_subprocess_alive(self) -> None:
        before = [(process, process.exitcode) for process in self.processes]
        super().keep_subprocess_alive()
        for process, code in before:
            if process not in self.processes and process.exitcode is not None:
                is_hung = code is None and process.exitcode == KILLED
                _log_end(process.pid, HUNG if is_hung else _end(process.exitcode))
        self.failed = any(process.exitcode == STARTUP_FAILURE for process in self.processes)


def _log_end(number: int | None, how: str) -> None:
    """Log how a worker ended, and count its requests as running no more."""
    from prometheus_client.multiprocess import mark_process_dead  # reads the settings at import

    mark_process_dead(number)
    log.error("worker process %s %s; another one starts", number, how)


def _end(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return TRUNCATED if name == "SIGBUS" else f"was ended by {name}"

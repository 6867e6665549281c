"""A connection to Milvus: its address, and its errors as one line."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qkvsearch._utils.forks import fork_lock
from qkvsearch.errors import QkvError, WorkspaceError, need
from qkvsearch.imports import leaving_no_trace

SCHEME, FILE = "milvus:", ".db"
REMOTE = ("http://", "https://", "tcp://", "unix:")
EXAMPLES = "milvus:keys.db for a file, or milvus:http://HOST:19530 for a server"
# Indexes of dense heads. FLAT compares every key; the others are faster and miss some.
INDEXES = ("FLAT", "HNSW", "IVF_FLAT", "DISKANN", "AUTOINDEX")
# A server with users needs a token, `user:password` or an API key, which is not stored. It is sent
# only to an address that the user named, in this variable or as `keys`.
TOKEN, TOKEN_URI = "QKVSEARCH_MILVUS_TOKEN", "QKVSEARCH_MILVUS_URI"
NO_ENV_FILE, VERBOSITY = "PYTHON_DOTENV_DISABLED", "GRPC_VERBOSITY"
# Seconds after which a server counts as unreachable.
TO_CONNECT = 10.0
# A server closes the connection of a client that sends keepalives too often, as during a build.
QUIET = {"grpc.keepalive_time_ms": 300_000, "grpc.keepalive_permit_without_calls": False}

_clients: dict[tuple[int, str], Any] = {}
_lock = fork_lock()


def address(keys: str) -> tuple[str, str]:
    """Parse `milvus:URI`: return the URI of a server or the absolute path of a file, and the index
    behind `?index=`, "" for none. Raises `QkvError` for anything else.

    >>> address("milvus:http://localhost:19530?index=HNSW")
    ('http://localhost:19530', 'HNSW')
    """
    named = keys.removeprefix(SCHEME)
    if named == keys or not named:
        raise QkvError(f"`keys`: {keys!r} is no place for keys; write {EXAMPLES}")
    uri, _, option = named.partition("?")
    if "@" in uri and not is_file(uri):
        raise QkvError(f"`keys`: an address is stored, so it has no password; set {TOKEN}")
    index = option.removeprefix("index=").upper()
    if (option and not option.startswith("index=")) or (index and index not in INDEXES):
        raise QkvError(f"`keys`: {option!r} is no index; write ?index= and {', '.join(INDEXES)}")
    if is_file(uri):
        return str(Path(uri).absolute()), index
    if not uri.startswith(REMOTE):
        raise QkvError(f"`keys`: a file of Milvus Lite ends in {FILE}, and {uri} does not")
    return uri, index


def is_file(uri: str) -> bool:
    """Return whether a URI is a file of Milvus Lite, by the same rule as the client."""
    return uri.endswith(FILE)


def connect(uri: str, *, make: bool = False, is_trusted: bool = False) -> Any:
    """Return the client for an address, one for each process.

    make: whether a file may be new. is_trusted: whether the user named the address, not the
    workspace. Raises `WorkspaceError`.
    """
    if is_file(uri):
        folder = Path(uri).parent
        if make and not folder.is_dir():
            raise WorkspaceError(f"{uri}: there is no folder {folder} for a file of Milvus Lite")
        if not make and not Path(uri).exists():
            raise WorkspaceError(
                f"{uri}: this file of Milvus Lite, with the keys of a build, is not there: put it "
                "back, or build again"
            )
        need("milvus_lite", "milvus", "a file of keys", name="milvus-lite", error=WorkspaceError)
        if make:  # Milvus Lite would make a folder that everybody on the machine may read
            Path(uri).mkdir(mode=0o700, exist_ok=True)
    elif not uri.startswith(REMOTE):
        raise WorkspaceError(f"{uri}: the workspace has its keys there, and it is no Milvus")
    # Errors are reported once, by the exception.
    pymilvus = _import_pymilvus()
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    logging.getLogger("milvus_lite").setLevel(logging.CRITICAL)
    with _lock, one_line_errors(uri):
        key = os.getpid(), uri
        if key not in _clients:
            token = "" if is_file(uri) else os.environ.get(TOKEN, "")
            if token and not is_trusted:
                _require_trusted(uri)
            with leaving_no_trace(variables=_variables()):
                _clients[key] = pymilvus.MilvusClient(
                    uri, token=token, timeout=TO_CONNECT, grpc_options=QUIET
                )
        return _clients[key]


def _require_trusted(uri: str) -> None:
    """Raise `WorkspaceError` unless the environment names this address."""
    named = os.environ.get(TOKEN_URI, "")
    if named != uri:
        raise WorkspaceError(
            f"{uri}: the workspace has its keys there, and {TOKEN} is only sent to the address in "
            f"{TOKEN_URI} ({named or 'not set'}); set it to {uri} if you trust this address, or "
            "unset the token"
        )


def _import_pymilvus() -> Any:
    """Import pymilvus, which would read the variables of a `.env` file into the environment."""
    return need(
        "pymilvus", "milvus", "keys in Milvus", error=WorkspaceError, variables=_variables()
    )


def _variables() -> dict[str, str]:
    """Return what pymilvus and gRPC find in the environment as they start: no file of variables,
    and no messages of their own, unless the user asks for some.
    """
    return {NO_ENV_FILE: "1", VERBOSITY: os.environ.get(VERBOSITY, "NONE")}


@contextmanager
def one_line_errors(uri: str, what: str = "") -> Iterator[None]:
    """Raise the errors of the client as a `WorkspaceError` of one line. what: the failed task."""
    try:
        yield
    except QkvError:
        raise
    except Exception as error:
        reason = str(getattr(error, "message", "") or error).strip()
        reason = reason.splitlines()[0] if reason else type(error).__name__
        doing = f" {what}:" if what else ""
        raise WorkspaceError(f"{uri}:{doing} {_advice(uri, error, reason)}") from None


def _advice(uri: str, error: Exception, reason: str) -> str:
    if is_file(uri):
        advice = f"Milvus Lite cannot serve this file: {reason}"
        if "Open" in reason:
            advice += " (one process at a time may have it open; a server takes many)"
        return advice
    unreachable = isinstance(error, (OSError, TimeoutError)) or any(
        word in reason.lower() for word in ("connect", "unavailable", "deadline", "timed out")
    )
    if unreachable:
        return f"no Milvus answers there: is it running, and reachable from here? ({reason})"
    return reason

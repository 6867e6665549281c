"""What a server is started with, and how its worker processes are told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from qkvsearch.errors import QkvError

# The names of this machine to itself.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PORTS = {"http": 80, "https": 443}
# The variable of the environment by which worker processes are told.
VARIABLE = "QKVSEARCH_SERVER"
# And by which prometheus_client is told, as it is imported, that several processes count together.
METRICS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class Settings:
    """workspace: a folder. name: what it is called on the pages. token_file: a file with the secret
    that clients send, None for none. shared: a folder for what the workers tell each other. log: a
    line for each request. allow_origins: other sites whose pages may use the API, as browsers spell
    their origins.

    Limits: `seconds` a request may take, of which `threads` run at once, half as many more that
    explain, and `waiting` may wait; `body` bytes of a request, which arrive within `body_seconds`;
    `hits` asked for at once.
    """

    workspace: Path
    name: str
    shared: Path
    read_only: bool = False
    token_file: Path | None = None
    log: bool = True
    log_queries: bool = False
    allow_origins: tuple[str, ...] = ()
    seconds: float = 30.0
    threads: int = 4
    waiting: int = 64
    body: int = 1_000_000
    body_seconds: float = 10.0
    hits: int = 100

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Until the end of the block they are where worker processes find them."""
        folder = self.shared / "metrics"
        folder.mkdir()
        told = {VARIABLE: json.dumps(asdict(self), default=str), METRICS: str(folder)}
        os.environ.update(told)
        try:
            yield
        finally:
            for name in told:
                del os.environ[name]

    @classmethod
    def published(cls) -> Settings:
        """Those of the process that started this one."""
        known = json.loads(os.environ[VARIABLE])
        for name in ("workspace", "shared", "token_file"):
            known[name] = None if known[name] is None else Path(known[name])
        known["allow_origins"] = tuple(known["allow_origins"])
        return cls(**known)


def origin_of(text: str) -> str:
    """An origin as browsers spell it, without the port that its scheme has by default. Raises
    `QkvError` for what is none.

    >>> origin_of("HTTPS://Shop.example:443/")
    'https://shop.example'
    """
    try:
        url = urlsplit(text.lower())
        host, port = url.hostname or "", url.port
    except ValueError:
        host = ""
    if (
        not (host and text.isascii())
        or url.scheme not in PORTS
        or url.path.strip("/")
        or "@" in url.netloc
        or url.query
        or url.fragment
    ):
        raise QkvError(
            f"`allow_origins` {text!r}: an origin is a scheme, a host and perhaps a port, such as "
            "https://shop.example or http://localhost:3000"
        )
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}" + ("" if port in (None, PORTS[url.scheme]) else f":{port}")

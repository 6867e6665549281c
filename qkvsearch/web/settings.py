"""What a server is started with, and how its worker processes are told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

# The names of this machine to itself.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# The variable of the environment by which worker processes are told.
VARIABLE = "QKVSEARCH_SERVER"
# And by which prometheus_client is told, as it is imported, that several processes count together.
METRICS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class Settings:
    """workspace: a folder. name: what it is called on the pages. token_file: a file with the secret
    that clients send, None for none. shared: a folder for what the workers tell each other. log: a
    line for each request.

    Limits: `seconds` a request may take, of which `threads` run at once and `waiting` may wait;
    `body` bytes of a request, `hits` asked for at once, `batch` questions in one request.
    """

    workspace: Path
    name: str
    shared: Path
    read_only: bool = False
    token_file: Path | None = None
    log: bool = True
    log_queries: bool = False
    seconds: float = 30.0
    threads: int = 4
    waiting: int = 64
    body: int = 1_000_000
    hits: int = 100
    batch: int = 100

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
        return cls(**known)

"""Settings of a server: how worker processes get them, its token, and origins."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from qkvsearch.errors import QkvError

# The names of this machine to itself.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PORTS = {"http": 80, "https": 443}
# Characters of a token: hexadecimal digits, 64 bits that nobody finds by trying.
MIN_TOKEN = 16
SCHEME = "bearer "
# The environment variable that worker processes read.
VARIABLE = "QKVSEARCH_SERVER"
# The one that tells prometheus_client, as it is imported, that several processes count together.
METRICS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class Settings:
    """workspace: a folder. name: what it is called on the pages. token_file: a file with the secret
    that clients send, None for none. shared: a folder for what the workers tell each other. log: a
    line for each request. allow_origins: other sites whose pages may use the API, as browsers spell
    their origins. example_user: a made-up user of a sample, to try the pages with.

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
    example_user: str = ""
    seconds: float = 30.0
    threads: int = 4
    waiting: int = 64
    body: int = 1_000_000
    body_seconds: float = 10.0
    hits: int = 100

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Publish the settings to worker processes that start within the block."""
        folder = self.shared / "metrics"
        folder.mkdir()
        variables = {VARIABLE: json.dumps(asdict(self), default=str), METRICS: str(folder)}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables:
                del os.environ[name]

    @classmethod
    def published(cls) -> Settings:
        """Return the settings of the process that started this one."""
        fields = json.loads(os.environ[VARIABLE])
        for name in ("workspace", "shared", "token_file"):
            fields[name] = None if fields[name] is None else Path(fields[name])
        fields["allow_origins"] = tuple(fields["allow_origins"])
        return cls(**fields)


class BearerToken:
    """The secret that clients send: the first line of a file, stripped. Raises `QkvError`."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not text in UTF-8"
            raise QkvError(f"`token_file` {path}: {why}") from None
        token = lines[0].strip() if lines else ""
        if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
            raise QkvError(
                f"`token_file` {path}: its first line is the token, {MIN_TOKEN} or more visible "
                "ASCII characters, such as `openssl rand -hex 32` makes"
            )
        self._token = token.encode()

    def is_in(self, authorization: str) -> bool:
        """Return whether the header `Authorization` has the token, in constant time."""
        scheme, sent = authorization[: len(SCHEME)], authorization[len(SCHEME) :]
        same = secrets.compare_digest(sent.strip().encode("utf-8", "replace"), self._token)
        return same and scheme.lower() == SCHEME


def origin_of(text: str) -> str:
    """Return an origin as browsers spell it, without the default port of its scheme. Raises
    `QkvError` for a malformed origin.

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

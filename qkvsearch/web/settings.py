"""Settings of a server: how worker processes get them, its token, and origins."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from qkvsearch.errors import QkvError, quantity
from qkvsearch.rank.request_limits import MAX_HITS

# The names of this machine to itself.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PORTS = {"http": 80, "https": 443}
# Characters of a token: hexadecimal digits, 64 bits that nobody finds by trying.
MIN_TOKEN = 16
SCHEME = "bearer "
# A path such as /search or /shop/search; without percent signs, there is one way to write it.
ROOT_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
# The environment variable that worker processes read.
VARIABLE = "QKVSEARCH_SERVER"
# The one that tells prometheus_client, as it is imported, that several processes count together.
METRICS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class ServerSettings:
    """What a server answers from, whom it answers, and its limits."""

    # The folder of the workspace.
    workspace: Path
    # What the pages call the workspace.
    name: str
    # A folder for what the workers tell each other.
    shared: Path
    # Without the routes that change the workspace.
    read_only: bool = False
    # With the pages for everyone alone, without those for the owner.
    public: bool = False
    # With tools for agents at /mcp, and whether these may record.
    mcp: bool = False
    allow_record: bool = False
    # A file with the secret that clients send; None for none.
    token_file: Path | None = None
    # Files with secrets that only let a client search; there is a `token_file` beside them.
    search_tokens: tuple[Path, ...] = ()
    # A line for each request.
    log: bool = True
    log_queries: bool = False
    # What people search for is logged beside the workspace, for so many days.
    log_searches: bool = False
    log_days: int = 90
    # Other sites whose pages may use the API, as browsers spell their origins.
    allow_origins: tuple[str, ...] = ()
    # What a reverse proxy takes away from the front of each path, such as /search; "" for nothing.
    root_path: str = ""
    # Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.
    proxies: tuple[str, ...] = ()
    # A made-up user of a sample, to try the pages with; "" for none.
    example_user: str = ""
    # How long a request may take.
    seconds: float = 30.0
    # Requests that run at once; half as many more may run that explain.
    threads: int = 4
    # Requests that may wait for a thread.
    waiting: int = 64
    # Bytes of a request's body, and the seconds within which they must arrive.
    body: int = 1_000_000
    body_seconds: float = 10.0
    # Hits that a question may ask for at once.
    hits: int = MAX_HITS

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
    def published(cls) -> ServerSettings:
        """Return the settings of the process that started this one."""
        fields = json.loads(os.environ[VARIABLE])
        for name in ("workspace", "shared", "token_file"):
            fields[name] = None if fields[name] is None else Path(fields[name])
        fields["search_tokens"] = tuple(map(Path, fields["search_tokens"]))
        for name in ("allow_origins", "proxies"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


class BearerToken:
    """The secret that clients send: the first line of a file, stripped, without the byte order mark
    that Notepad writes. option: what errors call the file. Raises `QkvError`.
    """

    def __init__(self, path: Path, option: str = "token_file") -> None:
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not text in UTF-8"
            raise QkvError(f"`{option}` {path}: {why}") from None
        token = lines[0].strip() if lines else ""
        # Named by its number: it may be invisible, and the token itself is shown to nobody.
        refused = next((f"U+{ord(c):04X}" for c in token if not "\x20" <= c <= "\x7e"), "")
        if len(token) < MIN_TOKEN or refused:
            has = f"the character {refused}" if refused else quantity(len(token), "character")
            raise QkvError(
                f"`{option}` {path}: its first line is the token, {MIN_TOKEN} or more visible "
                f"ASCII characters, such as `openssl rand -hex 32` makes; it has {has}"
            )
        self._token = token.encode()

    def is_in(self, authorization: str) -> bool:
        """Return whether the header `Authorization` has the token, in constant time."""
        scheme = authorization[: len(SCHEME)]
        sent = authorization[len(SCHEME) :]
        same = secrets.compare_digest(sent.strip().encode("utf-8", "replace"), self._token)
        return same and scheme.lower() == SCHEME

    def is_same(self, other: BearerToken) -> bool:
        """Return whether another file has the same secret."""
        return self._token == other._token


def origin_of(text: str) -> str:
    """Return an origin as browsers spell it, without the default port of its scheme. Raises
    `QkvError` for a malformed origin.

    >>> origin_of("HTTPS://Shop.example:443/")
    'https://shop.example'
    """
    malformed = QkvError(
        f"`allow_origins` {text!r}: an origin is a scheme, a host and perhaps a port, such as "
        "https://shop.example or http://localhost:3000"
    )
    try:
        url = urlsplit(text.lower())
        host = url.hostname
        port = url.port
    except ValueError:
        raise malformed from None
    has_more = url.path.strip("/") or "@" in url.netloc or url.query or url.fragment
    if not host or not text.isascii() or url.scheme not in PORTS or has_more:
        raise malformed
    if ":" in host:  # an address of IPv6
        host = f"[{host}]"
    is_usual_port = port is None or port == PORTS[url.scheme]
    return f"{url.scheme}://{host}" if is_usual_port else f"{url.scheme}://{host}:{port}"


def root_path_of(text: str) -> str:
    """Return the path under which a proxy serves the server, without a slash at its end. Raises
    `QkvError` for what is no such path.

    >>> root_path_of("/search/"), root_path_of("/")
    ('/search', '')
    """
    path = text.rstrip("/")
    if text.startswith("/") and (not path or ROOT_PATH.fullmatch(path)):
        return path
    raise QkvError(
        f"`root_path` {text!r}: a path begins with / and has letters, digits and . _ ~ -, such as "
        "/search"
    )


def proxy_of(text: str) -> str:
    """Return the address of a proxy, or a network of them, in its usual form. Raises `QkvError`.

    >>> proxy_of("10.0.0.0/8"), proxy_of("0:0:0:0:0:0:0:1")
    ('10.0.0.0/8', '::1')
    """
    try:
        return str(ipaddress.ip_network(text) if "/" in text else ipaddress.ip_address(text))
    except ValueError:
        raise QkvError(
            f"`proxies` {text!r}: name a proxy by its address, such as 127.0.0.1, or by a network "
            "such as 10.0.0.0/8"
        ) from None

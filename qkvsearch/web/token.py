"""The secret that clients send where others than this machine can reach the server."""

from __future__ import annotations

import secrets
from pathlib import Path

from qkvsearch.errors import QkvError

# What cannot be found by trying: 64 bits, where these are hexadecimal digits.
SHORTEST = 16
SCHEME = "bearer "


class BearerToken:
    """The first line of a file, without blanks around it. Raises `QkvError`."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not text in UTF-8"
            raise QkvError(f"`token_file` {path}: {why}") from None
        token = lines[0].strip() if lines else ""
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
            raise QkvError(
                f"`token_file` {path}: its first line is the token, {SHORTEST} or more visible "
                "ASCII characters, such as `openssl rand -hex 32` makes"
            )
        self._token = token.encode()

    def is_in(self, authorization: str) -> bool:
        """Whether the header `Authorization` carries it; the time says nothing of how nearly."""
        scheme, given = authorization[: len(SCHEME)], authorization[len(SCHEME) :]
        same = secrets.compare_digest(given.strip().encode("utf-8", "replace"), self._token)
        return same and scheme.lower() == SCHEME

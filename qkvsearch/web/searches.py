"""What people search for: a server that logs it writes each search beside the workspace.

A visitor is a hash of their address and browser with a salt. The salt is random, in a folder that
only the workers of this server can read, and is deleted when the day (UTC) ends: then nobody can
find out any more which address a hash was made of.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from qkvsearch.store.search_log import SearchLog, shared_secret, today
from qkvsearch.web.settings import ServerSettings

if TYPE_CHECKING:
    from qkvsearch.web.api.search_parameters import SearchParameters

log = logging.getLogger("qkvsearch.web")
# Seconds between two looks at which files are too old.
INTERVAL = 600.0
# Hexadecimal digits of a visitor.
DIGITS = 16
# Where a search has one of these, there is more to it than its words.
OPTIONS = ("where", "filter", "user", "heads", "distinct", "sort")
# What is logged of why there are no hits.
OF_NO_HITS = ("reason", "words", "where", "filter", "operators", "total")


class Searches:
    """The log of searches of a server, and its visitors."""

    def __init__(self, settings: ServerSettings) -> None:
        self.log = SearchLog(settings.workspace, settings.log_days, log.error)
        self._visitors = Visitors(settings.shared)
        self._ends = Event()
        self._tidying = Thread(target=self._tidy, name="tidy", daemon=True)

    def begin(self) -> None:
        """Make the folder of the log, and delete what is too old in it, also later on."""
        self.log.prepare()
        self._tidying.start()

    def close(self) -> None:
        """Delete nothing any more."""
        self._ends.set()

    def _tidy(self) -> None:
        while not self._ends.wait(INTERVAL):
            self.log.tidy()
            self._visitors.tidy()

    def visitor(self, request: Request) -> str:
        """Return the visitor that sends a request."""
        address = request.client.host if request.client is not None else ""
        return self._visitors.name(address, request.headers.get("user-agent", ""))

    def add(
        self, visitor: str, question: SearchParameters, results: Mapping[str, Any]
    ) -> str | None:
        """Log a search with its answer. Return its id; None where there is nothing to log, or it
        could not be written.
        """
        if not question.q.strip() or question.k == 0:
            return None
        no_hits = results["no_hits"] or {}
        return self.log.add_search(
            visitor,
            question.q,
            total=results["total"],
            # The hits for a user would say something of that user.
            shown=() if question.user else [hit["id"] for hit in results["hits"]],
            offset=question.offset,
            is_typing=question.prefix,
            has_options=any(getattr(question, name) for name in OPTIONS),
            no_hits={name: no_hits[name] for name in OF_NO_HITS if name in no_hits},
        )


class Visitors:
    """Makes a hash of each visitor, another one every day.

    folder: for the salt of the day, which all workers of a server share.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._salt_of_day = (date.min, b"")

    def name(self, address: str, browser: str) -> str:
        """Return the hash of whoever has this address and this browser."""
        whose = f"{address}\0{browser}".encode("utf-8", "replace")
        return hashlib.sha256(self._salt() + whose).hexdigest()[:DIGITS]

    def tidy(self) -> None:
        """Replace the salt if its day has ended."""
        self._salt()

    def _salt(self) -> bytes:
        day = today()
        known, salt = self._salt_of_day
        if known == day:
            return salt
        path = self._folder / f"salt-{day}"
        try:
            salt = shared_secret(path)
            for other in self._folder.glob("salt-*"):
                if other != path:
                    other.unlink(missing_ok=True)
        except OSError:  # the workers tell their visitors apart, each for itself
            salt = secrets.token_bytes(32)
        self._salt_of_day = day, salt
        return salt

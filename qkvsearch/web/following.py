"""An engine that follows what is published without a question that waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np

from qkvsearch._utils.query_lock import without_query_lock
from qkvsearch.engine import Engine
from qkvsearch.engine.index import Index
from qkvsearch.errors import DamagedError, QkvError

log = logging.getLogger("qkvsearch.web")
# Seconds between two looks at which build is current, and after one that could not be opened.
EVERY, AGAIN = 0.25, 5.0
# So many questions a build answers before it is asked by others, each of a title's first letters.
QUESTIONS, LETTERS = 8, 100


class FollowingEngine(Engine):
    """Answers from the build that it has until a newer one is open beside it and has answered a few
    questions made of its own titles, so that nobody waits for files and what is made of them at
    first. A build that is not there any more, as after somebody was deleted, answers nothing: then
    a question waits until the newer one is open. What is recorded is seen at once by all builds.

    One that cannot be opened is told in the log, and tried again; the former one answers.
    """

    def __init__(self, path: str | Path, *, wait: float | None = None) -> None:
        super().__init__(path, wait=wait)
        self._ends, self._checked = Event(), self._state
        self._whole_until = 0.0
        self._follower = Thread(target=self._follow, name="follow", daemon=True)

    def follow(self) -> None:
        """From now on, in a thread, until it is closed; the build that is open answers a few
        questions first, too.
        """
        with self._lock:
            if not self._ends.is_set():
                self._follower.start()

    @property
    def index(self) -> Index:
        """The build that a question asked now is answered from."""
        state = self.workspace.state()
        if state not in (self._state, self._checked):
            with self._lock:
                if not self._is_there(self._index):
                    self._open()
                self._checked = state
        if time.monotonic() > self._whole_until:
            require_whole(self._index)
            self._whole_until = time.monotonic() + EVERY
        return self._index

    def close(self) -> None:
        """Follow no more, and let go of the workspace's files, which nothing may read any more."""
        with self._lock:
            self._ends.set()
        if self._follower.is_alive():
            self._follower.join()
        super().close()

    def _is_there(self, build: Index) -> bool:
        """Whether the workspace still has it; of a list that cannot be read it may be one."""
        with suppress(DamagedError):
            return any(entry.name == build.snapshot.name for entry in self.workspace.builds())
        return True

    def _follow(self) -> None:
        """What the thread does."""
        self._tried(lambda: warm(self._index, self._ends))
        pause = EVERY
        while not self._ends.wait(pause):
            is_new = self.workspace.state() != self._state
            pause = EVERY if not is_new or self._tried(self._open_ahead) else AGAIN

    def _tried(self, do: Callable[[], None]) -> bool:
        try:
            do()
        except Exception as error:
            if not self._ends.is_set():
                log.error("the newest build cannot be opened: %s", error)
            return False
        return True

    def _open_ahead(self) -> None:
        before, state = self._state, self.workspace.state()
        build = Index(self.workspace)
        warm(build, self._ends)
        with self._lock:
            # A question, or a change by this engine, may have opened a newer one meanwhile.
            if self._state == before and self._is_there(build):
                self._index, self._state = build, state


def warm(build: Index, ends: Event) -> None:
    """Have a build answer what it is asked most, of itself, until `ends`; nobody who asks waits for
    that. Raises `DamagedError`.
    """
    positions = np.unique(np.linspace(0, build.n_items - 1, QUESTIONS).astype(int))
    ids, titles = build.catalog.names(positions)
    columns = [name for name in build.items.facet_columns() if "," not in name]
    asked: list[Callable[[], object]] = [
        lambda: build.items.list(k=QUESTIONS),
        lambda: build.recommend(likes=ids[:1]),
        lambda: build.similar(ids[:1]),
        *(
            lambda title=title: build.search(
                title[:LETTERS], facets=columns, snippet=True, explain=True
            )
            for title in titles
        ),
    ]
    with without_query_lock():
        for ask in asked:
            if ends.is_set():
                return
            require_whole(build)
            try:
                ask()
            except DamagedError:
                raise
            except QkvError:  # not every build can answer all of it
                continue


def require_whole(build: Index) -> None:
    """Raise `DamagedError` where a file of the build is shorter than it was. Files are mapped into
    memory, and to read past the end of one ends the process (SIGBUS).
    """
    for path, entry in build.snapshot.files:
        with suppress(FileNotFoundError):  # a file that is removed can be read on
            size = path.stat().st_size
            if size < entry["bytes"]:
                raise DamagedError(path, f"truncated to {size:,} of {entry['bytes']:,} bytes")

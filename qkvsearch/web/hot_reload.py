"""An engine that opens new builds beside the current one, so that no request waits for them."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pandas as pd

from qkvsearch._utils.query_lock import without_query_lock
from qkvsearch.engine import Engine
from qkvsearch.engine.rows import ItemRows
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.learn.add import Revision, add_items
from qkvsearch.learn.change_rules import ChangeRule
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import RecommendQuestion, SearchQuestion, SimilarQuestion
from qkvsearch.rank.recommend import recommend
from qkvsearch.rank.search import search
from qkvsearch.rank.similar import similar
from qkvsearch.tables.columns import Columns

# The build that answers the request of this context; an empty list before the request asks for one,
# and None where nobody asked for one build.
_of_request: ContextVar[list[LoadedBuild] | None] = ContextVar("build of the request", default=None)
log = logging.getLogger("qkvsearch.web")
# Seconds between two looks at which build is current, and after a build that could not be opened.
INTERVAL, RETRY_INTERVAL = 0.25, 5.0
# Searches that warm a build up, and characters of the titles that they are made of.
N_WARM_UP, MAX_TITLE = 8, 100


class HotReloadEngine(Engine):
    """An engine that answers from its build until a newer one is open and warm.

    A new build answers a few searches made of its own titles first, so that no request waits for
    files to be read. A build that the workspace no longer has, as after a user was erased, answers
    nothing: a request then waits until the newer one is open. Records count at once in all builds.

    A build that cannot be opened is logged and tried again; the previous one answers.
    """

    def __init__(self, path: str | Path, *, wait: float | None = None) -> None:
        super().__init__(path, wait=wait)
        self._ends, self._checked = Event(), self._state
        self._checked_until = 0.0
        self._when_warm: Callable[[], None] | None = None
        self._follower = Thread(target=self._follow, name="follow", daemon=True)

    def follow(self, when_warm: Callable[[], None] | None = None) -> None:
        """Follow in a thread until the engine is closed, and warm the open build up first.

        when_warm: called in that thread once it is.
        """
        self._when_warm = when_warm
        with self._lock:
            if not self._ends.is_set():
                self._follower.start()

    @contextmanager
    def one_build(self) -> Iterator[None]:
        """Answer all questions of a `with` block, those of one request, from one build. Its files
        stay open until the block ends.
        """
        token = _of_request.set([])
        try:
            yield
        finally:
            _of_request.reset(token)

    def _opened_build(self) -> LoadedBuild:
        """Return the build that answers now, or that of the request."""
        chosen = _of_request.get()
        if chosen:
            return chosen[0]
        build = self._newest_build()
        if chosen is not None:
            chosen.append(build)
        return build

    def _open(self) -> None:
        """Open the newest build. What follows a change in a request is asked of the new build."""
        super()._open()
        if chosen := _of_request.get():
            chosen.clear()

    def _newest_build(self) -> LoadedBuild:
        """Return the newest build that is open and warm."""
        state = self.workspace.state()
        if state not in (self._state, self._checked):
            with self._lock:
                if not self._is_published(self._build):
                    self._open()
                self._checked = state
        if time.monotonic() > self._checked_until:
            require_whole(self._build)
            self._checked_until = time.monotonic() + INTERVAL
        return self._build

    def revise(self, items: pd.DataFrame, columns: Columns, rule: ChangeRule) -> Revision:
        """Add items by a rule that only requests have. Raises `QkvError`."""
        return self._changed(add_items, items, columns, rule=rule)

    def close(self) -> None:
        """Stop following, and release the workspace's files."""
        with self._lock:
            self._ends.set()
        if self._follower.is_alive():
            self._follower.join()
        super().close()

    def _is_published(self, build: LoadedBuild) -> bool:
        """Return whether the workspace still has the build, or its list of builds is damaged."""
        with suppress(DamagedError):
            return any(entry.name == build.snapshot.name for entry in self.workspace.builds())
        return True

    def _follow(self) -> None:
        """Open newer builds, until the engine is closed."""
        self._succeeds(lambda: warm(self._build, self._ends))
        if self._when_warm is not None:
            self._when_warm()
        pause = INTERVAL
        while not self._ends.wait(pause):
            is_new = self.workspace.state() != self._state
            pause = INTERVAL if not is_new or self._succeeds(self._open_ahead) else RETRY_INTERVAL

    def _succeeds(self, action: Callable[[], None]) -> bool:
        try:
            action()
        except Exception as error:
            if not self._ends.is_set():
                log.error("the newest build cannot be opened: %s", error)
            return False
        return True

    def _open_ahead(self) -> None:
        before, state = self._state, self.workspace.state()
        build = LoadedBuild.open(self.workspace)
        warm(build, self._ends)
        with self._lock:
            # A request, or a change by this engine, may have opened a newer one meanwhile.
            if self._state == before and self._is_published(build):
                self._build, self._state = build, state


def warm(build: LoadedBuild, ends: Event) -> None:
    """Have a build answer frequent kinds of requests until `ends` is set. Other requests do not
    wait for it. Raises `DamagedError`.
    """
    positions = np.unique(np.linspace(0, build.n_items - 1, N_WARM_UP).astype(int))
    ids, titles = build.catalog.names(positions)
    items = ItemRows(build.for_question())
    # A name with a comma in it cannot be told from two names.
    columns = [name for name in items.facet_columns() if "," not in name]
    requests: list[Callable[[], object]] = [
        lambda: items.list(k=N_WARM_UP),
        lambda: recommend(build.for_question(), RecommendQuestion(likes=ids[:1])),
        lambda: similar(build.for_question(), SimilarQuestion(items=ids[:1])),
    ]
    for title in titles:
        question = SearchQuestion(
            query=title[:MAX_TITLE], facets=columns, snippet=True, explain=True
        )
        requests.append(partial(search, build.for_question(), question))
    with without_query_lock():
        for request in requests:
            if ends.is_set():
                return
            require_whole(build)
            try:
                request()
            except DamagedError:
                raise
            except QkvError:  # not every build can answer all of it
                continue


def require_whole(build: LoadedBuild) -> None:
    """Raise `DamagedError` where a file of the build is shorter than it was. Files are mapped into
    memory, and to read past the end of one ends the process (SIGBUS).
    """
    for path, entry in build.snapshot.files:
        with suppress(FileNotFoundError):  # a file that is removed can be read on
            size = path.stat().st_size
            if size < entry["bytes"]:
                raise DamagedError(path, f"truncated to {size:,} of {entry['bytes']:,} bytes")

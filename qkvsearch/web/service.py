"""The engine of a worker process: it answers in threads beside the event loop, within limits.

Changes have threads of their own, in which they wait for other writers. A search waits for none.
When its client has left, an answer is computed no further; a change is.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import Request

from qkvsearch._utils.deadline import DeadlineError, deadline
from qkvsearch.errors import duration
from qkvsearch.web.client import Client, ClientLeftError, current_client
from qkvsearch.web.hot_reload import HotReloadEngine
from qkvsearch.web.problems import RETRY_AFTER, Problem
from qkvsearch.web.prometheus import ServerMetrics
from qkvsearch.web.rights import Tokens
from qkvsearch.web.searches import Searches
from qkvsearch.web.settings import ServerSettings

T = TypeVar("T")
MAY_BE_DONE = "; what had begun may still be done"


class Load:
    """How many requests of a kind run or wait, and how many may."""

    def __init__(self, limit: int) -> None:
        self.n = 0
        self.limit = limit

    def begin(self) -> None:
        """Count one more. Raises `Problem` for too many."""
        if self.n >= self.limit:
            busy = "too many requests at once: try again in a second"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, busy, {"Retry-After": "1"})
        self.n += 1

    def end(self) -> None:
        """Count one less."""
        self.n -= 1


class Service:
    """The engine of a workspace, with new builds as they are published. Raises `WorkspaceError`."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        # A change waits for a writer no longer than a request may take.
        wait = settings.seconds / 2
        self.engine = HotReloadEngine(settings.workspace, wait=wait)
        self.metrics = ServerMetrics()
        self.tokens = Tokens.of(settings)
        self._threads = ThreadPoolExecutor(settings.threads, "answer")
        # Explanations and snippets have threads of their own, so that the others stay free.
        self._slow_threads = ThreadPoolExecutor(max(1, settings.threads // 2), "explain")
        self.answers = Load(settings.threads + settings.waiting)
        # A workspace has one writer at a time, and its records have one: more threads would wait.
        # To record is quick, and does not wait for who writes a build.
        self._record_thread = ThreadPoolExecutor(1, "record")
        self._change_thread = ThreadPoolExecutor(1, "change")
        self.records = Load(1 + settings.waiting)
        self.changes = Load(1 + settings.waiting)
        # Called when the server ends.
        self.closing: list[Callable[[], None]] = []
        self.searches = Searches(settings) if settings.log_searches else None

    def close(self) -> None:
        """Close after the last answer; what still runs in a thread ends by itself."""
        for close in self.closing:
            close()
        if self.searches is not None:
            self.searches.close()
        for pool in (self._threads, self._slow_threads, self._record_thread, self._change_thread):
            pool.shutdown(wait=False, cancel_futures=True)
        self.engine.close()

    async def ask(self, question: Callable[[HotReloadEngine], T], is_slow: bool = False) -> T:
        """Answer in a thread. Raises `Problem` where too many requests wait, or the answer takes
        too long, and `ClientLeftError` where nobody waits for it any more. Then the thread stops at
        its next step, and counts until it has.
        """
        pool = self._slow_threads if is_slow else self._threads
        return await self._run(question, pool, self.answers, "", current_client())

    async def record(self, change: Callable[[HotReloadEngine], T]) -> T:
        """Change the records, in the thread of those. Raises `Problem` as `ask`, and `BusyError`
        where another writer does not end.
        """
        return await self._run(change, self._record_thread, self.records, MAY_BE_DONE, Client())

    async def change(self, change: Callable[[HotReloadEngine], T]) -> T:
        """Change the build, in the thread of those. Raises `Problem` and `BusyError`."""
        return await self._run(change, self._change_thread, self.changes, MAY_BE_DONE, Client())

    async def _run(
        self,
        task: Callable[[HotReloadEngine], T],
        pool: ThreadPoolExecutor,
        load: Load,
        when_late: str,
        client: Client,
    ) -> T:
        """Run a task in a thread, which stops when the client has left."""
        seconds = self.settings.seconds
        load.begin()
        with deadline(seconds) as end:
            context = contextvars.copy_context()
        future = pool.submit(context.run, self._answered, task)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _call_soon(loop, load.end))

        def stop() -> None:
            end.pass_now()
            future.cancel()  # if it has not begun

        try:
            # After that time, a task that has not begun is cancelled.
            with client.stopping(stop):
                return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
        except (TimeoutError, DeadlineError, asyncio.CancelledError) as error:
            if client.has_left:
                raise ClientLeftError from None
            if isinstance(error, asyncio.CancelledError):
                raise
            late = f"no answer within {duration(seconds)}{when_late}"
            headers = {"Retry-After": RETRY_AFTER}
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, late, headers) from None

    def _answered(self, task: Callable[[HotReloadEngine], T]) -> T:
        """Return the answer from one build, whatever is published meanwhile."""
        with self.engine.one_build():
            return task(self.engine)


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def service_of(request: Request) -> Any:
    """Return the service of the app, for a route."""
    return request.app.state.service

"""The engine of a worker process: it answers in threads beside the event loop, within limits."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import Request

from qkvsearch._utils.deadline import DeadlineError, deadline
from qkvsearch.engine import Engine
from qkvsearch.web.hot_reload import HotReloadEngine
from qkvsearch.web.problems import Problem
from qkvsearch.web.prometheus import Metrics
from qkvsearch.web.settings import BearerToken, Settings

T = TypeVar("T")


class Service:
    """The engine of a workspace, with new builds as they are published. Raises `WorkspaceError`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # A change waits for a writer no longer than a request may take.
        wait = settings.seconds / 2
        self.engine = HotReloadEngine(settings.workspace, wait=wait)
        self.metrics = Metrics()
        self.token = None if settings.token_file is None else BearerToken(settings.token_file)
        self._threads = ThreadPoolExecutor(settings.threads, "answer")
        # Explanations and snippets have threads of their own, so that the others stay free.
        self._slow_threads = ThreadPoolExecutor(max(1, settings.threads // 2), "explain")
        self._running = 0
        # Called when the server ends.
        self.closing: list[Callable[[], None]] = []

    def close(self) -> None:
        """Close after the last answer; what still runs in a thread ends by itself."""
        for close in self.closing:
            close()
        for pool in (self._threads, self._slow_threads):
            pool.shutdown(wait=False, cancel_futures=True)
        self.engine.close()

    async def ask(self, question: Callable[[Engine], T], is_slow: bool = False) -> T:
        """Answer in a thread. Raises `Problem` where too many requests wait, or the answer takes
        too long; then the thread stops at its next step, and counts until it has.
        """
        limits = self.settings
        if self._running >= limits.threads + limits.waiting:
            busy = "too many requests at once: try again in a second"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, busy, {"Retry-After": "1"})
        self._running += 1
        with deadline(limits.seconds):
            context = contextvars.copy_context()
        pool = self._slow_threads if is_slow else self._threads
        future = pool.submit(context.run, self._answered, question)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _call_soon(loop, self._end))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limits.seconds)
        except (TimeoutError, DeadlineError):
            late = f"no answer within {limits.seconds:g} seconds"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, late, {"Retry-After": "5"}) from None

    def _answered(self, question: Callable[[Engine], T]) -> T:
        """Return the answer from one build, whatever is published meanwhile."""
        with self.engine.one_build():
            return question(self.engine)

    def _end(self) -> None:
        self._running -= 1


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def service_of(request: Request) -> Any:
    """Return the service of the app, for a route."""
    return request.app.state.service

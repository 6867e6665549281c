"""The application: the pages, and the API once it is imported, behind one guard."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from multiprocessing.process import BaseProcess
from threading import Lock, Thread

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import STARTUP_FAILURE

from qkvsearch.errors import QkvError
from qkvsearch.web import pages
from qkvsearch.web.guard import Guard, access
from qkvsearch.web.problems import handlers, log
from qkvsearch.web.service import Service
from qkvsearch.web.settings import Settings

# What no page waits for begins so many seconds after a worker is there, or when it is asked for.
LATER = 0.3
# Seconds after which one thread of Python takes over from another. By default it is 5 ms, which a
# question beside a new build that is being opened waits for at each operation of NumPy.
SWITCH = 0.0005


def served() -> Starlette:
    """The app of a worker process, as whoever started it said."""
    sys.setswitchinterval(SWITCH)
    settings = Settings.published()
    logging.basicConfig(format="%(message)s")
    access.setLevel(logging.INFO if settings.log else logging.ERROR)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        return make_app(settings)
    except QkvError as error:
        log.error("%s", error)
        sys.exit(STARTUP_FAILURE)


def _end_with(parent: BaseProcess) -> None:
    """Stop this worker when the process that started it has ended, however it did."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def make_app(settings: Settings) -> Starlette:
    """One app over one workspace. Raises `WorkspaceError`."""
    service = Service(settings)
    api = LaterApi(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().call_later(LATER, api.begin)
        yield
        service.close()

    app = Starlette(
        routes=[*pages.routes(service), Mount("/", api)],
        lifespan=lifespan,
        exception_handlers=handlers(),
        middleware=[Middleware(Guard, service=service, pages=tuple(pages.PAGES))],
    )
    app.state.service = service
    return app


class LaterApi:
    """The API as an application that is imported by its first request, if not before: to import
    FastAPI and describe the parameters takes longer than to start everything else.
    """

    def __init__(self, service: Service) -> None:
        self.service, self._lock = service, Lock()

    def begin(self) -> None:
        """Have it ready, and then the engine warm, before anybody asks."""
        asyncio.get_running_loop().run_in_executor(None, self._prepare)

    def _prepare(self) -> None:
        self._load()
        self.service.engine.follow()

    @cached_property
    def _app(self) -> ASGIApp:
        from qkvsearch.web.api import make_api

        return make_api(self.service)

    def _load(self) -> ASGIApp:
        with self._lock:
            return self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_there = "_app" in self.__dict__
        app = self._app if is_there else await asyncio.to_thread(self._load)
        await app(scope, receive, send)

"""The application: pages and API behind one guard."""

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from importlib import import_module
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from uvicorn.config import STARTUP_FAILURE

from qkvsearch.errors import QkvError
from qkvsearch.web import box, lesson_pages, pages
from qkvsearch.web.api.responses import ANY_ERROR, ERROR_RESPONSES
from qkvsearch.web.guard import Guard, access
from qkvsearch.web.problems import log
from qkvsearch.web.rights import API
from qkvsearch.web.service import Service
from qkvsearch.web.settings import ServerSettings
from qkvsearch.web.unknown_page import handlers_with_page

if TYPE_CHECKING:
    from qkvsearch.web.mcp_route import AgentTools

# Seconds after which one Python thread takes over from another. With Python's 5 ms, a request waits
# that long at each NumPy operation while a new build is being opened beside it.
SWITCH_INTERVAL = 0.0005
DESCRIPTION = (
    "Search, recommendations and attention over one workspace. "
    "Fields are those of the command line's JSON; errors are problem details (RFC 9457)."
)
# Parameters that say what is asked for; documentation lists them before the others.
FIRST = ("q", "items", "item", "user", "likes", "text", "query")
ROUTES = ("ranking", "explain", "catalog", "attend", "map", "click", "box", "server")
# Routes that change the workspace, and what only its owner reads: a read-only server has none.
WRITE_ROUTES = ("record", "rule")


def create_app() -> FastAPI:
    """Create the app of a worker process from the settings that the parent process published."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    settings = ServerSettings.published()
    logging.basicConfig(format="%(message)s")
    access.setLevel(logging.INFO if settings.log else logging.ERROR)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        return make_app(settings, when_warm=exempt_from_collection)
    except QkvError as error:
        log.error("%s", error)
        sys.exit(STARTUP_FAILURE)


def exempt_from_collection() -> None:
    """Exempt all that there is by now from garbage collection, modules and the build above all:
    they stay until the end. To look at them again and again, nothing else runs for 50 to 100 ms.
    """
    gc.collect()
    gc.freeze()


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether whoever runs the server wants to read a line of uvicorn's. That requests which
    outlast the end of the server are cancelled is how it is meant to end.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_cancelled = isinstance(error, asyncio.CancelledError)
    return not is_cancelled and "graceful shutdown exceeded" not in record.getMessage()


def _end_with(parent: BaseProcess) -> None:
    """Stop this worker when the process that started it has ended, however it did."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class App(FastAPI):
    """An application whose OpenAPI document describes errors once, and its token if it has one."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["components"]["responses"] = ERROR_RESPONSES
        root_path = self.state.service.settings.root_path
        if root_path:
            document["servers"] = [{"url": root_path}]
        for methods in document["paths"].values():
            for route in methods.values():
                route.get("parameters", []).sort(key=lambda one: one["name"] not in FIRST)
        if self.state.service.tokens is not None:
            document["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"}
            }
            document["security"] = [{"token": []}]
        return document


def make_app(settings: ServerSettings, when_warm: Callable[[], None] | None = None) -> FastAPI:
    """Make an app over one workspace. Raises `WorkspaceError`.

    when_warm: called in a thread of its own once the open build has answered its first searches.
    """
    service = Service(settings)
    agents = _agent_tools(service) if settings.mcp else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.engine.follow(when_warm)
        if service.searches is not None:
            service.searches.begin()
        async with nullcontext() if agents is None else agents.running():
            yield
        service.close()

    app = App(
        title="qkvsearch",
        version="1",
        description=DESCRIPTION,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,  # its page would load scripts from elsewhere, and start them inline
        redoc_url=None,
        redirect_slashes=False,
        routes=[*page_routes(service), *box.routes()],
        lifespan=lifespan,
        exception_handlers=handlers_with_page(service),
        middleware=[Middleware(Guard, service=service, pages=(*pages.PAGES, box.ADDRESS))],
    )
    app.state.service = service
    routes = ROUTES if settings.read_only else (*ROUTES, *WRITE_ROUTES)
    for name in routes:
        module = import_module(f"qkvsearch.web.api.{name}_routes")
        app.include_router(module.router, prefix=API, responses=ANY_ERROR)
    if agents is not None:
        app.router.routes.append(agents.route())
    return app


def page_routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the pages, and of the lessons where the course is one of them."""
    if service.settings.public:
        return pages.routes(service)
    return [*pages.routes(service), *lesson_pages.routes(service)]


def _agent_tools(service: Service) -> "AgentTools":
    """Return the tools for agents. Their SDK is imported only by servers that have them."""
    from qkvsearch.web.mcp_route import AgentTools

    return AgentTools(service)

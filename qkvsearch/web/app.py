"""The application: routes of the API and of the pages, behind one guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from qkvsearch.web import api, pages
from qkvsearch.web.guard import Guard, access
from qkvsearch.web.problems import add_handlers
from qkvsearch.web.service import Service
from qkvsearch.web.settings import Settings


def served() -> FastAPI:
    """The app of a worker process, as whoever started it said."""
    settings = Settings.published()
    logging.basicConfig(format="%(message)s")
    access.setLevel(logging.INFO if settings.log else logging.ERROR)
    return make_app(settings)


def make_app(settings: Settings) -> FastAPI:
    """One app over one workspace. Raises `WorkspaceError`."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="qkvsearch",
        version="1",
        description=api.DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,  # its page would load scripts from elsewhere; /docs is one of ours
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    api.add_routes(app, service)
    paths = pages.add_routes(app, service)
    add_handlers(app)
    app.add_middleware(Guard, service=service, pages=paths)
    return app

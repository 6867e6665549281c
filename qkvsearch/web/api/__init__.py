"""The API: a file for each group of questions, every one with a `router`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from qkvsearch.web import lesson_pages
from qkvsearch.web.api.answers import ANY_ERROR, ERROR_RESPONSES
from qkvsearch.web.problems import handlers, of_a_bug, of_a_parameter
from qkvsearch.web.service import Service

PREFIX = "/api/v1"
DESCRIPTION = (
    "Search, recommendations and attention over one workspace: softmax(QKᵀ/√d + mask)·V. "
    "Fields are those of the command line's JSON; errors are problem details (RFC 9457)."
)
GROUPS = tuple("search explain recommend similar items facets users attend map state".split())
# Left out where nothing may be changed.
CHANGING = ("record",)


class Api(FastAPI):
    """An application whose OpenAPI document describes errors once."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["components"]["responses"] = ERROR_RESPONSES
        return document


def make_api(service: Service) -> FastAPI:
    """All questions, and changes unless the server is read-only; the lessons' pages."""
    app = Api(
        title="qkvsearch",
        version="1",
        description=DESCRIPTION,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,  # its page would load scripts from elsewhere; /docs is one of ours
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            **handlers(),
            RequestValidationError: of_a_parameter,
            Exception: of_a_bug,
        },
    )
    app.state.service = service
    for name in (*GROUPS, *(() if service.settings.read_only else CHANGING)):
        module = import_module(f"qkvsearch.web.api.{name}")
        app.include_router(module.router, prefix=PREFIX, responses=ANY_ERROR)
    lesson_pages.add_routes(app, service)
    return app

"""The API: a file for each group of questions, every one with a `router`."""

from __future__ import annotations

from importlib import import_module

from fastapi import FastAPI

from qkvsearch.web.api.answers import PROBLEMS
from qkvsearch.web.service import Service

PREFIX = "/api/v1"
DESCRIPTION = (
    "Search, recommendations and attention over one workspace: softmax(QKᵀ/√d + mask)·V. "
    "Fields are those of the command line's JSON; errors are problem details (RFC 9457)."
)
GROUPS = tuple("search explain recommend similar items facets users attend map state".split())
# Left out where nothing may be changed.
CHANGING = ("record",)


def add_routes(app: FastAPI, service: Service) -> None:
    """All questions; and changes, unless the server is read-only."""
    for name in (*GROUPS, *(() if service.settings.read_only else CHANGING)):
        module = import_module(f"qkvsearch.web.api.{name}")
        app.include_router(module.router, prefix=PREFIX, responses=PROBLEMS)

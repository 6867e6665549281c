"""The pages: a file for each, with its words; the template and the script of that name fill it."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from qkvsearch.lessons import messages
from qkvsearch.lessons.messages import LANGUAGES, language, mark, say
from qkvsearch.web.pages import shell
from qkvsearch.web.service import Service

FILES = Path(__file__).parents[1] / "static"
# By its address, in the order of the menu: the module, and what the menu calls it.
PAGES = {
    "/": ("search", mark("Search")),
    "/recommend": ("recommend", mark("Recommend")),
    "/map": ("map", mark("Map")),
    "/attend": ("attend", mark("Attend")),
    "/learn": ("learn", mark("Learn")),
    "/inside": ("inside", mark("Look inside")),
    "/docs": ("docs", mark("API")),
}
TAGS = {"en": "en", "zh": "zh-Hans"}


def routes(service: Service) -> list[BaseRoute]:
    """The pages and their files: nothing that needs the API, so that they are there before it."""
    found: list[BaseRoute] = [Mount("/static", StaticFiles(directory=FILES), name="static")]
    for path, (name, _) in PAGES.items():
        module = import_module(f"qkvsearch.web.pages.{name}")
        found.append(Route(path, _page(module, path, service), name=name))
    return found


def _page(module: Any, path: str, service: Service) -> type[HTTPEndpoint]:
    class Page(HTTPEndpoint):  # answers every method at its path, others with 405
        async def get(self, request: Request) -> Response:
            with language(language_of(request)):
                name, title = PAGES[path]
                facts = await asyncio.to_thread(module.facts, service)
                shown = {"words": module.words(), "facts": facts}
                # What only its template needs.
                more = module.shown(request) if hasattr(module, "shown") else {}
                return render(service, name, path=path, title=say(title), **shown, **more)

    return Page


def render(
    service: Service,
    name: str,
    *,
    path: str,
    words: dict[str, str],
    facts: dict[str, Any],
    **shown: Any,
) -> Response:
    """A page of the site, in the language that is spoken. name: of its template, script and style.
    path: its address in the menu. words, facts: what its script is told. shown: `title`, and what
    its template needs.
    """
    spoken = messages.spoken()
    text = (
        templates()
        .get_template(f"{name}.html")
        .render(
            say=say,
            tag=TAGS[spoken],
            other={"en": ("zh", "中文"), "zh": ("en", "English")}[spoken],
            name=name,
            path=path,
            catalog=service.settings.name,
            menu=[(address, say(title)) for address, (_, title) in PAGES.items()],
            words={**shell.words(), **words},
            facts={"readOnly": service.settings.read_only, **facts},
            **shown,
        )
    )
    headers = {"Content-Language": TAGS[spoken], "Vary": "Accept-Language"}
    return Response(text, headers=headers, media_type="text/html")


@cache
def templates() -> Environment:
    """The templates; every text in them is escaped."""
    loader = PackageLoader("qkvsearch.web", "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def language_of(request: Request) -> str:
    """By `lang` in the address, else by Accept-Language, else English.

    RFC 9110, section 12.5.4: entries with weights; a longer tag suits a shorter range.
    """
    asked = request.query_params.get("lang")
    if asked in LANGUAGES:
        return asked
    found = []
    for place, entry in enumerate(request.headers.get("accept-language", "").split(",")[:20]):
        tag, _, quality = entry.strip().lower().partition(";q=")
        name = tag.split("-")[0]
        try:
            weight = float(quality or 1)
        except ValueError:
            continue
        if name in LANGUAGES and 0 < weight <= 1:
            found.append((-weight, place, name))
    return min(found)[2] if found else "en"

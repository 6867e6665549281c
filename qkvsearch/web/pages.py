"""The pages of the site: the template, style, script and words of each, and where it is served."""

import asyncio
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from qkvsearch._utils import style
from qkvsearch._utils.spoken import LANGUAGES, ORIGINAL
from qkvsearch.heads.preference_head import PreferenceHead
from qkvsearch.heads.preference_heads import PREFERENCE_HEADS
from qkvsearch.heads.search_head import SearchHead
from qkvsearch.heads.search_heads import HEADS
from qkvsearch.lessons import LESSONS, outline
from qkvsearch.lessons.exports.page import STYLES
from qkvsearch.lessons.exports.page.article import welcome
from qkvsearch.lessons.markup import prose
from qkvsearch.lessons.messages import language, say, spoken
from qkvsearch.text.encoders import LEARNED, SPEEDS, installed, transformers_for
from qkvsearch.web.api.request_parameters import MAX_BATCH
from qkvsearch.web.attend_examples import EXAMPLES
from qkvsearch.web.guard import POLICY
from qkvsearch.web.service import Service
from qkvsearch.web.whole_files import ListedFiles, WholeFiles

HERE = Path(__file__).parent
FILES = HERE / "static"
WORDS = HERE / "words"
# Each page by its address, in the order of the menu.
PAGES = {
    "/": "search",
    "/recommend": "recommend",
    "/map": "map",
    "/attend": "attend",
    "/learn": "learn",
    "/inside": "inside",
    "/searches": "searches",
    "/docs": "docs",
}
# Those that a public server has.
FOR_EVERYONE = ("search", "recommend", "map")
# The encoders with layers and heads that may be installed, and those without.
TRANSFORMERS, TABLES = tuple(SPEEDS), ("static", *LEARNED)
# Entries of Accept-Language that are read.
MAX_ENTRIES = 20
# Pages that show items of the catalog.
WITH_ITEMS = ("search", "recommend", "map")
# Pictures of the catalog may be anywhere.
IMAGE_POLICY = POLICY.replace("img-src 'self' data:", "img-src 'self' data: https: http:")


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the pages and of their files."""

    def route(path: str, name: str) -> Route:
        async def page(request: Request) -> Response:
            with language(language_of(request)):
                facts = await asyncio.to_thread(facts_of, service, name)
                images = facts.pop("images", False)
                more = contents_of_the_course(request) if name == "learn" else {}
                if name == "search":
                    more["is_similar"] = bool(request.query_params.get("similar"))
                response = render(
                    service, name, path=path, title=words("titles")[name], facts=facts, **more
                )
                if images:
                    response.headers["Content-Security-Policy"] = IMAGE_POLICY
                return response

        return Route(path, page, name=name)

    swagger = Mount("/static/swagger", WholeFiles(packages=[("fastapi_offline", "static")]))
    shared = Mount("/static/shared", ListedFiles(style.FILES, [style.TOKENS]))
    files = Mount("/static", WholeFiles(directory=FILES), name="static")
    return [swagger, shared, files, *(route(*page) for page in pages_of(service).items())]


def pages_of(service: Service) -> dict[str, str]:
    """Return the pages that the server has."""
    if not service.settings.public:
        return PAGES
    return {path: page for path, page in PAGES.items() if page in FOR_EVERYONE}


def menu_of(service: Service) -> dict[str, str]:
    """Return the pages of the menu: that of searches only where they are logged."""
    has_log = service.settings.log_searches
    return {path: page for path, page in pages_of(service).items() if has_log or page != "searches"}


def facts_of(service: Service, name: str) -> dict[str, Any]:
    """Return what a page's script must know at once."""
    images = name in WITH_ITEMS and has_images(service)
    if name == "search":
        return {"most": service.settings.hits, "images": images, "heads": shown_heads(service)}
    if name == "recommend":
        titles = {name: title_of(head) for name, head in PREFERENCE_HEADS.items()}
        most = service.settings.hits
        return {"most": most, "images": images, "batch": MAX_BATCH, "headTitles": titles}
    if name == "map":
        has_users = bool(service.engine.snapshot.facts.get("n_users"))
        return {"users": has_users, "images": images, "heads": shown_heads(service)}
    if name == "attend":
        return facts_of_attention(service)
    if name == "learn":
        return {"lessons": list(LESSONS)}
    if name == "searches":
        settings = service.settings
        return {"most": settings.hits, "logged": settings.log_searches, "days": settings.log_days}
    return {}


def facts_of_attention(service: Service) -> dict[str, Any]:
    """Return what the page of attention must know."""
    main = service.engine.models.main_head
    others = [name for name in TRANSFORMERS if name in installed() and name != main]
    # A transformer has more to show, so it is first: one that reads the language of the page.
    encoders = [*others, main] if main in TABLES else [main, *others]
    encoders.sort(key=lambda name: not reads_language(name))
    examples = EXAMPLES.get(spoken(), EXAMPLES[ORIGINAL])
    root = service.settings.root_path
    # Where there is none, the page begins with what one made of the examples.
    recorded = {
        "model": examples.model,
        "title": examples.title,
        "file": f"{root}/static/attend/{examples.file}",
    }
    return {
        "encoders": encoders,
        "layered": [name for name in encoders if name not in TABLES],
        "examples": examples.sentences,
        "recorded": None if reads_language(encoders[0]) else recorded,
    }


def reads_language(encoder: str) -> bool:
    """Return whether an encoder is a transformer that reads the language of the request. Of a model
    of the owner's own that is not known: they chose it.
    """
    if encoder in TABLES:
        return False
    return encoder not in TRANSFORMERS or encoder in transformers_for([spoken()])


def has_images(service: Service) -> bool:
    """Return whether a column of the catalog has addresses of pictures."""
    columns = service.engine.items.address_columns()
    return any(column["display"] == "image" for column in columns)


def shown_heads(service: Service) -> list[dict[str, Any]]:
    """Return what the page shows of each head of search, in the order of its lists."""
    models = service.engine.models
    return [
        {
            "name": head.name,
            "title": title_of(head),
            "colours": head.colours,
            "isChoice": head.ranks_alone and head.is_in(models, has_user=True),
            "needsUser": not head.is_in(models, has_user=False),
        }
        for head in HEADS
    ]


def title_of(head: SearchHead | PreferenceHead[Any]) -> str:
    """Return a head's title in the language of the request, or in English where it has none in it;
    nothing for a head without titles.
    """
    return head.titles.get(spoken(), head.titles.get(ORIGINAL, ""))


def contents_of_the_course(request: Request) -> dict[str, Any]:
    """Return what the template of `/learn` shows."""
    return {
        "styles": STYLES,
        "welcome": welcome(),
        "prose": prose,
        "lessons": list(outline()),
        "language_in_links": language_in_links(request),
    }


def words(section: str) -> dict[str, str]:
    """Return the texts of a page, or of another section, in the language of the request."""
    return words_of(spoken())[section]


def page_words(name: str, texts: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the texts of a page: of every page, of what the server says, of items if it lists
    any, and its own.

    texts: all of a language, by section.
    """
    of_items = texts["items"] if name in WITH_ITEMS else {}
    return {**texts["every_page"], **texts["server"], **of_items, **texts[name]}


@cache
def words_of(name: str) -> dict[str, dict[str, str]]:
    """Return all texts of a language, by section."""
    return json.loads((WORDS / f"{name}.json").read_text(encoding="utf-8"))


def render(
    service: Service,
    name: str,
    *,
    path: str,
    title: str,
    facts: dict[str, Any],
    more_words: dict[str, str] | None = None,
    **shown: Any,
) -> Response:
    """Render a page in the language of the request. name: of its template, script, style and words.
    path: its address in the menu. facts: what its script must know. shown: what its template needs.
    """
    tag = LANGUAGES[spoken()].tag
    root = service.settings.root_path
    titles = words("titles")
    other_languages = [(code, LANGUAGES[code].own_name) for code in LANGUAGES if code != spoken()]
    text = (
        templates()
        .get_template(f"{name}.html")
        .render(
            say=say,
            tag=tag,
            other_languages=other_languages,
            name=name,
            path=path,
            title=title,
            catalog=service.settings.name,
            is_public=service.settings.public,
            menu=[(address, titles[page]) for address, page in menu_of(service).items()],
            words={**page_words(name, words_of(spoken())), **(more_words or {})},
            root=root,
            facts={"readOnly": service.settings.read_only, "root": root, **facts},
            example_user=service.settings.example_user,
            **shown,
        )
    )
    headers = {"Content-Language": tag, "Vary": "Accept-Language"}
    return Response(text, headers=headers, media_type="text/html")


@cache
def templates() -> Environment:
    """Return the templates. They escape every text."""
    loader = PackageLoader("qkvsearch.web", "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def language_of(request: Request) -> str:
    """Return the language by `lang` in the address, else by Accept-Language, else English.

    RFC 9110, section 12.5.4: entries with weights; a longer tag suits a shorter range.
    """
    requested = request.query_params.get("lang")
    if requested in LANGUAGES:
        return requested
    weights: dict[str, float] = {}
    for entry in request.headers.get("accept-language", "").lower().split(",")[:MAX_ENTRIES]:
        tag, _, weight = entry.partition(";")
        code = tag.strip().split("-")[0]
        with suppress(ValueError):  # such an entry is ignored
            weights.setdefault(code, float(weight.strip().removeprefix("q=") or 1))
    accepted = [code for code in weights if code in LANGUAGES and 0 < weights[code] <= 1]
    return max(accepted, key=lambda code: weights[code], default=ORIGINAL)


def language_in_links(request: Request) -> str:
    """Return what links add to stay in a language that was chosen."""
    requested = request.query_params.get("lang")
    return f"?{urlencode({'lang': requested})}" if requested in LANGUAGES else ""

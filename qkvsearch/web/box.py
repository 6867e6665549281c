"""The search box for pages of other sites: `/box.js`, one script of several modules."""

import json
import re
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from qkvsearch._utils.spoken import LANGUAGES
from qkvsearch.web.pages import FILES, words_of

ADDRESS = "/box.js"
# The modules in the order in which they need each other.
MODULES = ("dom.js", "numbers.js", "sentences.js", "search/translated.js", "box.js")
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
# What takes bytes and does nothing: comments of whole lines, and indentation.
COMMENT = re.compile(r"^\s*(//[^\n]*|/\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
INDENTATION = re.compile(r"^\s+", re.MULTILINE)
EXPORT = re.compile(r"^export (?=const|function|class|async)", re.MULTILINE)
# The page's own sentences of reasons, and the numbers and corrections beside them.
OF_THE_PAGE = ("sum", "score", "searchedFor", "none", "more", "nearest")
HEADERS = {
    # A page of another site may load the script, which holds nothing of the workspace. What it may
    # ask is decided by `--allow-origin` and its token.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "max-age=300",
}


def routes() -> list[BaseRoute]:
    """Return the route of the script."""

    async def box(_: Request) -> Response:
        return Response(script(), headers=HEADERS, media_type="text/javascript")

    return [Route(ADDRESS, box, name="box")]


@cache
def script() -> str:
    """Return the modules as one script that leaves no name in the page, with all its sentences."""
    sources = [(FILES / name).read_text(encoding="utf-8") for name in MODULES]
    code = "\n".join(map(_without_frame, sources))
    texts = json.dumps({name: _texts(name) for name in LANGUAGES}, ensure_ascii=False)
    return f'"use strict";\n(() => {{\nconst TEXTS = {texts};\n{code}}})();\n'


def _without_frame(source: str) -> str:
    """Return a module's code without imports, the word `export`, comments and indentation."""
    for pattern in (COMMENT, INDENTATION, IMPORT, EXPORT):
        source = pattern.sub("", source)
    return source


def _texts(language: str) -> dict[str, str]:
    """Return the sentences of the box in a language."""
    page = words_of(language)["search"]
    shared = {key: page[key] for key in page if key.startswith("r_") or key in OF_THE_PAGE}
    return shared | words_of(language)["box"]

"""Who may what: the one place that decides it, for each request before it reaches a route.

- Everyone may load the pages, which hold no data, that of an address which leads nowhere included,
  and what `OPEN_DATA` lists.
- A token to search with may ask what `SEARCH_MAY` lists. It is in the pages of a site, so that
  everybody can read it. **A route that is not listed is refused to it**, new ones included.
- A server for customers (`serve --public`) answers what its pages ask, `PUBLIC_MAY`, to a token to
  search with, and where it has no token to everyone: neither may name a user there.
- The owner's token may do everything. Where any other server has no token, everyone may.

The table for people is in docs/trust.md; a test compares it with `SEARCH_MAY`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from http import HTTPStatus

from starlette.datastructures import Headers, QueryParams
from starlette.routing import Match
from starlette.types import Scope

from qkvsearch.errors import QkvError
from qkvsearch.web.problems import Problem
from qkvsearch.web.settings import BearerToken, ServerSettings

API = "/api/v1"
# The tools for agents, where the server has them.
MCP = "/mcp"
# Files of the pages. They hold nothing of the workspace.
PAGE_FILES = ("/static/", "/learn/")
# What else needs no token: of the workspace it holds nothing but the name of an encoder.
OPEN_DATA = (f"{API}/health", "/openapi.json")
# What a token to search with may ask, as routes are written in OpenAPI. Batches are not among it:
# a body could name users.
SEARCH_MAY = frozenset(
    (
        ("GET", f"{API}/search"),
        ("GET", f"{API}/recommend"),
        ("GET", f"{API}/similar"),
        ("GET", f"{API}/facets"),
        ("GET", f"{API}/explain/search"),
        ("GET", f"{API}/explain/similar"),
        ("GET", f"{API}/items/{{item}}"),
        ("GET", f"{API}/box"),
        ("POST", f"{API}/clicks"),
        # Without the tool that records, and without users (`web/mcp_route.py`).
        ("POST", MCP),
    )
)
# What the pages for customers ask.
PUBLIC_MAY = SEARCH_MAY | {
    ("GET", f"{API}/info"),
    ("GET", f"{API}/items"),
    ("GET", f"{API}/map"),
    ("POST", f"{API}/recommend"),
    ("POST", f"{API}/explain/recommend"),
}
# The beginning of addresses of one item. An id may contain slashes.
ONE_ITEM = f"{API}/items/"
# What is recommended to a user, and what is not, shows what they have: their history is the
# owner's, so that a token to search with may not name one.
USER = "user"
# Where the scope of a request says whose token it has.
HOLDER = "qkvsearch.holder"
# Where the scope of a request, which is answered as a GET, says that it is a HEAD.
IS_HEAD = "qkvsearch.is_head"


class Holder(Enum):
    """Whose token a request has. Where a public server has no token, everyone may only search."""

    OWNER = "owner"
    SEARCH = "search"


class Tokens:
    """The tokens of a server: the owner's, and those that may only search."""

    def __init__(self, owner: BearerToken, search: Sequence[BearerToken]) -> None:
        self._owner = owner
        self._search = search

    @classmethod
    def of(cls, settings: ServerSettings) -> Tokens | None:
        """Read the tokens of a server; None where it has none. Raises `QkvError`."""
        if settings.token_file is None:
            if settings.search_tokens:
                raise QkvError(
                    "beside `search_tokens` there must be a `token_file`, the owner's: without it "
                    "everyone may do everything"
                )
            return None
        owner = BearerToken(settings.token_file)
        search = [BearerToken(path, "search_tokens") for path in settings.search_tokens]
        for path, token in zip(settings.search_tokens, search, strict=True):
            if token.is_same(owner):
                raise QkvError(
                    f"`search_tokens` {path}: it is the owner's token, which may do everything; "
                    "make another one"
                )
        return cls(owner, search)

    def holder(self, authorization: str) -> Holder | None:
        """Return whose token the header `Authorization` has; None for no token of this server."""
        if self._owner.is_in(authorization):
            return Holder.OWNER
        # All are compared, so that the time does not tell which of them it is.
        n_same = sum(token.is_in(authorization) for token in self._search)
        return Holder.SEARCH if n_same else None


def check_rights(
    tokens: Tokens | None, scope: Scope, headers: Headers, is_page: bool, is_public: bool = False
) -> None:
    """Raise `Problem` for a request whose token is missing or wrong, or may not do this. is_page:
    the address is that of a page, or of a file of one. is_public: the server is for customers.
    """
    if is_page or scope["path"] in OPEN_DATA or (tokens is None and not is_public):
        return
    holder = Holder.SEARCH if tokens is None else tokens.holder(headers.get("authorization", ""))
    if holder is None:
        challenge = {"WWW-Authenticate": 'Bearer realm="qkvsearch"'}
        detail = "this server demands its token, as the header: Authorization: Bearer TOKEN"
        raise Problem(HTTPStatus.UNAUTHORIZED, detail, challenge)
    scope[HOLDER] = holder
    if holder is Holder.SEARCH:
        _check_search_token(scope, PUBLIC_MAY if is_public else SEARCH_MAY)


def wants_page(scope: Scope, headers: Headers) -> bool:
    """Return whether a person looks at the answer: browsers alone name `text/html`."""
    path = scope["path"]
    is_for_programs = path == MCP or path.startswith(f"{API.rpartition('/')[0]}/")
    return not is_for_programs and "text/html" in headers.get("accept", "").lower()


def leads_nowhere(scope: Scope, headers: Headers) -> bool:
    """Return whether a person opens an address that no route has. The page that says so holds
    nothing of the workspace.
    """
    routes = scope["app"].routes
    return wants_page(scope, headers) and all(
        route.matches(scope)[0] is Match.NONE for route in routes
    )


def holder_of(scope: Scope) -> Holder:
    """Return whose token a request has. Where the server has none, everyone is the owner."""
    holder: Holder = scope.get(HOLDER, Holder.OWNER)
    return holder


def check_users(scope: Scope, users: Iterable[object]) -> None:
    """Raise `Problem` where a body names a user, which only the owner may. users: None for none."""
    if holder_of(scope) is Holder.SEARCH and any(user is not None for user in users):
        raise _no_user()


def _no_user() -> Problem:
    detail = (
        f"`{USER}`: only the owner may name a user, since an answer for one shows what they have: "
        "ask by `likes`, or with the owner's token"
    )
    return Problem(HTTPStatus.FORBIDDEN, detail)


def _check_search_token(scope: Scope, may: Collection[tuple[str, str]]) -> None:
    """Raise `Problem` for what a token to search with may not do."""
    path = scope["path"]
    is_item = path.startswith(ONE_ITEM) and path != ONE_ITEM
    route = f"{ONE_ITEM}{{item}}" if is_item else path
    # OPTIONS only tells which methods an address has.
    if scope["method"] != "OPTIONS" and (scope["method"], route) not in may:
        refused = "this is the owner's: ask with the owner's token, that of `--token-file`"
        raise Problem(HTTPStatus.FORBIDDEN, refused)
    if USER in QueryParams(scope["query_string"]):
        raise _no_user()

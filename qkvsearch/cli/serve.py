"""`qkvsearch serve`: web pages and an API over HTTP."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from qkvsearch._utils.files import real_path
from qkvsearch.cli.agents import allow_record_option, need_sdk
from qkvsearch.cli.commands import command
from qkvsearch.cli.context import CommandContext, settings
from qkvsearch.cli.stderr import to_stderr
from qkvsearch.errors import need, quantity

if TYPE_CHECKING:
    from qkvsearch.web.settings import ServerSettings

# The modules of the extra [web].
LIBRARIES = ("fastapi", "uvicorn", "jinja2", "prometheus_client", "fastapi_offline")


@command(short_help="Serve web pages and an API over HTTP.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port; 0 for any free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="The number of processes.",
)
@click.option("--read-only", is_flag=True, help="Refuse all changes.")
@click.option(
    "--public",
    is_flag=True,
    help="Serve only the pages for customers: Search, Recommend and Map, without Attend, the "
    "course, Look inside, searches and the API's page. The API answers what these pages ask, and "
    "nothing about a user: only the owner's token may do more.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Require a token, the first line of FILE, in the header Authorization: Bearer TOKEN; "
    "needed if other machines can reach the host.",
)
@click.option(
    "--search-token",
    "search_tokens",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Let the token in FILE search, recommend and send clicks, and nothing else, such as for "
    "the pages of a site; beside --token-file, which stays the owner's; repeatable.",
)
@click.option(
    "--allow-origin",
    "allow_origins",
    metavar="URL",
    multiple=True,
    help="Let pages of another site use the API, such as http://localhost:3000; repeatable.",
)
@click.option(
    "--root-path",
    metavar="PATH",
    default="",
    help="The path under which a reverse proxy serves this server, such as /search, and which it "
    "takes away: all links begin with it.",
)
@click.option(
    "--proxy",
    "proxies",
    metavar="ADDRESS",
    multiple=True,
    help="Believe the X-Forwarded-For and X-Forwarded-Proto of a proxy at this address, or in this "
    "network; repeatable.",
)
@click.option("--mcp", is_flag=True, help="Serve tools to agents, too, at /mcp.")
@allow_record_option
@click.option("--log-queries", is_flag=True, help="Log the queries too.")
@click.option(
    "--log-searches",
    is_flag=True,
    help="Log what people search for and click on, in a folder beside the workspace, which "
    "qkvsearch searches shows.",
)
@click.option(
    "--log-days",
    type=click.IntRange(1, 3650),
    help="With --log-searches: delete what is older.  [default: 90]",
)
@click.option(
    "--title",
    metavar="NAME",
    help="What the pages call the catalog.  [default: the name of its file]",
)
@click.option("--demo", is_flag=True, help="Serve the bundled videos, read-only.")
def serve(
    host: str,
    port: int,
    workers: int,
    read_only: bool,
    public: bool,
    token_file: Path | None,
    search_tokens: tuple[Path, ...],
    allow_origins: tuple[str, ...],
    root_path: str,
    proxies: tuple[str, ...],
    mcp: bool,
    allow_record: bool,
    log_queries: bool,
    log_searches: bool,
    log_days: int | None,
    title: str | None,
    demo: bool,
) -> None:
    """Serve web pages for search, recommendations and the course, and an API, until Ctrl-C.

    The log goes to stderr, one line of JSON per request, without the queries (-q: no log).
    --log-searches writes another one, without names or addresses of people. New
    builds are picked up. Pages of other sites cannot use the API without --allow-origin. While a
    server runs, only qkvsearch may change the files of its workspace.

    \b
    Examples:
      qkvsearch serve --demo
      qkvsearch -w shop serve --port 8080 --workers 2 --read-only
      qkvsearch -w shop serve --public
      qkvsearch -w shop serve --host 0.0.0.0 --token-file secret.txt
      qkvsearch -w shop serve --mcp
      qkvsearch -w shop serve --root-path /search --proxy 127.0.0.1
    """
    _need_libraries(mcp)
    if allow_record and not mcp:
        raise click.UsageError("--allow-record is for agents: add --mcp")
    from qkvsearch.web.server import serve as serve_app
    from qkvsearch.web.settings import ServerSettings, origin_of, proxy_of, root_path_of

    run = settings()
    if demo and run.workspace is not None:
        raise click.UsageError("--demo serves a sample: leave out -w and QKVSEARCH_WORKSPACE")
    if log_days is not None and not log_searches:
        raise click.UsageError("--log-days says how long --log-searches keeps a search: give both")
    sample = "videos" if demo else run.sample
    if allow_record and (read_only or sample is not None):
        raise click.UsageError("--allow-record: nothing can be recorded where all is read-only")
    if log_searches and sample is not None:
        raise click.UsageError("--log-searches is for a workspace of your own, not for a sample")
    served = _served(run, sample, title)
    server_settings = ServerSettings(
        workspace=served.path,
        name=served.name,
        shared=served.path,
        read_only=read_only or sample is not None,
        public=public,
        mcp=mcp,
        allow_record=allow_record,
        token_file=token_file,
        log=not run.quiet,
        log_queries=log_queries,
        log_searches=log_searches,
        log_days=log_days or ServerSettings.log_days,
        search_tokens=search_tokens,
        allow_origins=tuple(map(origin_of, allow_origins)),
        root_path=root_path_of(root_path) if root_path else "",
        proxies=tuple(map(proxy_of, proxies)),
        example_user=served.example_user,
    )
    announce = partial(_announce, run, server_settings, is_sample=sample is not None)
    serve_app(server_settings, host, port, workers, announce)


def _need_libraries(mcp: bool) -> None:
    """Raise `QkvError` where a library is missing."""
    for library in LIBRARIES:
        if find_spec(library) is None:  # importing them here would be slow
            need(library, "web", "`serve`")
    if mcp:
        need_sdk()


class _Served(NamedTuple):
    """What is served: its folder, and what the pages say of it."""

    path: Path
    name: str
    example_user: str


def _served(run: CommandContext, sample: str | None, title: str | None) -> _Served:
    """Open what is served once, so that it is there, and return what the pages say of it."""
    from qkvsearch.heads.component import CATALOG_NAME

    with closing(run.open() if sample is None else run.open_sample(sample)) as engine:
        path = engine.workspace.path
        # Only a sample's users may be shown to everyone.
        example_user = "" if sample is None else str(engine.users.ids[0])
        of_file = engine.snapshot.facts.get(CATALOG_NAME, "")
    name = (title or "").strip() or sample or of_file or real_path(path).name
    return _Served(path, name, example_user)


def _announce(
    run: CommandContext, server: ServerSettings, address: str, *, is_sample: bool
) -> None:
    """Print where the server is, and what holds while it runs."""
    from qkvsearch.store.search_log import log_folder

    to_stderr(f"Serving {server.name} at {address} (Ctrl-C stops).")
    if server.root_path:
        run.message(f"Links begin with {server.root_path}, which a proxy takes away.")
    if not is_sample:
        run.message(f"While it runs, only qkvsearch may change the files in {server.workspace}.")
    if server.log_searches:
        days = quantity(server.log_days, "day")
        run.message(f"Searches are logged in {log_folder(server.workspace)}, for {days}.")

"""`qkvsearch mcp`: tools for agents, over stdin and stdout."""

from importlib.util import find_spec

import click

from qkvsearch._utils.files import real_path
from qkvsearch.cli.commands import command
from qkvsearch.cli.context import settings
from qkvsearch.errors import need

allow_record_option = click.option(
    "--allow-record", is_flag=True, help="Let agents record interactions, too."
)


def need_sdk() -> None:
    """Raise `QkvError` where the official SDK is not installed."""
    if find_spec("mcp") is None:  # importing it here would be slow
        need("mcp", "mcp", "`mcp`", name="the SDK of MCP")


@command(short_help="Serve tools to an agent by the Model Context Protocol.")
@allow_record_option
def mcp(allow_record: bool) -> None:
    """Serve tools to an agent by the Model Context Protocol, over stdin and stdout.

    An agent's host starts this command; docs/agents.md has what to write into its settings. The
    tools are describe, search, recommend, similar, show and why, which only read, and record with
    --allow-record. New builds are picked up. It ends with stdin, or with Ctrl-C. To serve agents
    over HTTP: qkvsearch serve --mcp.

    \b
    Examples:
      qkvsearch -w shop mcp
      qkvsearch -w shop mcp --allow-record
    """
    need_sdk()
    run = settings()
    if allow_record:
        run.writable_path()  # a sample cannot be changed
    engine = run.open(follow=True)
    from qkvsearch.mcp.over_stdio import serve

    name = run.sample or real_path(engine.workspace.path).name
    run.message(f"Serving {name} to an agent over stdin and stdout (Ctrl-C stops).")
    serve(engine, name, allow_record=allow_record)

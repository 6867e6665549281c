"""`qkvsearch info`: what is in the workspace."""

from typing import Any

import click

from qkvsearch.cli.columns import columns_text
from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, to_table

# Facts with a table of their own.
COLUMNS = ("columns", "interaction_columns")


@click.command()
@click.option("--verify", is_flag=True, help="Compare every file with its checksum.")
@output_options
def command(verify: bool, output: Output) -> None:
    """Show what the workspace was built from, and what it holds.

    \b
    Examples:
      qkvsearch -w films info
      qkvsearch -w films info --verify --format json
    """
    run = settings()
    facts = run.open().info(verify=verify)
    output.write([facts], lambda: _shown(facts, run.verbose))


def _shown(facts: dict[str, Any], verbose: bool) -> str:
    others = {name: fact for name, fact in facts.items() if name not in COLUMNS}
    table = to_table([("", "left"), ("", "wrap")], _lines(others))
    return f"{table}\n{columns_text(facts['columns'], facts['interaction_columns'], verbose)}"


def _lines(facts: dict[str, Any]) -> list[list[str]]:
    return [[name.replace("_", " "), _text(value)] for name, value in facts.items() if value]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_short(part)}" for name, part in value.items())
    if isinstance(value, list):
        lines = any(len(str(part)) > 30 for part in value)
        return ("\n" if lines else ", ").join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _in_short(value: Any) -> str:
    """One of several values of a fact."""
    if isinstance(value, dict):
        return f"({_text(value)})"
    return f"{value:.3g}" if isinstance(value, float) else _text(value)

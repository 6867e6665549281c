"""`qkvsearch export`: what a workspace knows, for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from qkvsearch.cli.context import settings
from qkvsearch.errors import quantity


@click.group(short_help="Write what was learned to files for other programs.")
def command() -> None:
    """Write what was learned to files for other programs.

    \b
    Example:
      qkvsearch -w talks export embeddings --to talks.parquet
    """


@command.command()
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file: .safetensors, .parquet or .npz, as its name says.",
)
@click.option(
    "--of",
    type=click.Choice(["items", "users"]),
    default="items",
    show_default=True,
    help="Whose; those of users are learned from interactions, each solved now.",
)
@click.option(
    "--head",
    "head_name",
    metavar="NAME",
    help="A dense head of search, or collaborative: learned from interactions.  [default: the "
    "main one of search]",
)
def embeddings(path: Path, of: str, head_name: str | None) -> None:
    """Write embeddings with their ids to a file, which appears whole or not at all.

    .safetensors has the tensor "embeddings" (float32, a row an id) and, in its metadata, "ids" as a
    JSON list; .npz the arrays "embeddings" and "ids"; .parquet the columns "id" and "embedding".

    \b
    Examples:
      qkvsearch -w talks export embeddings --to talks.safetensors
      qkvsearch -w films export embeddings --to films.npz --head collaborative
      qkvsearch -w films export embeddings --to people.parquet --of users
    """
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        done = engine.export_embeddings(path, of=of, head=head_name, progress=progress)
    run.say_notes(done.notes)
    run.say(
        f"{path}: {done.head} embeddings of {quantity(done.rows, of.removesuffix('s'))}, "
        f"{done.components:,} components each."
    )

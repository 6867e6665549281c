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


@command.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--title", metavar="TEXT", help="What the pages are called.  [default: the name of DIR]"
)
@click.option(
    "--language",
    "spoken",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="The language of the pages; the catalog has its own.",
)
@click.option(
    "--fields", default="", metavar="A,B", help="Columns to be shown with each hit, by name."
)
def site(folder: Path, title: str | None, spoken: str, fields: str) -> None:
    """Write search and the course to a folder of files that any host serves, with no server behind.

    A page reads the postings of a query's words and the keys of the encoders that the catalog
    itself taught, and computes the scores. At most 20,000 items. A folder is written over where it
    is empty or such a site already, and is there as a whole or not at all.

    \b
    Examples:
      qkvsearch -w talks export site public --title "Talks" --fields speaker,year
      python -m http.server -d public
    """
    from qkvsearch.web.site.writing import export_site

    run = settings()
    engine = run.open()
    with run.progress() as progress:
        done = export_site(
            engine.build,
            folder,
            title=title or folder.absolute().name,
            spoken=spoken,
            fields=fields,
            progress=progress,
        )
    run.say_notes(done.notes)
    run.say(
        f"{folder}: {quantity(done.n_items, 'item')}, {done.n_files:,} files, "
        f"{done.n_bytes / 1e6:.1f} MB, of which a page reads {done.first / 1e3:,.0f} kB before a "
        "word is typed."
    )

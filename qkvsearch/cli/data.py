"""`qkvsearch data`: public data sets, listed and fetched."""

from dataclasses import asdict
from pathlib import Path

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, to_table, write_data

FIELDS = ("name", "about", "megabytes", "terms", "address", "md5")


@click.group(name="data", short_help="List public data sets, or fetch one.")
def command() -> None:
    """List public data sets, or fetch one from its official address.

    \b
    Example:
      qkvsearch data fetch ml-latest-small && qkvsearch build ml-latest-small
    """


@command.command(name="list")
@output_options
def list_command(output: Output) -> None:
    """List what can be fetched, and the samples that are already here.

    \b
    Example:
      qkvsearch data list --format json
    """
    from qkvsearch.data.download import DOWNLOADS
    from qkvsearch.data.samples import SAMPLES

    rows = [
        {"name": f"sample:{name}", "about": sample.about, "megabytes": 0.0, "terms": "MIT"}
        for name, sample in SAMPLES.items()
    ] + [asdict(download) for download in DOWNLOADS.values()]
    cells = [[row["name"], row["about"], f"{row['megabytes']:g}", row["terms"]] for row in rows]
    columns = [("name", "left"), ("about", "wrap"), ("MB", "right"), ("terms", "wrap")]
    output.write(rows, lambda: to_table(columns, cells), FIELDS)


@command.command(name="fetch")
@click.argument("name")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to put its folder.  [default: here]",
)
def fetch_command(name: str, folder: Path) -> None:
    """Download NAME, check it against the published checksum, and unpack it.

    \b
    Example:
      qkvsearch data fetch ml-1m --to ~/data
    """
    from qkvsearch.data.download import fetch, find_download

    run = settings()
    download = find_download(name)
    run.say(f"{download.address} ({download.megabytes:g} MB). Terms: {download.terms}")
    with run.progress() as progress:
        path = fetch(download, folder, progress)
    write_data(f"{path}\n")

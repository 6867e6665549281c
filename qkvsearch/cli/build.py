"""`qkvsearch build`: make a workspace from files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.build_report import refuse_to_replace, report_option, write_report
from qkvsearch.cli.columns import (
    columns_of,
    columns_text,
    event_options,
    file_options,
    is_filter,
    item_columns,
    join_option,
    log_columns,
)
from qkvsearch.cli.commands import command, wait_option
from qkvsearch.cli.context import CommandContext, settings
from qkvsearch.errors import QkvError, listed_names, quantity

if TYPE_CHECKING:
    from pathlib import Path

    from qkvsearch.engine import Engine
    from qkvsearch.tables.dataset import Dataset

# Names of columns in the last lines of a build, and queries that are tried for an example.
MAX_NAMES = 8
MAX_TRIED = 5
# Column weights are reported if they differ from equal weights by this share.
MIN_DIFFERENCE = 0.1
# Memory of a build in bytes. docs/scale.md explains the numbers.
PROCESS = 350e6  # the libraries
ITEM = 6_600  # an item with its keys
CHARACTER = 20  # of an item's texts
ROW = 29  # of the log, without its optional columns
COLUMN = 24  # each optional column of a row
USER = 932
LEARNED_ITEM = 3_800  # an item's embedding and its neighbours
MAX_SHARE = 0.8  # of the machine's memory

FILE = click.Path(path_type=str)  # a Path would change an address such as s3a://bucket/log


def _parse_types(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `NAME:TYPE`; a name may contain colons itself."""
    from qkvsearch.tables.column_types import NAMES

    types: dict[str, str] = {}
    for text in texts:
        name, colon, type_ = text.rpartition(":")
        if not colon or type_ not in NAMES:
            raise click.BadParameter(f"{text!r}: write NAME:TYPE, TYPE one of {', '.join(NAMES)}")
        types[name] = type_
    return types


def _parse_scale(
    _: click.Context, __: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """Parse `A..B`."""
    if text is None:
        return None
    lowest, _dots, highest = text.partition("..")
    try:
        scale = float(lowest), float(highest)
    except ValueError:
        scale = (0.0, 0.0)
    if not scale[0] < scale[1] < float("inf"):
        raise click.BadParameter(f"{text!r}: write the lowest and the highest rating, such as 1..5")
    return scale


@command(short_help="Build a workspace from your files or a known data set.")
@click.argument("source", required=False)
@click.option(
    "--items",
    type=FILE,
    multiple=True,
    help="A table of items: CSV, TSV, JSON Lines, Parquet, a sheet or a database; - is stdin. Or a "
    "folder of .srt, .vtt, .txt, .md or .html, one item a file. Repeatable, or a pattern in "
    "quotes; 'book.xlsx#*' is all sheets, joined by id.",
)
@click.option(
    "--interactions",
    type=FILE,
    multiple=True,
    help="A table of who watched, bought or rated what; repeatable, or a pattern: 'logs/*.csv'.",
)
@join_option("--items")
@item_columns("--items", "the columns to search in, such as title,tags")
@log_columns("--interactions")
@click.option(
    "--column",
    "types",
    metavar="NAME:TYPE",
    multiple=True,
    callback=_parse_types,
    help="In --items: the type of a column: number, date, yes/no, list or text; repeatable.",
)
@click.option(
    "--rating-scale",
    metavar="A..B",
    callback=_parse_scale,
    help="The lowest and the highest possible rating, such as 1..5.",
)
@event_options
@file_options
@click.option("--fold-ids", is_flag=True, help="Treat ids that differ only in case as the same.")
@click.option("--strict", is_flag=True, help="Treat warnings about the files as errors.")
@click.option(
    "--plan",
    is_flag=True,
    help="Read and check the files, show what would be built, and stop.",
)
@report_option
@click.option(
    "--encoder",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="The encoder of texts: corpus = learned from the catalog; static, minilm or e5 = "
    "pretrained; or a sentence encoder's folder. auto = minilm for English texts and e5 for "
    "others, if it is installed and takes about a minute at most, otherwise static if it is "
    "installed, otherwise corpus. best = all that are installed for the texts' languages, however "
    "long they take.",
)
@click.option(
    "--language",
    default="auto",
    show_default=True,
    metavar="CODE",
    help="The language of the texts, for stems and stop words: en, de, fr, es … (Snowball's "
    "languages), none, or auto, which detects it.",
)
@click.option(
    "--synonyms",
    type=FILE,
    help="Synonyms, one rule per line: `sweater, jumper`; in one direction: `tv => television`.",
)
@click.option(
    "--keys",
    metavar="milvus:URI",
    help="Store the items' keys in Milvus, on a server or in a file that ends in .db (needs "
    "qkvsearch[milvus]).  [default: in the workspace]",
)
@click.option(
    "--next-item",
    is_flag=True,
    help="Also train the next-item model (minutes; needs qkvsearch[train]).",
)
@click.option(
    "--engine",
    metavar="URL",
    help="Run on Spark: spark (all cores of this machine) or spark://HOST:PORT, a cluster (needs "
    "qkvsearch[spark]).  [default: in this process]",
)
@wait_option
def build(
    source: str | None,
    items: tuple[str, ...],
    interactions: tuple[str, ...],
    join: tuple[str, ...],
    engine: str | None,
    plan: bool,
    report: Path | None,
    synonyms: str | None,
    **columns: Any,
) -> None:
    """Build a workspace from SOURCE: the folder of a MovieLens data set, `sample:videos`,
    `sample:movies`, or a file of items or interactions; or from --items and --interactions.

    A file is CSV, TSV, JSON Lines, Parquet or .xlsx, compressed or not, or a table of a SQLite
    file: shop.db#products. Of subtitles, text, Markdown and HTML, each file is an item: name their
    folder, or a pattern. Without an option, a column is recognized by its name or its contents;
    --plan shows the columns and builds nothing. --report FILE writes what became of every column,
    row and cell. The previous build stays in use until the new one is complete.

    \b
    Examples:
      qkvsearch -w films build ml-latest-small
      qkvsearch -w shop build --items products.csv --interactions orders.csv
      qkvsearch -w shop build --items products.xlsx --interactions shop.db#orders --plan
      qkvsearch -w shop build --items products.csv --interactions 'logs/*.csv' --encoding cp850
      qkvsearch -w talks build --items talks.csv --id-column id --text-columns title,tags
      qkvsearch -w library build --items talks/
      qkvsearch -w library build --items talks.csv --texts 'talks/{id}.vtt'
      qkvsearch -w shop build --items products.csv --plan --report plan.html
      qkvsearch -w shop build --items products.csv --interactions log.parquet --engine spark
    """
    from qkvsearch.learn.builder import reading
    from qkvsearch.tables.documents.texts_beside import PLACE
    from qkvsearch.tables.synonyms import as_synonyms

    if source is None and not items and not interactions:
        raise click.UsageError("give a SOURCE, or --items and --interactions")
    texts = columns["texts"]
    beside = None if texts is None else PLACE.sub("*", texts)
    refuse_to_replace(report, [source, *items, *join, *interactions, synonyms, beside])
    run = settings()
    started = monotonic()
    path = run.writable_path()
    options = {name: columns.pop(name) for name in ("encoder", "language", "next_item", "keys")}
    options["synonyms"] = as_synonyms(synonyms)
    item_files = list(items) or None
    log_files = list(interactions) or None
    joined_files = list(join) or None
    named = columns_of(**columns)
    with reading(source, item_files, log_files, named, engine, joined_files) as dataset:
        _build(run, path, dataset, plan, report, options)
        if not plan and not run.quiet:
            titles = dataset.catalog.frame["title"].tolist()
            for line in _what_now(run.open(), titles, monotonic() - started):
                run.message(line)


def _build(
    run: CommandContext,
    path: Path,
    dataset: Dataset,
    plan: bool,
    report_file: Path | None,
    options: Mapping[str, Any],
) -> None:
    """Show what was read; build the workspace unless it is only planned. Write the report, if any
    is asked for.
    """
    from qkvsearch.learn.builder import build_workspace
    from qkvsearch.tables.build_report import BuildReport

    report = BuildReport.of(str(path), dataset, plan)
    for read in report.files:
        run.notes(read.lines)
    of_items, of_log = (
        [column.facts.to_record() for column in columns]
        for columns in (report.columns, report.log_columns)
    )
    run.message_table(columns_text(of_items, of_log, run.verbose).rstrip())
    if plan:
        lines = [memory_advice(dataset, machine_memory())]
        printed = [*lines, f"Nothing was built; {path} would have {report.size}."]
    else:
        workspace = run.writable_workspace(path)
        previous = workspace.current_facts()
        with run.progress() as progress:
            build_workspace(workspace, dataset, **options, progress=progress)
        facts = workspace.current_facts()
        lines = [*_text_lines(facts, dataset), *_model_lines(facts, previous)]
        metrics = list(_metric_lines(facts))
        printed = [f"Built {path}: {report.size}.", *lines, *(metrics if run.verbose else [])]
        lines += metrics
    for line in printed:
        run.message(line)
    if report_file is not None:
        write_report(replace(report, lines=lines), report_file)
        run.message(f"{report_file}: what became of every column, row and cell.")


def _text_lines(facts: Mapping[str, Any], dataset: Dataset) -> list[str]:
    """Return what a build says of long texts, which stands behind what it says of the files."""
    return list(facts["rows"][len(dataset.lines(of_log=False)) :])


def memory_advice(dataset: Dataset, available: float | None) -> str:
    """Return a line on how much memory a build takes at most, and what to do if it is too much.

    available: the machine's memory in bytes, None if it is unknown.
    """
    from qkvsearch.tables.interactions import Interactions

    catalog = dataset.catalog
    log = dataset.interactions
    characters = sum(len(text) for column in catalog.fields() for text in column)
    of_items = PROCESS + ITEM * len(catalog) + CHARACTER * characters
    of_log = PROCESS
    if isinstance(log, Interactions):  # otherwise Spark holds the log
        n_columns = sum(column is not None for column in (log.ratings, log.weights, log.times))
        of_log += (ROW + COLUMN * n_columns) * len(log) + USER * log.n_users
        of_log += LEARNED_ITEM * len(catalog)
    needed = max(of_items, of_log)
    line = f"Memory: about {needed / 1e9:.1f} GB at most"
    if available is None:
        return f"{line}."
    line = f"{line}; this machine has {available / 1e9:.1f} GB"
    if needed <= MAX_SHARE * available:
        return f"{line}."
    option = "--engine spark" if of_log > of_items else "--keys milvus:URI"
    return f"{line}: use {option}, or expect it to be slow."


def machine_memory() -> float | None:
    """Return the machine's memory in bytes; None if the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _model_lines(facts: Mapping[str, Any], previous: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the models of a build, and about lost settings of the previous one."""
    from qkvsearch.engine.info import advice_on
    from qkvsearch.heads.component import HEADS_LEFT_OUT, LANGUAGE, TUNED
    from qkvsearch.heads.search_settings import TUNED_SEARCH
    from qkvsearch.store.remote_collections import FACT as KEYS
    from qkvsearch.store.workspace import LOST_SETTINGS
    from qkvsearch.text.languages import Language

    yield from (f"Not taken over: {reason}." for reason in facts.get(LOST_SETTINGS, ()))
    yield f"Encoder: {facts['encoder']} ({facts['encoder_chosen']})."
    if better := advice_on(facts):
        yield better
    if HEADS_LEFT_OUT in facts:
        yield f"Searches: {facts[HEADS_LEFT_OUT]}."
    yield f"Language: {Language(facts[LANGUAGE], facts['language_chosen'])}."
    if "synonyms" in facts:
        yield f"Synonyms: of {quantity(len(facts['synonyms']), 'word')}."
    if KEYS in facts:
        yield f"Keys: {facts[KEYS]['uri']}, collection {facts[KEYS]['collection']}."
    elif KEYS in previous:
        yield "The previous build had keys in Milvus; these are in the workspace (build --keys)."
    if "texts_cut" in facts:
        yield f"Cut: {facts['texts_cut']}."
    if TUNED in facts:
        yield "Preferences: with the settings of tune; tune --reset returns to the default ones."
    if TUNED_SEARCH in facts:
        yield "Searches: with the settings of tune search; tune --reset returns to the default."
    if "next_item" in previous and "next_item" not in facts:
        yield "The previous build had a next-item model; build --next-item trains it again."
    if "synonyms" in previous and "synonyms" not in facts:
        yield "The previous build had synonyms; build --synonyms FILE adds them again."


def _metric_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines with the figures that the build learned, which few people need."""
    from qkvsearch.cli.listings import recommend_heads_text
    from qkvsearch.engine.info import named_column_weights
    from qkvsearch.heads.component import RECOMMEND_HEADS

    if heads := recommend_heads_text(facts.get(RECOMMEND_HEADS)):
        yield f"Recommendations: {heads}."
    if weights := column_weights_text(named_column_weights(facts)):
        yield f"Weights of columns: {weights}."


def _what_now(engine: Engine, titles: Sequence[str], seconds: float) -> Iterator[str]:
    """Yield the last lines of a build: what is searched, what one can filter by, and a query that
    has hits. seconds: what the build took.
    """
    columns = engine.catalog.catalog_columns
    searched = [columns.name_of(stored) for stored in engine.models.snapshot.facts["text_columns"]]
    filters = [column.name for column in columns if is_filter(column)]
    line = f"Built in {_took(seconds)}."
    if searched:
        line += f" Searching {listed_names(searched, MAX_NAMES)}"
        line += f"; filtering by {listed_names(filters, MAX_NAMES)}." if filters else "."
    yield line
    if searched and (query := _example_query(engine, titles)):
        yield f'Next: qkvsearch search "{query}"'


def _took(seconds: float) -> str:
    """Format how long a build took.

    >>> _took(0.2), _took(9.4), _took(125)
    ('1 s', '9 s', '2 min 5 s')
    """
    minutes, rest = divmod(max(round(seconds), 1), 60)
    return f"{minutes:,} min {rest} s" if minutes else f"{rest} s"


def _example_query(engine: Engine, titles: Sequence[str]) -> str:
    """Return a query made of the titles that has hits which are not weak; "" if none is found."""
    from qkvsearch.cli.example_query import example_queries
    from qkvsearch.heads.component import LANGUAGE
    from qkvsearch.text.languages import stop_words

    left_out = stop_words(engine.models.snapshot.facts[LANGUAGE]) | stop_words()
    for query in islice(example_queries(titles, left_out), MAX_TRIED):
        # The build is done, whatever a query finds.
        with suppress(QkvError):
            if any(hit.match != "weak" for hit in engine.search(query, k=1)):
                return query
    return ""


def column_weights_text(weights: Mapping[str, Mapping[str, float]]) -> str:
    """Return the weight of each text column in the heads whose weights are visibly uneven.

    >>> column_weights_text({"lsa": {"title": 0.5, "body": 0.5},
    ...                      "static": {"title": 0.2, "body": 0.8}})
    'in static title 0.20, body 0.80'
    """
    uneven = {
        head: columns
        for head, columns in weights.items()
        if any(abs(share * len(columns) - 1) > MIN_DIFFERENCE for share in columns.values())
    }
    texts = []
    for head, columns in uneven.items():
        weighted_columns = [f"{name} {share:.2f}" for name, share in columns.items()]
        texts.append(f"in {head} {listed_names(weighted_columns, 9)}")
    return "; ".join(texts)

"""`qkvsearch build`: files in, a workspace out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import (
    CommandContext,
    delimiter_option,
    engine_option,
    settings,
    wait_option,
)
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from pathlib import Path

    from qkvsearch.data.columns import Columns
    from qkvsearch.data.readers import Dataset

# How far from the others' a column's share is said, as a share of it.
VISIBLE = 0.1
FILE = click.Path(path_type=str)  # a Path would damage the address of a database
# Memory of a build in bytes: libraries; an item, with its keys, and a character of its texts; a row
# of the log, and each of its further columns; a user. docs/scale.md has the parts of each.
PROCESS, ITEM, CHARACTER, ROW, COLUMN, USER = 350e6, 6_600, 20, 29, 24, 932
MAX_SHARE = 0.8  # of the machine's memory


@click.command(short_help="Build a workspace from your files or a known data set.")
@click.argument("source", required=False)
@click.option(
    "--items",
    type=FILE,
    help="A table of things: CSV, TSV, JSON Lines, Parquet, a sheet or a database; - is stdin.",
)
@click.option("--interactions", type=FILE, help="A table of who watched, bought or rated what.")
@click.option("--id-column", metavar="NAME", help="In --items: the id.")
@click.option("--title-column", metavar="NAME", help="In --items: the title.")
@click.option("--text-columns", metavar="NAMES", help="In --items: what search reads: title,tags.")
@click.option("--user-column", metavar="NAME", help="In --interactions: the user's id.")
@click.option("--item-column", metavar="NAME", help="In --interactions: the item's id.")
@click.option("--rating-column", metavar="NAME", help="In --interactions: a rating, if any.")
@click.option("--weight-column", metavar="NAME", help="In --interactions: how much or how often.")
@click.option("--time-column", metavar="NAME", help="In --interactions: when, if known.")
@click.option(
    "--column",
    "types",
    metavar="NAME:TYPE",
    multiple=True,
    help="In --items: what a column holds: number, date, yes/no, list or text; repeatable.",
)
@click.option(
    "--rating-scale",
    metavar="A..B",
    help="The lowest and the highest rating that can be given, such as 1..5.",
)
@delimiter_option
@click.option("--fold-ids", is_flag=True, help="Ids that differ in case alone are one.")
@click.option("--strict", is_flag=True, help="What would be a warning about the files is an error.")
@click.option(
    "--plan",
    is_flag=True,
    help="Read and check everything, say what would be built, and stop.",
)
@click.option(
    "--encoder",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Where vectors come from: corpus = learned from the catalog; static or minilm = "
    "pretrained; or a sentence encoder's folder. auto = minilm where it is installed and takes "
    "about a minute at most, otherwise static where that is installed, otherwise corpus.",
)
@click.option(
    "--language",
    default="auto",
    show_default=True,
    metavar="CODE",
    help="Of the texts, for their endings and stop words: en, de, fr, es … (Snowball's languages), "
    "none, or auto, which guesses.",
)
@click.option(
    "--queries", type=FILE, help="With --qrels: lines of id<TAB>text, to learn the heads' weights."
)
@click.option(
    "--qrels",
    type=FILE,
    help="Their right answers: TREC judgements, or query<TAB>item[<TAB>grade].",
)
@click.option(
    "--synonyms",
    type=FILE,
    help="Words that mean the same, a rule a line: `sweater, jumper`; one way: `tv => television`.",
)
@click.option(
    "--keys",
    metavar="milvus:URI",
    help="Where the items' keys go: to Milvus, a server or a file that ends in .db (needs "
    "qkvsearch[milvus]).  [default: the workspace]",
)
@click.option(
    "--next-item",
    is_flag=True,
    help="Also train a model of what comes next (minutes; needs qkvsearch[train]).",
)
@engine_option
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="With --engine: a folder that this machine and the executors share, where an interrupted "
    "build goes on from.  [default: in the workspace]",
)
@wait_option
def build(
    source: str | None,
    items: str | None,
    interactions: str | None,
    engine: str | None,
    checkpoint: str | None,
    plan: bool,
    encoder: str,
    language: str,
    queries: str | None,
    qrels: str | None,
    synonyms: str | None,
    keys: str | None,
    next_item: bool,
    **names: Any,
) -> None:
    """Build a workspace from SOURCE: the folder of a MovieLens data set, `sample:videos`,
    `sample:movies`, or a file of things or of interactions; or from --items and --interactions.

    A file is CSV, TSV, JSON Lines, Parquet or .xlsx, packed or not, or a database:
    shop.db#products, postgresql://user:password@host/shop#orders, or a SELECT behind the #.
    Columns are guessed by their names, or by what is in them, where no option tells; --plan shows
    them and builds nothing. The former build stays in use until the new one is complete.

    \b
    Examples:
      qkvsearch -w films build ml-latest-small
      qkvsearch -w shop build --items products.csv --interactions orders.csv
      qkvsearch -w shop build --items products.xlsx --interactions shop.db#orders --plan
      qkvsearch -w talks build --items talks.csv --id-column id --text-columns title,tags
      qkvsearch -w talks build talks.csv --queries queries.tsv --qrels qrels.tsv
      qkvsearch -w shop build --items products.csv --interactions log.parquet --engine spark
    """
    from qkvsearch.data.judgements import judged_by
    from qkvsearch.data.synonyms import as_synonyms
    from qkvsearch.index.builder import CHECKPOINT, reading

    if source is items is interactions is None:
        raise click.UsageError("give a SOURCE, or --items and --interactions")
    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries asks and --qrels answers: give both")
    if engine is None and checkpoint is not None:
        raise click.UsageError("--checkpoint is where a build with --engine goes on: give both")
    run = settings()
    path = run.own_workspace()
    options: dict[str, Any] = {
        "encoder": encoder,
        "language": language,
        "judged": judged_by(queries, qrels),
        "next_item": next_item,
        "synonyms": as_synonyms(synonyms),
        "keys": keys,
    }
    kept = None if plan else checkpoint or path / CHECKPOINT
    with reading(source, items, interactions, _columns(**names), engine, kept) as dataset:
        _build(run, path, dataset, plan, options)


def _build(
    run: CommandContext, path: Path, dataset: Dataset, plan: bool, options: Mapping[str, Any]
) -> None:
    """Say what was read, and build what is not only planned."""
    from qkvsearch.index.builder import build_workspace

    for report in dataset.reports:
        run.say_notes(report.lines())
    run.say(_columns_shown(dataset, run.verbose))
    if plan:
        run.say(memory_advice(dataset, machine_memory()))
        run.say(f"Nothing was built; {path} would have {_counted(dataset)}.")
        return
    workspace = run.to_write(path)
    former = workspace.current_facts()
    with run.progress() as progress:
        build_workspace(workspace, dataset, **options, progress=progress)
    run.say(f"Built {path}: {_counted(dataset)}.")
    _say_models(run, workspace.current_facts(), former)


def memory_advice(dataset: Dataset, available: float | None) -> str:
    """Say in one line how much memory a build takes at most, and what to do where that is too much.

    available: the machine's memory in bytes, None where it is unknown.
    """
    from qkvsearch.data.interactions import Interactions

    catalog, log = dataset.catalog, dataset.interactions
    characters = sum(len(text) for column in catalog.fields() for text in column)
    of_items = PROCESS + ITEM * len(catalog) + CHARACTER * characters
    of_log = PROCESS
    if isinstance(log, Interactions):  # otherwise Spark holds the log
        n_columns = sum(column is not None for column in (log.ratings, log.weights, log.times))
        of_log += (ROW + COLUMN * n_columns) * len(log) + USER * log.n_users
    needed = max(of_items, of_log)
    line = f"Memory: about {needed / 1e9:.1f} GB at most"
    if available is None:
        return f"{line}."
    line = f"{line}; this machine has {available / 1e9:.1f} GB"
    if needed <= MAX_SHARE * available:
        return f"{line}."
    option = "--engine spark" if of_log > of_items else "--keys milvus:URI"
    return f"{line}: use {option} (docs/scale.md), or expect it to be slow."


def machine_memory() -> float | None:
    """Return the machine's memory in bytes, None where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _columns(
    text_columns: str | None,
    types: tuple[str, ...],
    rating_scale: str | None,
    delimiter: str | None,
    fold_ids: bool,
    strict: bool,
    **names: str | None,
) -> Columns:
    """The columns that options name, and how they are read."""
    from qkvsearch.data.columns import Columns

    roles: dict[str, Any] = {name.removesuffix("_column"): value for name, value in names.items()}
    return Columns(
        text=[name.strip() for name in text_columns.split(",")] if text_columns else None,
        types=dict(_typed(given) for given in types),
        rating_scale=None if rating_scale is None else _scale(rating_scale),
        delimiter=delimiter,
        fold_ids=fold_ids,
        strict=strict,
        **roles,
    )


def _typed(given: str) -> tuple[str, str]:
    """The name and the type of `NAME:TYPE`; a name may hold colons itself."""
    from qkvsearch.data.columns.facts import TYPES

    name, colon, type_ = given.rpartition(":")
    if not colon or type_ not in TYPES:
        raise click.BadParameter(
            f"{given!r}: write NAME:TYPE, TYPE one of {', '.join(TYPES)}", param_hint="--column"
        )
    return name, type_


def _scale(given: str) -> tuple[float, float]:
    """The numbers of `A..B`."""
    lowest, _, highest = given.partition("..")
    try:
        found = float(lowest), float(highest)
    except ValueError:
        found = (0.0, 0.0)
    if not found[0] < found[1] < float("inf"):
        raise click.BadParameter(
            f"{given!r}: write the lowest and the highest rating, such as 1..5",
            param_hint="--rating-scale",
        )
    return found


def _columns_shown(dataset: Dataset, verbose: bool) -> str:
    from qkvsearch.cli.columns import columns_text

    items = [column.to_record() for column in dataset.catalog.columns]
    log = [column.to_record() for column in dataset.log_columns()]
    return columns_text(items, log, verbose).rstrip()


def _counted(dataset: Dataset) -> str:
    counted = quantity(len(dataset.catalog), "item")
    if dataset.interactions is not None:
        log = dataset.interactions
        counted += f", {quantity(log.n_users, 'user')}, {quantity(len(log), 'interaction')}"
    return counted


def _say_models(run: CommandContext, facts: Mapping[str, Any], former: Mapping[str, Any]) -> None:
    """What the models of a build were made with, and what the former build had and it has not."""
    from qkvsearch.index.component import LANGUAGE
    from qkvsearch.index.learned_models import TUNED
    from qkvsearch.storage.publish import NOT_TAKEN_OVER
    from qkvsearch.storage.remote_collections import FACT as KEYS
    from qkvsearch.text.languages import Language

    for reason in former.get(NOT_TAKEN_OVER, ()):
        run.say(f"Not taken over: {reason}.")
    run.say(f"Encoder: {facts['encoder']} ({facts['encoder_chosen']}).")
    run.say(f"Language: {Language(facts[LANGUAGE], facts['language_chosen'])}.")
    if "synonyms" in facts:
        run.say(f"Synonyms: of {quantity(len(facts['synonyms']), 'word')}.")
    if KEYS in facts:
        run.say(f"Keys: {facts[KEYS]['uri']}, collection {facts[KEYS]['collection']}.")
    elif KEYS in former:
        run.say("The former build's keys were in Milvus, and these are here; see build --keys.")
    if "texts_cut" in facts:
        run.say(f"Cut: {facts['texts_cut']}.")
    if "tokens_left_out" in facts:
        run.say(f"Left out: {facts['tokens_left_out']}.")
    if TUNED in facts:
        run.say("Preferences: with the settings that tune found; tune --reset goes back.")
    if "next_item" in former and "next_item" not in facts:
        run.say("The former build's model of what comes next is gone; build --next-item trains it.")
    if counted := columns_counted(facts.get("column_weights", {})):
        run.say(f"How much each column counts: {counted}.")
    if "synonyms" in former and "synonyms" not in facts:
        run.say("The former build's synonyms are gone; build --synonyms FILE gives them again.")
    if "weights_from" in facts:
        run.say(f"The heads' weights were learned from {facts['weights_from']}.")


def columns_counted(weights: Mapping[str, Mapping[str, float]]) -> str:
    """In words what each text column counts in the heads where that is visibly more or less than
    the others; nothing where it is not.

    >>> columns_counted({"lsa": {"title": 0.5, "body": 0.5}, "static": {"title": 0.2, "body": 0.8}})
    'in static title 0.20, body 0.80'
    """
    uneven = {
        head: columns
        for head, columns in weights.items()
        if any(abs(share * len(columns) - 1) > VISIBLE for share in columns.values())
    }
    shown = (
        f"in {head} " + ", ".join(f"{name} {share:.2f}" for name, share in columns.items())
        for head, columns in uneven.items()
    )
    return "; ".join(shown)

"""Evaluation: `qkvsearch evaluate` measures answers."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import (
    Decorator,
    command,
    settings,
    wait_option,
)
from qkvsearch.cli.hits import question_option
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.cli.wrapping import terminal_width
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation

FILE = click.Path(path_type=Path)
# At most this many columns of metrics fit into 80 characters.
MAX_COLUMNS = 6
TEXT_WIDTH = 80


def protocol_option(text: str) -> Decorator:
    return click.option(
        "--protocol",
        type=click.Choice(["random", "leave-last-out", "time", "strong"]),
        default="random",
        show_default=True,
        help=text,
    )


k_option = click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many hits count."
)
seed_option = question_option("random_state", "--seed", default=0, show_default=True)


@click.group(short_help="Measure search and recommendations.")
def evaluate() -> None:
    """Measure how good the answers are, compared with simpler methods.

    \b
    Examples:
      qkvsearch -w talks evaluate search --queries queries.tsv --qrels qrels.tsv
      qkvsearch -w films evaluate recommend --protocol time
    """


@evaluate.command()
@click.option(
    "--queries", type=FILE, required=True, help="Lines of id<TAB>text, without header and quotes."
)
@click.option(
    "--qrels",
    type=FILE,
    required=True,
    help="The correct answers: TREC judgements, or lines of query<TAB>item[<TAB>grade].",
)
@click.option(
    "--heads",
    metavar="NAMES",
    help="The heads to use: lexical, semantic, or a head's name.  [default: all]",
)
@output_options
def search(queries: Path, qrels: Path, heads: str | None, output: Output) -> None:
    """Measure search with queries whose correct answers are known.

    Shows nDCG@10 (linear gains), MRR@10 and Recall@100, averaged over the judged queries as in
    trec_eval, compared with the lexical head alone (BM25). Grades from 1 are relevant; items
    without a judgement are not.

    \b
    Examples:
      qkvsearch -w talks evaluate search --queries queries.tsv --qrels qrels.tsv
      qkvsearch evaluate search --queries q.tsv --qrels qrels.txt --heads lexical --format json
    """
    from qkvsearch.tables.judgements import judged_by

    run = settings()
    # Errors in a file are reported before any work.
    judged = judged_by(queries, qrels)
    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_search(*judged, heads=heads, progress=progress)
    run.notes(result.notes)
    n_queries = result.facts["queries"]
    caption = f"{n_queries:,} judged {'query' if n_queries == 1 else 'queries'}"
    output.write_one(result.to_dict(), result.to_records(), lambda: _search_table(result, caption))


@evaluate.command()
@protocol_option(
    "What to hold out: a fifth of each user's interactions, each user's last one, the last fifth "
    "of all, or a part of those of users who are excluded from training."
)
@k_option
@question_option(
    "users", help="How many users to evaluate, drawn at random; 0 for all.  [default: 2000]"
)
@seed_option
@click.option(
    "--next-item",
    is_flag=True,
    help="Also evaluate the next-item model, with leave-last-out or time (trains it: minutes; "
    "needs qkvsearch[train]).",
)
@output_options
def recommend(output: Output, **options: Any) -> None:
    """Measure recommendations with interactions that are held out of training.

    Learns again from the training part of the log, and ranks the whole catalog without each user's
    history. Shows nDCG, recall, precision, hit rate, MRR and MAP at k, coverage of the catalog,
    novelty and diversity, for both heads together and each alone, compared with the most popular
    items, item-kNN and EASE^R; with ratings also RMSE and MAE, compared with biases alone. Where
    one of these is ahead, says by how much and what to try. With ratings, only items rated in the
    upper half of the scale are relevant. Intervals are bootstrapped over the evaluated users.

    \b
    Examples:
      qkvsearch -w films evaluate recommend
      qkvsearch -w films evaluate recommend --protocol strong -k 20 --format json
      qkvsearch -w films evaluate recommend --protocol time --next-item
    """
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_recommend(**options, progress=progress)
    run.notes(result.notes)
    output.write_one(result.to_dict(), result.to_records(), lambda: _recommend_tables(result))


def _search_table(result: Evaluation, caption: str) -> str:
    """Return a table with a row for each metric and a column for each system."""
    systems = result.systems()
    columns = [("", "left"), *((name, "right") for name in systems)]
    rows = [
        [name, *(f"{figures[name]:.4f}" if name in figures else "" for figures in systems.values())]
        for name in result.metrics
    ]
    return to_table(columns, rows, caption)


def _recommend_tables(result: Evaluation) -> str:
    """Return tables with a row for each system, and sentences about them."""
    names = list(result.metrics)
    facts = result.facts
    users = quantity(facts["users"], "user")
    if facts["users"] < facts["eligible_users"]:
        users = f"{facts['users']:,} of {quantity(facts['eligible_users'], 'user')}"
    sentences = [
        f"{result.protocol}, k = {facts['k']}: {users} evaluated; "
        f"{quantity(facts['train'], 'interaction')} to learn from, {facts['test']:,} held out",
        "* best; ± half of the 95% interval, bootstrapped over users",
        result.verdict(names[0]),
        result.advice(names[0]),
        result.verdict("rmse"),
    ]
    tables = [
        _system_table(result, names[start : start + MAX_COLUMNS])
        for start in range(0, len(names), MAX_COLUMNS)
    ]
    return "\n".join([*tables, *(filled(sentence) for sentence in sentences if sentence)])


def filled(sentence: str) -> str:
    """Wrap a sentence in lines that people can read and the window has room for."""
    return fill(sentence, min(TEXT_WIDTH, terminal_width()), break_on_hyphens=False)


def _system_table(result: Evaluation, names: list[str]) -> str:
    from qkvsearch.evaluation.results import OURS

    columns = [("", "left"), *((name.partition("@")[0], "right") for name in names)]
    rows = []
    for system, figures in result.systems().items():
        if any(name in figures for name in names):
            rows.append([system, *(_marked(result, system, name) for name in names)])
        if system == OURS:
            rows.append(["", *(_spread(result, name) for name in names)])
    return to_table(columns, rows)


def _marked(result: Evaluation, system: str, name: str) -> str:
    """Return a figure, with a star if it is the best."""
    figures = result.systems()[system]
    if name not in figures:
        return ""
    return f"{figures[name]:.4f}{'*' if result.best(name) == system else ' '}"


def _spread(result: Evaluation, name: str) -> str:
    if name not in result.intervals:
        return ""
    low, high = result.intervals[name]
    return f"±{(high - low) / 2:.4f} "

"""Evaluation: `qkvsearch evaluate` measures answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.commands import Decorator, command_group
from qkvsearch.cli.context import CommandContext, settings
from qkvsearch.cli.evaluation_sentences import recommend_sentence, search_sentence
from qkvsearch.cli.hits import question_option
from qkvsearch.cli.plot_option import plot_option, require_plot, write_plot
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.cli.wrapping import filled
from qkvsearch.errors import Count, quantity

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation

FILE = click.Path(path_type=Path)
# At most this many columns of metrics fit into 80 characters.
MAX_COLUMNS = 6


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


@command_group(short_help="Measure search and recommendations.")
def evaluate() -> None:
    """Measure how good the answers are, compared with simpler methods.

    \b
    Examples:
      qkvsearch -w talks evaluate search
      qkvsearch -w films evaluate recommend --protocol time
    """


@evaluate.command()
@click.option(
    "--queries",
    type=FILE,
    help="Lines of id<TAB>text, without header and quotes.  [default: queries made of the catalog]",
)
@click.option(
    "--qrels",
    type=FILE,
    help="The correct answers: TREC judgements, or lines of query<TAB>item[<TAB>grade].",
)
@click.option(
    "--from-clicks",
    is_flag=True,
    help="Measure by the clicks in the log of searches (serve --log-searches).",
)
@click.option(
    "--heads",
    metavar="NAMES",
    help="The heads to use: lexical, semantic, or a head's name.  [default: all]",
)
@question_option("rules", "--rules/--no-rules", show_default=True)
@question_option(
    "random_state", "--seed", default=0, show_default=True, help="Which queries are made."
)
@plot_option
@output_options
def search(
    queries: Path | None,
    qrels: Path | None,
    from_clicks: bool,
    heads: str | None,
    rules: bool,
    random_state: int,
    plot: Path | None,
    output: Output,
) -> None:
    """Measure search, with judged queries, with clicks, or with queries made of the catalog.

    Without --queries, the catalog makes its own: titles with a typo or without a word, sentences of
    descriptions in other words, values of columns, items that are alike. Shows by kind how often
    the right item is first, examples to look at, and what such queries cannot measure.

    With --queries and --qrels, shows nDCG@10 (linear gains), MRR@10 and Recall@100, averaged over
    the judged queries as in trec_eval, compared with the lexical head alone (BM25). Grades from 1
    are relevant; items without a judgement are not.

    With --from-clicks, an item that somebody clicked on is the right one for their query, and the
    figures are means over clicks. Where the log shows how much less people look at later positions,
    clicks there count more; otherwise a line says that this bias is not corrected.

    The owner's rules count. With judged queries and clicks there is then a column for the same
    heads without rules.

    \b
    Examples:
      qkvsearch -w talks evaluate search
      qkvsearch -w talks evaluate search --plot talks.html
      qkvsearch -w talks evaluate search --queries queries.tsv --qrels qrels.tsv
      qkvsearch -w shop evaluate search --from-clicks
      qkvsearch evaluate search --queries q.tsv --qrels qrels.txt --heads lexical --format json
    """
    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels go together: give both, or neither")
    if from_clicks and queries is not None:
        raise click.UsageError(
            "--from-clicks has queries of its own: leave out --queries and --qrels"
        )
    require_plot(plot, output.path)
    run = settings()
    if from_clicks:
        _search_by_clicks(run, heads, rules, plot, output)
        return
    if queries is None or qrels is None:
        _search_by_made_queries(run, heads, rules, random_state, plot, output)
        return
    from qkvsearch.tables.judgements import judged_by

    # Errors in a file are reported before any work.
    judged = judged_by(queries, qrels)
    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_search(*judged, heads=heads, rules=rules, progress=progress)
    run.notes(result.notes)
    n_queries = result.facts["queries"]
    caption = f"{n_queries:,} judged {'query' if n_queries == 1 else 'queries'}"

    def shown() -> str:
        return f"{filled(search_sentence(result))}\n\n{_search_table(result, caption)}"

    output.write_one(result.to_dict(), result.to_records(), shown)
    write_plot(result, plot)


def _search_by_clicks(
    run: CommandContext, heads: str | None, rules: bool, plot: Path | None, output: Output
) -> None:
    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_search(
            from_clicks=True, heads=heads, rules=rules, progress=progress
        )
    run.notes(result.notes)
    clicks = quantity(result.facts["clicks"], "click")
    n = Count(result.facts["queries"])
    caption = f"{clicks} on hits of {n} {n:query|queries}"

    def shown() -> str:
        sentence = filled(search_sentence(result, "the items that people clicked on"))
        limits = map(filled, result.sentences())
        table = _search_table(result, caption).rstrip("\n")
        return "\n".join([sentence, "", table, "", *limits]) + "\n"

    output.write_one(result.to_dict(), result.to_records(), shown)
    write_plot(result, plot)


def _search_by_made_queries(
    run: CommandContext,
    heads: str | None,
    rules: bool,
    random_state: int,
    plot: Path | None,
    output: Output,
) -> None:
    from qkvsearch.cli.made_queries import report
    from qkvsearch.evaluation.made_queries.report import MadeEvaluation

    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_search(
            heads=heads, rules=rules, random_state=random_state, progress=progress
        )
    assert isinstance(result, MadeEvaluation)
    run.notes(result.notes)
    output.write_one(result.to_dict(), result.to_records(), lambda: report(result))
    write_plot(result, plot)


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
@click.option(
    "--test",
    type=FILE,
    help="Your own held-out interactions, a file like the log of the build, instead of a "
    "--protocol. The build is judged as it is, for all users of the test.",
)
@click.option(
    "--recommendations",
    type=FILE,
    multiple=True,
    help="With --test: somebody else's recommendations, judged beside ours and named by the file: "
    "columns user, rank and id, as recommend --all-users writes them; repeatable.",
)
@plot_option
@output_options
def recommend(plot: Path | None, output: Output, **options: Any) -> None:
    """Measure recommendations with interactions that are held out of training, by a protocol or in
    a file of your own.

    Learns again from the training part of the log, and ranks the whole catalog without each user's
    history. Shows nDCG, recall, precision, hit rate, MRR and MAP at k, coverage of the catalog,
    novelty and diversity, for both heads together and each alone, compared with the most popular
    items, item-kNN and EASE^R; with ratings also RMSE and MAE, compared with biases alone. Where
    one of these is ahead, says by how much and what to try. With ratings, only items rated in the
    upper half of the scale are relevant. Intervals are bootstrapped over the evaluated users.

    With --test, nothing is learned again: the log of the build is the training part. Users without
    a history in it, and items that a user had before, are left out and counted.

    \b
    Examples:
      qkvsearch -w films evaluate recommend
      qkvsearch -w films evaluate recommend --protocol strong -k 20 --format json
      qkvsearch -w films evaluate recommend --protocol time --next-item
      qkvsearch -w films evaluate recommend --plot films.png
      qkvsearch -w films evaluate recommend --test june.csv --recommendations theirs.csv
    """
    require_plot(plot, output.path)
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        result = engine.evaluate_recommend(**options, progress=progress)
    run.notes(result.notes)
    output.write_one(result.to_dict(), result.to_records(), lambda: _recommend_tables(result))
    write_plot(result, plot)


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
    """Return what the figures mean, tables with a row for each system, and sentences about them."""
    names = list(result.metrics)
    facts = result.facts
    users = quantity(facts["users"], "user")
    if facts["users"] < facts["eligible_users"]:
        users = f"{facts['users']:,} of {quantity(facts['eligible_users'], 'user')}"
    sentences = [
        f"{result.protocol}, k = {facts['k']}: {users} evaluated; "
        f"{quantity(facts['train'], 'interaction')} to learn from, {facts['test']:,} held out",
        "* best; ± half of the 95% interval, bootstrapped over users",
        *map(settings().hint, result.sentences()),
    ]
    tables = [
        _system_table(result, names[start : start + MAX_COLUMNS])
        for start in range(0, len(names), MAX_COLUMNS)
    ]
    return "\n".join([filled(recommend_sentence(result)), "", *tables, *map(filled, sentences)])


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

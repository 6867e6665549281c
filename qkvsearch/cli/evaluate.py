"""`qkvsearch evaluate` and `tune`: how good the answers are, and settings that make them better."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import CommandContext, engine_option, seed_option, settings, wait_option
from qkvsearch.cli.render import Output, output_options, to_table

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation
    from qkvsearch.evaluation.tuning import Trial, Tuning

FILE = click.Path(path_type=Path)
# At most 6 columns of figures fit into 80 characters.
FIGURES_ABREAST = 6
TEXT_WIDTH = 80
# Trials shown at a time, the furthest and best first.
SHOWN_TRIALS = 12


@click.group(short_help="Measure searches and recommendations.")
def evaluate() -> None:
    """Measure how good the answers are, beside those of simpler methods.

    \b
    Examples:
      qkvsearch -w talks evaluate search --queries queries.tsv --qrels qrels.tsv
      qkvsearch -w films evaluate recommend --protocol time
    """


@evaluate.command()
@click.option(
    "--queries", type=FILE, required=True, help="Lines of id<TAB>text; no header, no quoting."
)
@click.option(
    "--qrels",
    type=FILE,
    help="The right answers: TREC judgements, or lines of query<TAB>item[<TAB>grade].",
)
@click.option(
    "--heads",
    metavar="NAMES",
    help="Which heads score: lexical, semantic, or one by its name.  [default: all]",
)
@click.option(
    "--against",
    type=click.Choice(["local"]),
    help="In place of --qrels, where keys are elsewhere (build --keys): how many of the ten best "
    "hits are found that this machine would find with all keys in its memory.",
)
@output_options
def search(
    queries: Path, qrels: Path | None, heads: str | None, against: str | None, output: Output
) -> None:
    """Measure search by queries whose right answers are known.

    nDCG@10 (linear gains), MRR@10 and Recall@100, averaged over the judged queries as trec_eval
    does it, beside the words alone (BM25). Grades from 1 up are relevant; what nobody judged is
    not.

    \b
    Examples:
      qkvsearch -w talks evaluate search --queries queries.tsv --qrels qrels.tsv
      qkvsearch evaluate search --queries q.tsv --qrels qrels.txt --heads lexical --format json
      qkvsearch -w talks evaluate search --queries queries.tsv --against local
    """
    from qkvsearch.data.judgements import judged_by, read_queries

    if (qrels is None) == (against is None):
        raise click.UsageError("give --qrels to judge by, or --against to compare with")
    run = settings()
    # What is wrong with a file is said before any work.
    asked = judged_by(queries, qrels) if qrels is not None else (read_queries(queries), None)
    assert asked is not None
    engine = run.open()
    names = [name.strip() for name in heads.split(",")] if heads is not None else None
    with run.progress() as progress:
        found = engine.evaluate_search(*asked, heads=names, against=against, progress=progress)
    run.say_notes(found.notes)
    caption = f"{found.facts['queries']:,} {'queries' if against else 'judged queries'}"
    output.write_one(found.to_dict(), found.to_records(), lambda: _table(found, caption))


@evaluate.command()
@click.option(
    "--protocol",
    type=click.Choice(["random", "leave-last-out", "time", "strong"]),
    default="random",
    show_default=True,
    help="What is held out: a fifth of each user's log, each user's latest, the latest fifth of "
    "all, or part of the log of users whom training never sees.",
)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many count."
)
@click.option(
    "--users",
    type=click.IntRange(min=0),
    help="How many users are judged, drawn at random where there are more; 0 for all.  "
    "[default: 2000]",
)
@seed_option
@click.option(
    "--next-item",
    is_flag=True,
    help="Also judge the model of what comes next, under leave-last-out or time (trains it: "
    "minutes; needs qkvsearch[train]).",
)
@engine_option
@output_options
def recommend(output: Output, **options: Any) -> None:
    """Measure recommendations by interactions held out of training.

    Learns anew from the train part of the workspace's log, ranks the whole catalog but for each
    user's history, and gives nDCG, recall, precision, hit rate, MRR and MAP at k, how much of the
    catalog is covered, novelty and diversity, beside the most popular items, item-kNN and EASE^R;
    RMSE and MAE where there are ratings, beside biases alone. With ratings, only what was rated in
    the upper half of the scale is relevant. Intervals are by the bootstrap over the users judged:
    all, or a sample where there are many.

    \b
    Examples:
      qkvsearch -w films evaluate recommend
      qkvsearch -w films evaluate recommend --protocol strong -k 20 --format json
      qkvsearch -w films evaluate recommend --protocol time --next-item
    """
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        found = engine.evaluate_recommend(**options, progress=progress)
    run.say_notes(found.notes)
    output.write_one(found.to_dict(), found.to_records(), lambda: _recommend_tables(found))


def _table(found: Evaluation, caption: str) -> str:
    """A line a figure, a column a system."""
    systems = found.systems()
    columns = [("", "left"), *((name, "right") for name in systems)]
    rows = [
        [name, *(f"{figures[name]:.4f}" if name in figures else "" for figures in systems.values())]
        for name in found.metrics
    ]
    return to_table(columns, rows, caption)


def _recommend_tables(found: Evaluation) -> str:
    """A line a system, in tables of as many figures as fit side by side, and what they say."""
    names = list(found.metrics)
    facts = found.facts
    sampled = facts["users"] < facts["eligible_users"]
    of_all = f" of {facts['eligible_users']:,}" if sampled else ""
    said = [
        f"{found.protocol}, k = {facts['k']}: {facts['users']:,}{of_all} users judged; "
        f"{facts['train']:,} interactions learned from, {facts['test']:,} held out",
        "* best; ± half of the 95% interval, by the bootstrap over users",
        *(found.verdict(name) for name in (names[0], "rmse")),
    ]
    tables = [
        _system_table(found, names[start : start + FIGURES_ABREAST])
        for start in range(0, len(names), FIGURES_ABREAST)
    ]
    return "\n".join([*tables, *(fill(line, TEXT_WIDTH) for line in said if line)])


def _system_table(found: Evaluation, names: list[str]) -> str:
    from qkvsearch.evaluation.results import OURS

    columns = [("", "left"), *((name.partition("@")[0], "right") for name in names)]
    rows = []
    for system, figures in found.systems().items():
        if any(name in figures for name in names):
            rows.append([system, *(_marked(found, system, name) for name in names)])
        if system == OURS:
            rows.append(["", *(_spread(found, name) for name in names)])
    return to_table(columns, rows)


def _marked(found: Evaluation, system: str, name: str) -> str:
    """A figure, with a star where it is the best."""
    figures = found.systems()[system]
    if name not in figures:
        return ""
    return f"{figures[name]:.4f}{'*' if found.best(name) == system else ' '}"


def _spread(found: Evaluation, name: str) -> str:
    if name not in found.intervals:
        return ""
    low, high = found.intervals[name]
    return f"±{(high - low) / 2:.4f} "


@click.command(short_help="Find settings that suit your log.")
@click.option(
    "--protocol",
    type=click.Choice(["random", "leave-last-out", "time", "strong"]),
    default="random",
    show_default=True,
    help="What is held out to judge by, as in evaluate recommend.",
)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="nDCG at how many."
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop searching in time to be done by then.  [default: 5; no limit with --trials]",
)
@click.option(
    "--trials", type=click.IntRange(min=1), help="How many random settings to try.  [default: 27]"
)
@seed_option
@click.option("--reset", is_flag=True, help="Go back to the default settings, without a search.")
@engine_option
@wait_option
@output_options
def tune(reset: bool, output: Output, **options: Any) -> None:
    """Search for settings of the recommender that suit the workspace's log.

    Random settings learn for a while, the better ones for longer (successive halving), judged by
    nDCG at k on a validation part of the log, the default settings and those in use among them. The
    best, the default ones and those in use are judged once on a test part that the search never
    saw. Then the preferences are learned with the best from the whole log, unless they are in use
    already or the test part says that they are worse, and the workspace takes them over. Until then
    it stays as it is: Ctrl-C leaves no trace.

    \b
    Examples:
      qkvsearch -w films tune --minutes 10
      qkvsearch -w films tune --protocol time --trials 27
      qkvsearch -w films tune --reset
    """
    run = settings()
    engine = run.open_own()
    if reset:
        with run.progress() as progress:
            engine.reset_tuning(progress=progress)
        run.say(f"{engine.workspace.path}: preferences learned with the default settings.")
        return
    with _live(run) as callback:
        found = engine.tune(**options, callback=callback)
    run.say_notes(found.notes)
    output.write_one(found.to_dict(), found.to_records(), lambda: _tuning_table(found))


@contextmanager
def _live(run: CommandContext) -> Iterator[Callable[[list[Trial]], None]]:
    """Trials as a live table on stderr where that is a terminal, otherwise a line each."""
    if run.quiet or not sys.stderr.isatty():
        yield lambda trials: run.say(_line(trials[-1]))
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        yield lambda trials: live.update(_live_table(trials), refresh=True)


def _line(trial: Trial) -> str:
    return (
        f"{trial.name}: {trial.figure:.4f} after {trial.share:.0%} of the iterations "
        f"({trial.seconds:.1f} s) {_words(trial.settings)}".rstrip()
    )


def _live_table(trials: list[Trial]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=f"{len(trials)} trials", title_justify="left")
    for heading in ("", "learned", "validation", "seconds"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    table.add_column(" ".join(trials[-1].settings), no_wrap=True)
    order = sorted(trials, key=lambda trial: (-trial.share, -trial.figure))
    for trial in order[:SHOWN_TRIALS]:
        table.add_row(
            trial.name,
            f"{trial.share:.0%}",
            f"{trial.figure:.4f}",
            f"{trial.seconds:.1f}",
            " ".join(f"{value:g}" for value in trial.settings.values()),
        )
    return table


def _words(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in found.items())


def _tuning_table(found: Tuning) -> str:
    """Default and what was in use beside tuned, and what became of it."""
    columns = [(found.metric, "left"), ("validation", "right"), ("test", "right")]
    rows = [
        [row["system"].replace("_", " "), f"{row['validation']:.4f}", f"{row['test']:.4f}"]
        for row in found.to_records()
    ]
    return f"{to_table(columns, rows)}{_verdict(found)}\n"


def _verdict(found: Tuning) -> str:
    compared = "those in use" if found.in_use else "the default ones"
    if found.settings == found.in_use:
        return f"No settings were better than {compared}: nothing is changed."
    low, high = found.interval
    by_chance = ", which could be chance" if low <= 0 <= high else ""
    said = (
        f"On the test part {found.difference:+.4f} beside {compared}{by_chance}\n"
        f"(95% interval {low:+.4f} to {high:+.4f})"
    )
    if not found.worthwhile:
        return f"{said}: worse, so nothing is changed."
    if not found.settings:
        return f"{said}.\nNow in use: the default settings"
    back = "Back to the default ones: qkvsearch tune --reset"
    return f"{said}.\nNow in use: {_words(found.settings)}\n{back}"

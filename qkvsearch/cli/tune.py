"""`qkvsearch tune`: settings that suit this log better than the default ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import Settings, settings
from qkvsearch.cli.render import Output, output_options, to_table
from qkvsearch.errors import WorkspaceError

if TYPE_CHECKING:
    from qkvsearch.evaluation.tuning import Trial, Tuning

DEFAULT_MINUTES = 5.0
# Trials shown at a time, the furthest and best first.
SHOWN_TRIALS = 12


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
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is random."
)
@click.option("--reset", is_flag=True, help="Go back to the default settings, without a search.")
@output_options
def command(
    protocol: str,
    k: int,
    minutes: float | None,
    trials: int | None,
    seed: int,
    reset: bool,
    output: Output,
) -> None:
    """Search for settings of the recommender that suit the workspace's log.

    Random settings learn for a while, the better ones for longer (successive halving), judged by
    nDCG at k on a validation part of the log. The best, or the default settings if none is better,
    are judged once on a test part that the search never saw. Then the tastes are learned with them
    from the whole log, unless the test part says that they are worse, and the workspace takes them
    over. Until then it stays as it is: Ctrl-C leaves no trace.

    \b
    Examples:
      qkvsearch -w films tune --minutes 10
      qkvsearch -w films tune --protocol time --trials 27
      qkvsearch -w films tune --reset
    """
    run = settings()
    path = run.named_workspace()
    if path is None:
        raise click.UsageError("name a workspace to tune: qkvsearch -w DIR tune")
    from qkvsearch.revision.tastes import learn_tastes

    if reset:
        with run.progress() as progress:
            learn_tastes(path, None, progress)
        run.say(f"{path}: tastes learned with the default settings.")
        return
    from qkvsearch.evaluation.tuning import tune

    engine = run.open(sample="movies")
    log = engine.models.log()
    if log is None:
        raise WorkspaceError(
            f"{path}: nobody's interactions are here to learn from; build with --interactions FILE"
        )
    limit = DEFAULT_MINUTES if minutes is None and trials is None else minutes
    with _told(run) as told:
        found = tune(
            log,
            protocol,
            k=k,
            trials=trials or 27,
            minutes=limit,
            keys=engine.models.dense_keys(engine.models.main_head).vectors,
            random_state=seed,
            told=told,
        )
    engine.close()
    if found.out_of_time:
        run.say("The time was up before all settings were tried: --minutes gives it more.")
    if found.worthwhile:
        kept = {"protocol": protocol, "seed": seed, "settings": found.settings}
        with run.progress() as progress:
            learn_tastes(path, kept, progress)
    output.write_one(found.to_dict(), found.to_records(), lambda: _table(found))


@contextmanager
def _told(run: Settings) -> Iterator[Callable[[list[Trial]], None]]:
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
        f"{_name(trial)}: {trial.figure:.4f} after {trial.share:.0%} of the iterations "
        f"({trial.seconds:.1f} s) {_words(trial.settings)}".rstrip()
    )


def _live_table(trials: list[Trial]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=f"{len(trials)} trials", title_justify="left")
    for heading in ("", "learnt", "validation", "seconds"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    table.add_column(" ".join(trials[-1].settings), no_wrap=True)
    order = sorted(trials, key=lambda trial: (-trial.share, -trial.figure))
    for trial in order[:SHOWN_TRIALS]:
        table.add_row(
            _name(trial),
            f"{trial.share:.0%}",
            f"{trial.figure:.4f}",
            f"{trial.seconds:.1f}",
            " ".join(f"{value:g}" for value in trial.settings.values()),
        )
    return table


def _name(trial: Trial) -> str:
    return f"trial {trial.number}" if trial.number else "default"


def _words(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in found.items())


def _table(found: Tuning) -> str:
    """Default beside tuned, and what became of it."""
    columns = [(found.metric, "left"), ("validation", "right"), ("test", "right")]
    rows = [
        [row["system"], f"{row['validation']:.4f}", f"{row['test']:.4f}"]
        for row in found.to_records()
    ]
    low, high = found.interval
    by_chance = ", which could be chance" if low <= 0 <= high else ""
    if not found.settings:
        said = "No settings were better than the default ones: nothing is changed."
    elif found.worthwhile:
        said = (
            f"On the test part {found.difference:+.4f}{by_chance} (95% interval {low:+.4f} to "
            f"{high:+.4f}).\nNow in use: {_words(found.settings)}\nBack: qkvsearch tune --reset"
        )
    else:
        said = (
            f"On the test part {found.difference:+.4f} (95% interval {low:+.4f} to {high:+.4f}): "
            "worse,\nso nothing is changed."
        )
    return f"{to_table(columns, rows)}{said}\n"

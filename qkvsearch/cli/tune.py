"""`qkvsearch tune`: settings that suit this log better than those in use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import CommandContext, engine_option, seed_option, settings
from qkvsearch.cli.render import Output, output_options, to_table
from qkvsearch.cli.writing import wait_option

if TYPE_CHECKING:
    from qkvsearch.evaluation.tuning import Trial, Tuning

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
@seed_option
@click.option("--reset", is_flag=True, help="Go back to the default settings, without a search.")
@engine_option
@wait_option
@output_options
def command(reset: bool, output: Output, **options: Any) -> None:
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
    output.write_one(found.to_dict(), found.to_records(), lambda: _table(found))


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


def _table(found: Tuning) -> str:
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

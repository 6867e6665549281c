"""`qkvsearch tune`: find better settings of recommendations, and `tune search`, of searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from qkvsearch.cli.commands import command_with_others, wait_option
from qkvsearch.cli.context import settings
from qkvsearch.cli.evaluate import FILE, k_option, protocol_option, seed_option
from qkvsearch.cli.hits import question_option
from qkvsearch.cli.render import Output, output_options
from qkvsearch.cli.text_table import to_table
from qkvsearch.cli.wrapping import filled
from qkvsearch.errors import listed_names, quantity

if TYPE_CHECKING:
    from qkvsearch.evaluation.search_tuning import SearchTuning
    from qkvsearch.evaluation.tuning import Trial, Tuning

BACK = "Back to the default ones: qkvsearch tune --reset"


@command_with_others(short_help="Find settings that suit your log, or your searches.")
@protocol_option("What to hold out for the evaluation, as in evaluate recommend.")
@k_option
@question_option("minutes", help="The time limit.  [default: 5; none with --trials]")
@question_option("trials", help="How many random settings to try.  [default: 27]")
@seed_option
@click.option(
    "--reset",
    is_flag=True,
    help="Go back to the default settings of recommendations and searches.",
)
@wait_option
@output_options
@click.pass_context
def tune(context: click.Context, reset: bool, output: Output, **options: Any) -> None:
    """Search for settings of the recommender that suit the workspace's log.

    The settings are those of both heads, which are judged together: first the number of neighbours
    and their penalty, then the embeddings. Random settings of these learn for a few iterations, the
    better ones for more (successive halving). They are evaluated by nDCG at k on a validation part
    of the log, like the default settings and those in use. The best settings, the default ones and
    those in use are then learned as by a build, with the shares of the heads, and evaluated once on
    a test part that the search has not seen. Unless the best are in use already or worse on the
    test part, preferences are learned with them from the whole log, and the workspace uses them.
    Until then nothing changes, and Ctrl-C leaves no trace.

    The settings of searches are found by tune search. With --reset, both are the default ones
    again: answers are those from before, to the last bit.

    \b
    Examples:
      qkvsearch -w films tune --minutes 10
      qkvsearch -w films tune --protocol time --trials 27
      qkvsearch -w talks tune search
      qkvsearch -w films tune --reset
    """
    if context.invoked_subcommand is not None:
        _refuse_own_options(context)
        return
    run = settings()
    engine = run.open_writable()
    if reset:
        with run.progress() as progress:
            were_tuned = engine.reset_tuning(progress=progress)
        run.message(f"{engine.workspace.path}: {_reset_text(were_tuned)}")
        return
    result = engine.tune(**options, callback=lambda trials: run.message(_line(trials[-1])))
    run.notes(result.notes)
    output.write_one(
        result.to_dict(), result.to_records(), lambda: _tuning_table(result, run.hint(BACK))
    )


def _refuse_own_options(context: click.Context) -> None:
    """Raise `UsageError` for an option before the name of another command, which has its own."""
    for param in context.command.params:
        is_typed = context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        if is_typed and param.expose_value:
            name, other = param.opts[0], context.invoked_subcommand
            # Both commands are reset at once, by tune alone.
            instead = "tune --reset" if name == "--reset" else f"tune {other} {name} …"
            raise click.UsageError(f"{name} comes before the command {other}: write {instead}")


def _reset_text(were_tuned: Sequence[str]) -> str:
    if not were_tuned:
        return "the default settings are in use already; nothing is changed."
    learned = ""
    if "recommendations" in were_tuned:
        learned = "; preferences are learned with them"
    return f"the default settings of {listed_names(were_tuned)} are in use again{learned}."


def _line(trial: Trial) -> str:
    return (
        f"{trial.name}: {trial.figure:.4f} after {trial.share:.0%} of the iterations "
        f"({trial.seconds:.1f} s) {_settings_text(trial.settings)}".rstrip()
    )


def _settings_text(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


def _tuning_table(result: Tuning, back: str = BACK) -> str:
    """Return the figures of the default settings, those in use and the best, and a conclusion."""
    columns = [(result.metric, "left"), ("validation", "right"), ("test", "right")]
    rows = [
        [row["system"].replace("_", " "), f"{row['validation']:.4f}", f"{row['test']:.4f}"]
        for row in result.to_records()
    ]
    return f"{to_table(columns, rows)}{_conclusion(result, back)}\n"


def _conclusion(result: Tuning, back: str) -> str:
    compared = "those in use" if result.in_use else "the default ones"
    if result.settings == result.in_use:
        return filled(f"No settings were better than {compared}: nothing is changed.")
    low, high = result.interval
    by_chance = ", which could be chance" if low <= 0 <= high else ""
    difference = f"On the test part {result.difference:+.4f} compared with {compared}{by_chance}"
    interval = f"(95% interval {low:+.4f} to {high:+.4f})"
    if not result.worthwhile:
        sentences = [difference, f"{interval}: worse, so nothing is changed."]
    elif not result.settings:
        sentences = [difference, f"{interval}.", "Now in use: the default settings"]
    else:
        in_use = f"Now in use: {_settings_text(result.settings)}"
        sentences = [difference, f"{interval}.", in_use, back]
    return "\n".join(map(filled, sentences))


# --- searches ---


@tune.command(short_help="Find settings of searches that find more.")
@question_option("minutes", help="The time limit.  [default: 5]")
@seed_option
@click.option("--queries", type=FILE, help="Judged queries, too: lines of id<TAB>text.")
@click.option("--qrels", type=FILE, help="Their correct answers, as for evaluate search.")
@wait_option
@output_options
def search(queries: Path | None, qrels: Path | None, output: Output, **options: Any) -> None:
    """Search for settings of searches that find more of the right items.

    The settings are the weights of heads, the weights of text columns in the items' keys, the
    weight of the second pass, and how much words of the same family count. They are judged by
    queries that the catalog makes of itself, as in evaluate search, and by judged queries where
    you give some. Half of the items is held out, with the queries about them. On the other half,
    each weight in turn is doubled or halved. Such a step is taken if it is better by more than its
    standard error. At the end the held-out half compares the settings that were found with those
    in use. The workspace uses them if they are better there by more than chance, change the rank
    of at least six items, and are worse for no kind of query. Until then nothing changes, and
    Ctrl-C leaves no trace.

    Made queries cannot tell everything. On short texts they set the weights of heads alone, and on
    long ones those of columns, and families of words. Kinds that nearly always find their item set
    nothing. Judged queries set everything. Only searches change: similar items and recommendations
    stay as they are.

    \b
    Examples:
      qkvsearch -w talks tune search
      qkvsearch -w talks tune search --minutes 1 --seed 3 --format json
      qkvsearch -w talks tune search --queries queries.tsv --qrels qrels.tsv
    """
    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels go together: give both, or neither")
    run = settings()
    engine = run.open_writable()
    with run.progress() as progress:
        result = engine.tune_search(queries=queries, qrels=qrels, **options, progress=progress)
    run.notes(result.notes)
    output.write_one(
        result.to_dict(), result.to_records(), lambda: _search_table(result, run.hint(BACK))
    )


def search_settings_text(values: Mapping[str, Any]) -> str:
    """Return settings of searches in a line.

    >>> search_settings_text({"heads": {"lexical": 0.4, "lsa": 0.6}, "second_pass": 0.5})
    'heads lexical 0.4, lsa 0.6; second pass 0.5'
    """
    texts = []
    for part, value in values.items():
        text = f"{value:g}" if not isinstance(value, Mapping) else _settings_text(dict(value))
        texts.append(f"{part.replace('_', ' ')} {text}")
    return "; ".join(texts)


def _search_table(result: SearchTuning, back: str = BACK) -> str:
    """Return the figures of both settings on the held-out half by kind, and a conclusion."""
    if not result.kinds:
        return f"{filled('Nothing was tried, and nothing is changed.')}\n"
    columns = [
        (result.metric, "left"),
        ("queries", "right"),
        ("in use", "right"),
        ("tuned", "right"),
        ("difference", "right"),
    ]
    rows = []
    for row in result.to_records():
        low, high = row["interval"]
        rows.append(
            [
                row["kind"].replace("_", " "),
                f"{row['queries']:,}",
                f"{row['in_use']:.4f}",
                f"{row['tuned']:.4f}",
                f"{row['difference']:+.4f} ± {(high - low) / 2:.4f}",
            ]
        )
    return f"{to_table(columns, rows)}{_search_conclusion(result, back)}\n"


def _search_conclusion(result: SearchTuning, back: str) -> str:
    compared = "those in use" if result.in_use else "the default ones"
    if result.settings == result.in_use:
        return filled(f"No settings are known to be better than {compared}: nothing is changed.")
    found = search_settings_text(result.settings) or "the default settings"
    if not result.changed:
        return filled(
            f"On the held-out half nothing is found otherwise than by {compared}: nothing is "
            f"changed. Tried: {found}."
        )
    low, high = result.interval
    difference = (
        f"On the held-out half {result.difference:+.4f} compared with {compared} (95% interval "
        f"{low:+.4f} to {high:+.4f})"
    )
    if result.worse:
        kinds = listed_names([kind.replace("_", " ") for kind in result.worse])
        return filled(f"{difference}, but worse for {kinds}: nothing is changed. Tried: {found}.")
    if not result.worthwhile:
        few = f" of {quantity(result.changed, 'item')}" if low > 0 else ""
        return filled(
            f"{difference}{few}, which could be chance: nothing is changed. Best of what was "
            f"tried: {found}."
        )
    sentences = [f"{difference}.", f"Now in use: {found}"]
    if result.settings:
        sentences.append(back)
    return "\n".join(map(filled, sentences))

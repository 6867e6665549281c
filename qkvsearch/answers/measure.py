"""How good recommendations are by a build's own log, and settings that make them better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from qkvsearch.answers.arguments import check, check_cutoff
from qkvsearch.evaluation import recommend, tuning
from qkvsearch.evaluation.report import Evaluation
from qkvsearch.evaluation.tuning import Trial, Tuning
from qkvsearch.progress import Progress
from qkvsearch.stored import TUNED, StoredModels

# A search for settings where neither its length nor its time is given.
TRIALS, MINUTES = 27, 5.0


def evaluate_recommend(
    models: StoredModels,
    protocol: str,
    k: int,
    random_state: int,
    next_item: bool,
    progress: Progress | None,
) -> Evaluation:
    """By interactions held out of the log, with the settings in use; `notes` say what was left out.

    Raises `WorkspaceError` where there is no log, `QkvError` for what it cannot be judged by.
    """
    check_cutoff(k)
    check(random_state=random_state)
    log = models.log("judge by")
    tuned = _tuned(models)
    found = recommend.evaluate_recommend(
        log,
        protocol,
        k=k,
        settings=tuned.get("settings"),
        keys=models.dense_keys(models.main_head).vectors,
        next_item=next_item,
        random_state=random_state,
        progress=progress,
    )
    notes: list[str] = []
    if tuned:
        notes.append(
            f"With the settings that tune found by `protocol` {tuned['protocol']}; under another "
            "protocol or seed they may have been chosen by what is held out here."
        )
    if n_recorded := models.snapshot.tables.records.count():
        notes.append(f"Left out: {n_recorded:,} recorded interactions.")
    return replace(found, notes=[*notes, *found.notes])


def search_settings(
    models: StoredModels,
    protocol: str,
    k: int,
    trials: int | None,
    minutes: float | None,
    random_state: int,
    callback: Callable[[list[Trial]], None] | None,
    progress: Progress | None,
) -> Tuning:
    """Settings that suit the log, judged beside those in use; nothing is changed.

    Raises `WorkspaceError` where there is no log, `QkvError` for what it cannot be split by.
    """
    check_cutoff(k)
    check(trials=trials, minutes=minutes, random_state=random_state)
    return tuning.tune(
        models.log("learn from"),
        protocol,
        k=k,
        trials=trials or TRIALS,
        minutes=MINUTES if minutes is None and trials is None else minutes,
        keys=models.dense_keys(models.main_head).vectors,
        in_use=_tuned(models).get("settings"),
        random_state=random_state,
        callback=callback,
        progress=progress,
    )


def _tuned(models: StoredModels) -> dict[str, Any]:
    """What `tune` found for this build, and how; nothing where the default settings are used."""
    return dict(models.snapshot.facts.get(TUNED, {}))

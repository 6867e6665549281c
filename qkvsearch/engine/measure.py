"""Evaluate and tune a build with its log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.validation import check_whole
from qkvsearch.evaluation import recommend_protocol, tuning
from qkvsearch.evaluation.results import Evaluation
from qkvsearch.evaluation.tuning import Tuning
from qkvsearch.index import StoredModels
from qkvsearch.index.learned_models import TUNED
from qkvsearch.search.options import check

if TYPE_CHECKING:
    pass

# The default limits of tuning.
TRIALS, MINUTES = 27, 5.0


def evaluate_recommend(
    models: StoredModels, k: int, random_state: int, users: int | None = None, **options: Any
) -> Evaluation:
    """Evaluate with the log and the settings in use. Raises `WorkspaceError` without a log."""
    check_whole("k", k)
    check(random_state=random_state, users=users)
    tuned = models.snapshot.facts.get(TUNED) or {}
    evaluation = recommend_protocol.evaluate_recommend(
        models.log("judge by"),
        k=k,
        users=recommend_protocol.N_USERS if users is None else users,
        settings=tuned.get("settings"),
        keys=np.asarray(models.dense_keys(models.main_head).vectors),
        random_state=random_state,
        **options,
    )
    notes: list[str] = []
    if tuned:
        notes.append(
            f"With the settings that tune found with `protocol` {tuned['protocol']}; with another "
            "protocol or seed they may have been chosen by interactions that are held out here."
        )
    if n_recorded := models.snapshot.catalog.records.count():
        notes.append(f"Left out: {n_recorded:,} recorded interactions.")
    return replace(evaluation, notes=[*notes, *evaluation.notes])


def search_settings(
    models: StoredModels,
    k: int,
    trials: int | None,
    minutes: float | None,
    random_state: int,
    **options: Any,
) -> Tuning:
    """Tune with the log, from the settings in use. Raises `WorkspaceError` without a log."""
    check_whole("k", k)
    check(trials=trials, minutes=minutes, random_state=random_state)
    return tuning.tune(
        models.log("learn from"),
        k=k,
        trials=trials or TRIALS,
        minutes=MINUTES if minutes is None and trials is None else minutes,
        keys=np.asarray(models.dense_keys(models.main_head).vectors),
        in_use=models.snapshot.facts.get(TUNED, {}).get("settings"),
        random_state=random_state,
        **options,
    )

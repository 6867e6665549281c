"""Evaluate and tune a build with its log, and compare remote keys with an exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.validation import check_whole
from qkvsearch.data.judgements import Queries, read_queries
from qkvsearch.errors import QkvError
from qkvsearch.evaluation import recommend_protocol, tuning
from qkvsearch.evaluation.results import Evaluation
from qkvsearch.evaluation.search_protocol import Answer, compare_with_exact
from qkvsearch.evaluation.tuning import Tuning
from qkvsearch.index import StoredModels
from qkvsearch.index.dense import DenseComponent
from qkvsearch.index.learned_models import TUNED
from qkvsearch.retrieval import DenseKeys
from qkvsearch.search.options import check

if TYPE_CHECKING:
    from qkvsearch.engine.open_build import OpenBuild

# The default limits of tuning.
TRIALS, MINUTES = 27, 5.0


def evaluate_against(
    build: OpenBuild,
    exact: str,
    queries: str | Path | Queries,
    heads: list[str] | None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare a build with remote keys to the same build with its keys read into memory, where they
    are scored as those of any other build. Raises `QkvError`.
    """
    if exact != "local":
        raise QkvError(f"`against` is local, not {exact!r}")
    if build.models.key_store is None:
        raise QkvError(
            f"{build.workspace.path}: this build has local keys; `against` is for a build "
            "with remote `keys`"
        )
    texts = queries if isinstance(queries, dict) else read_queries(queries)
    with closing(type(build)(build.workspace)) as local:
        for done, head in enumerate(names := local.models.dense_heads, 1):
            stored = local.models.load(DenseComponent(head))
            vars(stored)["keys"] = DenseKeys(np.asarray(stored.keys.vectors))
            if progress is not None:
                progress("reading keys", done, len(names))

        def answering(of: OpenBuild) -> Answer:
            return lambda text, k: of.search(text, k=k, heads=heads)

        return compare_with_exact(
            answering(build), answering(local), list(texts.values()), progress
        )


@contextmanager
def learner(engine: str | None) -> Iterator[Callable[..., Any] | None]:
    """Return an estimator for preferences on Spark, or None for this machine. Raises `QkvError`."""
    if engine is None:
        yield None
        return
    from qkvsearch.engines.spark.als import learner_on

    with learner_on(engine) as estimator:
        yield estimator


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

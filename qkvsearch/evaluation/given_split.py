"""The owner's own test: interactions held out of the build, by which the build is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.errors import Count, DataError, quantity
from qkvsearch.evaluation.splits import Split
from qkvsearch.learn.record_file import read_like_log
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.log import interactions_from_table

if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.tables.dataset import Source


def split_by_test(models: StoredModels, source: Source) -> tuple[Split, list[str]]:
    """Return the build's log as the part to learn from, with the test as what is held out, and
    notes on what is left out of the test.

    source: files or a frame, read as the build read its log. A user without a history in the log
    cannot be judged. An item that the user had before is no test: it is never recommended. Raises
    `DataError` where nothing is left.
    """
    log = models.log("judge by")
    table, report, columns = read_like_log(models, source)
    test = interactions_from_table(table, columns, report, log.item_ids)
    report.conclude(columns.strict)
    notes = [f"{report}.", *report.warning_lines()]

    rows = np.array([log.user_ids.find(user) for user in test.user_ids], dtype=np.int64)
    has_history = np.bincount(log.users, minlength=len(log.user_ids)) > 0
    is_known = (rows >= 0) & has_history[rows]
    newcomers = len(np.unique(test.users[~is_known[test.users]]))
    known = _of_users(test.take(is_known[test.users]), rows, log)

    is_old = np.isin(_pairs(known), _pairs(log))
    new = known.take(~is_old)
    if n_old := Count(int(is_old.sum())):
        notes.append(
            f"Left out: {n_old} {n_old:interaction|interactions} of the test with an item that the "
            "user had before."
        )
    if not len(new):
        raise DataError(
            f"{report.file}: nothing to judge by: {quantity(newcomers, 'user')} without a history "
            f"in the log of the build, and {n_old} {n_old:interaction|interactions} with items "
            "that the users had before"
        )
    return Split(log, log, new, newcomers), notes


def _of_users(test: Interactions, rows: np.ndarray, log: Interactions) -> Interactions:
    """Return the test by the rows of the log's users, sorted as a log is. rows: of the test's
    users.
    """
    users = rows[test.users].astype(np.int32)
    order = np.lexsort((test.items, users))
    in_order = replace(test, users=users, user_ids=log.user_ids)
    columns = {
        name: column[order]
        for name in ("users", "items", "ratings", "times", "weights")
        if (column := getattr(in_order, name)) is not None
    }
    return replace(in_order, **columns)


def _pairs(log: Interactions) -> np.ndarray:
    """Return a number for each pair of user and item, int64 (n,)."""
    return log.users.astype(np.int64) * len(log.item_ids) + log.items

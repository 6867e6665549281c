"""RMSE of logs in which not every meeting is rated."""

import numpy as np
import pytest

from qkvsearch.evaluation import recommend_protocol
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.splits import split
from qkvsearch.tables.interactions import Interactions

NAN = float("nan")


def half_rated():
    users, items = np.divmod(np.arange(20 * 10), 10)
    stars = (1 + (users + items) % 5).astype(float)
    stars[::3] = NAN
    return Interactions.from_columns(users, items, stars)


def test_known_users_are_predicted_by_what_training_learnt_of_them(monkeypatch):
    def refuse(*args):
        raise AssertionError("folded in a user whom training had seen")

    monkeypatch.setattr(recommend_protocol, "_solved_users", refuse)
    assert evaluate_recommend(half_rated(), "random").metrics["rmse"] > 0
    with pytest.raises(AssertionError, match="folded in"):
        evaluate_recommend(half_rated(), "strong")


@pytest.mark.parametrize("protocol", ["random", "strong"])
def test_parts_keep_only_what_is_rated_and_stay_apart(protocol):
    parts = split(half_rated(), protocol).rated()
    for part in (parts.train, parts.history, parts.test):
        assert np.isfinite(part.ratings).all()
    assert (parts.history is parts.train) == (protocol == "random")


@pytest.mark.parametrize("seed", range(6))
def test_someone_whose_history_has_no_rating_is_judged_all_the_same(seed):
    log = Interactions.from_columns(list("aabbb"), list("xyxyz"), [5, NAN, NAN, NAN, 3])
    found = evaluate_recommend(log, "strong", random_state=seed)
    assert all(np.isfinite(value) for value in found.metrics.values())

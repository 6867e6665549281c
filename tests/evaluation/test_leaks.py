"""Nothing held out reaches a model that recommendations are judged by."""

from importlib.util import find_spec

import numpy as np
import pytest

from qkvsearch.evaluation import systems
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.splits import split
from qkvsearch.evaluation.systems import BASELINES
from qkvsearch.models.estimators import BiasedMF
from qkvsearch.models.implicit_als import AlternatingLeastSquares
from qkvsearch.models.item_neighbours import NeighbourRegression
from qkvsearch.models.next_item import NextItem
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.models.user_vectors import ImplicitFactors, RatingFactors
from qkvsearch.tables.interactions import Interactions
from tests.evaluation.parts import pairs, protocols

MODELS = [AlternatingLeastSquares, NeighbourRegression, BiasedMF, NextItem, *BASELINES.values()]


@pytest.fixture
def learned(monkeypatch):
    """What each model is fitted on, as the pairs it is shown, and the histories that any is asked
    by, those in order for `NextItem`.
    """
    seen = {model.__name__: set() for model in MODELS} | {"histories": set(), "in order": set()}

    def spy(owner, name, note):
        original = getattr(owner, name)

        def spied(self, *args, **kwargs):
            note(*args)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, spied)

    def in_matrix(matrix):
        users = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return zip(users.tolist(), matrix.indices.tolist(), strict=True)

    def note_fit(model):
        return lambda X: seen[model.__name__].update(
            pairs(X) if isinstance(X, Interactions) else in_matrix(X)
        )

    def note_rows(histories):
        seen["histories"].update(
            frozenset(histories[row].indices.tolist()) for row in range(histories.shape[0])
        )

    for model in MODELS:
        spy(model, "fit", note_fit(model))
    spy(ImplicitFactors, "fold_in_many", note_rows)
    for baseline in BASELINES.values():
        spy(baseline, "scores", note_rows)
    spy(
        RatingFactors,
        "fold_in",
        lambda items, ratings: seen["histories"].add(frozenset(items.tolist())),
    )
    spy(
        NextItemModel,
        "fold_in_many",
        lambda histories: seen["in order"].update(tuple(items.tolist()) for items in histories),
    )
    return seen


@pytest.fixture
def mapped(monkeypatch):
    """The items from whose places among the others texts are learned to place new ones, and the
    items that are placed by them.
    """
    seen = {"learned from": set(), "placed": set()}
    fit_text_map, place_cold_items = systems.fit_text_map, systems.place_cold_items

    def fitted(keys, items):
        seen["learned from"].update(np.flatnonzero(items.any(axis=1)).tolist())
        return fit_text_map(keys, items)

    def placing(items, keys, text_map, unmet):
        seen["placed"].update(np.flatnonzero(unmet).tolist())
        return place_cold_items(items, keys, text_map, unmet)

    monkeypatch.setattr(systems, "fit_text_map", fitted)
    monkeypatch.setattr(systems, "place_cold_items", placing)
    return seen


@pytest.mark.parametrize("by_text", [False, True])
@protocols
def test_nothing_held_out_reaches_a_model(
    log, log_with_new_items, keys, protocol, by_text, learned
):
    log = log_with_new_items if by_text else log
    parts = split(log, protocol)
    evaluate_recommend(log, protocol, keys=keys if by_text else None)
    for model in set(MODELS) - {NextItem}:
        assert learned[model.__name__] == pairs(parts.train), model
    assert not pairs(parts.test) & pairs(parts.train)
    histories = {}
    for user, item in pairs(parts.history) | pairs(parts.train):
        histories.setdefault(user, set()).add(item)
    whole = [frozenset(history) for history in histories.values()]
    for history in learned["histories"]:  # the shares are learned by a part of each
        assert any(history <= other for other in whole)


@protocols
def test_texts_are_learned_from_by_the_train_part_alone(log_with_new_items, keys, protocol, mapped):
    evaluate_recommend(log_with_new_items, protocol, keys=keys)
    known = set(split(log_with_new_items, protocol).train.items.tolist())
    assert known
    assert mapped["learned from"] == known
    assert mapped["placed"] == set(range(len(keys))) - known


@pytest.mark.skipif(find_spec("torch") is None, reason="training needs torch")
@pytest.mark.parametrize("protocol", ["leave-last-out", "time"])
def test_what_comes_next_is_judged_by_histories_in_their_order(log, protocol, learned, hasty):
    evaluate_recommend(log, protocol, next_item=True)
    parts = split(log, protocol)
    assert learned["NextItem"] == pairs(parts.train)
    history = parts.history.take(parts.history.ratings >= 3)
    by_time = np.argsort(history.times)
    users, items = history.users[by_time], history.items[by_time]
    histories = {tuple(items[users == user].tolist()) for user in set(users.tolist())}
    assert learned["in order"]
    assert learned["in order"] <= histories

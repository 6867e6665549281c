"""What is held out could have been otherwise: nothing that is learned would be other than it is."""

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.splits import PROTOCOLS, split
from qkvsearch.models.estimators import BiasedMF, ImplicitALS

# Not told by a seed alone: these hold out what came last, wherever a pair stands in the log.
BY_TIME = ["leave-last-out", "time"]


@pytest.fixture
def learned(monkeypatch):
    """Evaluates a log; the numbers of every model that was fitted on the way, in its order."""
    found = []

    def spy(model):
        fit = model.fit

        def spied(self, *args, **kwargs):
            fitted = fit(self, *args, **kwargs)
            found.extend(
                value.copy() if isinstance(value, np.ndarray) else value
                for name, value in sorted(vars(fitted).items())
                if name.endswith("_") and isinstance(value, np.ndarray | float | tuple)
            )
            return fitted

        monkeypatch.setattr(model, "fit", spied)

    def evaluated(log, protocol):
        found.clear()
        evaluate_recommend(log, protocol)
        return list(found)

    spy(ImplicitALS)
    spy(BiasedMF)
    return evaluated


def assert_same(before, after):
    assert len(before) == len(after) > 6
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def places_of(part, log):
    """Where the pairs of a part of a log stand in it."""
    n = len(log.item_ids)
    return np.flatnonzero(np.isin(log.users * n + log.items, part.users * n + part.items))


@pytest.mark.parametrize("rating", ["the opposite", 5.0, 40.0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.slow
def test_other_ratings_of_what_is_held_out_change_nothing_learned(log, learned, protocol, rating):
    """40, beyond the scale: a rating that is held out must not stretch it either."""
    held_out = places_of(split(log, protocol).test, log)
    ratings = log.ratings.copy()
    ratings[held_out] = 6 - ratings[held_out] if rating == "the opposite" else rating
    assert not np.array_equal(ratings, log.ratings)
    assert_same(learned(log, protocol), learned(replace(log, ratings=ratings), protocol))


@pytest.mark.parametrize("protocol", BY_TIME)
def test_other_items_in_the_place_of_what_is_held_out_change_nothing_learned(
    log, learned, protocol
):
    """Each held-out pair is of another item that its user has not met."""
    held_out = places_of(split(log, protocol).test, log)
    rng, items = np.random.default_rng(0), log.items.copy()
    for place in held_out:
        met = items[log.users == log.users[place]]
        items[place] = rng.choice(np.setdiff1d(np.arange(len(log.item_ids)), met))
    order = np.lexsort((items, log.users))
    changed = replace(log, items=items[order], ratings=log.ratings[order], times=log.times[order])
    assert not np.array_equal(changed.items, log.items)
    assert_same(learned(log, protocol), learned(changed, protocol))


def test_what_is_learned_from_does_change_it(log, learned):
    """Else the tests above would see nothing."""
    train = places_of(split(log, "time").train, log)
    ratings = log.ratings.copy()
    ratings[train[:50]] = 6 - ratings[train[:50]]
    before, after = learned(log, "time"), learned(replace(log, ratings=ratings), "time")
    assert any(not np.array_equal(*pair) for pair in zip(before, after, strict=True))

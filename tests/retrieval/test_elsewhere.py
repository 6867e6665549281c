"""Keys that are elsewhere, here in memory: the same answers from candidates and a sample."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from qkvsearch.index.dense import remote_keys, sums
from qkvsearch.retrieval import DenseKeys, fuse, rank
from qkvsearch.retrieval import remote_keys as module
from qkvsearch.retrieval.remote_keys import Allowed, RemoteKeys, RemoteRows, scored
from qkvsearch.retrieval.scope import Scope, counted_softmax
from qkvsearch.retrieval.topk import top_k
from qkvsearch.text.labelled import LabelledVectors

N, WIDTH = 3000, 12
NAMES = ("first", "second")


class InMemory:
    """A `KeyStore`."""

    def __init__(self, keys):
        self.keys, self.n_items, self.asked = keys, N, []

    def nearest(self, head, query, k, allowed):
        self.asked.append(k)
        return top_k(self.keys[head] @ query, k, allowed.mask)

    def above(self, head, query, level):
        return np.flatnonzero(self.keys[head] @ query > level)

    def rows(self, head, positions):
        return self.keys[head][positions]


@pytest.fixture(scope="module")
def store():
    rng = np.random.default_rng(0)
    return InMemory({name: rng.standard_normal((N, WIDTH)).astype(np.float32) for name in NAMES})


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", 20)


def remote(store, name, n_drawn=300) -> RemoteKeys:
    keys = store.keys[name]
    found = remote_keys(RemoteRows(store, name, WIDTH), *sums(keys).values())
    drawn = np.sort(np.random.default_rng(1).choice(N, n_drawn, replace=False))
    return replace(found, drawn=drawn)


def asked(seed=2):
    rng = np.random.default_rng(seed)
    vector = rng.standard_normal((1, WIDTH)).astype(np.float32)
    return {name: LabelledVectors(["q"], np.roll(vector, i)) for i, name in enumerate(NAMES)}


def ranked(head, mask=None):
    return rank(head, lambda rows: (rows.tolist(), list(map(str, rows))), k=10, mask=mask)


def both(store, seed, mask=None, n_drawn=300):
    queries = asked(seed)
    local = fuse([DenseKeys(store.keys[n]).head(n, queries[n]) for n in NAMES], [0.7, 0.3])
    unscored = {n: remote(store, n, n_drawn).head(n, queries[n]) for n in NAMES}
    for heads in scored(unscored, Allowed(mask)):
        found = fuse(list(heads.values()), [0.7, 0.3])
        if found.has_best(50, mask):
            break
    return local, found


@pytest.mark.parametrize("seed", range(5))
def test_candidates_that_are_enough_give_the_same_hits_and_scores(store, seed):
    mask = np.arange(N) % 3 > 0
    for allowed in (None, mask):
        local, there = (ranked(head, allowed) for head in both(store, seed, allowed))
        assert [hit.id for hit in local] == [hit.id for hit in there]
        np.testing.assert_allclose([h.score for h in local], [h.score for h in there], atol=1e-4)
        np.testing.assert_allclose([h.weight for h in local], [h.weight for h in there], rtol=0.3)
        assert there.n_candidates == local.n_candidates


def test_mean_and_deviation_are_those_of_all_items(store):
    query = asked()["first"]
    local = DenseKeys(store.keys["first"]).head("first", query)
    (there,) = next(scored({"first": remote(store, "first").head("first", query)})).values()
    assert there.moments() == pytest.approx(local.moments(), rel=1e-5)


def test_where_all_items_are_drawn_everything_is_exact(store):
    local, there = map(ranked, both(store, 3, n_drawn=N))
    np.testing.assert_allclose([h.weight for h in local], [h.weight for h in there], rtol=1e-4)
    assert there.temperature == pytest.approx(local.temperature, rel=1e-5)


def test_more_is_asked_for_until_no_other_item_can_be_among_the_best(store):
    store.asked.clear()
    _, there = both(store, 4)
    assert max(store.asked) > 20, "twenty of each are not enough here"
    others = np.setdiff1d(np.arange(N), there.scope.items)
    local, _ = both(store, 4)
    assert local.scores[others].max() <= there.beyond + 1e-5
    assert there.has_best(50)
    assert not there.has_best(N)


def test_what_a_head_gives_all_others_is_a_bound(store):
    query = asked()["first"]
    unscored = {"first": remote(store, "first").head("first", query)}
    for heads in islice(scored(unscored), 3):
        head = heads["first"]
        others = np.setdiff1d(np.arange(N), head.scope.items)
        assert (store.keys["first"][others] @ query.total).max() <= head.beyond + 1e-5


def test_an_item_that_was_not_scored_has_no_place():
    scope = Scope.of(np.array([1, 5]), np.array([3]), 9)
    assert scope.places(np.array([5, 1])).tolist() == [2, 0]
    with pytest.raises(LookupError):
        scope.places(np.array([4]))


def test_the_drawn_stand_for_what_a_mask_leaves_of_the_others():
    scope = Scope.of(np.array([0, 1]), np.array([2, 3, 4]), 10)
    mask = np.array([True, False, True, True, False, True, True, False, False, True])
    assert scope.counts_in(mask).tolist() == [1, 0, 2.5, 2.5, 0]
    assert scope.counts_in().sum() == pytest.approx(10)


def test_a_weight_is_that_of_the_softmax_over_all():
    scores, counts = np.array([2.0, 1.0, 0.0]), np.array([1.0, 4.0, 5.0])
    every = np.exp(np.repeat(scores, counts.astype(int)) / 0.5)
    found = counted_softmax(scores, counts, np.array([True, True, True]), 0.5)
    np.testing.assert_allclose(found, np.exp(scores / 0.5) / every.sum())


def test_rows_are_read_like_an_array(store):
    rows = RemoteRows(store, "first", WIDTH)
    keys = store.keys["first"]
    assert rows.shape == keys.shape
    for some in (3, slice(2, 9), [5, 1], np.arange(N) % 7 == 0):
        np.testing.assert_array_equal(rows[some], keys[some])
    np.testing.assert_array_equal(np.asarray(rows), keys)

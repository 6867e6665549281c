"""Remote keys, here in memory: the same hits and scores from candidates and a sample."""

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.heads.dense import remote_keys, sums
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.remote_keys import RemoteQuery, RemoteRows
from qkvsearch.rank.ranking import rank
from qkvsearch.scores.approximate import Filter, fuse_candidates
from qkvsearch.scores.fusion import Scores, fuse
from qkvsearch.scores.topk import top_k
from qkvsearch.text.labelled import LabelledVectors

N, WIDTH = 3000, 12
NAMES = ("first", "second")


class InMemory:
    """A `KeyStore`."""

    def __init__(self, keys):
        self.keys, self.n_items, self.n_read = keys, N, 0

    def nearest(self, head, query, k, allowed):
        return top_k(self.keys[head] @ query, k, allowed.mask)

    def above(self, head, query, threshold):
        return np.flatnonzero(self.keys[head] @ query > threshold)

    def rows(self, head, positions):
        self.n_read += len(positions)
        return self.keys[head][positions]


@pytest.fixture(scope="module")
def store():
    rng = np.random.default_rng(0)
    return InMemory({name: rng.standard_normal((N, WIDTH)).astype(np.float32) for name in NAMES})


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(RemoteQuery, "min_candidates", 200)


def remote(store, name, n_drawn=300):
    keys = store.keys[name]
    rows = remote_keys(RemoteRows(store, name, WIDTH), *sums(keys).values())
    drawn = np.sort(np.random.default_rng(1).choice(N, n_drawn, replace=False))
    return replace(rows, drawn=drawn)


def queries(seed=2):
    rng = np.random.default_rng(seed)
    vector = rng.standard_normal((1, WIDTH)).astype(np.float32)
    return {name: LabelledVectors(["q"], np.roll(vector, i)) for i, name in enumerate(NAMES)}


def ranked(head, mask=None, k=10, groups=None):
    names = lambda rows: (rows.tolist(), list(map(str, rows)))  # noqa: E731
    return rank(head, names, k=k, mask=mask, groups=groups)


def fused(heads):
    return fuse(list(heads.values()), [0.7, 0.3])


def both(store, seed, mask=None, n_drawn=300, k=0, groups=None):
    """The scores of local keys and of remote ones, fused."""
    asked = queries(seed)
    local = fused({name: DenseKeys(store.keys[name]).head(name, asked[name]) for name in NAMES})
    heads = {name: remote(store, name, n_drawn).head(name, asked[name]) for name in NAMES}
    return local, fuse_candidates(heads, fused, Filter(mask, k=k, groups=groups))[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_are_those_of_local_keys(store, seed):
    mask = np.random.default_rng(seed).random(N) < 0.3
    for allowed in (None, mask):
        local, there = (ranked(head, allowed) for head in both(store, seed, allowed))
        assert [hit.id for hit in local] == [hit.id for hit in there]
        np.testing.assert_allclose([h.score for h in local], [h.score for h in there], atol=1e-4)
        np.testing.assert_allclose([h.weight for h in local], [h.weight for h in there], rtol=0.3)
        assert there.n_candidates == local.n_candidates


def test_mean_and_deviation_are_those_of_all_items(store):
    query = queries()["first"]
    local = DenseKeys(store.keys["first"]).head("first", query)
    there = remote(store, "first").head("first", query).scores(np.arange(N - 50, N))
    assert there.moments == pytest.approx(local.moments, rel=1e-5)


def test_where_all_items_are_in_the_sample_all_scores_are_exact(store):
    local, there = both(store, 3, n_drawn=N)
    np.testing.assert_allclose(local.scores, there.scores, atol=1e-5)


def test_no_estimate_is_among_the_hits(store):
    """Not even where many hits are wanted, nor where the other head has no opinion."""
    local, there = both(store, 4, k=500)
    for hit in ranked(there, k=500):
        assert hit.score == pytest.approx(local.scores[hit.id], abs=1e-4)
    flat = Scores("flat", np.zeros(N, np.float32), lambda position: None)
    heads = {"first": remote(store, "first", 16).head("first", queries()["first"]), "flat": flat}
    scores, found = fuse_candidates(heads, fused)
    exact = store.keys["first"] @ queries()["first"].total
    best = top_k(found.scores, 100)
    np.testing.assert_allclose(scores["first"].scores[best], exact[best], atol=1e-5)


def test_each_key_is_read_once(store):
    keys = remote(store, "first")
    assert len(keys.drawn_vectors) == 300
    store.n_read = 0
    head = keys.head("first", queries()["first"])
    head.scores(np.arange(100))
    head.scores(np.arange(150))
    assert store.n_read == 150 - np.count_nonzero(keys.drawn < 150)


def test_the_items_above_a_threshold_are_exact(store):
    query = queries()["first"]
    scores = store.keys["first"] @ query.total
    above = remote(store, "first").head("first", query).above(float(scores.mean()))
    np.testing.assert_array_equal(above, scores > scores.mean())


def test_rows_are_read_like_an_array(store):
    rows = RemoteRows(store, "first", WIDTH)
    keys = store.keys["first"]
    assert rows.shape == keys.shape
    for some in (3, slice(2, 9), [5, 1], np.arange(N) % 7 == 0):
        np.testing.assert_array_equal(rows[some], keys[some])
    np.testing.assert_array_equal(np.asarray(rows), keys)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_groups", [4, 60])
def test_the_best_of_each_group_is_a_candidate(store, seed, n_groups):
    """The best hits are of few large groups, so that most candidates are of those."""
    local, _ = both(store, seed)
    groups = np.empty(N, np.int64)
    groups[np.argsort(-local.scores)] = np.sqrt(np.arange(N) * n_groups**2 / N)
    local, scores = both(store, seed, k=10, groups=groups)
    expected, hits = (ranked(head, groups=groups) for head in (local, scores))
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    assert len(hits) == min(n_groups, 10)

"""Approximate scores of many items: the best of them are exact, and the ones of a full scan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import qkvsearch as qkv
from qkvsearch.index import dense
from qkvsearch.retrieval import DenseKeys, fuse, fuse_ranks, rank
from qkvsearch.retrieval.fusion import plus
from qkvsearch.retrieval.quantized import QuantizedKeys
from qkvsearch.text.labelled import LabelledVectors, unit_rows

N = 3000
QUERIES = ("river bank", "how do neural networks learn", "music", "jakcet rain -dog", "brain*")


def heads(seed, alike=1.0):
    """One head from its keys, and from their codes. alike: how far apart keys are."""
    rng = np.random.default_rng(seed)
    keys = unit_rows(1 + alike * rng.normal(size=(N, 32))).astype(np.float32)
    query = LabelledVectors(["a", "b"], rng.normal(size=(2, 32)).astype(np.float32))
    with_codes = DenseKeys(keys, QuantizedKeys.from_keys(keys))
    name = f"dense{seed}"
    # Other products differ in the last bits, and so in the order of what is all but equal.
    scores = np.einsum("ij,j->i", keys, query.total)
    return replace(DenseKeys(keys).head(name, query), scores=scores), with_codes.head(name, query)


def names(positions):
    return [int(p) for p in positions], [str(p) for p in positions]


def mask_of(seed):
    return np.random.default_rng(seed).random(N) < 0.3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 10, 300, 5000])
@pytest.mark.parametrize("alike", [1.0, 0.01])
def test_the_best_are_those_of_a_full_scan(seed, k, alike):
    exact, approximate = heads(seed, alike)
    tolerance = 0.01 if alike == 1 else 0.3  # codes of keys that are all alike tell less
    assert (exact.scores != approximate.scores).any()
    for mask in (None, mask_of(seed)):
        expected = rank(exact, names, k=k, mask=mask)
        found = rank(approximate, names, k=k, mask=mask)
        assert [hit.id for hit in found] == [hit.id for hit in expected]
        np.testing.assert_allclose(
            [hit.score for hit in found], [hit.score for hit in expected], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            [hit.weight for hit in found], [hit.weight for hit in expected], rtol=tolerance
        )


@pytest.mark.parametrize("seed", range(5))
def test_no_product_is_farther_from_the_exact_one_than_is_said(seed):
    exact, approximate = heads(seed)
    difference = np.abs(exact.scores - approximate.scores).max()
    assert 0 < difference <= approximate.error < 40 * difference


def test_the_largest_score_and_what_is_above_a_level_are_exact():
    exact, approximate = heads(3)
    assert approximate.largest() == pytest.approx(exact.largest(), rel=1e-6)
    for level in np.quantile(exact.scores, [0.2, 0.9, 0.999]):
        np.testing.assert_array_equal(approximate.above(level), exact.above(level))


@pytest.mark.parametrize("fusion", [fuse, fuse_ranks])
def test_fused_heads_are_exact_where_they_count(fusion):
    (one, one_fast), (two, two_fast) = heads(1), heads(2)
    values = np.where(mask_of(3), 0.5, 0).astype(np.float32)
    expected = rank(plus(fusion([one, two], [0.7, 0.3]), "more", values), names, k=20)
    found = rank(plus(fusion([one_fast, two_fast], [0.7, 0.3]), "more", values), names, k=20)
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=1e-3)
        assert sum(ours.heads.values()) == pytest.approx(ours.score, abs=1e-5)
    parts = [part.value for part in found.explain(0)]
    assert sum(parts) == pytest.approx(found[0].score, abs=1e-4)


def test_equal_items_stay_in_their_order_however_many_are_asked_for():
    rng = np.random.default_rng(4)
    keys = unit_rows(rng.normal(size=(40, 32))).astype(np.float32)[rng.integers(40, size=N)]
    query = LabelledVectors(["a"], rng.normal(size=(1, 32)).astype(np.float32))
    head = DenseKeys(keys, QuantizedKeys.from_keys(keys)).head("dense", query)
    every = [hit.id for hit in rank(head, names, k=N)]
    for k in (1, 7, 90, 300):
        assert [hit.id for hit in rank(head, names, k=k)] == every[:k]


def test_weights_do_not_depend_on_how_many_are_asked_for():
    _, head = heads(2)
    found = [rank(head, names, k=k) for k in (1, 10, 100)]
    assert len({ranking.temperature for ranking in found}) == 1
    assert [ranking[0].weight for ranking in found] == pytest.approx(
        [found[0][0].weight] * 3, rel=1e-3
    )


def test_only_what_a_mask_leaves_is_made_exact():
    _, head = heads(1)
    asked = []
    exact = head.exact
    head = replace(head, exact=lambda positions: asked.append(len(positions)) or exact(positions))
    mask = np.zeros(N, dtype=bool)
    mask[np.argsort(head.scores)[:3]] = True
    assert len(rank(head, names, k=10, mask=mask)) == 3
    assert asked == [3]


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    qkv.build(folder / "scanned", "sample:videos", encoder="static").close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "MIN_QUANTIZED", 1)
        qkv.build(folder / "coded", "sample:videos", encoder="static").close()
    return folder


def answers(engine):
    return [engine.search(query, k=k, facets=["tags"]) for query in QUERIES for k in (5, 50)]


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        # Items whose scores differ by less may change places.
        known, near = {hit.id: hit.score for hit in theirs}, {"rel": 1e-3, "abs": 1e-3}
        scores = list(known.values())
        assert ours.facets == theirs.facets
        assert [hit.score for hit in ours] == pytest.approx(scores, **near)
        assert [known.get(hit.id, scores[-1]) for hit in ours] == pytest.approx(scores, **near)


def test_an_engine_answers_as_by_a_full_scan(workspaces):
    with qkv.open(workspaces / "scanned") as scanned, qkv.open(workspaces / "coded") as coded:
        keys = coded.models.dense_keys("static")
        assert keys.codes is not None
        assert scanned.models.dense_keys("static").codes is None
        assert_same(answers(coded), answers(scanned))
        first = coded.items.to_frame()["id"].iloc[0]
        assert [hit.id for hit in coded.similar(first)] == [
            hit.id for hit in scanned.similar(first)
        ]


def test_items_that_come_and_go_have_codes_as_well(workspaces):
    for name in ("scanned", "coded"):
        with qkv.open(workspaces / name) as engine:
            rows = engine.items.to_frame()
            engine.remove(list(rows["id"][3:5]))
            more = rows[5:7].assign(id=["new1", "new2"], title="A river bank in the rain")
            engine.add(more)
    with qkv.open(workspaces / "scanned") as scanned, qkv.open(workspaces / "coded") as coded:
        keys = coded.models.dense_keys("static")
        assert len(keys.codes) == len(keys.vectors) == coded.n_items
        assert_same(answers(coded), answers(scanned))
        before = answers(coded)
        coded.compact()
        assert_same(answers(coded), before)

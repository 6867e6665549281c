"""int8 keys: their best items are exact, and the ones of a full scan."""

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.quantized import QuantizedKeys, quantize
from qkvsearch.rank.ranking import rank
from qkvsearch.scores.approximate import Filter, fuse_candidates, score_candidates
from qkvsearch.scores.fusion import fuse, plus
from qkvsearch.text.labelled import LabelledVectors, unit_rows

N = 3000


def heads(seed, spread=1.0):
    """A query to float32 keys, and to their int8 copies. spread: how far apart keys are."""
    rng = np.random.default_rng(seed)
    keys = unit_rows(1 + spread * rng.normal(size=(N, 32))).astype(np.float32)
    query = LabelledVectors(["a", "b"], rng.normal(size=(2, 32)).astype(np.float32))
    name = f"dense{seed}"
    # Other products differ in the last bits, and so in the order of what is all but equal.
    scores = np.einsum("ij,j->i", keys, query.total)
    exact = replace(DenseKeys(keys).head(name, query), scores=scores)
    return exact, quantized(keys).head(name, query)


def quantized(keys):
    return QuantizedKeys(keys, **quantize(keys))


def names(positions):
    return [int(p) for p in positions], [str(p) for p in positions]


def mask_of(seed):
    return np.random.default_rng(seed).random(N) < 0.3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 10, 300, 5000])
@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_the_best_are_those_of_a_full_scan(seed, k, spread):
    exact, approximate = heads(seed, spread)
    tolerance = 0.01 if spread == 1 else 0.3  # codes of keys that are all similar tell less
    for mask in (None, mask_of(seed)):
        expected = rank(exact, names, k=k, mask=mask)
        scores = score_candidates(approximate, Filter(mask, k=k))
        assert (exact.scores != scores.scores).any() or k > N
        found = rank(scores, names, k=k, mask=mask)
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
    keys, vector = approximate.keys, approximate.vector
    difference = np.abs(exact.scores - keys.products(vector)).max()
    assert 0 < difference <= keys.max_error(vector) < 40 * difference


def test_the_largest_score_and_the_items_above_a_threshold_are_exact():
    exact, approximate = heads(3)
    assert score_candidates(approximate).scores.max() == pytest.approx(exact.scores.max(), rel=1e-6)
    for threshold in np.quantile(exact.scores, [0.2, 0.9, 0.999]):
        above = approximate.above(threshold)
        np.testing.assert_array_equal(above, exact.scores > threshold)


def test_fused_heads_are_exact_where_they_count():
    (one, one_fast), (two, two_fast) = heads(1), heads(2)
    values = np.where(mask_of(3), 0.5, 0).astype(np.float32)

    def fused(found):
        return plus(fuse(list(found.values()), [0.7, 0.3]), "more", values)

    expected = rank(fused({"one": one, "two": two}), names, k=20)
    _, scores = fuse_candidates({"one": one_fast, "two": two_fast}, fused, Filter(k=20))
    found = rank(scores, names, k=20)
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

    def ids(k):
        head = quantized(keys).head("dense", query)
        return [hit.id for hit in rank(score_candidates(head, Filter(k=k)), names, k=k)]

    for k in (1, 7, 90, 300):
        assert ids(k) == ids(N)[:k]


def test_weights_do_not_depend_on_how_many_are_asked_for():
    found = [
        rank(score_candidates(heads(2)[1], Filter(k=k)), names, k=k) for k in (1, 10, 100, 1000)
    ]
    for value in ("temperature", "n_candidates"):
        values = [getattr(ranking, value) for ranking in found]
        assert values == pytest.approx([values[0]] * 4, rel=1e-3)
    weights = [ranking[0].weight for ranking in found]
    assert weights == pytest.approx([weights[0]] * 4, rel=1e-3)


def test_a_code_is_within_half_a_step():
    keys = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    keys[0], keys[1], keys[2] = 0, 1e-42, 3e38
    codes, scales = quantize(keys, n_rows=64).values()
    rebuilt = codes * scales[:, None].astype(np.float64)
    assert (np.abs(rebuilt - keys)[3:] <= 0.501 * scales[3:, None]).all()
    assert not rebuilt[0].any()
    np.testing.assert_allclose(rebuilt[2], 3e38, rtol=1e-5)


def test_keys_that_are_no_finite_matrix_are_refused():
    keys = np.ones((4, 3), np.float32)
    with pytest.raises(ValueError, match="finite"):
        quantize(keys * np.nan)
    with pytest.raises(ValueError, match=r"\(N, d\)"):
        quantize(keys[0])

"""`distinct`: what tests/contract/test_scores.py does not ask of it."""

import numpy as np
import pytest

from qkvsearch.errors import QkvError
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.quantized import QuantizedKeys, quantize
from qkvsearch.rank.ranking import rank
from qkvsearch.scores.approximate import Filter, fuse_candidates
from qkvsearch.scores.fusion import fuse
from qkvsearch.text.labelled import LabelledVectors


def test_diverse_hits_have_different_values(movies):
    ranking = movies.recommend(user="u001", k=9, diversity=0.5, distinct="year", fields="year")
    assert len({hit.fields["year"] for hit in ranking}) == len(ranking) == 9


def test_a_column_that_is_not_there_is_an_error_with_near_ones(movies):
    for ask in (movies.search, movies.similar, lambda _, **o: movies.recommend(user="u001", **o)):
        with pytest.raises(QkvError, match="`distinct`: no column 'yaer'; did you mean year"):
            ask("m001", distinct="yaer")


@pytest.mark.parametrize("n_groups", [3, 40, 4000])
def test_estimated_scores_give_the_hits_of_exact_ones(n_groups):
    rng = np.random.default_rng(n_groups)
    keys = rng.normal(size=(5000, 16)).astype(np.float32)
    # The families of the best items are large: many candidates are of few of them.
    query = LabelledVectors([None], rng.normal(size=(1, 16)).astype(np.float32))
    order = np.argsort(-(keys @ query.total))
    groups = np.empty(5000, np.int64)
    groups[order] = np.minimum(np.arange(5000) // (5000 // n_groups), n_groups - 1)
    mask = rng.random(5000) < 0.7
    names = lambda rows: (rows.tolist(), [""] * len(rows))  # noqa: E731

    def hits(keys):
        heads = {"a": keys.head("a", query)}
        fused = fuse_candidates(heads, lambda h: fuse([*h.values()], [1]), Filter(mask, 10, groups))
        return rank(fused[1], names, k=10, mask=mask, groups=groups)

    exact, estimated = hits(DenseKeys(keys)), hits(QuantizedKeys(keys, **quantize(keys)))
    assert len(exact) == min(10, n_groups)
    assert estimated.positions.tolist() == exact.positions.tolist()
    assert [hit.score for hit in estimated] == pytest.approx([hit.score for hit in exact], rel=1e-3)

"""`distinct`: the best hit of each value of the whole ranking, by exact and by estimated keys."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.retrieval import fuse
from qkvsearch.retrieval.approximate import Filter, fuse_candidates
from qkvsearch.retrieval.dense_keys import DenseKeys
from qkvsearch.retrieval.quantized import QuantizedKeys, quantize
from qkvsearch.retrieval.ranking import rank
from qkvsearch.text.labelled import LabelledVectors

WORDS = "rain coat warm blue tent stove rope lamp".split()


def first_of_each(ranking, value_of):
    """The ids of a whole ranking without those whose value was there before."""
    seen, ids = set(), []
    for hit in ranking:
        value = value_of[hit.id] if value_of[hit.id] is None else str(value_of[hit.id]).strip()
        if value is None or value not in seen:
            ids.append(hit.id)
            seen.add(value)
    return ids


@pytest.fixture(scope="module", params=[0, 1])
def shop(request, tmp_path_factory):
    """120 random items in families, some in none; of some scores there are many."""
    rng = np.random.default_rng(request.param)
    items = pd.DataFrame(
        {
            "id": range(120),
            "title": [" ".join(rng.choice(WORDS, 2)) for _ in range(120)],
            "family": [f"f{n // 2}{' ' * (n % 2)}" if n else None for n in rng.integers(0, 9, 120)],
            "tags": [",".join(rng.choice(["a", "b", "c"], 2, replace=False)) for _ in range(120)],
            "price": rng.integers(1, 5, 120),
        }
    )
    log = pd.DataFrame({"user": rng.integers(0, 20, 300), "item": rng.integers(0, 120, 300)})
    path = tmp_path_factory.mktemp("distinct") / "shop"
    return qkv.build(path, items=items, interactions=log, encoder="corpus")


ASK = {
    "search": lambda e, **o: e.search("rain tent", **o),
    "search user": lambda e, **o: e.search("warm coat", user=3, fusion="ranks", **o),
    "recommend": lambda e, **o: e.recommend(user=3, **o),
    "damped": lambda e, **o: e.recommend(likes=[1, 2], damping=1, seen=True, **o),
    "similar": lambda e, **o: e.similar([5, 6], **o),
}


@pytest.mark.parametrize("where", [None, "price < 3"])
@pytest.mark.parametrize("column", ["family", "tags", "price", "title", "id"])
@pytest.mark.parametrize("name", ASK)
def test_hits_are_the_first_of_each_value_of_the_whole_ranking(shop, name, column, where):
    whole = ASK[name](shop, k=1000, where=where, fields=column)
    value_of = {row["id"]: shop.items[row["id"]][column] for row in whole.to_records()}
    expected = first_of_each(whole, value_of)
    weights = {hit.id: hit.weight for hit in whole}
    for k, offset in ((1000, 0), (3, 0), (4, 2), (0, 0)):
        ranking = ASK[name](shop, k=k, offset=offset, where=where, distinct=column)
        assert [hit.id for hit in ranking] == expected[offset : offset + k]
        assert [hit.rank for hit in ranking] == list(range(offset + 1, offset + 1 + len(ranking)))
        assert all(hit.weight == pytest.approx(weights[hit.id]) for hit in ranking)


def test_diverse_hits_have_different_values_and_facets_count_all(shop):
    ranking = shop.recommend(user=3, k=5, diversity=0.5, distinct="family", fields="family")
    families = [hit.fields["family"].strip() for hit in ranking if hit.fields["family"]]
    assert len(ranking) == 5 > len(families) - len(set(families)) == 0
    plain, distinct = (
        shop.search("rain", k=3, facets="family", distinct=column) for column in (None, "family")
    )
    assert plain.facets == distinct.facets


def test_a_column_that_is_not_there_is_an_error_with_near_ones(shop):
    for name in ASK:
        with pytest.raises(QkvError, match="`distinct`: no column 'familly'; did you mean family"):
            ASK[name](shop, distinct="familly")


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
        fused = fuse_candidates(
            heads, lambda h: fuse([*h.values()], [1]), Filter(mask, None, 10, groups)
        )
        return rank(fused[1], names, k=10, mask=mask, groups=groups)

    exact, estimated = hits(DenseKeys(keys)), hits(QuantizedKeys(keys, **quantize(keys)))
    assert len(exact) == min(10, n_groups)
    assert estimated.positions.tolist() == exact.positions.tolist()
    assert [hit.score for hit in estimated] == pytest.approx([hit.score for hit in exact], rel=1e-3)

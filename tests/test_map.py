"""The map of the items: a linear projection, which keeps what it says, and places what is new."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

import qkvsearch
from qkvsearch.engine import projection
from qkvsearch.errors import QkvError, UnknownIdError, WorkspaceError


def keys_of(engine, head):
    if head == "collaborative":
        return engine.models.implicit.item_embeddings
    return engine.models.dense_keys(head or engine.models.main_head).vectors


@pytest.mark.parametrize("head", [None, "collaborative"])
def test_it_is_the_plane_along_which_the_keys_differ_most(movies, head):
    found, keys = movies.map(head), keys_of(movies, head)
    known = np.flatnonzero(keys.any(axis=1))
    assert found.head == (head or movies.models.main_head)
    assert found.items.tolist() == known.tolist()
    assert (found.positions.dtype, found.positions.shape) == (np.float32, (len(known), 2))
    assert np.abs(found.positions).max() == pytest.approx(1)
    exact = PCA(2, svd_solver="full").fit(keys[known])
    np.testing.assert_allclose(found.explained, exact.explained_variance_ratio_, rtol=0.02)
    # One number scales both axes.
    spread = found.positions.var(axis=0, ddof=1)
    ratio = exact.explained_variance_[1] / exact.explained_variance_[0]
    assert spread[1] / spread[0] == pytest.approx(ratio, rel=0.05)
    n_unknown = len(keys) - len(known)
    said = f"Not drawn: {n_unknown} of {len(keys)} items that this head does not know."
    assert found.notes == [said] * bool(n_unknown)


def test_a_key_comes_where_its_item_is(movies):
    found, keys = movies.map(), keys_of(movies, None)
    np.testing.assert_allclose(found.project(keys), found.positions, atol=1e-5)
    middle = found.project(keys[:5].mean(axis=0))
    np.testing.assert_allclose(middle, [found.positions[:5].mean(axis=0)], atol=1e-5)
    with pytest.raises(QkvError, match="`vectors` are"):
        found.project(np.ones((2, 3)))


def test_it_is_made_once_and_is_the_same_when_made_again(movies, movies_path):
    assert movies.map() is movies.map()
    again = qkvsearch.open(movies_path).map()
    np.testing.assert_array_equal(movies.map().positions, again.positions)


def test_a_query_has_its_place_and_the_keys_that_it_weighs_most(movies):
    found = movies.map(query="space adventure", k=4)
    head = movies.models.main_head
    np.testing.assert_allclose(
        found.point.position, found.project(movies.encode("space adventure"))[0], atol=1e-5
    )
    alone = movies.head(head, "space adventure")
    best = np.argsort(-alone.scores, kind="stable")[:4]
    assert found.point.hits.positions.tolist() == best.tolist()
    scores = alone.scores / alone.scores.std()
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    np.testing.assert_allclose([hit.weight for hit in found.point.hits], weights[best], rtol=1e-4)
    np.testing.assert_allclose(found.point.hit_positions, found.positions[best], atol=1e-5)
    assert movies.map().point is None


def test_a_user_has_the_place_of_their_embedding_as_it_is_now(films):
    before = films.map("collaborative", user="u001").point
    plain = films.recommend(user="u001", seen=True, k=10)
    assert [hit.id for hit in before.hits] == [hit.id for hit in plain]
    films.record("u001", "Heat", 5)
    after = films.map("collaborative", user="u001").point
    assert not np.allclose(before.position, after.position)
    by_text = films.map(user="u001").point
    assert np.abs(by_text.position).max() <= 1  # a mean of keys
    with pytest.raises(UnknownIdError):
        films.map(user="nobody")


def test_of_many_items_some_are_drawn_and_it_is_said(movies, monkeypatch):
    monkeypatch.setattr(projection, "MAX_DRAWN", 50)
    found = projection.item_map(movies.current_build.recommender, None)
    again = projection.item_map(movies.current_build.recommender, None)
    assert len(found.items) == len(set(found.items.tolist())) == len(found.positions) == 50
    np.testing.assert_array_equal(found.items, again.items)
    assert found.notes == [f"50 of {movies.n_items} items, a random sample, always the same."]


@pytest.mark.parametrize("titles", [["kettle"], ["kettle", "kettle"], ["kettle", "zq", "anchor"]])
def test_few_items_have_a_map_too(tmp_path, titles):
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    found = qkvsearch.build(tmp_path / "w", items=items, encoder="corpus").map(query="kettle")
    assert np.isfinite(found.positions).all()
    assert np.isfinite(found.explained).all()
    assert len(found.items) + (bool(found.notes) and "Not drawn" in found.notes[0]) >= 1


def test_what_it_cannot_place_is_told(movies, tmp_path):
    with pytest.raises(QkvError, match="`query`: collaborative embeddings have no texts"):
        movies.map("collaborative", query="space")
    with pytest.raises(QkvError, match="leave out `query` or `user`"):
        movies.map(query="space", user="u001")
    with pytest.raises(QkvError, match="`head`: no head 'lexical'"):
        movies.map("lexical")
    with pytest.raises(QkvError, match="`k`"):
        movies.map(k=-1)
    items = pd.DataFrame({"id": [1, 2], "title": ["kettle", "anchor"]})
    with pytest.raises(WorkspaceError):
        qkvsearch.build(tmp_path / "w", items=items).map("collaborative")


def test_nothing_known_of_a_query_is_said(tmp_path):
    items = pd.DataFrame({"id": [1, 2, 3], "title": ["red kettle", "red anchor", "blue kettle"]})
    found = qkvsearch.build(tmp_path / "w", items=items, encoder="corpus").map(query="...")
    assert found.point is None
    assert "knows nothing about it" in found.notes[-1]

"""The map of the items: neighbours stay neighbours, and what is new is placed among them."""

import json

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
@pytest.mark.slow
def test_it_keeps_more_neighbours_than_two_axes(movies, head):
    found, keys = movies.map(head), np.asarray(keys_of(movies, head))
    known = np.flatnonzero(keys.any(axis=1))
    assert found.head == (head or movies.models.main_head)
    assert found.items.tolist() == known.tolist()
    assert (found.positions.dtype, found.positions.shape) == (np.float32, (len(known), 2))
    assert np.abs(found.positions).max() == pytest.approx(1, abs=1e-4)
    axes = PCA(2, random_state=0).fit_transform(found.keys)
    assert found.neighbours_kept > 1.5 * projection.neighbours_kept(found.keys, axes)
    n_unknown = len(keys) - len(known)
    said = f"Not drawn: {n_unknown} of {len(keys)} items that this head does not know."
    assert found.notes == [said] * bool(n_unknown)


def test_a_key_comes_where_its_item_is(movies):
    found, keys = movies.map(), np.asarray(keys_of(movies, None))
    assert np.median(np.abs(found.project(keys) - found.positions)) < 1e-3
    with pytest.raises(QkvError, match="`vectors` are"):
        found.project(np.ones((2, 3)))


def test_items_beyond_the_sample_are_placed_among_their_nearest(movies, monkeypatch):
    monkeypatch.setattr(projection, "MAX_EMBEDDED", 100)
    keys = movies.map().keys
    positions = projection.positions_of(keys, np.zeros(len(keys), np.int64))
    by_chance = 10 / len(keys)
    assert projection.neighbours_kept(keys, positions) > 4 * by_chance


def test_languages_of_a_mixed_catalog_are_no_islands():
    rng = np.random.default_rng(0)
    topics = np.repeat(rng.normal(size=(6, 16)), 40, axis=0)
    languages = np.arange(len(topics)) % 2
    spoken = 6 * np.eye(2)[languages]
    keys = np.concatenate([topics + rng.normal(size=topics.shape) * 0.4, spoken], axis=1)
    keys = np.asarray(keys / np.linalg.norm(keys, axis=1, keepdims=True), np.float32)

    def share_of_the_same_language(positions):
        apart = ((positions[:, None] - positions) ** 2).sum(axis=2)
        nearest = apart.argsort(axis=1)[:, 1:11]
        return (languages[nearest] == languages[:, None]).mean()

    assert share_of_the_same_language(projection.positions_of(keys, languages)) < 0.65
    assert share_of_the_same_language(projection.positions_of(keys, languages * 0)) > 0.9


def test_clusters_have_labels_of_their_words(tmp_path):
    kinds = ["tent camping", "guitar chords", "bread baking"]
    items = pd.DataFrame({"id": range(90), "title": [f"{kinds[i % 3]} {i}" for i in range(90)]})
    engine = qkvsearch.build(tmp_path / "w", items=items, encoder="corpus")
    words = {word for label in engine.map().labels for word in label.words.split(", ")}
    assert words & {"tent", "camping"}
    assert words & {"guitar", "chords"}
    assert words & {"bread", "baking"}


def test_a_cluster_in_a_rare_language_is_not_called_by_its_articles():
    rare = ["una tortilla con cebolla", "la sopa con pan", "un viaje con las dos", "con ella a pie"]
    titles = [f"tent camping {i}" for i in range(60)] + rare * 7
    languages = ["english"] * 60 + ["spanish"] * 28
    positions = np.repeat([[0.0, 0.0], [9.0, 9.0]], [60, 28], axis=0)
    positions += np.random.default_rng(0).normal(size=positions.shape)
    labels = projection._labels(positions, titles, languages)
    words = {word for label in labels for word in label.words.split(", ")}
    assert "tent" in words
    assert words & {"tortilla", "sopa", "cebolla", "viaje"}
    assert not words & {"con", "una", "las"}


def test_short_texts_that_are_taken_for_a_similar_language_lack_stop_words_as_well():
    rare = ["tortilla con cebolla", "sopa con pan", "viaje con dos", "cena con dos"]
    titles = [f"tent camping {i}" for i in range(600)] + rare * 7
    # A language without a list of stop words.
    languages = ["english"] * 600 + ["gl"] * 28
    positions = np.repeat([[0.0, 0.0], [9.0, 9.0]], [600, 28], axis=0)
    labels = projection._labels(positions, titles, languages)
    words = {word for label in labels for word in label.words.split(", ")}
    assert words & {"tortilla", "sopa", "cebolla", "viaje", "cena"}
    assert not words & {"con", "dos"}


def test_a_label_has_no_two_forms_of_one_word():
    positions = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0)
    titles = ["jacket jackets rain"] * 30 + ["shoe shoes trail"] * 30
    labels = projection._labels(positions, titles, ["english"] * 60)
    assert {label.words for label in labels} == {"jacket, rain", "shoe, trail"}


def test_a_word_of_few_items_names_no_cluster():
    positions = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0)
    titles = ["tent camping"] * 30 + ["guitar chords strum"] * 3 + ["guitar"] * 27
    labels = projection._labels(positions, titles, ["english"] * 60)
    assert {label.words for label in labels} == {"camping, tent", "guitar"}


def test_it_is_computed_once_and_stored_with_the_build(tmp_path, monkeypatch):
    items = pd.DataFrame(
        {"id": range(30), "title": [f"red lamp {i} of {i % 4}" for i in range(30)]}
    )
    path = tmp_path / "w"
    engine = qkvsearch.build(path, items=items, encoder="corpus")
    first = engine.map()
    assert engine.map() is first
    (stored,) = path.glob("builds/*/map-*.json")
    monkeypatch.setattr(projection, "_embedded", None)
    again = qkvsearch.open(path)
    np.testing.assert_allclose(again.map().positions, first.positions, atol=1e-4)
    monkeypatch.undo()
    damaged = json.loads(stored.read_text())
    damaged["content"]["positions"][0] = [9, 9]
    stored.write_text(json.dumps(damaged))
    mended = qkvsearch.open(path).map()
    np.testing.assert_allclose(mended.positions, first.positions, atol=1e-4)


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
    # The stored map of all items stays: other tests read it.
    monkeypatch.setattr(projection, "write_checksummed", lambda path, content: None)
    build = movies.current_build
    found = projection.item_map(build.recommender, build.models.main_head)
    again = projection.item_map(build.recommender, build.models.main_head)
    assert len(found.items) == len(set(found.items.tolist())) == len(found.positions) == 50
    np.testing.assert_array_equal(found.items, again.items)
    assert found.notes == [f"50 of {movies.n_items} items, a random sample, always the same."]


@pytest.mark.parametrize("titles", [["kettle"], ["kettle", "kettle"], ["kettle", "zq", "anchor"]])
def test_few_items_have_a_map_too(tmp_path, titles):
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    found = qkvsearch.build(tmp_path / "w", items=items, encoder="corpus").map(query="kettle")
    assert np.isfinite(found.positions).all()
    assert 0 <= found.neighbours_kept <= 1
    assert len(found.items) + (bool(found.notes) and "Not drawn" in found.notes[0]) >= 1


def test_what_it_cannot_place_is_told(movies, tmp_path):
    with pytest.raises(QkvError, match="`query`: collaborative embeddings have no texts"):
        movies.map("collaborative", query="space")
    with pytest.raises(QkvError, match="leave out `query` or `user`"):
        movies.map(query="space", user="u001")
    with pytest.raises(QkvError, match=r"`head`: no head 'lexical'.*, collaborative"):
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

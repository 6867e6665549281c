"""What a person can ask of recommendations: filters, recency, damping, diversity, similar users."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.rank import diversity
from qkvsearch.rank.damping import log_popularity

OPTIONS = [
    {},
    {"damping": 0.5},
    {"diversity": 0.4},
    {"diversity": 1.0},
    {"recent": 3},
    {"damping": 1.0, "diversity": 0.3, "recent": 10, "seen": True, "where": "year > 1980"},
]


def ids(ranking):
    return [hit.id for hit in ranking]


def met_of(engine, user):
    return set(
        engine.catalog.names(engine.current_build.recommender.histories.of(user).positions)[0]
    )


def liked_by(engine, user):
    """What counts for anything: no dislikes."""
    history = engine.current_build.recommender.histories.of(user)
    return set(engine.catalog.names(history.positions[history.confidences > 0])[0])


# --- the parts of a score, whatever is asked for ---


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_contributions_heads_and_order_agree_with_the_scores(movies, assert_adds_up, options):
    for user in ("u001", "u017", "u200"):
        ranking = movies.recommend(user=user, k=12, explain=True, **options)
        scores = [hit.score for hit in ranking]
        assert scores == sorted(scores, reverse=True)
        assert [hit.rank for hit in ranking] == list(range(1, 13))
        for i, hit in enumerate(ranking):
            assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)
            assert_adds_up(hit.heads.values(), hit.score)
            assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
            assert {r["id"] for r in hit.because if r["id"] is not None} == liked_by(movies, user)


def test_damping_and_diversity_are_reasons_without_an_id(movies):
    (hit,) = movies.recommend(user="u001", k=1, damping=1, diversity=0.5, explain=True)
    assert {r["title"] for r in hit.because if r["id"] is None} == {"popularity", "diversity"}
    assert set(hit.heads) == {"collaborative", "popularity", "diversity"}


# --- who has met nothing, one thing, everything ---


@pytest.mark.parametrize("options", OPTIONS[:-1], ids=str)
def test_someone_who_met_everything_is_left_with_nothing_new(films, assert_adds_up, options):
    everything = list(films.catalog.ids("items"))
    assert ids(films.recommend(likes=everything, **options)) == []
    ranking = films.recommend(likes=everything, seen=True, explain=True, k=3, **options)
    assert [len([r for r in hit.because if r["id"]]) for hit in ranking] == [len(everything)] * 3
    for hit in ranking:
        assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)


# --- ratings ---


@pytest.mark.parametrize("damping", [0, 0.5])
def test_what_someone_rated_lowest_attracts_nothing(films, damping):
    films.record("fan", "Alien", 5)
    films.record("torn", "Alien", 5)
    films.record("torn", "Toy Story", 1)
    options = {"k": 500, "seen": True, "damping": damping}
    fan, torn = (films.recommend(user=user, **options) for user in ("fan", "torn"))
    assert {hit.id: hit.score for hit in torn} == pytest.approx({h.id: h.score for h in fan})


def test_a_like_beside_a_low_rating_keeps_the_low_rating_without_effect(films):
    films.record("torn", "Toy Story", 1)
    liked = films.recommend(likes=["Alien"], k=500, seen=True)
    both = films.recommend(user="torn", likes=["Alien"], k=500, seen=True)
    assert {hit.id: hit.score for hit in both} == pytest.approx({h.id: h.score for h in liked})


# --- seen and only ---


def test_seen_items_come_only_when_asked_for(movies):
    met = met_of(movies, "u001")
    assert not met & set(ids(movies.recommend(user="u001", k=1000)))
    assert met < set(ids(movies.recommend(user="u001", k=1000, seen=True)))


def test_only_keeps_to_its_ids_and_passes_over_unknown_ones(movies):
    listed = ["m056", "m078", "m100", "nowhere"]
    ranking = movies.recommend(likes=["m200"], only=iter(listed), k=99)
    assert "1 of 4 ids, such as 'nowhere', is not in the catalog" in " ".join(ranking.notes)
    found = ids(ranking)
    assert sorted(found) == ["m056", "m078", "m100"]
    assert ids(movies.recommend(likes=["m056"], only="m078")) == ["m078"]
    some = movies.recommend(likes=["m200"], only=listed, where="year >= 2000", fields="year", k=99)
    assert set(ids(some)) == {id_ for id_ in found if movies.show(id_)["year"] >= 2000}


@pytest.mark.parametrize("only", [["nowhere"], []])
def test_only_unknown_ids_is_an_error(movies, only):
    with pytest.raises(QkvError, match="none of its"):
        movies.recommend(user="u001", only=only)


# --- recent ---


def test_recent_halves_for_every_so_many_later_ones(movies):
    people = movies.current_build.recommender
    plain, weighed = people.histories.of("u005"), people.histories.of("u005").recent(4)
    later = [(plain.times > time).sum() for time in plain.times]
    np.testing.assert_allclose(
        weighed.confidences, plain.confidences * 0.5 ** (np.array(later) / 4), rtol=1e-6
    )


def test_the_latest_counts_most_and_the_score_is_still_exact(films):
    for title in ("Toy Story", "Finding Nemo", "Alien"):
        films.record("shifting", title, 5)
    with qkv.open(films.workspace.path) as engine:
        ranking = engine.recommend(user="shifting", recent=1, likes=["Heat"], explain=True, k=3)
        heat = engine.catalog.titles.item_position("Heat")
        history = engine.current_build.recommender.histories.of("shifting", [heat]).recent(1)
        embedding = engine.models.implicit.fold_in(history.positions, history.confidences)
        expected = engine.models.implicit.item_embeddings[ranking.positions] @ embedding
        np.testing.assert_allclose([hit.score for hit in ranking], expected, atol=1e-5)
        heat = engine.catalog.titles.item_position("Heat")
        assert history.confidences[history.positions == heat] == [1.0]
        assert (history.confidences[history.positions != heat] <= 0.5).all()


def test_times_that_order_within_a_user_are_enough(tmp_path):
    items = pd.DataFrame({"id": [1, 2, 3], "title": ["kettle", "anchor", "rope"]})
    log = pd.DataFrame(
        {"user": list("aabb"), "item": [1, 2, 1, 3], "time_rank_in_user": [2, 1, 1, 2]}
    )
    engine = qkv.build(tmp_path / "ranks", items=items, interactions=log, encoder="corpus")
    engine.record("a", 3)
    history = engine.current_build.recommender.histories.of("a").recent(1)
    weights = dict(zip(history.positions.tolist(), history.confidences.tolist(), strict=True))
    assert weights == {2: 1.0, 0: 0.5, 1: 0.25}


def test_recent_without_times_is_an_error(shop):
    with pytest.raises(QkvError, match="no times, so none is recent"):
        shop.recommend(user=101, recent=3)
    assert ids(shop.recommend(likes=[1], recent=3)) == ids(shop.recommend(likes=[1]))


# --- damping and diversity ---


def test_damping_takes_as_much_as_it_says(movies):
    counts = np.asarray(movies.models.item_counts)
    log = movies.models.log()
    np.testing.assert_array_equal(counts, np.bincount(log.items, minlength=movies.n_items))
    plain, damped = (
        movies.recommend(user="u001", k=1000, seen=True, damping=x) for x in (0.0, 0.7)
    )
    spread, popularity = plain.head.scores.std(), log_popularity(counts)
    before = {hit.id: hit.score for hit in plain}
    expected = [
        before[hit.id] - 0.7 * spread * popularity[position]
        for hit, position in zip(damped, damped.positions, strict=True)
    ]
    np.testing.assert_allclose([hit.score for hit in damped], expected, atol=1e-5)


def test_each_diverse_hit_is_the_best_by_the_formula(movies):
    """Carbonell and Goldstein's greedy choice, written out over the pool of the best 200."""
    pool = movies.recommend(user="u017", k=200)
    vectors = movies.models.implicit.item_embeddings[pool.positions].astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reach = pool[0].score - pool[99].score
    chosen, values = [0], [0.6 * pool[0].score]
    while len(chosen) < 8:
        worth = {
            i: 0.6 * pool[i].score
            - 0.4 * reach * max(0, *(vectors[i] @ vectors[j] for j in chosen))
            for i in range(200)
            if i not in chosen
        }
        chosen.append(max(worth, key=worth.get))
        values.append(worth[chosen[-1]])
    ranking = movies.recommend(user="u017", k=8, diversity=0.4)
    assert ids(ranking) == [pool[i].id for i in chosen]
    np.testing.assert_allclose([hit.score for hit in ranking], values, atol=1e-5)


def test_a_cold_item_is_like_what_its_text_is_like():
    """Where one of two items has no embedding, their texts are compared, not zeros."""
    embeddings = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    texts = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    similar = diversity.item_similarity(embeddings, texts)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(similar(0), [1, half, half])
    np.testing.assert_allclose(similar(1), [half, 1, half])
    np.testing.assert_allclose(similar(2), [half, half, 1])


@pytest.mark.parametrize(
    "options", [{"diversity": 0.5}, {"diversity": 0.9, "damping": 0.5}], ids=str
)
def test_the_first_diverse_hits_are_the_same_for_every_k(movies, options):
    most = movies.recommend(user="u017", k=120, **options)
    for k in (1, 5, 30):
        few = movies.recommend(user="u017", k=k, **options)
        assert [(hit.id, hit.score) for hit in few] == [(hit.id, hit.score) for hit in most[:k]]


def test_more_than_the_pool_can_be_asked_for(movies, monkeypatch):
    monkeypatch.setattr(diversity, "POOL", 20)
    assert len(movies.recommend(user="u017", k=30, diversity=0.5)) == 30


def test_only_so_many_hits_are_made_diverse(movies):
    movies.recommend(user="u017", k=10, offset=990, diversity=0.5)
    with pytest.raises(QkvError, match="`diversity` is for the best 1,000 hits, not for 1,001"):
        movies.recommend(user="u017", k=1, offset=1000, diversity=0.5)

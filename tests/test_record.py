"""`record`: the next answer knows it, exactly, and nothing recorded is lost."""

import numpy as np
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.learn.recording import Recording
from qkvsearch.rank.recommender import in_order
from qkvsearch.store.records import database


@pytest.fixture
def clicks(tmp_path):
    import pandas as pd

    items = pd.DataFrame({"id": [1, 2, 3, 4], "title": ["kettle", "anchor", "ladder", "rope"]})
    log = pd.DataFrame({"user": ["a", "a", "b", "b", "c"], "item": [1, 2, 1, 3, 4]})
    return qkv.build(tmp_path / "clicks", items=items, interactions=log)


def scores(ranking):
    return {hit.id: hit.score for hit in ranking}


def test_a_recorded_history_answers_like_the_same_likes(films):
    films.record("newcomer", "Alien", 5)
    films.record("newcomer", "Heat", 5)
    recorded = scores(films.recommend(user="newcomer", k=500))
    assert recorded == pytest.approx(scores(films.recommend(likes=["Alien", "Heat"], k=500)))


def test_the_score_is_the_exact_solve_on_the_longer_history(films):
    before = films.models.history(films.catalog.users.position("u002"))
    position = int(np.setdiff1d(np.arange(films.n_items), before.positions)[0])
    ids, _ = films.catalog.names([position])
    films.record("u002", ids[0], 3)
    confidences = np.append(before.confidences, ((3 - 1) / (5 - 1)) ** 2)
    embedding = films.models.implicit.fold_in(np.append(before.positions, position), confidences)
    ranking = films.recommend(user="u002", k=5, explain=True)
    expected = films.models.implicit.item_embeddings[ranking.positions] @ embedding
    np.testing.assert_allclose([hit.score for hit in ranking], expected, atol=1e-5)
    assert ids[0] in {reason["id"] for reason in ranking[0].because}


def test_a_second_rating_of_the_same_item_stands_instead_of_the_first(films):
    films.record("u003", "Alien", 5)
    liked = scores(films.recommend(user="u003", k=500))
    films.record("u003", "Alien", 1)
    assert scores(films.recommend(user="u003", k=500)) != pytest.approx(liked)
    films.record("u003", "Alien", 5)
    assert scores(films.recommend(user="u003", k=500)) == pytest.approx(liked)


def test_predicted_ratings_follow_what_was_recorded(films):
    films.record("optimist", "Alien", 5)
    films.record("pessimist", "Alien", 3)
    high, low = (films.recommend(user=user, k=1)[0] for user in ("optimist", "pessimist"))
    assert high.predicted_rating > low.predicted_rating


def test_an_open_engine_and_one_opened_later_both_know(films):
    other = qkv.open(films.workspace.path)
    films.record("newcomer", "Alien")
    again = qkv.open(films.workspace.path)
    assert scores(films.recommend(user="newcomer")) == scores(other.recommend(user="newcomer"))
    assert scores(films.recommend(user="newcomer")) == scores(again.recommend(user="newcomer"))


def test_what_was_recorded_survives_the_next_build(films):
    films.record("newcomer", "Alien")
    expected = scores(films.recommend(user="newcomer"))
    rebuilt = qkv.build(films.workspace.path, "sample:movies")
    assert scores(rebuilt.recommend(user="newcomer")) == expected
    assert rebuilt.info()["recorded"] == 1


def test_an_item_that_the_next_catalog_lacks_is_passed_over(clicks):
    clicks.record("d", 4)
    clicks.record("d", 1)
    import pandas as pd

    items = pd.DataFrame({"id": [1, 2, 3], "title": ["kettle", "anchor", "ladder"]})
    log = pd.DataFrame({"user": ["a", "a", "b", "b"], "item": [1, 2, 1, 3]})
    rebuilt = qkv.build(clicks.workspace.path, items=items, interactions=log)
    assert set(scores(rebuilt.recommend(user="d"))) == {2, 3}


def test_someone_whose_only_item_was_removed_has_no_recommendations_and_no_error(clicks):
    clicks.record("bob", 4)
    clicks.remove(4)
    assert list(clicks.recommend(user="bob")) == []
    with pytest.raises(UnknownIdError, match=r"^no user 'bobby'$"):
        clicks.history("bobby")


def test_an_unknown_item_is_refused_with_near_matches_and_creates_nobody(films):
    with pytest.raises(UnknownIdError, match="'Alein'; did you mean Alien"):
        films.record("newcomer", "Alein")
    with pytest.raises(UnknownIdError, match="no user 'newcomer'"):
        films.recommend(user="newcomer", strict_user=True)


@pytest.mark.parametrize("rating", [0.5, 5.5, float("inf"), -1])
def test_a_rating_outside_the_scale_is_refused(films, rating):
    with pytest.raises(QkvError, match=r"a rating here is from 1 to 5|must be a number"):
        films.record("u001", "Alien", rating)
    assert films.info()["recorded"] == 0


def rated_log(tmp_path, time):
    import pandas as pd

    items = pd.DataFrame({"id": ["x", "y", "z"], "title": ["kettle", "anchor", "rope"]})
    rows = [("a", "x", 5, time), ("a", "y", 3, time), ("b", "x", 4, time), ("b", "z", 2, time)]
    log = pd.DataFrame(rows, columns=["user", "item", "rating", "time"])
    return qkv.build(tmp_path / "rated", items=items, interactions=log)


def test_a_record_older_than_what_the_next_build_knows_gives_way(tmp_path):
    rated_log(tmp_path, 1000).record("a", "x", 1)
    assert rated_of(qkv.open(tmp_path / "rated"), "a", "x") == 1
    assert rated_of(rated_log(tmp_path, 4_000_000_000), "a", "x") == 5


def test_meeting_an_item_again_without_a_rating_keeps_the_one_it_had(tmp_path):
    engine = rated_log(tmp_path, 1000)
    engine.record("a", "y")
    assert rated_of(engine, "a", "y") == 3
    engine.record("a", "z", 3)
    engine.record("a", "z")
    assert rated_of(engine, "a", "z") == 3


@pytest.mark.parametrize("unit", [10**3, 10**6, 10**9])
def test_a_log_of_finer_times_gives_way_to_a_record(tmp_path, unit):
    engine = rated_log(tmp_path, 1_700_000_000 * unit)
    engine.record("a", "x", 1)
    assert rated_of(engine, "a", "x") == 1


def test_a_record_comes_after_a_log_whose_times_are_in_the_future(tmp_path):
    engine = rated_log(tmp_path, 4_000_000_000)
    engine.record("a", "y", 4)
    assert rated_of(engine, "a", "y") == 4
    assert order_of(engine, "a") == ["x", "y"]


def test_meeting_an_item_again_without_a_rating_makes_it_the_latest(tmp_path):
    engine = rated_log(tmp_path, 1000)
    engine.record("a", "x")
    assert rated_of(engine, "a", "x") == 5
    assert order_of(engine, "a") == ["y", "x"]
    history = engine.current_build.histories.of("a").recent(1)
    halves = dict(zip(order_of(engine, "a"), [0.5, 1.0], strict=True))
    plain = engine.current_build.histories.of("a")
    np.testing.assert_allclose(
        history.confidences,
        [
            c * halves[engine.catalog.names([p])[0][0]]
            for p, c in zip(plain.positions, plain.confidences, strict=True)
        ],
    )


def test_records_of_one_second_stay_in_their_order(tmp_path, monkeypatch):
    engine = rated_log(tmp_path, 1000)
    monkeypatch.setattr(database.time, "time", lambda: 2000.0)
    for item in ("z", "y", "x", "z"):
        engine.record("a", item, 5)
    assert order_of(engine, "a") == ["y", "x", "z"]
    history = engine.current_build.histories.of("a").recent(1)
    weights = dict(zip(history.positions.tolist(), history.confidences.tolist(), strict=True))
    assert [weights[engine.catalog.titles.item_position(item)] for item in "yxz"] == [0.25, 0.5, 1]


def order_of(engine, user):
    return engine.catalog.names(in_order(engine.current_build.histories.of(user)))[0]


def rated_of(engine, user, item):
    history = engine.current_build.histories.of(user)
    ratings = dict(zip(history.positions.tolist(), history.ratings.tolist(), strict=True))
    return ratings[engine.catalog.titles.item_position(item)]


def test_nothing_is_recorded_where_it_cannot_be_shown(films, monkeypatch):
    """A client that sees an error sends it again, and it would be there twice."""

    def fail(*_):
        raise QkvError("the catalog cannot be read")

    monkeypatch.setattr(Recording, "listed", fail)
    with pytest.raises(QkvError, match="cannot be read"):
        films.record("u001", "Alien", 4)
    assert films.info()["recorded"] == 0

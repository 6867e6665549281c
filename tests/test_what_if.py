"""`recommend` for someone whose history is not as it is: without items of it, with ratings given
now, and with items that shall not be among the hits.
"""

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.models.recommend_heads import HEADS

ALL = 1000


def catalog(n):
    return pd.DataFrame(
        {"id": [f"i{i}" for i in range(n)], "title": [f"thing {i}" for i in range(n)]}
    )


@pytest.fixture
def plays(tmp_path):
    """A log with weights, and with times."""
    rng = np.random.default_rng(3)
    log = pd.DataFrame(
        [
            {
                "user": f"u{u}",
                "item": f"i{i}",
                "hours": rng.integers(1, 90),
                "time": 100 * u + place,
            }
            for u in range(30)
            for place, i in enumerate(rng.choice(20, 6, replace=False))
        ]
    )
    columns = qkvsearch.Columns(weight="hours", time="time")
    return qkvsearch.build(tmp_path / "plays", items=catalog(20), interactions=log, columns=columns)


@pytest.fixture
def pairs(tmp_path):
    log = pd.DataFrame(
        {"user": list("aabbccc"), "item": ["i0", "i1", "i0", "i2", "i1", "i2", "i3"]}
    )
    return qkvsearch.build(tmp_path / "pairs", items=catalog(6), interactions=log)


def answer(ranking):
    """All that it says, to the last bit."""
    reasons = [hit.because for hit in ranking]
    return [(hit.id, hit.score, hit.weight, hit.predicted_rating) for hit in ranking], reasons


# --- without ---


@pytest.mark.parametrize("recent", [None, 3])
def test_without_an_item_of_the_log_is_the_history_without_it(films, recent):
    """The same answer as for someone new whose whole history is the other items."""
    history = films.history("u001")
    liked = [row["id"] for row in history if row["confidence"]]
    gone = liked[0]
    for row in reversed(history):
        if row["id"] != gone:
            films.record("shadow", row["id"], row["rating"])
    options = {"k": ALL, "recent": recent, "explain": True}
    without = films.recommend(user="u001", without=gone, **options)
    shadow = films.recommend(user="shadow", **options)
    assert {hit.id: hit.score for hit in without} == pytest.approx(
        {hit.id: hit.score for hit in shadow}, abs=1e-6
    )
    assert gone in {hit.id for hit in without}
    assert {reason["id"] for reason in without[0].because} == set(liked) - {gone}


def test_without_leaves_out_what_was_recorded_liked_and_rated_in_the_call_to_the_last_bit(films):
    films.record("new", "Heat", 5)
    films.record("new", "Alien", 4)
    plain = answer(films.recommend(ratings={"Heat": 5}, k=ALL, explain=True))
    assert answer(films.recommend(user="new", without="Alien", k=ALL, explain=True)) == plain
    both = {"Heat": 5, "Alien": 1}
    assert answer(films.recommend(ratings=both, without=["Alien"], k=ALL, explain=True)) == plain
    liked = films.recommend(likes=["Heat", "Alien"], without="Alien", k=ALL, explain=True)
    assert answer(liked) == answer(films.recommend(likes="Heat", k=ALL, explain=True))


def test_what_is_not_in_the_history_is_said_and_changes_nothing(films):
    plain = films.recommend(user="u001", k=ALL)
    asked = films.recommend(user="u001", without=["Heat", "Alien"], k=ALL)
    in_history = {row["title"] for row in films.history("u001")}
    assert not in_history & {"Heat", "Alien"}
    assert answer(asked) == answer(plain)
    assert "`without`: not in this history, so nothing changes: Heat (" in asked.notes[0]
    with pytest.raises(UnknownIdError):
        films.recommend(user="u001", without="No such film")


def test_without_all_of_a_history_there_is_nothing_to_go_by(films, pairs):
    assert len(films.recommend(likes="Heat", without="Heat")) == 0
    assert len(pairs.recommend(user="a", without=["i0", "i1"])) == 0


def test_a_model_of_the_order_leaves_it_out_as_well(tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        [
            {"user": u, "item": f"i{i}", "time": place}
            for u in range(30)
            for place, i in enumerate(rng.choice(12, 6, replace=False))
        ]
    )
    engine = qkvsearch.build(tmp_path / "w", items=catalog(12), interactions=log, next_item=True)
    for item in ("i1", "i2", "i3"):
        engine.record("x", item)
    for item in ("i1", "i3"):
        engine.record("y", item)
    options = {"model": "next-item", "k": ALL, "explain": True}
    shorter = engine.recommend(user="x", without="i2", **options)
    assert answer(shorter) == answer(engine.recommend(user="y", **options))


# --- exclude ---


def test_what_is_excluded_is_no_hit_and_nothing_else_changes(films):
    plain = films.recommend(user="u001", k=ALL)
    excluded = films.recommend(user="u001", exclude=[plain[0].id, plain[3].title], k=ALL)
    left = [hit.id for hit in plain if hit.rank not in (1, 4)]
    assert [hit.id for hit in excluded] == left
    assert [hit.score for hit in excluded] == [h.score for h in plain if h.rank not in (1, 4)]
    with pytest.raises(UnknownIdError):
        films.recommend(user="u001", exclude="No such film")


# --- ratings ---


@pytest.mark.parametrize("user", ["u001", None])
def test_ratings_count_as_if_they_were_recorded(films, user):
    ratings = {"Heat": 5, "Alien": 1, "The Goonies": 3}
    asked = films.recommend(user=user, ratings=ratings, k=ALL, explain=True, recent=5)
    known = {row["id"] for row in films.history("u001")}
    for item, rating in ratings.items():
        films.record(user or "new", item, rating)
    recorded = films.recommend(user=user or "new", k=ALL, explain=True, recent=5)
    assert answer(asked) == answer(recorded)
    assert not {hit.title for hit in asked} & set(ratings)
    assert user is None or not {hit.id for hit in asked} & known


def test_nothing_is_kept_of_them(films):
    before = answer(films.recommend(user="u001", k=ALL))
    films.recommend(user="u001", ratings={"Heat": 1})
    assert answer(films.recommend(user="u001", k=ALL)) == before
    assert len(films.records()) == 0


def test_they_join_likes_and_one_item_is_not_both(films):
    asked = films.recommend(ratings={"Heat": 2}, likes="Alien", k=ALL, explain=True)
    films.record("new", "Heat", 2)
    recorded = films.recommend(user="new", likes="Alien", k=ALL, explain=True)
    assert answer(asked) == answer(recorded)
    with pytest.raises(QkvError, match="among `likes` and `ratings`"):
        films.recommend(ratings={"Heat": 2}, likes="Heat")


def test_a_weight_counts_as_a_recorded_one(plays):
    weights = {"i3": 500, "i4": 0.5, "i5": -2}
    asked = plays.recommend(user="u1", ratings=weights, k=ALL, explain=True, recent=2)
    for item, weight in weights.items():
        plays.record("u1", item, weight=weight)
    recorded = plays.recommend(user="u1", k=ALL, explain=True, recent=2)
    assert answer(asked) == answer(recorded)
    with pytest.raises(QkvError, match="`ratings`: 'i3': a weight is a number other than 0"):
        plays.recommend(ratings={"i3": 0})


def test_what_no_rating_can_be_is_refused_by_the_name_of_the_item(films, pairs):
    with pytest.raises(QkvError, match="`ratings`: 'Alien': a rating here is from 1 to 5, not 7"):
        films.recommend(ratings={"Heat": 5, "Alien": 7})
    with pytest.raises(QkvError, match="`ratings`: 'i1': the interactions here have no ratings"):
        pairs.recommend(ratings={"i1": 5})
    with pytest.raises(QkvError, match="`ratings` must be a mapping"):
        films.recommend(ratings=["Heat"])
    with pytest.raises(QkvError, match="`ratings`: 'Heat': `rating` must be a number"):
        films.recommend(ratings={"Heat": "5"})
    with pytest.raises(QkvError, match="nobody to recommend to"):
        films.recommend(ratings={})


def test_dislikes_alone_are_nothing_to_go_by(films):
    assert len(films.recommend(ratings={"Heat": 1, "Alien": 2})) == 0


# --- the command ---


def test_the_command_has_all_three(qkv, movies, movies_path):
    first = movies.recommend(ratings={"Heat": 5, "Alien": 1}, k=1)[0]
    rated = ["recommend", "--rate", "Heat=5", "--rate", "Alien=1", "-k", 3]
    assert first.title in qkv("-w", movies_path, *rated).stdout
    answer = qkv("-w", movies_path, *rated, "--exclude", first.id)
    assert answer.code == 0
    assert first.title not in answer.stdout
    answer = qkv("-w", movies_path, "recommend", "--user", "u001", "--without", "Heat")
    assert "--without: not in this history, so nothing changes: Heat (" in answer.stderr
    answer = qkv("-w", movies_path, "recommend", "--rate", "Heat=1")
    assert "this user likes nothing yet" in answer.stderr


@pytest.mark.parametrize("typed", ["Heat", "=5", "Heat=", "Heat=good", "Heat=nan"])
def test_a_rating_that_cannot_be_read_is_told(qkv, movies_path, typed):
    answer = qkv("-w", movies_path, "recommend", "--rate", typed)
    assert answer.code == 1
    assert "ITEM=RATING" in answer.stderr


def test_a_title_may_have_the_sign(qkv, tmp_path):
    items = pd.DataFrame({"id": ["a", "b", "c"], "title": ["E=mc2", "Relativity", "Light"]})
    log = pd.DataFrame({"user": list("xxyz"), "item": list("abbc"), "rating": [5, 4, 2, 1]})
    qkvsearch.build(tmp_path / "w", items=items, interactions=log).close()
    answer = qkv("-w", tmp_path / "w", "recommend", "--rate", "E=mc2=5")
    assert answer.code == 0
    assert "Relativity" in answer.stdout


def test_heads_alone_and_together(films):
    """The mean of both heads is the default."""
    likes = ["The Goonies", "Spirited Away", "Heat"]
    both = films.recommend(likes=likes, k=ALL, explain=True)
    heads = {name: films.recommend(likes=likes, k=ALL, heads=name) for name in HEADS}
    factors = films.models.preferences.multipliers()
    assert set(factors) == set(HEADS)
    scores = {name: {hit.id: hit.score for hit in ranking} for name, ranking in heads.items()}
    for hit in both:
        mean = sum(factors[name] * scores[name][hit.id] for name in HEADS)
        assert hit.score == pytest.approx(mean, abs=1e-5)
        assert sum(why["contribution"] for why in hit.because) == pytest.approx(hit.score, abs=1e-5)
        assert len({why["id"] for why in hit.because}) == len(hit.because) <= len(likes)
    assert answer(films.recommend(likes=likes, k=5, heads=[*HEADS])) == answer(
        films.recommend(likes=likes, k=5)
    )


def test_because_is_said_where_a_removal_takes_the_addend(films):
    gone = next(row["id"] for row in films.history("u001") if row["confidence"] == 1)
    for options in (
        {"heads": "neighbours"},
        {"heads": "collaborative"},
        {"heads": "neighbours", "recent": 9},
        {"heads": "neighbours", "damping": 0.5},
    ):
        whole = films.recommend(user="u001", k=ALL, explain=True, **options)
        without = films.recommend(user="u001", k=ALL, without=gone, **options)
        left = {hit.id: hit.score for hit in without}
        whys = [next(why for why in hit.because if why["id"] == gone) for hit in whole]
        gaps = [hit.score - left[hit.id] for hit in whole]
        is_addend = np.allclose(gaps, [why["contribution"] for why in whys], atol=1e-5)
        assert is_addend == (options == {"heads": "neighbours"})
        assert {why["by_removal"] for why in whys} == {is_addend}
    likes = films.recommend(likes=["The Goonies", "Heat"], heads="neighbours")
    assert likes.reasons(0)[0].text.startswith("because of ")


def test_an_unknown_head_and_heads_of_another_model_are_refused(films, tmp_path):
    with pytest.raises(QkvError, match="no 'neighbors'; did you mean neighbours"):
        films.recommend(likes="Heat", heads="neighbors")
    with pytest.raises(QkvError, match="no 'neighbors'"):
        films.recommend(user="nobody", heads="neighbors")
    with pytest.raises(QkvError, match="no 'neighbors'"):
        films.recommend_all("x.csv", heads="neighbors")
    with pytest.raises(QkvError, match="`heads` must be a text or a list of texts, not 5"):
        films.recommend(likes="Heat", heads=5)
    with pytest.raises(QkvError, match="`heads`"):
        films.recommend(likes="Heat", heads="neighbours", model="next-item")
    alone = qkvsearch.build(tmp_path / "alone", items=catalog(9))
    with pytest.raises(QkvError, match="`heads`"):
        alone.recommend(likes="i1", heads="neighbours")

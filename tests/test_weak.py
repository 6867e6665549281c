"""`recommend` from too little says so, and from enough says nothing."""

import numpy as np
import pandas as pd
import pytest


def is_said(ranking):
    noted = [note for note in ranking.notes if note.startswith("Weak")]
    assert all(hit.weak is (True if noted else None) for hit in ranking)
    assert ranking or not noted
    return bool(noted)


def test_a_film_that_few_liked_is_too_little_and_two_known_ones_are_enough(movies):
    few = movies.recommend(likes="The Godfather")
    assert is_said(few)
    assert "one item that 8 people of the log liked; the best score is 0.01" in few.notes[0]
    popular = int(np.argmax(movies.models.strength.n_liking))
    known = movies.catalog.names([popular])[0][0]
    assert not is_said(movies.recommend(likes=[known]))
    assert not is_said(movies.recommend(likes=[known, "The Godfather"]))


def test_nobody_of_the_log_is_too_little_but_who_has_no_more(movies):
    assert not [user for user in movies.users.ids if is_said(movies.recommend(user=user, k=1))]


def test_what_one_or_two_people_liked_is_always_too_little(movies):
    n_liking = movies.models.strength.n_liking
    rows = np.flatnonzero((n_liking > 0) & (n_liking < 3))
    assert len(rows)
    for id_ in movies.catalog.names(rows)[0]:
        assert is_said(movies.recommend(likes=[id_], k=3))


def test_a_condition_damping_and_diversity_make_nothing_weak(movies):
    """Nor strong: it is the history that is too little, or is not."""
    options = [{"damping": 3.0}, {"diversity": 0.9}, {"where": "year < 1960"}, {"seen": True}]
    for given in [*options, {"damping": 1.0, "diversity": 0.5, "temperature": 9.0}]:
        assert not is_said(movies.recommend(user="u001", **given))
        assert is_said(movies.recommend(likes="The Godfather", **given))


def test_by_text_or_without_hits_nothing_is_said(things, movies):
    video = things.catalog.names([0])[0][0]
    assert not is_said(things.recommend(likes=[video]))
    assert not movies.recommend(likes="The Godfather", k=0).notes


def test_it_is_in_json_and_in_words(qkv, movies_path):
    run = ("-w", movies_path, "recommend", "--like", "The Godfather")
    answer = qkv(*run, "--format", "json")
    assert all(row["weak"] is True for row in answer.json())
    assert answer.stderr.startswith("Weak: these rest on one item")
    strong = qkv("-w", movies_path, "recommend", "--user", "u001", "--format", "json")
    assert "weak" not in strong.json()[0]
    assert "Weak" not in strong.stderr


def test_updates_keep_it_and_learning_finds_it_again(films):
    def state():
        strength = films.models.strength
        godfather = films.catalog.titles.item_position("The Godfather")
        return strength.level, int(strength.n_liking[godfather])

    before = state()
    films.remove("Heat")
    assert state() == before
    assert is_said(films.recommend(likes="The Godfather"))
    films.compact()
    assert state() == before
    ids = [films.items[title]["id"] for title in ("The Godfather", "Fargo")]
    liked = [(f"new{user}", id_) for user in range(40) for id_ in ids]
    films.record_many(pd.DataFrame(liked, columns=["user", "item"]))
    films.learn()
    assert state() != before
    assert state()[1] == 48
    assert not is_said(films.recommend(likes="The Godfather"))


# --- all users ---


def count_said(engine, path, **options):
    done = engine.recommend_all(path, k=2, **options)
    return [note for note in done.notes if note.startswith("Weak")]


@pytest.mark.slow
def test_all_users_are_counted(films, tmp_path):
    assert count_said(films, tmp_path / "a.csv") == []
    films.record("ann", "The Godfather")
    films.record("bob", "Fargo")
    films.record("bob", "Heat")
    expected = [user for user in films.users.ids if is_said(films.recommend(user=user, k=1))]
    assert expected == ["ann"]
    for i, options in enumerate([{}, {"damping": 30.0}, {"seen": True}, {"where": "year < 1940"}]):
        (note,) = count_said(films, tmp_path / f"{i}.jsonl", **options)
        assert "of 1 of 402 users rest" in note


def test_who_likes_nothing_is_not_counted(shop, tmp_path):
    """300 rated everything the lowest, and gets no recommendation that could be weak."""
    weak = [user for user in shop.users.ids if is_said(shop.recommend(user=user))]
    assert weak
    assert 300 not in weak
    (note,) = count_said(shop, tmp_path / "all.csv")
    assert f"of {len(weak)} of 7 users" in note

"""The engine: what each question finds, never shows, explains, and refuses, on small data."""

import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.attention.layers import fast_encoder
from qkvsearch.engine import Engine
from qkvsearch.errors import DamagedError, QkvError, UnknownIdError, WorkspaceError
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.text.encoders import pretrained


def answers(ranking):
    return [(hit.id, hit.score, hit.weight) for hit in ranking]


# --- search ---


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("sourdough bread", "Sourdough from nothing, day one to day nine"),
        (
            "how attention works in transformers",
            "How attention works in transformers, step by step",
        ),
        ("CAFÉ roaster java", "Tasting Java: a coffee roaster compares four island farms"),
        ("why do cats purr", "Why do cats purr?"),
        ("宋朝人的一天", "宋朝人的一天怎么过"),
        ("randonnee cevennes", "Un été dans les Cévennes : marcher avec un âne"),
    ],
)
def test_search_finds_the_obvious_first(videos, query, best):
    assert videos.search(query, k=1)[0].title == best


def test_lexical_search_finds_only_items_with_one_of_the_words(shop):
    titles = [hit.title for hit in shop.search("hammer zzqx", heads=["lexical"], k=99)]
    assert sorted(titles) == ["apple hammer", "claw hammer", "hammer handle", "steel hammer"]


def test_the_order_of_heads_and_naming_one_twice_change_nothing(videos):
    expected = answers(videos.search("attention", heads=["lexical", "semantic"]))
    assert answers(videos.search("attention", heads=["semantic", "lexical", "lexical"])) == expected
    assert answers(videos.search("attention")) == expected


def test_weights_are_those_of_the_stated_temperature(videos):
    ranking = videos.search("attention", k=1000, temperature=0.5, anyway=True)
    powers = np.exp(np.array([hit.score for hit in ranking]) / 0.5)
    np.testing.assert_allclose([hit.weight for hit in ranking], powers / powers.sum(), rtol=1e-3)


# --- recommend ---


def test_what_someone_rated_lowest_is_left_out_too(shop):
    assert {hit.id for hit in shop.recommend(user=101, k=99)} == {3, 5, 6, 7, 8, 9, 30}


def test_likes_are_left_out_alone_and_on_top_of_a_user(shop):
    assert not {1, 4} & {hit.id for hit in shop.recommend(likes=[1, 4], k=99)}
    with_user = {hit.id for hit in shop.recommend(user=101, likes=[5], k=99)}
    assert with_user == {3, 6, 7, 8, 9, 30}


def test_people_are_recommended_what_others_of_their_taste_met(shop):
    assert shop.recommend(user=101, k=1)[0].title == "apple pie"
    assert shop.recommend(user=201, k=1)[0].title == "hammer handle"
    assert shop.recommend(likes=["green apple"], k=2)[0].title in ("red apple", "apple pie")


def test_reasons_name_what_was_met_by_id_and_title_the_largest_first(shop):
    (hit,) = shop.recommend(likes=["green apple", "claw hammer"], k=1, explain=True)
    assert {(reason["id"], reason["title"]) for reason in hit.because} == {
        (2, "green apple"),
        (5, "claw hammer"),
    }
    sizes = [abs(reason["contribution"]) for reason in hit.because]
    assert sizes == sorted(sizes, reverse=True)


def test_likes_by_title_year_article_or_id_are_the_same(movies):
    expected = answers(movies.recommend(likes=["m060", "m078"]))
    for likes in (["The Matrix", "Heat"], ["matrix", "HEAT (1995)"], ["Heat", "m060", "Heat"]):
        assert answers(movies.recommend(likes=likes)) == expected


def test_a_like_of_something_met_counts_in_full_and_once(shop, assert_adds_up):
    """Item 4 has the lowest rating from 101, so that alone it counts for nothing."""
    (hit,) = shop.recommend(user=101, likes=[4], where="id = 5", explain=True)
    assert sorted(reason["id"] for reason in hit.because) == [1, 2, 4]
    assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)
    (liked,) = [reason for reason in hit.because if reason["id"] == 4]
    assert liked["contribution"] > 0.01


def test_one_like_or_head_alone_is_itself_and_not_its_letters(movies, videos):
    assert answers(movies.recommend(likes="Alien")) == answers(movies.recommend(likes=["Alien"]))
    alone = videos.search("bread", heads="lexical")
    assert answers(alone) == answers(videos.search("bread", heads=["lexical"]))


def test_a_users_preferences_count_3_beside_10_for_all_other_heads(movies):
    ranking = movies.search("war", user="u001", k=1)
    spreads = {head.name: head.scores.std() for head in ranking.head.addends}
    assert spreads["collaborative"] == pytest.approx(0.3 / 1.3, rel=1e-3)
    others = [spread for name, spread in spreads.items() if name != "collaborative"]
    assert sum(others) == pytest.approx(1 / 1.3, rel=1e-3)


def test_the_coldest_temperature_is_a_hard_search(videos):
    ranking = videos.search("bread", temperature=1e-300)
    assert [ranking[0].weight, ranking[1].weight] == [1, 0]


def test_no_heads_at_all_is_an_error(videos):
    with pytest.raises(QkvError, match="no heads to score by"):
        videos.search("bread", heads=[])


def test_recommending_to_nobody_is_a_clear_error(movies):
    with pytest.raises(QkvError, match="nobody to recommend to"):
        movies.recommend()


def test_predicted_ratings_stay_within_the_scale_and_differ(movies):
    lowest, highest = movies.info()["rating_scale"]
    predicted = [hit.predicted_rating for hit in movies.recommend(user="u001", k=1000)]
    assert all(lowest <= rating <= highest for rating in predicted)
    assert len(set(predicted)) > 100


def test_a_like_is_no_rating_so_nothing_is_predicted_from_likes_alone(movies):
    assert movies.recommend(likes=["Heat"], k=1)[0].predicted_rating is None
    assert movies.recommend(user="u001", likes=["Heat"], k=1)[0].predicted_rating is not None


# --- similar ---


def test_neighbours_are_of_the_same_taste_and_words(shop):
    assert {hit.id for hit in shop.similar("red apple", k=2)} == {2, 3}
    assert {hit.id for hit in shop.similar(5, k=2)} == {4, 6}


def test_an_item_that_nobody_met_has_neighbours_by_its_text(shop):
    ranking = shop.similar("apple hammer", k=5)
    assert set(ranking[0].heads) == {"semantic"}
    assert all("apple" in hit.title or "hammer" in hit.title for hit in ranking)


def test_an_item_without_words_has_neighbours_by_who_met_it(shop):
    ranking = shop.similar("!!!", k=3)
    assert set(ranking[0].heads) == {"collaborative"}
    assert ranking[0].id in (1, 2, 3)


def test_equal_titles_are_nearest_to_each_other_by_text(shop):
    assert shop.similar(7, k=1)[0].id == 8


# --- builds ---


def test_the_order_of_rows_in_the_files_changes_nothing(shop, shop_items, shop_log, tmp_path):
    shuffled = [frame.sample(frac=1, random_state=3) for frame in (shop_items, shop_log)]
    given = {"items": shuffled[0], "interactions": shuffled[1]}
    again = qkvsearch.build(tmp_path / "ws", **given, encoder="corpus")
    assert answers(again.search("apple")) == answers(shop.search("apple"))
    assert answers(again.recommend(user=101)) == answers(shop.recommend(user=101))
    assert answers(again.similar(1)) == answers(shop.similar(1))


def test_another_process_gets_the_same_ranking(movies, movies_path):
    code = (
        "import sys, qkvsearch; engine = qkvsearch.open(sys.argv[1]); "
        "print([(hit.id, hit.score) for hit in engine.recommend(user='u001')]); "
        "print([(hit.id, hit.score) for hit in engine.search('family animation')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(movies_path)], capture_output=True, text=True, check=True
    )
    here = [movies.recommend(user="u001"), movies.search("family animation")]
    expected = [str([(hit.id, hit.score) for hit in ranking]) for ranking in here]
    assert done.stdout.splitlines() == expected


def test_a_log_alone_is_enough_to_recommend(tmp_path):
    log = pd.DataFrame({"user": list("aabbcc"), "item": ["x", "y", "x", "y", "x", "z"]})
    engine = qkvsearch.build(tmp_path / "ws", interactions=log)
    assert {hit.id for hit in engine.recommend(user="c")} == {"y"}
    assert engine.recommend(user="c")[0].predicted_rating is None


@pytest.mark.parametrize("title", ["cat", "the", "!!!", "deep sea"])
def test_a_catalog_of_one_item_answers_everything(tmp_path, title):
    items = pd.DataFrame({"id": ["i"], "title": [title]})
    log = pd.DataFrame({"user": ["ann"], "item": ["i"], "rating": [4]})
    engine = qkvsearch.build(tmp_path / "ws", items=items, interactions=log, encoder="corpus")
    found = [hit.id for hit in engine.search(title)]
    assert found == ([] if title == "!!!" else ["i"])
    assert list(engine.recommend(user="ann")) == []
    assert list(engine.similar("i")) == []


def test_an_engine_lets_go_of_the_database_at_the_end_of_with(movies_path):
    with Engine(movies_path) as engine:
        assert engine.similar("Heat", k=1)
    with pytest.raises(WorkspaceError):
        engine.similar("Heat", k=1)


# --- what a person gives may have whole numbers for ids, or names that are not there ---


def test_judgements_name_items_by_numbers_or_by_their_digits(shop):
    ids = [hit.id for hit in shop.search("apple", k=3)]
    asked = {"q": "apple"}
    as_numbers = shop.evaluate_search(asked, {"q": dict.fromkeys(ids, 1)})
    as_text = shop.evaluate_search(asked, {"q": {str(id_): 1 for id_ in ids}})
    assert as_numbers.metrics == as_text.metrics
    assert as_numbers.metrics["mrr@10"] == 1


@pytest.mark.parametrize("name", ["nope", "collaborative", "semantic"])
def test_a_head_that_a_text_does_not_have_is_named(videos, name):
    with pytest.raises(QkvError, match=f"no head '{name}'.*there are lexical"):
        videos.head(name, "river")


def test_a_user_whose_only_item_has_left_is_still_there(shop_copy):
    with qkvsearch.open(shop_copy) as engine:
        users = engine.users
        engine.record("ghost", 7)
        assert users["ghost"] == {"id": "ghost", "interactions": 1}
        engine.remove(7)
        assert engine.users["ghost"]["interactions"] == 0


def test_a_models_folder_may_have_any_name(tiny_bert, tmp_path, monkeypatch):
    shutil.copytree(tiny_bert, tmp_path / "lsa")
    monkeypatch.chdir(tmp_path)
    assert pretrained("lsa").attend("deep sea").has_layers


def test_progress_is_called_from_the_callers_thread(tiny_bert, monkeypatch):
    monkeypatch.setattr(fast_encoder, "CHUNK_TOKENS", 8)
    encoder, calls = pretrained(str(tiny_bert)), []
    texts = ["deep sea", "red water", "sea"] * 20
    encoder.encode_many(texts, lambda *done: calls.append((threading.get_ident(), *done)))
    assert {thread for thread, *_ in calls} == {threading.get_ident()}
    assert calls[-1][2:] == (60, 60)


# --- unknown users ---


def test_an_unknown_user_gets_the_most_popular_items_with_a_note(movies, assert_adds_up):
    asked = {"k": 5, "where": "year >= 2000", "fields": "year", "explain": True}
    ranking = movies.recommend(user="nobody", **asked)
    popular = movies.items.list(where="year >= 2000", sort="users", k=5)
    assert [hit.id for hit in ranking] == [row["id"] for row in popular]
    assert ranking.notes == ["No user 'nobody' here: these are the most popular items."]
    for row in ranking.explained_records():
        assert (row["because"], row["weak"]) == ([], True)
        assert row["score"] == movies.show(row["id"])["users"]
        assert row["reasons"] == [{"text": "most popular: number of users", "value": row["score"]}]
    damped = movies.recommend(user="nobody", k=3, damping=0.5, diversity=0.5).explained_records()
    for row in damped:
        assert_adds_up([reason["value"] for reason in row["reasons"]], row["score"])


def test_what_an_unknown_user_likes_counts_alone(movies):
    ranking = movies.recommend(user="nobody", likes="Heat", k=3)
    assert list(ranking) == list(movies.recommend(likes="Heat", k=3))
    assert ranking.notes[0] == "No user 'nobody' here: only what the question names counts."


def test_a_search_of_an_unknown_user_is_one_without_preferences(movies):
    ranking = movies.search("space war", user="nobody")
    assert list(ranking) == list(movies.search("space war"))
    assert ranking.notes[0] == "No user 'nobody' here: ranked without preferences."
    alone = movies.search("space war", user="nobody", heads="collaborative")
    assert (list(alone), len(alone.notes)) == ([], 1)


def test_an_unknown_user_is_an_error_where_that_is_asked_for_or_nothing_else_can_answer(movies):
    questions = [
        lambda: movies.recommend(user="u00", strict_user=True),
        lambda: movies.search("war", user="u00", strict_user=True),
        lambda: movies.history("u00"),
        lambda: movies.records("u00"),
        lambda: movies.users["u00"],
        lambda: movies.map(user="u00"),
    ]
    for ask in questions:
        with pytest.raises(UnknownIdError, match=r"^no user 'u00'$"):
            ask()


def test_where_there_are_no_interactions_nothing_is_popular(things_path, tmp_path):
    with qkvsearch.open(shutil.copytree(things_path, tmp_path / "things")) as engine:
        ranking = engine.recommend(user="nobody")
        assert (list(ranking), len(ranking.notes)) == ([], 1)
        assert "and no interactions at all" in ranking.notes[0]
        engine.record("w1", "v018")
        assert [hit.id for hit in engine.recommend(user="nobody")] == ["v018"]


@pytest.mark.parametrize("explain", [False, True])
def test_a_frame_of_no_hits_has_the_columns_of_one_with_hits(movies, explain):
    options = {"fields": "year,genres", "explain": explain}
    for ask in (
        lambda where: movies.search("space war", snippet=True, where=where, **options),
        lambda where: movies.recommend(user="u001", where=where, **options),
        lambda where: movies.recommend(user="nobody", where=where, **options),
        lambda where: movies.similar("Heat", where=where, fields="year"),
        lambda where: movies.items.list(where=where, fields="year"),
    ):
        some, none = ask("year > 2000"), ask("year > 3000")
        assert (len(none), len(none.to_frame())) == (0, 0)
        assert list(none.to_frame().columns) == list(some.to_frame().columns)
        assert set(some.to_records()[0]) <= set(none.to_frame().columns)


@pytest.mark.parametrize("fact", ["language", "columns", "encoder", "qkvsearch"])
def test_facts_that_are_gone_are_damage(movies, fact):
    kept = {name: value for name, value in movies.snapshot.facts.items() if name != fact}
    snapshot = SimpleNamespace(facts=kept, segments=movies.snapshot.segments)
    with pytest.raises(DamagedError, match="its facts are not those of a build"):
        StoredModels(snapshot)

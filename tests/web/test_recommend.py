"""Recommendations over HTTP: what is rated now, what is left out, in batches; the page's facts."""

import pytest


@pytest.fixture(scope="module")
def rated(asking, movies_path):
    with asking(movies_path) as client:
        yield client


def ask(client, **asked):
    answer = client.get("/api/v1/recommend", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["hits"]


def test_ratings_given_now_are_those_of_python(rated, movies):
    found = ask(rated, user="u001", rate=["m001=5", "m262=1"], k=3, heads="neighbours")
    asked = {"user": "u001", "ratings": {"m001": 5, "m262": 1}, "k": 3, "heads": "neighbours"}
    assert found == movies.recommend(**asked).to_records()
    typed = {"questions": [asked, {**asked, "heads": "collaborative,neighbors"}]}
    refused = rated.post("/api/v1/recommend", json=typed)
    assert refused.status_code == 400
    assert "`heads`: no 'neighbors'; did you mean neighbours?" in refused.json()["detail"]


def test_without_is_a_solve_on_the_other_history(rated, movies):
    gone = movies.history("u001")[0]["id"]
    found = ask(rated, user="u001", without=gone, k=5)
    assert found == movies.recommend(user="u001", without=[gone], k=5).to_records()
    best = found[0]["id"]
    hits = ask(rated, user="u001", without=gone, exclude=best, k=4)
    assert [hit["id"] for hit in hits] == [hit["id"] for hit in found[1:]]


@pytest.mark.parametrize("rate", ["m001", "=4", "m001=good", "m001=nan", "m001=inf"])
def test_what_is_no_rating_is_refused(rated, rate):
    answer = rated.get("/api/v1/recommend", params={"rate": rate})
    assert answer.status_code == 400
    assert "`rate`" in answer.json()["detail"]


def test_a_rating_outside_the_scale_and_one_given_twice_are_refused(rated):
    for rate in (["m001=9"], ["m001=4", "m001=2"]):
        assert rated.get("/api/v1/recommend", params={"rate": rate}).status_code == 400


def test_few_reasons_and_the_others_as_one_add_up(rated, assert_adds_up):
    asked = {"user": "u001", "damping": 0.3, "diversity": 0.3}
    few = ask(rated, k=5, explain=True, because=2, **asked)
    for short in few:
        body = {**asked, "rank": short["rank"]}
        hit = rated.post("/api/v1/explain/recommend", json=body).json()["hit"]
        parts = short["because"]
        assert_adds_up([part["contribution"] for part in hit["because"]], hit["score"])
        items = [part for part in hit["because"] if part["id"] is not None]
        assert [part for part in parts if part["id"] is not None] == items[:2]
        assert parts[-1]["title"] == "others"
        assert parts[-1]["items"] == len(items) - 2
        assert {part["title"] for part in parts if part["id"] is None} == {
            "others",
            "popularity",
            "diversity",
        }
        assert_adds_up([part["contribution"] for part in parts], hit["score"])
        assert short["reasons"] == hit["reasons"]
    body = {"user": "u001", "rank": 9999}
    assert rated.post("/api/v1/explain/recommend", json=body).status_code == 404


def test_others_are_not_made_of_nothing(rated):
    (hit,) = ask(rated, likes="m001", explain=True, because=5, k=1)
    assert [part["id"] for part in hit["because"]] == ["m001"]


def test_several_are_answered_in_their_order(rated):
    asked = [
        {"user": "u001", "k": 2, "explain": True, "because": 3},
        {"likes": ["m003"], "ratings": {"m001": 4}, "k": 2},
    ]
    answers = rated.post("/api/v1/recommend", json={"questions": asked}).json()["answers"]
    assert answers[0]["hits"] == ask(rated, **asked[0])
    assert answers[1]["hits"] == ask(rated, likes="m003", rate="m001=4", k=2)
    nobody = {"user": "nobody", "strict_user": True}
    refused = rated.post("/api/v1/recommend", json={"questions": [*asked, nobody]})
    assert refused.status_code == 404
    many = rated.post("/api/v1/recommend", json={"questions": [asked[1]] * 101})
    assert many.status_code == 422
    assert "`questions`" in many.json()["detail"]
    assert rated.post("/api/v1/recommend", json={"questions": [{"k": 101}]}).status_code == 400


def test_several_users_are_answered_with_the_same_options(rated):
    shared = {"k": 2, "where": "year >= 1990", "explain": True, "because": 3}
    users = ["u002", "u001"]
    answers = rated.post("/api/v1/recommend", json={"users": users, **shared}).json()["answers"]
    assert [answer["hits"] for answer in answers] == [ask(rated, user=u, **shared) for u in users]
    assert rated.post("/api/v1/recommend", json={"users": []}).json() == {"answers": []}
    nobody = {"users": ["u001", "nobody"], "strict_user": True}
    assert rated.post("/api/v1/recommend", json=nobody).status_code == 404


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "`users`"),
        ({"users": ["u001"], "questions": [{"user": "u002"}]}, "`users`"),
        ({"questions": [{"user": "u002"}], "k": 3}, "k"),
        ({"users": ["u001"], "user": "u002"}, "`user`"),
        ({"users": ["u001"] * 101}, "`users`"),
        ({"users": ["u001"], "kk": 3}, "kk"),
    ],
)
def test_users_and_questions_do_not_mix(rated, body, named):
    answer = rated.post("/api/v1/recommend", json=body)
    assert answer.status_code == 422
    assert named in answer.json()["detail"]


@pytest.mark.parametrize("name", ["k", "offset", "temperature", "because"])
def test_true_and_false_are_no_numbers_of_a_body(rated, name):
    answer = rated.post("/api/v1/recommend", json={"users": ["u001"], name: True})
    assert answer.status_code == 422
    assert f"`{name}`" in answer.json()["detail"]
    assert "not true or false" in answer.json()["detail"]


def test_a_body_may_have_ids_that_are_numbers(asking, shop_path, shop):
    (item, *_), user = shop.items.ids, shop.users.ids[0]
    asked = {"user": user, "without": [shop.history(user)[0]["id"]], "k": 1}
    with asking(shop_path) as client:
        answers = client.post("/api/v1/recommend", json={"questions": [asked]}).json()["answers"]
        assert answers[0]["hits"] == shop.recommend(**asked).to_records()
        other = {"likes": [item], "exclude": [item]}
        assert client.post("/api/v1/recommend", json={"questions": [other]}).status_code == 200


def test_ids_with_slashes_are_found(asking, tmp_path):
    import pandas as pd

    from qkvsearch.engine import build

    items = pd.DataFrame({"id": ["a/b", "c"], "title": ["One thing", "Another thing"]})
    log = pd.DataFrame({"user": ["x/y", "x/y", "z"], "item": ["a/b", "c", "c"]})
    build(tmp_path / "w", items=items, interactions=log, encoder="corpus").close()
    with asking(tmp_path / "w") as client:
        assert client.get("/api/v1/users/x%2Fy/history").json()["total"] == 2
        assert client.get("/api/v1/items/a%2Fb").json()["title"] == "One thing"


def test_what_would_have_to_be_gone_is_that_of_python(rated, movies):
    hits = ask(rated, user="u021", k=3, explain="smallest")
    expected = movies.recommend(user="u021", k=3, explain="smallest")
    assert [hit["smallest"] for hit in hits] == [hit.smallest for hit in expected]
    # Of one hit, it is gone from all that are asked for.
    body = {"user": "u021", "k": 3, "rank": 2, "explain": "smallest"}
    hit = rated.post("/api/v1/explain/recommend", json=body).json()["hit"]
    assert hit["smallest"] == expected[1].smallest
    body = {"user": "u021", "k": 1, "rank": 2, "explain": "smallest"}
    hit = rated.post("/api/v1/explain/recommend", json=body).json()["hit"]
    (_, second) = movies.recommend(user="u021", k=2, explain="smallest")
    assert hit["smallest"] == second.smallest
    refused = rated.get("/api/v1/recommend", params={"user": "u021", "explain": "smalest"})
    assert refused.status_code == 422
    assert rated.get("/api/v1/similar", params={"items": "m001", "explain": "smallest"}).is_error
    refused = rated.get("/api/v1/recommend", params={"user": "u021", "explain": "least"})
    assert refused.json()["detail"] == "`explain`: true, false or smallest"


def test_reasons_say_how_much_of_the_score_they_leave_to_others(rated, movies, assert_adds_up):
    hits = ask(rated, user="u021", k=5, explain=True)
    body = {"user": "u021", "rank": 1}
    hits.append(rated.post("/api/v1/explain/recommend", json=body).json()["hit"])
    for hit in hits:
        named = [one["value"] for one in hit["reasons"] if not one["text"].endswith(" others")]
        assert len(named) < len(hit["reasons"])
        assert_adds_up([*named, hit["others"]], hit["score"])


def test_a_reason_says_who(rated):
    (hit,) = ask(rated, user="u021", k=1, explain=True, heads="neighbours")
    assert {part["how"] for part in hit["because"] if part["id"]} == {"because"}
    assert all(part["by_removal"] for part in hit["because"] if part["id"])
    (hit,) = ask(rated, likes="m001", k=1, explain=True, heads="collaborative")
    (part,) = hit["because"]
    assert (part["how"], part["by_removal"], "did" in part) == ("people", False, False)
    assert hit["reasons"][0]["text"] == "people who liked Toy Story also liked this"

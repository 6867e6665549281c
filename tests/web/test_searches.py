"""The log of searches of a server: what it writes of an answer and a click, and what of nobody."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from qkvsearch.store.logged_searches import read_log
from qkvsearch.store.search_log import log_files, log_folder
from qkvsearch.web import searches as web_searches
from qkvsearch.web.searches import Visitors

USER = "101"


@pytest.fixture
def logging_client(asking, shop_copy):
    with asking(shop_copy, log_searches=True) as client:
        yield client


def written(workspace):
    return b"".join(path.read_bytes() for path in log_files(log_folder(workspace))).decode()


def search(client, q="red apple", **more):
    answer = client.get("/api/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def click(client, query_id, item, position=1):
    body = {"query_id": query_id, "item": item, "position": position}
    return client.post("/api/v1/clicks", json=body)


def test_nothing_is_written_unless_asked_for(asking, shop_copy):
    with asking(shop_copy) as client:
        assert search(client).get("query_id") is None
        refused = click(client, "20260101-" + "0" * 32, 1)
    assert refused.status_code == 404
    assert "`--log-searches`" in refused.json()["detail"]
    assert not log_folder(shop_copy).exists()


def test_a_search_is_logged_with_its_hits(logging_client, shop_copy):
    answer = search(logging_client, k=2, prefix="true")
    (logged,) = read_log(shop_copy).searches
    assert (logged.id, logged.query) == (answer["query_id"], "red apple")
    assert logged.total == answer["total"] > 0
    assert logged.shown == tuple(str(hit["id"]) for hit in answer["hits"])
    assert (logged.is_typing, logged.has_options, logged.no_hits) == (True, False, None)


def test_a_search_without_hits_is_logged_with_why(logging_client, shop_copy):
    search(logging_client, "xqzvw blorpt")
    search(logging_client, where="made < 0")
    unknown, filtered = read_log(shop_copy).searches
    assert unknown.no_hits == {"reason": "unknown_words", "words": ["xqzvw", "blorpt"]}
    assert (filtered.no_hits["reason"], filtered.no_hits["where"]) == ("filtered_out", "made < 0")
    assert (unknown.total, filtered.total, filtered.has_options) == (0, 0, True)


def test_what_an_answer_would_be_like_is_asked_without_a_search(logging_client, shop_copy):
    assert logging_client.head("/api/v1/search", params={"q": "red apple"}).status_code == 200
    assert read_log(shop_copy).searches == []
    search(logging_client)
    assert len(read_log(shop_copy).searches) == 1


def test_nobody_is_in_the_log(logging_client, shop_copy):
    agent = {"User-Agent": "Mozilla Unmistakable"}
    params = {"q": "red apple", "user": USER}
    answer = logging_client.get("/api/v1/search", params=params, headers=agent).json()
    click(logging_client, answer["query_id"], answer["hits"][0]["id"])
    text = written(shop_copy)
    assert not any(whose in text for whose in ("testclient", "Unmistakable", f'"{USER}"', ":101"))
    # What a user sees first says something of the user.
    assert read_log(shop_copy).searches[0].shown == ()


def test_an_answer_without_a_search_is_not_logged(logging_client, shop_copy):
    for params in ({"q": " "}, {"q": "red apple", "k": 0}):
        answer = logging_client.get("/api/v1/search", params=params)
        assert answer.json()["query_id"] is None
    assert logging_client.get("/api/v1/search", params={"q": "a", "k": -1}).status_code == 422
    assert read_log(shop_copy).searches == []


def test_each_search_of_a_batch_has_an_id(logging_client, shop_copy):
    body = {"searches": [{"q": "red apple"}, {"q": "hammer"}]}
    answers = logging_client.post("/api/v1/search", json=body).json()["answers"]
    logged = read_log(shop_copy).searches
    assert [one.id for one in logged] == [answer["query_id"] for answer in answers]


class TestClicks:
    def test_one_counts_once(self, logging_client, shop_copy):
        answer = search(logging_client)
        hit = answer["hits"][0]
        for _ in range(5):
            assert click(logging_client, answer["query_id"], hit["id"]).json() == {"logged": True}
        click(logging_client, answer["query_id"], str(hit["id"]))
        assert read_log(shop_copy).clicks[answer["query_id"]] == {str(hit["id"]): 1}
        listed = logging_client.get("/api/v1/searches").json()["rows"]
        assert [(row["query"], row["searches"], row["clicks"]) for row in listed] == [
            ("red apple", 1, 1)
        ]

    @pytest.mark.parametrize(
        ("changes", "status", "named"),
        [
            ({"item": 4711}, 404, "4711"),
            ({"query_id": "nonsense"}, 404, "`query_id`"),
            ({"query_id": "20261129-" + "0" * 32}, 404, "`query_id`"),
            ({"position": 0}, 422, "`position`"),
            ({"position": "1"}, 422, "`position`"),
            ({"position": True}, 422, "`position`"),
            ({"position": None}, 422, "`position`"),
            ({"user": "ann"}, 422, "user"),
        ],
    )
    def test_others_are_refused_by_name(self, changes, status, named, logging_client, shop_copy):
        answer = search(logging_client)
        body = {"query_id": answer["query_id"], "item": answer["hits"][0]["id"], "position": 1}
        refused = logging_client.post("/api/v1/clicks", json={**body, **changes})
        assert (refused.status_code, named in refused.json()["detail"]) == (status, True)
        assert '"click"' not in written(shop_copy)

    def test_a_read_only_server_takes_them(self, asking, shop_copy):
        with asking(shop_copy, log_searches=True, read_only=True) as client:
            answer = search(client)
            assert click(client, answer["query_id"], answer["hits"][0]["id"]).status_code == 200


def test_a_log_that_cannot_be_written_breaks_nothing_and_is_said_once(asking, shop_copy, caplog):
    log_folder(shop_copy).write_text("in the way")
    with (
        caplog.at_level(logging.ERROR, "qkvsearch.web"),
        asking(shop_copy, log_searches=True) as it,
    ):
        answers = [search(it) for _ in range(3)]
    assert all(answer["hits"] and answer["query_id"] is None for answer in answers)
    assert sum("log of searches" in record.message for record in caplog.records) == 1


def test_many_at_once_are_all_logged(logging_client, shop_copy):
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: search(logging_client, f"red {n}")["query_id"], range(40)))
    read = read_log(shop_copy)
    assert {one.id for one in read.searches} == set(ids)
    assert (len(set(ids)), read.n_unreadable) == (40, 0)


class TestVisitors:
    def test_a_visitor_is_the_same_all_day_to_all_workers(self, tmp_path):
        first, second = Visitors(tmp_path), Visitors(tmp_path)
        assert first.name("192.0.2.1", "Mozilla") == second.name("192.0.2.1", "Mozilla")
        assert (
            len(
                {
                    first.name(*one)
                    for one in [("192.0.2.1", "x"), ("192.0.2.2", "x"), ("192.0.2.1", "y")]
                }
            )
            == 3
        )

    def test_and_another_one_tomorrow_when_the_salt_is_gone(self, tmp_path, monkeypatch):
        visitors, day = Visitors(tmp_path), web_searches.today()
        before = visitors.name("192.0.2.1", "x")
        (salt,) = tmp_path.iterdir()
        monkeypatch.setattr(web_searches, "today", lambda: day + timedelta(1))
        visitors.tidy()
        (new,) = tmp_path.iterdir()
        assert new != salt
        assert visitors.name("192.0.2.1", "x") != before

    def test_two_servers_have_two_salts(self, tmp_path):
        for name in "ab":
            (tmp_path / name).mkdir()
        names = {Visitors(tmp_path / name).name("192.0.2.1", "x") for name in "ab"}
        assert len(names) == 2

    def test_a_folder_that_is_gone_only_keeps_workers_apart(self, tmp_path):
        visitors = Visitors(tmp_path / "gone")
        assert visitors.name("192.0.2.1", "x") == visitors.name("192.0.2.1", "x")


class TestForget:
    def test_an_erased_user_is_in_no_search(self, logging_client, shop_copy):
        search(logging_client, f"orders of {USER}")
        search(logging_client)
        erased = logging_client.delete(f"/api/v1/users/{USER}").json()
        assert (erased["searches"], erased["interactions"] > 0) == (1, True)
        assert [one.query for one in read_log(shop_copy).searches] == ["red apple"]

    def test_somebody_who_is_in_the_log_alone(self, logging_client, shop_copy):
        search(logging_client, "ann@example.org")
        builds = logging_client.get("/api/v1/builds").json()["total"]
        assert logging_client.delete("/api/v1/users/ann@example.org").json()["searches"] == 1
        assert logging_client.get("/api/v1/builds").json()["total"] == builds
        assert logging_client.delete("/api/v1/users/ann@example.org").status_code == 404


class TestOwnersPage:
    def test_the_menu_has_it_where_searches_are_logged(self, logging_client, client):
        assert 'href="/searches"' in logging_client.get("/").text
        assert 'href="/searches"' not in client.get("/").text
        assert client.get("/searches").status_code == 200

    def test_a_token_to_search_with_does_not_read_the_log(self, asking, shop_copy, tmp_path):
        tokens = {}
        for name in ("owner", "search"):
            tokens[name] = f"token-of-{name}-0123456789"
            (tmp_path / name).write_text(tokens[name])
        files = {"token_file": tmp_path / "owner", "search_tokens": (tmp_path / "search",)}
        with asking(shop_copy, log_searches=True, **files) as it:

            def ask(method, path, token, **more):
                headers = {"Authorization": f"Bearer {tokens[token]}"} if token else {}
                return it.request(method, path, headers=headers, **more)

            statuses = [
                ask("GET", "/api/v1/searches", t).status_code for t in (None, "search", "owner")
            ]
            assert statuses == [401, 403, 200]
            answer = ask("GET", "/api/v1/search", "search", params={"q": "red apple"}).json()
            body = {"query_id": answer["query_id"], "item": answer["hits"][0]["id"], "position": 1}
            assert ask("POST", "/api/v1/clicks", "search", json=body).status_code == 200
            assert ask("POST", "/api/v1/clicks", None, json=body).status_code == 401

    def test_lists_are_chosen_by_problem(self, logging_client):
        search(logging_client, "xqzvw")
        search(logging_client)
        rows = logging_client.get("/api/v1/searches", params={"only": "no_hits"}).json()["rows"]
        assert [row["query"] for row in rows] == ["xqzvw"]
        refused = logging_client.get("/api/v1/searches", params={"only": "other"})
        assert refused.status_code == 422


@pytest.mark.slow
def test_two_workers_share_a_log(serving, shop_copy):
    with serving(shop_copy, "--log-searches", "--log-days", "7", "--workers", "2") as server:
        ids = set()
        for _ in range(30):
            _, _, body = server.get("/api/v1/search?q=tent")
            ids.add(json.loads(body)["query_id"])
        code, said = server.stop()
    assert code == 0
    assert "for 7 days" in said
    read = read_log(shop_copy)
    assert {one.id for one in read.searches} == ids
    assert len(ids) == 30
    assert len({one.visitor for one in read.searches}) == 1

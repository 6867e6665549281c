"""The API gives what the engine gives, in the command line's fields."""

import re

import pytest
from pydantic import ValidationError

from qkvsearch.web.api import responses
from qkvsearch.web.api.search_parameters import SearchParameters
from qkvsearch.web.pages import PAGES
from qkvsearch.web.service import Service


def test_a_search_is_the_envelope_of_the_command_line(client, videos):
    asked = {"q": "sourdough bread", "k": 3, "facets": "channel", "explain": True, "snippet": True,
             "passages": 2, "distinct": "channel"}  # fmt: skip
    found = client.get("/api/v1/search", params=asked).json()
    options = {name: value for name, value in asked.items() if name != "q"}
    ranking = videos.search(asked["q"], weak=False, **options)
    assert found == ranking.envelope(ranking.explained_records())


def test_several_searches_are_answered_in_their_order(client):
    asked = [{"q": "bread", "k": 2}, {"q": "guitar", "k": 1, "explain": True}]
    answers = client.post("/api/v1/search", json={"searches": asked}).json()["answers"]
    for question, answer in zip(asked, answers, strict=True):
        assert answer == client.get("/api/v1/search", params=question).json()
    refused = client.post("/api/v1/search", json={"searches": [*asked, {"q": "a", "where": "("}]})
    assert refused.status_code == 400


def test_recommendations(client, videos):
    found = client.get("/api/v1/recommend?user=w001&k=3&explain=true&distinct=channel").json()
    ranking = videos.recommend(user="w001", k=3, explain=True, because=20, distinct="channel")
    assert found == {"notes": list(ranking.notes), "hits": ranking.explained_records()}
    liked = client.get("/api/v1/recommend", params={"likes": ["v018", "v001"], "k": 2}).json()
    assert liked["hits"] == videos.recommend(likes=["v018", "v001"], k=2).to_records()


def test_neighbours(client, videos):
    found = client.get("/api/v1/similar?items=v018&exclude=v001&k=3").json()
    assert found["hits"] == videos.similar("v018", exclude=["v001"], k=3).to_records()


def test_items_and_a_history(client, videos):
    found = client.get("/api/v1/items?k=2&offset=5&fields=channel").json()
    assert found["total"] == videos.n_items
    assert found["rows"] == videos.items.list(k=2, offset=5, fields="channel").to_records()
    assert client.get("/api/v1/items/v018").json() == videos.show("v018")
    assert client.get("/api/v1/items/none").status_code == 404
    history = client.get("/api/v1/users/w001/history?k=2").json()
    assert history["rows"] == videos.history("w001", k=2).to_records()


def test_an_unknown_user_gets_the_most_popular_items_or_where_strict_a_404(client, videos):
    found = client.get("/api/v1/recommend?user=nobody&k=3&explain=true").json()
    assert found["hits"] == videos.recommend(user="nobody", k=3, explain=True).explained_records()
    assert found["notes"] == ["No user 'nobody' here: these are the most popular items."]
    assert client.get("/api/v1/search?q=bread&user=nobody").json()["notes"]
    for question in ("recommend?", "search?q=bread&", "explain/search?q=bread&"):
        refused = client.get(f"/api/v1/{question}user=nobody&strict_user=true")
        assert (refused.status_code, refused.json()["detail"]) == (404, "no user 'nobody'")


def test_no_answer_and_no_page_shows_the_ids_of_users(client, videos):
    paths = client.get("/openapi.json").json()["paths"]
    gets = [path for path, operations in paths.items() if "get" in operations]
    assert [path for path in gets if "user" in path] == ["/api/v1/users/{user}/history"]
    texts = [client.get("/api/v1/users").text, client.get("/api/v1/users/w0/history").text]
    query = "q=bread&columns=channel&items=v018&text=bread&user=nobody&explain=true"
    for path in gets:
        allowed = {parameter["name"] for parameter in paths[path]["get"].get("parameters", ())}
        asked = "&".join(pair for pair in query.split("&") if pair.split("=")[0] in allowed)
        texts.append(client.get(f"{path.format(item='v018', user='w0')}?{asked}").text)
    texts += [client.get(page).text for page in PAGES]
    users = list(videos.users.ids)
    assert [
        id_ for id_ in users for text in texts if f"'{id_}'" in text or f'"{id_}"' in text
    ] == []


def test_ids_that_are_numbers_stay_numbers(asking, shop_path, shop):
    with asking(shop_path) as client:
        hits = client.get("/api/v1/search?q=hammer").json()["hits"]
        assert [hit["id"] for hit in hits] == [hit.id for hit in shop.search("hammer")]
        assert client.get("/api/v1/recommend?user=101").json()["hits"]
        assert client.get("/api/v1/similar?items=4").json()["hits"]


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9", "zh-Hans"),
        ("fr,en;q=0.2,zh;q=0.8", "zh-Hans"),
        ("en,zh", "en"),
        ("zh;q=0,en;q=0.1", "en"),
        ("zh;q=x, de", "en"),
        ("zh; q=0.9, en; q=0.5", "zh-Hans"),
    ],
)
def test_the_language_is_the_one_that_is_accepted_most(client, asked, spoken):
    answer = client.get("/", headers={"Accept-Language": asked})
    assert answer.headers["content-language"] == spoken
    assert f'<html lang="{spoken}">' in answer.text
    assert 'lang="en"' in client.get("/?lang=en", headers={"Accept-Language": asked}).text


def test_metrics_count(client):
    client.get("/api/v1/search?q=bread")
    text = client.get("/api/v1/metrics").text
    assert "# TYPE qkvsearch_requests_total counter" in text
    assert 'qkvsearch_request_seconds_count{route="/api/v1/search"}' in text
    running = re.search(r"^qkvsearch_requests_running (.*)$", text, re.M)[1]
    assert float(running) == 1  # this request


def test_hits_after_others_are_those_of_a_longer_answer(client):
    """And only those are made: a far offset costs nothing for each hit before it."""
    longer = client.get("/api/v1/search?q=bread+guitar&k=8").json()["hits"]
    assert client.get("/api/v1/search?q=bread+guitar&k=5&offset=3").json()["hits"] == longer[3:]
    assert client.get("/api/v1/search?q=bread&k=5&offset=2147483647").json()["hits"] == []


def test_the_queries_of_a_batch_have_a_limit_together(client):
    long = [{"q": "bread " * 300, "k": 1}] * 30
    refused = client.post("/api/v1/search", json={"searches": long})
    assert refused.status_code == 400
    assert "characters in a batch" in refused.json()["detail"]


def test_of_many_wrong_filters_the_first_is_reported():
    with pytest.raises(ValidationError) as refused:
        SearchParameters(q="bread", filter=[1] * 50)
    assert refused.value.error_count() == 1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("explain/search?q=bread", True),
        ("search?q=bread&explain=true", True),
        ("search?q=bread&matches=true", True),
        ("search?q=bread", False),
    ],
)
def test_answers_that_take_long_have_threads_of_their_own(client, monkeypatch, asked, expected):
    slow = []
    ask = Service.ask

    async def watched(service, answer, is_slow=False):
        slow.append(is_slow)
        return await ask(service, answer, is_slow)

    monkeypatch.setattr(Service, "ask", watched)
    assert client.get(f"/api/v1/{asked}").status_code == 200
    assert slow == [expected]


def test_an_answer_has_a_limit_of_bytes_alone_and_in_a_batch(client, monkeypatch):
    monkeypatch.setattr(responses, "MAX_ANSWER", 3_000)
    one = {"q": "bread", "k": 4}
    assert client.post("/api/v1/search", json={"searches": [one]}).status_code == 200
    for answer in (
        client.post("/api/v1/search", json={"searches": [one] * 20}),
        client.get("/api/v1/search?q=a&anyway=true&k=100"),
        client.get("/api/v1/items?k=100"),
    ):
        assert answer.status_code == 400
        assert "at most 3,000 bytes" in answer.json()["detail"]

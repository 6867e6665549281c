"""Recording over HTTP: at once, all or none, once by a key, and by several at the same time."""

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine


@pytest.fixture
def own(asking, films_path):
    with asking(films_path) as client:
        yield client


def record(client, body, key=None):
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post("/api/v1/record", json=body, headers=headers)


def met(client, user):
    found = client.get(f"/api/v1/users/{user}/history")
    return [] if found.status_code == 404 else [row["id"] for row in found.json()["rows"]]


def test_what_is_recorded_is_known_to_the_next_question(own, films_path):
    answer = record(own, {"user": "new", "item": "Toy Story", "rating": 4})
    assert answer.status_code == 200
    (row,) = answer.json()["rows"]
    assert row == {"user": "new", "id": "m001", "title": "Toy Story", "rating": 4.0, "batch": 1}
    hits = own.get("/api/v1/recommend?user=new&k=2").json()["hits"]
    with Engine(films_path) as engine:
        assert hits == engine.recommend(user="new", k=2).to_records()


def test_several_are_recorded_or_none(own):
    both = [{"user": "new", "item": item} for item in ("m001", "m003")]
    unknown = {"user": "new", "item": "no such thing at all"}
    assert record(own, {"interactions": [*both, unknown]}).status_code == 404
    assert record(own, {"interactions": [*both, {**both[0], "rating": 9}]}).status_code == 400
    assert met(own, "new") == []
    assert record(own, {"interactions": both}).json()["total"] == 2
    assert sorted(met(own, "new")) == ["m001", "m003"]
    many = record(own, {"interactions": both * 51})
    assert many.status_code == 422
    assert "at most 100" in many.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        3,
        {"user": "a"},
        {"user": "", "item": "m001"},
        {"user": "a", "item": None},
        {"user": True, "item": "m001"},
        {"interactions": []},
        {"interactions": [{"user": "a", "item": "m001"}], "user": "a"},
        {"user": "a", "item": "m001", "rating": "4 stars"},
        {"user": "a", "item": "m001", "rating": True},
    ],
)
def test_what_is_no_interaction_is_refused(own, body):
    assert record(own, body).status_code in (400, 422)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"user": True, "item": "m001"}, "user"),
        ({"interactions": [{"user": "a", "item": True}]}, "interactions.0.item"),
        ({"user": "a"}, "item"),
        ({"user": "a", "item": "m001", "one": 1}, "one"),
    ],
)
def test_a_refusal_names_the_field_as_it_was_sent(own, body, name):
    assert record(own, body).json()["detail"].startswith(f"`{name}`: ")


def test_the_same_key_records_once(own):
    body = {"user": "new", "item": "m001", "rating": 4}
    first = record(own, body, "one")
    assert record(own, dict(reversed(body.items())), "one").json() == first.json()
    assert own.get("/api/v1/info").json()["recorded"] == 1
    other = record(own, {**body, "rating": 5}, "one")
    assert other.status_code == 400
    assert "this key came with other interactions, batch 1" in other.json()["detail"]
    assert record(own, body, "two").status_code == 200
    assert own.get("/api/v1/info").json()["recorded"] == 2


def test_a_key_of_what_was_refused_is_free_again(own):
    assert record(own, {"user": "new", "item": "no such thing at all"}, "k").status_code == 404
    assert record(own, {"user": "new", "item": "m001"}, "k").status_code == 200


def test_no_file_holds_a_key_and_a_key_is_free_after_an_undo(own, films_path, asking):
    body = {"user": "someone-new", "item": "m001"}
    assert record(own, body, "key-of-someone").json()["batch"] == 1
    with asking(films_path) as later:  # another server, of the same workspace
        assert record(later, body, "key-of-someone").json()["batch"] == 1
    files = [path for path in films_path.rglob("*") if path.is_file()]
    assert any(b"someone-new" in path.read_bytes() for path in files)
    assert not any(b"key-of-someone" in path.read_bytes() for path in files)
    own.delete("/api/v1/record/1")
    assert record(own, body, "key-of-someone").json()["batch"] == 2


def test_a_key_brings_back_neither_an_item_nor_a_deleted_user(own, films_path):
    both = {"interactions": [{"user": user, "item": "m001"} for user in ("one-new", "two-new")]}
    assert record(own, both, "k").json()["total"] == 2
    with Engine(films_path) as engine:  # not by this server
        engine.forget("one-new")
        engine.remove(["m001"])
    (row,) = record(own, both, "k").json()["rows"]
    assert (row["user"], row["batch"]) == ("two-new", 1)
    assert met(own, "one-new") == []


def test_a_client_undoes_the_batch_that_it_got(own, films_path):
    body = {"interactions": [{"user": "new", "item": item} for item in ("m001", "m003")]}
    batch = record(own, body, "k").json()["batch"]
    with Engine(films_path) as engine:
        (row,) = engine.record("new", "m005")
    undo = lambda number: own.delete(f"/api/v1/record/{number}")  # noqa: E731
    undone = undo(batch).json()
    assert (undone["total"], "user" in undone["rows"][0]) == (2, False)
    assert met(own, "new") == ["m005"]
    for number in (batch, row["batch"], 99):
        assert (undo(number).status_code, "over HTTP" in undo(number).text) == (404, True)
    assert undo("last").status_code == 422


def test_a_weight_is_refused_where_the_log_has_ratings(own):
    answer = record(own, {"user": "new", "item": "m001", "weight": 4})
    assert (answer.status_code, "give a `rating`" in answer.json()["detail"]) == (400, True)


def test_a_user_of_the_log_is_deleted_and_what_stays_is_said(own):
    done = own.delete("/api/v1/users/u001").json()
    assert done["interactions"] > 0
    assert any("learn" in note for note in done["notes"])
    assert own.get("/api/v1/recommend?user=u001&strict_user=true").status_code == 404


def test_two_tabs_that_record_at_once_are_both_kept(asking, films_path):
    with asking(films_path) as one, asking(films_path) as other:
        start = Barrier(2)

        def tab(client, items):
            start.wait()
            return [record(client, {"user": "new", "item": i}).status_code for i in items]

        with ThreadPoolExecutor(2) as pool:
            halves = [[f"m{n:03}" for n in range(first, 30, 2)] for first in (1, 2)]
            for statuses in pool.map(tab, (one, other), halves):
                assert set(statuses) == {200}
        assert len(met(one, "new")) == 20  # of a page
        assert one.get("/api/v1/users/new/history").json()["total"] == 29
        assert other.get("/api/v1/users/new/history").json()["total"] == 29


@pytest.mark.slow
def test_worker_processes_share_the_keys_and_keep_all(serving, films_path):
    def post(number):
        body = {"user": "new", "item": f"m{number // 3 + 1:03}"}
        request = urllib.request.Request(
            f"{server.url}/api/v1/record",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": f"key {number // 3}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    with serving(films_path, "--workers", "2") as server, ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(post, range(36)))
        assert set(statuses) == {200}
        info = json.loads(server.get("/api/v1/info")[2])
    assert info["recorded"] == 12


def test_an_event_counts_as_in_the_build_and_one_without_a_weight_is_refused(asking, tmp_path):
    log = [(f"u{n}", n % 3, event) for n in range(9) for event in ("view", "purchase")]
    qkvsearch.build(
        tmp_path / "ws",
        items=pd.DataFrame({"id": [0, 1, 2], "title": ["lamp", "rope", "tent"]}),
        interactions=pd.DataFrame(log, columns=["user", "item", "event"]),
        columns=qkvsearch.Columns(event="event", event_weights={"view": 1, "purchase": 5}),
        encoder="corpus",
    ).close()
    with asking(tmp_path / "ws") as client:
        bought = {"user": "new", "item": 1, "event": "purchase"}
        (row,) = record(client, bought, "key").json()["rows"]
        assert row["weight"] == 5
        assert record(client, bought, "key").json()["batch"] == 1
        # Another event is another request.
        assert record(client, {**bought, "event": "view"}, "key").status_code == 400
        refused = record(client, {"interactions": [bought, {**bought, "event": "teleport"}]})
        assert (refused.status_code, "teleport" in refused.json()["detail"]) == (400, True)
        assert met(client, "new") == [1]

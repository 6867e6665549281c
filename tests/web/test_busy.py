"""A server while somebody else writes: searches answer, and changes are told to come back."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from qkvsearch.errors import BusyError, NotBuiltError, WorkspaceError
from qkvsearch.store.locks import exclusive

# Seconds that a request may take; a change waits for half of them.
SECONDS, LONG = 1.0, 300.0
QUESTIONS = ("search?q=bread", "recommend?user=u001", "users/u001/history", "items", "info")
CHANGES = (
    ("DELETE", "users/u001", None),
    ("DELETE", "items/m001", None),
    ("PUT", "items", [{"id": "m002", "title": "Lemon tart"}]),
)


@pytest.fixture
def client(asking, films_path):
    with asking(films_path, seconds=LONG) as client:
        for question in QUESTIONS:
            assert client.get(f"/api/v1/{question}").status_code == 200
        yield client


def is_told_to_come_back(answer, path):
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert str(path) not in answer.text


def begin(load, n):
    """Wait until `n` tasks of a kind are under way."""
    end = time.monotonic() + 60
    while load.n < n:
        assert time.monotonic() < end, f"{load.n} of {n} began"
        time.sleep(0.01)


def test_changes_that_wait_for_a_writer_hold_up_no_search_and_no_record(client, films_path):
    with ThreadPoolExecutor(12) as threads:
        with exclusive(films_path / "writer.lock", "learn"):
            waiting = [
                threads.submit(client.request, method, f"/api/v1/{path}", json=body)
                for method, path, body in CHANGES * 4
            ]
            begin(client.app.state.service.changes, len(waiting))
            for question in QUESTIONS:
                assert client.get(f"/api/v1/{question}").status_code == 200
            one = {"user": "new", "item": "m003", "rating": 4}
            assert client.post("/api/v1/record", json=one).status_code == 200
            assert not any(one.done() for one in waiting)
        found = [one.result().status_code for one in waiting]
    assert sorted(set(found)) == [200, 404]  # the second time, what is gone is unknown
    assert client.get("/api/v1/items/m002").json()["title"] == "Lemon tart"


def test_a_recorder_that_does_not_end_holds_up_no_question(client, films_path):
    with ThreadPoolExecutor(1) as threads:
        with exclusive(films_path / "records.lock", "record"):
            one = {"user": "new", "item": "m003", "rating": 4}
            waiting = threads.submit(client.post, "/api/v1/record", json=one)
            begin(client.app.state.service.records, 1)
            for question in QUESTIONS:
                assert client.get(f"/api/v1/{question}").status_code == 200
            assert not waiting.done()
        assert waiting.result().status_code == 200


def test_changes_that_wait_refuse_no_record(asking, films_path):
    one = {"user": "new", "item": "m003", "rating": 4}
    with asking(films_path, seconds=LONG, waiting=1) as client, ThreadPoolExecutor(2) as threads:
        with exclusive(films_path / "writer.lock", "learn"):
            waiting = [threads.submit(client.delete, f"/api/v1/items/m00{n}") for n in (1, 2)]
            begin(client.app.state.service.changes, len(waiting))
            assert client.delete("/api/v1/items/m003").status_code == 429
            assert client.post("/api/v1/record", json=one).status_code == 200
        assert [one.result().status_code for one in waiting] == [200, 200]


def test_a_change_that_waited_long_enough_is_told_to_come_back(asking, films_path):
    one = {"user": "new", "item": "m003", "rating": 4}
    with asking(films_path, seconds=SECONDS) as client, ThreadPoolExecutor(4) as threads:
        with (
            exclusive(films_path / "records.lock", "record"),
            exclusive(films_path / "writer.lock", "learn"),
        ):
            recording = [
                threads.submit(client.post, "/api/v1/record", json=one),
                threads.submit(client.delete, "/api/v1/record/1"),
            ]
            changing = [
                threads.submit(client.delete, f"/api/v1/{path}")
                for path in ("users/u001", "items/m001")
            ]
            for answer in [*recording, *changing]:
                is_told_to_come_back(answer.result(), films_path)
        for path in ("users/u001/history", "items/m001"):
            assert client.get(f"/api/v1/{path}").status_code == 200


def test_what_waited_too_long_for_its_turn_is_not_begun(asking, films_path):
    goes_on, begun = Event(), []
    with asking(films_path, seconds=0.3) as client:
        service = client.app.state.service
        first = service._change_thread.submit(goes_on.wait, 60)
        is_told_to_come_back(client.delete("/api/v1/items/m001"), films_path)
        goes_on.set()
        assert first.result()
        begun.append(service._change_thread.submit(int).result())
        assert client.get("/api/v1/items/m001").status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "is_shown"),
    [
        (BusyError("ws: learn is writing here"), 503, False),
        (WorkspaceError("ws: no workspace here"), 503, False),
        (NotBuiltError("no next-item model: not / built"), 400, True),
    ],
)
def test_the_kind_of_an_error_decides_and_not_what_its_message_has_in_it(
    client, monkeypatch, error, status, is_shown
):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(client.app.state.service.engine, "search", broken, raising=False)
    answer = client.get("/api/v1/search?q=a")
    assert answer.status_code == status
    assert (str(error) in answer.json()["detail"]) == is_shown
    assert ("retry-after" in answer.headers) == (status == 503)


def test_what_the_build_has_not_is_the_fault_of_the_request(asking, tmp_path):
    import pandas as pd

    import qkvsearch

    items = pd.DataFrame({"id": [1, 2], "title": ["Red kettle", "Blue kettle"]})
    qkvsearch.build(tmp_path / "ws", items, encoder="corpus").close()
    with asking(tmp_path / "ws") as client:
        answer = client.get("/api/v1/recommend?likes=1&model=next-item")
        assert answer.status_code == 400
        assert str(tmp_path) not in answer.text
        answer = client.get("/api/v1/recommend?likes=1")
        assert (answer.status_code, str(tmp_path) in answer.text) != (503, True)

"""What every request goes through: headers, limits, the token, problems, the log."""

from __future__ import annotations

import json
import logging

import pytest

from qkvsearch.errors import QkvError
from qkvsearch.web.settings import Settings
from qkvsearch.web.token import BearerToken

TOKEN = "0123456789abcdef0123456789abcdef"


def is_problem(answer, status):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail"}
    assert told["status"] == status
    return told["detail"]


@pytest.mark.parametrize("path", ["/", "/api/v1/health", "/static/base.css", "/nothing", "/docs"])
def test_headers_are_strict(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


def test_errors_say_what_to_do_and_nothing_of_the_machine(client, videos_path):
    detail = is_problem(client.get("/api/v1/search", params={"q": "a", "where": "wrong ("}), 400)
    assert detail.startswith("`where`")
    assert "`kk`" in is_problem(client.get("/api/v1/search", params={"q": "a", "kk": 1}), 422)
    assert "`q`" in is_problem(client.get("/api/v1/search"), 422)
    assert "`k`" in is_problem(client.get("/api/v1/search?q=a&k=many"), 422)
    assert "no user 'nobody'" in is_problem(client.get("/api/v1/recommend?user=nobody"), 404)
    assert "/docs" in is_problem(client.get("/api/v1/nothing"), 404)
    assert "/docs" in is_problem(client.delete("/api/v1/search"), 405)
    assert str(videos_path) not in client.get("/api/v1/info").text


def test_a_bug_is_told_as_one_and_logged(asking, videos_path, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("secret /etc/passwd")

    with asking(videos_path) as client:
        monkeypatch.setattr(client.app.state.service.engine, "search", broken, raising=False)
        detail = is_problem(client.get("/api/v1/search?q=a"), 500)
    assert "secret" not in detail
    assert "secret" in caplog.text


def test_a_damaged_workspace_names_no_file(asking, videos_path, monkeypatch):
    from qkvsearch.errors import DamagedError

    def damaged(*_, **__):
        raise DamagedError("/home/somebody/ws/keys.npy", "cut short")

    with asking(videos_path) as client:
        monkeypatch.setattr(client.app.state.service.engine, "search", damaged, raising=False)
        assert "somebody" not in is_problem(client.get("/api/v1/search?q=a"), 503)


def test_what_is_too_large_is_refused(client):
    assert "at most" in is_problem(client.get("/api/v1/search", params={"q": "x" * 50_000}), 414)
    assert "`q`" in is_problem(client.get("/api/v1/search", params={"q": "x" * 5000}), 422)
    assert "`k`" in is_problem(client.get("/api/v1/search?q=a&k=100000"), 400)
    body = json.dumps({"searches": [{"q": "x" * 1000}] * 2000})
    assert "bytes" in is_problem(client.post("/api/v1/search", content=body), 413)

    def chunks():
        for _ in range(300):
            yield b" " * 10_000

    assert "bytes" in is_problem(client.post("/api/v1/search", content=chunks()), 413)
    many = {"searches": [{"q": "a"}] * 101}
    assert "`searches`" in is_problem(client.post("/api/v1/search", json=many), 400)


def test_a_bug_has_strict_headers_and_a_status(asking, videos_path, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError

    with asking(videos_path) as client, caplog.at_level(logging.INFO, "qkvsearch.access"):
        monkeypatch.setattr(client.app.state.service.engine, "search", broken, raising=False)
        answer = client.get("/api/v1/search?q=a")
    assert "content-security-policy" in answer.headers
    assert json.loads(caplog.messages[-1])["status"] == 500


def test_pages_of_other_sites_reach_nothing(client):
    for name in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[", ""):
        is_problem(client.get("/api/v1/users", headers={"Host": name}), 421)
    for name in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"):
        assert client.get("/api/v1/health", headers={"Host": name}).status_code == 200
    for site in ("cross-site", "same-site"):  # the latter is another port of this machine
        crossing = {"Sec-Fetch-Site": site}
        is_problem(client.post("/api/v1/search", json={"searches": []}, headers=crossing), 403)
        assert client.get("/api/v1/health", headers=crossing).status_code == 200
    own = {"Sec-Fetch-Site": "same-origin"}
    many = {"searches": [{"q": "bread"}]}
    assert client.post("/api/v1/search", json=many, headers=own).status_code == 200


def test_unknown_addresses_are_counted_together(client):
    client.get("/made-up-one")
    text = client.get("/api/v1/metrics").text
    assert "made-up" not in text
    assert 'route=""' not in text
    assert 'route="other"' in text


def test_a_made_up_method_is_counted_with_all_others(client):
    client.request("A" * 5000, "/api/v1/health")
    text = client.get("/api/v1/metrics").text
    assert "AAAA" not in text
    assert 'method="other"' in text


def test_a_batch_has_limits(client):
    many = {"searches": [{"q": "a", "k": 100}] * 11}
    assert "1,000 hits" in is_problem(client.post("/api/v1/search", json=many), 400)


def test_too_many_at_once_are_told_when_to_come_back(asking, videos_path):
    with asking(videos_path, threads=1, waiting=-1) as client:
        answer = client.get("/api/v1/search?q=a")
        is_problem(answer, 429)
        assert answer.headers["retry-after"] == "1"
        assert client.get("/api/v1/health").status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(asking, videos_path, monkeypatch):
    from threading import Event

    ends = Event()
    with asking(videos_path, seconds=0.05) as client:
        service = client.app.state.service
        monkeypatch.setattr(service.engine, "search", lambda *_, **__: ends.wait(99), raising=False)
        is_problem(client.get("/api/v1/search?q=a"), 503)
        assert service._running == 1  # it counts for as long as its thread works
        ends.set()
        while service._running:
            client.get("/api/v1/health")


@pytest.mark.parametrize(
    "first", ["", "short", "tab\tinside0123456789abcdef", "ünïcödé0123456789abcd"]
)
def test_a_token_that_is_none_is_refused(tmp_path, first):
    path = tmp_path / "token"
    path.write_text(first + "\n", encoding="utf-8")
    with pytest.raises(QkvError, match="token_file"):
        BearerToken(path)


def test_the_token_is_demanded_of_all_that_holds_data(asking, videos_path, tmp_path):
    path = tmp_path / "token"
    path.write_text(f"  {TOKEN}  \nnot this\n", encoding="utf-8")
    with asking(videos_path, token_file=path) as client:
        for open_to_all in ("/", "/api/v1/health", "/static/base.css", "/openapi.json"):
            assert client.get(open_to_all).status_code == 200
        assert client.get("/api/v1/health").json() == {"status": "ok"}
        for path_ in ("/api/v1/search?q=a", "/search.json?q=a", "/api/v1/info", "/api/v1/metrics"):
            refused = client.get(path_)
            is_problem(refused, 401)
            assert refused.headers["www-authenticate"].startswith("Bearer")
        for wrong in (TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ", "Bearer é"):
            headers = {"Authorization": wrong.encode()}
            assert client.get("/api/v1/search?q=a", headers=headers).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/search?q=a", headers=headers).status_code == 200
        assert client.get("/api/v1/health", headers=headers).json()["items"] > 100


def test_the_log_has_a_line_without_what_was_asked(asking, videos_path, caplog):
    with caplog.at_level(logging.INFO, "qkvsearch.access"):
        with asking(videos_path) as client:
            client.get("/api/v1/search?q=confidential")
            client.get("/api/v1/items/confidential")
        line = json.loads(caplog.messages[0])
        assert "confidential" not in caplog.text
        assert (line["method"], line["status"]) == ("GET", 200)
        assert line["path"].endswith("/search")
        caplog.clear()
        with asking(videos_path, log_queries=True) as client:
            client.get("/api/v1/search?q=a%0aforged")
        assert "forged" in caplog.messages[0]
        assert len(caplog.messages[0].splitlines()) == 1


def test_settings_reach_a_worker(tmp_path, monkeypatch):
    import os

    before = dict(os.environ)
    told = Settings(tmp_path, "ws", tmp_path, token_file=tmp_path / "t", read_only=True)
    with told.publishing():
        assert Settings.published() == told
    assert dict(os.environ) == before

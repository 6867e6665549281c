"""What every request goes through: headers, limits, the token, problems, the log."""

import json
import logging

import pytest

from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.web.settings import BearerToken, ServerSettings, origin_of

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
    assert "no user 'nobody'" in is_problem(client.get("/api/v1/users/nobody/history"), 404)
    assert "/docs" in is_problem(client.get("/api/v1/nothing"), 404)
    assert "/docs" in is_problem(client.delete("/api/v1/search"), 405)
    assert str(videos_path) not in client.get("/api/v1/info").text


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError("secret /etc/passwd"), 500), (DamagedError("/secret/keys.npy", "cut"), 503)],
)
def test_bugs_and_damage_are_logged_and_tell_nothing(
    asking, videos_path, monkeypatch, caplog, error, status
):
    def broken(*_, **__):
        raise error

    with asking(videos_path) as client, caplog.at_level(logging.INFO, "qkvsearch.access"):
        monkeypatch.setattr(client.app.state.service.engine, "search", broken, raising=False)
        answer = client.get("/api/v1/search?q=a")
    assert "secret" not in is_problem(answer, status)
    assert "secret" in caplog.text
    assert "content-security-policy" in answer.headers
    assert json.loads(caplog.messages[-1])["status"] == status


def test_a_body_that_is_not_valid_says_what_would_be(client):
    def said(path, body, method="POST"):
        head = {"content-type": "application/json"}
        return is_problem(client.request(method, path, content=body, headers=head), 422)

    assert "`body`: not valid JSON at character 10" in said("/api/v1/search", '{"q": "a"')
    assert "`price`: input should be a finite" in said("/api/v1/items/a", '{"price": NaN}', "PATCH")
    assert "`price.1`: input should be a finite" in said(
        "/api/v1/items/a", '{"price": [1, -Infinity]}', "PATCH"
    )
    of_user = said("/api/v1/recommend", '{"user": NaN}')
    assert "a valid string or a valid integer" in of_user


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
    assert "at most 100" in is_problem(client.post("/api/v1/search", json=many), 422)


MANY_ERRORS = {
    "objects": {"searches": [{}] * 300_000},
    "numbers": {"searches": [1] * 300_000},
    "keys": {f"{n:x}": 1 for n in range(80_000)},
}


@pytest.mark.parametrize("body", MANY_ERRORS.values(), ids=MANY_ERRORS)
def test_many_errors_are_one(body):
    from pydantic import ValidationError

    from qkvsearch.web.api.ranking_routes import SearchBatch

    with pytest.raises(ValidationError) as refused:
        SearchBatch.model_validate(body)
    assert refused.value.error_count() == 1


def test_without_a_token_only_names_of_this_machine_are_answered(client):
    for name in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[", ""):
        is_problem(client.get("/api/v1/items", headers={"Host": name}), 421)
    for name in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"):
        assert client.get("/api/v1/health", headers={"Host": name}).status_code == 200


# Of another port of this machine a browser says "same-site".
FOREIGN = [
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:8001"},
    {"Origin": "null"},
]
OWN = [
    {},
    {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://a-proxy.example"},
    {"Origin": "http://127.0.0.1"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_pages_of_other_sites_reach_no_data(client, headers):
    many = {"searches": [{"q": "bread"}]}
    for path in ("/api/v1/search?q=bread", "/api/v1/health", "/nothing"):
        assert "--allow-origin" in is_problem(client.get(path, headers=headers), 403)
    is_problem(client.post("/api/v1/search", json=many, headers=headers), 403)
    is_problem(client.delete("/api/v1/users/w001", headers=headers), 403)
    is_problem(client.post("/", headers=headers), 403)
    preflight = {"Access-Control-Request-Method": "GET", **headers}
    is_problem(client.options("/api/v1/search", headers=preflight), 403)
    for path in ("/?q=bread", "/recommend", "/learn", "/static/base.css"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", OWN)
def test_own_pages_and_clients_reach_data(client, headers):
    many = {"searches": [{"q": "bread"}]}
    assert client.get("/api/v1/search?q=bread", headers=headers).status_code == 200
    assert client.post("/api/v1/search", json=many, headers=headers).status_code == 200


def test_an_allowed_origin_may_use_the_api(asking, videos_path, tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN, encoding="utf-8")
    shop = "https://shop.example"
    from_shop = {"Origin": shop, "Sec-Fetch-Site": "cross-site"}
    preflight = {
        **from_shop,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    with asking(videos_path, token_file=path, allow_origins=(shop,)) as client:
        answer = client.options("/api/v1/search", headers=preflight)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == shop
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "Authorization" in answer.headers["access-control-allow-headers"]
        refused = client.get("/api/v1/search?q=bread", headers=from_shop)
        is_problem(refused, 401)  # its page may read why
        assert refused.headers["access-control-allow-origin"] == shop
        token = {"Authorization": f"Bearer {TOKEN}"}
        answer = client.get("/api/v1/search?q=bread", headers={**from_shop, **token})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == shop
        assert "Origin" in answer.headers["vary"]
        for origin in ("https://shop.example.evil", "http://shop.example", "null"):
            other = {**from_shop, **token, "Origin": origin}
            answer = client.get("/api/v1/search?q=bread", headers=other)
            is_problem(answer, 403)
            assert "access-control-allow-origin" not in answer.headers
        assert "Origin" in client.get("/api/v1/health").headers["vary"]


@pytest.mark.parametrize(
    "text",
    ["*", "null", "shop.example", "ftp://shop.example", "https://", "https://shop.example/path",
     "https://me@shop.example", "https://shop.example:port", "https://shöp.example", "https://a?b"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(QkvError, match="allow_origins"):
        origin_of(text)


def test_pages_have_no_other_methods(client):
    for path in ("/", "/recommend", "/static/base.css"):
        for method in ("POST", "PUT", "DELETE"):
            answer = client.request(method, path)
            is_problem(answer, 405)
            assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


def test_a_body_that_nobody_reads_closes_the_connection(client):
    for method, path in (("GET", "/api/v1/health"), ("POST", "/"), ("POST", "/api/v1/nothing")):
        assert client.request(method, path, content=b"x").headers["connection"] == "close"
    many = {"searches": [{"q": "a"}]}
    assert "connection" not in client.post("/api/v1/search", json=many).headers
    assert "connection" not in client.get("/api/v1/health").headers


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
    many = {"searches": [{"q": "a", "k": 100}] * 10}
    assert client.post("/api/v1/search", json=many).status_code == 200
    many["searches"].append({"q": "a", "k": 1})
    assert "1,000 hits" in is_problem(client.post("/api/v1/search", json=many), 400)


def test_what_is_to_be_done_at_the_end_is_done(asking, videos_path):
    done = []
    with asking(videos_path) as client:
        client.app.state.service.closing.append(lambda: done.append("closed"))
        assert done == []
    assert done == ["closed"]


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
        assert service.answers.n == 1  # it counts for as long as its thread works
        ends.set()
        while service.answers.n:
            client.get("/api/v1/health")


@pytest.mark.parametrize(
    "first", ["", "short", "tab\tinside0123456789abcdef", "ünïcödé0123456789abcd"]
)
def test_a_token_that_is_none_is_refused(tmp_path, first):
    path = tmp_path / "token"
    path.write_text(first + "\n", encoding="utf-8")
    with pytest.raises(QkvError, match="token_file"):
        BearerToken(path)


def test_what_is_no_part_of_a_token_is_left_out_or_named(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\r\n", encoding="utf-8-sig")  # as Notepad saves it
    assert BearerToken(path).is_in(f"Bearer {TOKEN}")
    for text, named in {TOKEN[:9] + "\u200b" + TOKEN[9:]: r"U\+200B", "seven77": "7 char"}.items():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(QkvError, match=named):
            BearerToken(path)


def test_the_token_is_demanded_of_all_that_holds_data(asking, videos_path, tmp_path):
    path = tmp_path / "token"
    path.write_text(f"  {TOKEN}  \nnot this\n", encoding="utf-8")
    with asking(videos_path, token_file=path) as client:
        for open_to_all in ("/", "/api/v1/health", "/static/base.css", "/openapi.json"):
            assert client.get(open_to_all).status_code == 200
        assert client.get("/api/v1/health").json() == {"status": "ok"}
        for path_ in ("/api/v1/search?q=a", "/api/v1/info", "/api/v1/metrics"):
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


def test_refused_paths_are_logged_as_other(asking, videos_path, caplog):
    with caplog.at_level(logging.INFO, "qkvsearch.access"), asking(videos_path) as client:
        client.get("/api/v1/nothing")
        client.get("/api/v1/search?q=a", headers={"Host": "evil.example"})
        client.post("/")
    assert [json.loads(line)["path"] for line in caplog.messages] == ["other", "other", "/"]


def test_settings_reach_a_worker(tmp_path, monkeypatch):
    import os

    before = dict(os.environ)
    told = ServerSettings(
        tmp_path, "ws", tmp_path, token_file=tmp_path / "t", allow_origins=("https://a",)
    )
    with told.publishing():
        assert ServerSettings.published() == told
    assert dict(os.environ) == before

"""What a token to search with may do: what is listed, and nothing else."""

import re
from pathlib import Path

import pytest

from qkvsearch.errors import QkvError
from qkvsearch.web.rights import API, SEARCH_MAY, Tokens

OWNER, SEARCH, OTHER = "the-owner-0123456789", "a-page-0123456789abc", "another-page-01234567"
# An address of each route that is listed. Clicks and the box have tests of their own.
ASKED = {
    f"{API}/search": f"{API}/search?q=bread",
    f"{API}/recommend": f"{API}/recommend?likes=v018",
    f"{API}/similar": f"{API}/similar?items=v018",
    f"{API}/facets": f"{API}/facets",
    f"{API}/explain/search": f"{API}/explain/search?q=bread&rank=1",
    f"{API}/explain/similar": f"{API}/explain/similar?items=v018&rank=1",
    f"{API}/items/{{item}}": f"{API}/items/v018",
    f"{API}/box": f"{API}/box",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each token, and the settings of a server that knows them."""
    folder = tmp_path_factory.mktemp("tokens")
    for name in (OWNER, SEARCH, OTHER):
        (folder / name).write_text(name + "\n", encoding="utf-8")
    return {
        "token_file": folder / OWNER,
        "search_tokens": (folder / SEARCH, folder / OTHER),
    }


@pytest.fixture(scope="module")
def guarded(asking, videos_path, files):
    with asking(videos_path, **files) as client:
        yield client


def sent(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("address", ASKED.values())
def test_a_search_token_may_ask_what_is_listed(guarded, address):
    for token in (SEARCH, OTHER, OWNER):
        assert guarded.get(address, headers=sent(token)).status_code == 200
        assert guarded.head(address, headers=sent(token)).status_code == 200
    for headers in ({}, sent("wrong-token-0123456789")):
        assert guarded.get(address, headers=headers).status_code == 401


def test_every_other_route_is_refused_to_it(guarded):
    listed = set()
    for path, operations in guarded.app.openapi()["paths"].items():
        for method in operations:
            asked = method.upper(), path
            if asked in SEARCH_MAY:
                listed.add(asked)
                continue
            if path == f"{API}/health":
                continue
            address = re.sub(r"\{\w+\}", "v018", path)
            answer = guarded.request(method, address, headers=sent(SEARCH))
            assert answer.status_code == 403, (method, path)
    assert listed >= {("GET", path) for path in ASKED}


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("DELETE", f"{API}/items/v018"),
        ("PATCH", f"{API}/items/v018"),
        ("GET", f"{API}/items"),
        ("GET", f"{API}/items/"),
        ("GET", f"{API}/search/"),
        ("GET", f"{API}//search"),
        ("POST", f"{API}/search"),
        ("GET", f"{API}/users/w001/history"),
        ("GET", f"{API}/../v1/info"),
        ("GET", f"{API}/a-route-of-tomorrow"),
        ("GET", "/mcp"),
    ],
)
def test_what_is_not_listed_is_refused_whether_or_not_it_is_there(guarded, method, address):
    answer = guarded.request(method, address, headers=sent(SEARCH))
    assert answer.status_code == 403
    assert "owner's token" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["user=w001", "q=bread&user=", "us%65r=w001", "likes=v018&user=x"])
def test_it_may_not_name_a_user_whose_history_an_answer_would_show(guarded, name):
    for path in ("recommend", "search", "explain/search"):
        answer = guarded.get(f"{API}/{path}?{name}", headers=sent(SEARCH))
        assert answer.status_code == 403
        assert "`user`" in answer.json()["detail"]
    assert guarded.get(f"{API}/recommend?user=w001", headers=sent(OWNER)).status_code == 200


def test_it_learns_of_the_state_no_more_than_everyone(guarded):
    assert guarded.get(f"{API}/health", headers=sent(SEARCH)).json() == {"status": "ok"}
    assert "items" in guarded.get(f"{API}/health", headers=sent(OWNER)).json()
    answer = guarded.options(f"{API}/items/v018", headers=sent(SEARCH))
    assert answer.status_code == 204
    assert guarded.options(f"{API}/items/v018").status_code == 401


def test_a_search_token_needs_the_owners_beside_it_and_is_another_one(settings, tmp_path, files):
    alone = settings(tmp_path, search_tokens=files["search_tokens"])
    with pytest.raises(QkvError, match="token_file"):
        Tokens.of(alone)
    same = settings(tmp_path, token_file=files["token_file"], search_tokens=(files["token_file"],))
    with pytest.raises(QkvError, match="search_tokens"):
        Tokens.of(same)
    (tmp_path / "short").write_text("short", encoding="utf-8")
    short = settings(tmp_path, token_file=files["token_file"], search_tokens=(tmp_path / "short",))
    with pytest.raises(QkvError, match="search_tokens"):
        Tokens.of(short)


def test_the_table_for_people_is_that_of_the_code():
    text = (Path(__file__).parents[2] / "docs/trust.md").read_text(encoding="utf-8")
    table = text.partition("## Who may what")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    told = {
        (method, path)
        for cells in rows
        for method, path in re.findall(r"`([A-Z]+) ([^`]+)`", cells[0])
        if cells[2].strip() == "yes"
    }
    assert told == SEARCH_MAY

"""A server for customers: the pages that it has, and those that stay the owner's."""

import re

import pytest

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
OWNERS = ["/attend", "/learn", "/learn/embeddings", "/inside", "/searches", "/docs"]


@pytest.fixture(scope="module")
def public(asking, videos_path):
    with asking(videos_path, public=True) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/recommend", "/map", "/no-such-page"])
def test_the_menu_has_the_pages_for_customers_alone(public, path):
    page = public.get(path, headers=BROWSER).text
    menu = re.search(r'<ul id="pages".*?</ul>', page, re.DOTALL).group()
    assert re.findall(r'href="([^"]*)"', menu) == ["/", "/recommend", "/map"]
    links = set(re.findall(r'href="([^"?]*)', page))
    assert not links & {"/openapi.json", *OWNERS}


@pytest.mark.parametrize("path", OWNERS)
def test_the_owners_pages_are_not_there(public, client, path):
    assert public.get(path, headers=BROWSER).status_code == 404
    assert client.get(path, headers=BROWSER).status_code == 200


def test_the_pages_ask_for_no_user_and_no_sql(public, client):
    for path, fields in (("/", {"as-user", "condition"}), ("/recommend", {"user-part"})):
        assert owners(public, path) == owners(client, path) == fields
        assert ' class="public"' in public.get(path, headers=BROWSER).text
        assert ' class="public"' not in client.get(path, headers=BROWSER).text
    assert owners(public, "/map") == {"user-field"}
    style = public.get("/static/base.css").text
    assert re.search(r"\.public \.owners \{ display: none !important; \}", style)


def owners(client, path):
    """The ids of what customers do not see of a page."""
    page = client.get(path, headers=BROWSER).text
    tags = re.findall(r"<[^>]* class=\"[^\"]*\bowners\b[^>]*>|<[^>]*>", page)
    found = [tag for tag in tags if re.search(r'class="[^"]*\bowners\b', tag)]
    return {re.search(r'\bid="([^"]*)"', tag).group(1) for tag in found}


def test_the_api_answers_the_pages(public):
    assert public.get("/api/v1/search?q=bread").json()["hits"]


NO_USER = [
    ("GET", "/search?q=bread&user=w001", None),
    ("GET", "/recommend?user=w001", None),
    ("GET", "/map?user=w001", None),
    ("POST", "/recommend", {"questions": [{"likes": ["v018"]}, {"user": "w001"}]}),
    ("POST", "/recommend", {"users": ["w001"]}),
    ("POST", "/explain/recommend", {"user": "w001", "rank": 1}),
]
OF_THE_OWNER = [
    ("GET", "/users/w001/history", None),
    ("DELETE", "/users/w001", None),
    ("POST", "/search", {"questions": [{"q": "bread"}]}),
    ("POST", "/record", {"interactions": [{"user": "w001", "item": "v018"}]}),
    ("PUT", "/items", {"items": []}),
    ("DELETE", "/items/v018", None),
    ("GET", "/builds", None),
    ("GET", "/metrics", None),
    ("GET", "/rules", None),
    ("GET", "/searches", None),
]
PAGES_ASK = [
    ("GET", "/info", None),
    ("GET", "/items?sort=users", None),
    ("GET", "/items/v018", None),
    ("GET", "/facets", None),
    ("GET", "/similar?items=v018", None),
    ("GET", "/explain/search?q=bread", None),
    ("GET", "/map", None),
    ("POST", "/recommend", {"questions": [{"likes": ["v018"], "user": None}]}),
    ("POST", "/explain/recommend", {"likes": ["v018"], "user": None, "rank": 1}),
]


def asked(client, request, headers=None):
    method, path, body = request
    return client.request(method, f"/api/v1{path}", json=body, headers=headers)


@pytest.mark.parametrize("request_", NO_USER, ids=lambda one: " ".join(one[:2]))
def test_no_answer_shows_what_a_user_has(public, request_):
    answer = asked(public, request_)
    assert answer.status_code == 403
    assert "`user`" in answer.json()["detail"]


@pytest.mark.parametrize("request_", OF_THE_OWNER, ids=lambda one: " ".join(one[:2]))
def test_what_no_page_asks_is_the_owners(public, request_):
    assert asked(public, request_).status_code == 403


@pytest.mark.parametrize("request_", PAGES_ASK, ids=lambda one: " ".join(one[:2]))
def test_what_the_pages_ask_is_answered(public, request_):
    assert asked(public, request_).status_code == 200


def test_a_token_to_search_with_opens_the_pages_and_the_owners_does_more(
    asking, videos_path, tmp_path
):
    owner, search = (tmp_path / name for name in ("owner", "search"))
    owner.write_text("o" * 32, encoding="utf-8")
    search.write_text("s" * 32, encoding="utf-8")
    tokens = {"token_file": owner, "search_tokens": (search,)}
    with asking(videos_path, public=True, **tokens) as client:
        for letter, status in (("s", 403), ("o", 200)):
            headers = {"Authorization": f"Bearer {letter * 32}"}
            assert asked(client, ("GET", "/map", None), headers).status_code == 200
            for request in (NO_USER[1], NO_USER[4], OF_THE_OWNER[0]):
                assert asked(client, request, headers).status_code == status
        assert asked(client, ("GET", "/map", None)).status_code == 401

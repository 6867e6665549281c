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

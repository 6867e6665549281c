"""An address that leads nowhere: a page in a browser, a problem for programs."""

import re

import pytest

from qkvsearch._utils.style import tokens

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/no-such-page", "/learn/no-such-lesson", "/static/none.css"])
@pytest.mark.parametrize(("language", "title"), [("en", "No such page"), ("zh", "没有这个页面")])
def test_a_browser_gets_a_page_that_leads_back(client, path, language, title):
    answer = client.get(path, headers={"Accept": BROWSER, "Accept-Language": language})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert title in answer.text
    assert 'href="/"' in answer.text
    assert set(re.split(r",\s*", answer.headers["vary"])) == {"Accept", "Accept-Language"}
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/no-such-page", "application/json"),
        ("/no-such-page", "*/*"),
        ("/api/v1/no-such-thing", BROWSER),
        ("/api/v1/items/no-such-item", BROWSER),
        ("/api/v2/search", BROWSER),
        ("/mcp", BROWSER),
    ],
)
def test_a_program_and_the_api_get_a_problem(client, path, accept):
    answer = client.get(path, headers={"Accept": accept})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_links_of_the_page_begin_with_the_path_of_a_proxy(asking, videos_path):
    with asking(videos_path, root_path="/shop") as under:
        page = under.get("/no-such-page", headers={"Accept": BROWSER})
        assert page.status_code == 404
        assert set(re.findall(r'href="(/[^"]*)"', page.text)) >= {"/shop/"}
        assert not re.search(r'(?:href|src)="/(?!shop/)', page.text)


def test_of_the_style_that_pages_share_the_sheet_alone_is_sent(client):
    assert client.get("/static/shared/tokens.css").text == tokens()
    assert 'href="/static/shared/tokens.css"' in client.get("/").text
    for path in ("/static/shared/__init__.py", "/static/__init__.py", "/static/shared/"):
        assert client.get(path).status_code == 404, path


def test_a_token_does_not_turn_the_page_of_an_unknown_address_into_a_problem(
    asking, videos_path, tmp_path
):
    token = tmp_path / "token"
    token.write_text("a-token-of-the-owner-0123456789\n", encoding="utf-8")
    with asking(videos_path, token_file=token) as guarded:
        page = guarded.get("/no-such-page", headers={"Accept": BROWSER})
        assert page.status_code == 404
        assert page.headers["content-type"].startswith("text/html")
        for path, accept in [
            ("/no-such-page", "*/*"),
            ("/api/v1/no-such-thing", BROWSER),
            ("/api/v1/info", BROWSER),
            ("/mcp", BROWSER),
        ]:
            refused = guarded.get(path, headers={"Accept": accept})
            assert refused.status_code == 401, path
            assert refused.headers["content-type"] == "application/problem+json"

"""Clicks on the search page, and the page of what people searched for."""

import json
import shlex
import shutil

import pytest

from qkvsearch.store.logged_searches import read_log


@pytest.fixture(scope="module")
def logging_site(chromium, serving, request, tmp_path_factory):
    """A server that logs searches, and its workspace."""
    videos = request.getfixturevalue("videos_path")
    path = shutil.copytree(videos, tmp_path_factory.mktemp("logging") / "ws")
    with serving(path, "--log-searches") as server:
        server.workspace = path
        yield server


def clicks(site):
    """The items that were clicked on, each with its position, in the order of the searches."""
    log = read_log(site.workspace)
    return [(one.query, *click) for one in log.searches for click in log.clicks[one.id].items()]


def test_typing_is_one_search_and_opening_a_hit_one_click(logging_site, visit, until):
    with visit(logging_site, "/") as page:
        page.wait_for_selector("#hits .title")
        page.locator("#q").press_sequentially("bread", delay=30)
        page.keyboard.press("Enter")
        page.wait_for_selector("#hits li .score")
        page.wait_for_load_state("networkidle")
        second = page.locator("#hits > li").nth(1)
        item = second.get_attribute("data-id")
        for _ in range(3):  # open, close, open
            second.locator(".title").click()
        until(page, lambda: clicks(logging_site))
    assert clicks(logging_site) == [("bread", item, 2)]
    listed = json.loads(logging_site.get("/api/v1/searches")[2])["rows"]
    assert [(row["query"], row["searches"], row["clicks"]) for row in listed] == [("bread", 1, 1)]


def test_a_link_that_leaves_the_page_counts(logging_site, visit, until):
    with visit(logging_site, "/?q=guitar") as page:
        page.wait_for_selector("#hits li .score")
        like = page.locator("#hits > li .like").nth(2)
        item = page.locator("#hits > li").nth(2).get_attribute("data-id")
        like.click()
        page.wait_for_selector(".chip")
        until(page, lambda: ("guitar", item, 3) in clicks(logging_site))


def test_a_hit_of_a_further_page_is_one_of_its_answer(logging_site, visit, until):
    with visit(logging_site, "/?q=science") as page:
        page.wait_for_selector("#hits li .score")
        before = page.locator("#hits > li").count()
        page.locator("#more").click()
        until(page, lambda: page.locator("#hits > li").count() > before)
        for place in (0, before):
            page.locator("#hits > li .title").nth(place).click()
        until(page, lambda: len([one for one in clicks(logging_site) if one[0] == "science"]) == 2)
    log = read_log(logging_site.workspace)
    of_pages = [one for one in log.searches if one.query == "science" and log.clicks[one.id]]
    assert [one.offset for one in of_pages] == [0, before]


@pytest.mark.parametrize(("language", "title"), [("en", "Searches"), ("zh", "搜索记录")])
def test_the_page_lists_queries_and_what_to_do(language, title, logging_site, visit):
    logging_site.get("/api/v1/search?q=xqzvw+blorpt")
    with visit(logging_site, f"/searches?lang={language}") as page:
        page.wait_for_selector("#main section")
        assert page.locator("h1").inner_text() == title
        without_hits = page.locator("section").nth(1).inner_text()
        assert "xqzvw blorpt" in without_hits
        assert "xqzvw, blorpt" in without_hits
        link = page.locator("section a", has_text="xqzvw").first
        assert f"lang={language}" in link.get_attribute("href")
        assert page.locator("nav a[aria-current=page]").inner_text() == title


def test_a_rule_is_one_word_of_a_shell(logging_site, visit):
    query = "it's $(reboot) `x`"
    row = {"query": query, "searches": 3, "total": 1, "clicks": 1, "problem": "no_clicks"}
    row |= {"clicked": [], "next": [], "synonyms": None, "pin": f"{query}=m1", "reason": None}
    listing = {"rows": [row], "total": 1, "notes": []}

    def answer(route):
        only = "only=" in route.request.url
        route.fulfill(json=listing if only else {**listing, "rows": []})

    with visit(logging_site, None) as page:
        page.route("**/api/v1/searches?*", answer)
        page.goto(f"{logging_site.url}/searches")
        page.wait_for_selector("#main section")
        line = page.locator("section").nth(2).locator("code").inner_text()
    assert shlex.split(line) == ["rules", "add", "--pin", f"{query}=m1"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_telephone_nobody_has_to_scroll_for_what_to_do(language, logging_site, visit):
    logging_site.get("/api/v1/search?q=qwzzk+flumpt")
    window = {"width": 360, "height": 740}
    with visit(logging_site, f"/searches?lang={language}", viewport=window) as page:
        advice = page.locator("section").nth(1).locator("td > div").first
        advice.wait_for()
        place = advice.bounding_box()
        assert place["width"] > 250
        assert place["x"] + place["width"] <= 360
        table = page.locator("section .scroll").nth(1)
        assert table.evaluate("found => found.scrollWidth <= found.clientWidth")


def test_a_server_without_a_log_says_so(site, visit):
    with visit(site, "/searches") as page:
        page.wait_for_selector("#main section")
        assert "serve --log-searches" in page.locator("#page").inner_text()
        assert page.locator("nav a", has_text="Searches").count() == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_word_of_a_command_is_in_one_line(language, site, visit):
    heights = """() => [...document.querySelectorAll("main code > span")]
      .map(word => word.offsetHeight / parseFloat(getComputedStyle(word).fontSize))"""
    with visit(site, f"/searches?lang={language}", viewport={"width": 360, "height": 700}) as page:
        page.wait_for_selector("#main section")
        assert "--log-searches" in page.locator("main code > span").all_inner_texts()
        assert max(page.evaluate(heights)) < 2
        assert "`" not in page.inner_text("main")

"""The page with the items in two dimensions, by mouse and by keyboard."""

import re

import pytest


@pytest.fixture(scope="module")
def films(chromium, serving, movies_path):
    """A server of the movies."""
    with serving(movies_path, "--read-only") as server:
        yield server


@pytest.fixture
def page(visit, films):
    with visit(films, "/map", viewport={"width": 1200, "height": 800}) as found:
        drawn(found)
        yield found


def drawn(page):
    """Once all is placed on a canvas that has its size."""
    page.wait_for_selector("#near tbody tr")
    page.wait_for_function("""() => {
      const [map, over] = ["map", "over"].map(id => document.getElementById(id));
      return over.width === Math.round(map.clientWidth * devicePixelRatio)
        && over.height === Math.round(map.clientHeight * devicePixelRatio);
    }""")


def answered(page):
    """Ask the server for what the page's address says."""
    return page.evaluate("() => fetch('/api/v1/map' + location.search).then(a => a.json())")


# How many pixels of a canvas are set.
INK = """id => {
  const canvas = document.getElementById(id);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, place) => place % 4 === 3 && value > 0).length;
}"""


# More readings than one of the same canvas, which only a test takes.
READBACK = ("willReadFrequently",)


# Whether other titles are listed.
OTHERS = """before => [...document.querySelectorAll("#near tbody bdi")].map(one => one.textContent)
  .join() !== before.join()"""


def titles(page):
    return page.locator("#near tbody bdi").all_text_contents()


def test_all_items_are_drawn_and_what_the_map_keeps_is_said(visit, films, rested):
    with visit(films, "/map", READBACK) as page:
        drawn(page)
        answer = answered(page)
        kept = 100 * answer["neighbours_kept"]
        said = page.text_content("#explained")
        assert f"{answer['n']} items" in said
        assert float(re.search(r"([\d.]+)% of the ten", said)[1]) == pytest.approx(kept, abs=0.051)
        rested(page)
        assert page.evaluate(INK, "points") > answer["n"] * 10
        legend = page.locator("#legend bdi").all_text_contents()
        assert legend == [*answer["colour"]["labels"], "other, or none"]
        page.select_option("#colour", "-")
        page.wait_for_selector("#legend-box", state="hidden")
        assert "colour=-" in page.url


def test_the_list_is_of_the_items_nearest_to_the_middle(page):
    answer = answered(page)
    x, y = answer["items"]["x"], answer["items"]["y"]
    middle = ((min(x) + max(x)) / 2, (min(y) + max(y)) / 2)
    far = sorted(
        (((a - middle[0]) ** 2 + (b - middle[1]) ** 2), i)
        for i, (a, b) in enumerate(zip(x, y, strict=True))
    )
    assert titles(page) == [answer["items"]["titles"][i] for _, i in far[:10]]


def test_a_query_has_lines_to_its_best(visit, films, rested):
    with visit(films, "/map", READBACK) as page:
        drawn(page)
        rested(page)
        words = page.evaluate(INK, "over")
        assert words > 0  # of groups
        page.fill("#query", "space adventure")
        page.wait_for_selector("#clear:not([hidden])")
        hits = answered(page)["point"]["hits"]
        assert titles(page) == [hit["title"] for hit in hits]
        scores = page.locator("#near td.number").all_text_contents()
        assert [float(score.replace("−", "-")) for score in scores] == pytest.approx(
            [hit["score"] for hit in hits], abs=0.00051
        )
        assert "the query: 10 lines" in page.text_content("#said")
        rested(page)
        assert abs(page.evaluate(INK, "over") - words) > 500
        page.click("#clear")
        rested(page)
        assert abs(page.evaluate(INK, "over") - words) < 300  # the cross of the middle
        assert "query" not in page.url


def test_a_user_by_their_embedding(page):
    page.select_option("#head", "collaborative")
    page.fill("#user", "u001")
    page.wait_for_selector("text=Best by the head collaborative for the user u001")
    assert titles(page) == [hit["title"] for hit in answered(page)["point"]["hits"]]


def test_the_mouse_shows_titles_and_chooses(page):
    answer = answered(page)
    box = page.locator("#over").bounding_box()
    x, y = answer["items"]["x"], answer["items"]["y"]
    wide, tall = max(x) - min(x), max(y) - min(y)
    scale = 0.94 * min(box["width"] / wide, box["height"] / tall)
    i = max(range(len(x)), key=lambda i: y[i])  # the highest, and nothing near it
    px = box["x"] + box["width"] / 2 + (x[i] - (min(x) + max(x)) / 2) * scale
    py = box["y"] + box["height"] / 2 - (y[i] - (min(y) + max(y)) / 2) * scale
    page.mouse.move(px, py)
    assert page.text_content("#tip").startswith(answer["items"]["titles"][i])
    page.mouse.click(px, py)
    page.wait_for_selector("#clear:not([hidden])")
    assert answer["items"]["titles"][i] in page.text_content("#near-title")
    assert f"item={answer['items']['ids'][i]}" in page.url
    neighbours = page.evaluate(
        "id => fetch(`/api/v1/similar?items=${id}&k=10`).then(a => a.json())",
        answer["items"]["ids"][i],
    )
    assert titles(page) == [hit["title"] for hit in neighbours["hits"]]


def test_keys_alone_move_it_and_choose(page, rested):
    before = titles(page)
    page.focus("#over")
    for key in ("+", "+", "ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    rested(page)
    moved = titles(page)
    assert moved != before
    assert page.text_content("#said") == moved[0]
    page.keyboard.press("Enter")
    page.wait_for_selector("#clear:not([hidden])")
    assert moved[0] in page.text_content("#near-title")
    page.keyboard.press("Escape")
    page.wait_for_selector("#clear", state="hidden")
    assert page.evaluate("() => document.activeElement.id") == "query"
    page.focus("#over")
    page.keyboard.press("0")
    rested(page)
    assert titles(page) == before


def test_the_wheel_makes_it_larger_around_the_mouse(page):
    box = page.locator("#over").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    before = titles(page)
    page.mouse.wheel(0, -800)
    page.wait_for_function(OTHERS, arg=before)


def test_an_answer_that_nobody_asks_for_any_more_is_not_shown(page, until, rested):
    held = []
    page.route("**/api/v1/map?**items=false**", lambda route: held.append(route))
    page.fill("#query", "space adventure")
    until(page, lambda: held)
    page.fill("#query", "")
    with page.expect_response("**/api/v1/map?**"):
        held[0].continue_()
    rested(page)
    assert not page.locator("#clear").is_visible()
    assert "middle" in page.inner_text("#near-title")


def test_an_item_is_not_overtaken_by_the_query_before_it(page, until, rested):
    held = []
    page.route("**/api/v1/map?**items=false**", lambda route: held.append(route))
    page.fill("#query", "space adventure")
    until(page, lambda: held)
    name = titles(page)[0]
    page.locator("#near tbody button").first.click()
    rested(page)
    with page.expect_response("**/api/v1/map?**"):
        held[0].continue_()
    page.wait_for_function(
        "() => document.querySelector('#near-title').textContent.includes('Similar')"
    )
    rested(page)
    assert page.inner_text("#near-title").startswith(f"Similar to “{name}")
    assert page.input_value("#query") == ""
    assert "item=" in page.url


def shows(page):
    """Once the years and the query are there."""
    page.wait_for_selector("#legend-title:has-text('year')")
    page.wait_for_selector("#clear:not([hidden])")


def test_a_link_says_everything(visit, films, page):
    page.select_option("#colour", "year")
    page.fill("#query", "a robot that feels")
    shows(page)
    shown = page.locator("#side").inner_text()
    with visit(films, re.sub(r"^http://[^/]+", "", page.url)) as again:
        shows(again)
        assert again.locator("#side").inner_text() == shown


def test_what_is_refused_is_said(visit, films):
    with visit(films, "/map?user=nobody", ("404 (Not Found)",)) as page:
        page.wait_for_selector("#failed:not([hidden])")
        assert "no user" in page.text_content("#failed")
        below = page.locator("#failed").bounding_box()
        assert below["y"] + below["height"] < page.viewport_size["height"]
        page.fill("#user", "")
        page.wait_for_selector("#failed", state="hidden")


def test_the_words_of_groups_lie_on_no_button_and_a_heading_breaks_in_no_word(visit, films):
    with visit(films, "/map?query=war", viewport={"width": 390, "height": 800}) as page:
        page.wait_for_selector("#near tbody tr")
        heads = page.locator("#near thead th")
        lines = heads.evaluate_all("""heads => heads.map(head => {
          const range = document.createRange();
          range.selectNodeContents(head);
          return range.getClientRects().length;
        })""")
        assert lines == [1, 1]

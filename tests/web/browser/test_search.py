"""The search page as people use it: by keyboard and by mouse, over a slow server, over any text."""

import itertools
import json
import re
import shutil
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch._utils.shown_sums import AVERAGE_ITEM, adding_up, reasons_adding_up

FIRST = "document.querySelector('#hits .title')?.textContent"
# Every first title that is shown, in order.
WATCH = f"""() => {{
  window.seen = [];
  new MutationObserver(() => seen.push({FIRST})).observe(
    document.querySelector('.found'), {{ childList: true }});
}}"""
# Every question, and how many are under way then.
COUNTED = """() => {
  const own = window.fetch;
  let running = 0;
  window.asked = [];
  window.fetch = async (...given) => {
    running += 1;
    window.asked.push([given[0], running]);
    try {
      return await own(...given);
    } finally {
      running -= 1;
    }
  };
}"""
# The numbers of the table word by word, in thousandths: a row for each word of the item, and last
# their sums.
SHOWN_ROWS = """table => [...table.rows]
  .map(row => [...row.querySelectorAll("td[data-value]")])
  .filter(cells => cells.length > 1)
  .map(cells => cells.map(cell => Number(cell.innerText.replace("−", "-") || 0)))
  .map(values => values.map(value => Math.round(1000 * value)))"""
# How many values of a column are chosen.
CHOSEN = """n => document.querySelectorAll('#facets [data-filter^="kind:"]:checked').length === n"""
# Layout shifts that nobody caused.
MOVED = """() => new Promise(done => {
  new PerformanceObserver(list => done(list.getEntries()
    .filter(one => !one.hadRecentInput).reduce((sum, one) => sum + one.value, 0)))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(0), 500);
})"""


def loaded(page):
    page.wait_for_selector("#hits[aria-busy=false]", state="attached")


def titles(page):
    return [text.strip() for text in page.locator("#hits .title").all_inner_texts()]


def address(page):
    return parse_qs(urlsplit(page.url).query)


def shown(text):
    """The number that a cell shows."""
    return float(re.search(r"[+−]?[\d.]+$", text.strip())[0].replace("−", "-"))


def further(page):
    """Open what heads add and the table of words, one step behind the first reasons."""
    page.locator(".further > summary").first.click()
    page.wait_for_selector(".heat")


def numbers(locator):
    return [shown(text) for text in locator.all_inner_texts() if text.strip()]


def thousandths(number):
    """A number of three decimals as a whole one, which adds up exactly."""
    return round(1000 * number)


def check_margins(rows):
    """As they are shown, each row adds up to its last cell and each column to the last row."""
    for row in rows:
        assert sum(row[:-1]) == row[-1]
    assert len(rows) > 2
    for column in zip(*rows, strict=True):
        assert sum(column[:-1]) == column[-1]


def near(values, whole):
    """Numbers of three decimals add up, but for what rounding takes."""
    assert sum(values) == pytest.approx(whole, abs=0.0005 * (len(values) + 1) + 1e-6)


@pytest.fixture(scope="module")
def shelf(chromium, serving, tmp_path_factory):
    """A server of a catalog whose ids have hyphens, and whose tags look like numbers."""
    columns = {
        "id": [f"dvd-{n:04}" for n in range(30)],
        "title": [f"Film dvd-{n:04}, the story of number {n}" for n in range(30)],
        "tags": ["|".join(["red", *["42"] * (n % 3 > 0), *["7"] * (n % 3 > 1)]) for n in range(30)],
    }
    path = tmp_path_factory.mktemp("shelf") / "ws"
    qkvsearch.build(path, items=pd.DataFrame(columns), encoder="corpus").close()
    with serving(path, "--read-only") as server:
        yield server


def test_what_has_a_hyphen_is_found_and_marked(visit, shelf):
    with visit(shelf) as page:
        loaded(page)
        page.fill("#q", "dvd-0042 dvd-0007")
        page.keyboard.press("Enter")
        page.wait_for_function("() => !location.search.includes('prefix')")
        loaded(page)
        assert titles(page)[0].startswith("Film dvd-0007")
        assert page.locator("#hits mark").first.inner_text() == "dvd-0007"


def test_values_of_a_facet_that_look_like_numbers_come_by_their_counts(visit, shelf):
    with visit(shelf) as page:
        loaded(page)
        shown = page.locator("#facets fieldset", has_text="tags").locator("label").all_inner_texts()
        assert [text.split()[0] for text in shown] == ["red", "42", "7"]


def test_an_empty_box_shows_what_is_there(visit, site):
    with visit(site) as page:
        loaded(page)
        assert "375" in page.inner_text("#status")
        first = json.loads(site.get("/api/v1/items?sort=users&k=12")[2])["rows"]
        assert titles(page) == [row["title"] for row in first]
        assert page.inner_text("#first h2") == "Most popular"
        page.get_by_role("button", name="All 375 items").click()
        page.wait_for_function("() => document.querySelectorAll('#hits > li').length == 20")
        assert address(page)["sort"] == ["users"]
        page.select_option("#sort", "id")
        page.wait_for_function("() => document.querySelector('#hits li').dataset.id == 'v001'")
        assert address(page)["sort"] == ["id"]
        assert page.locator("#facets fieldset").count()
        page.get_by_role("button", name="More", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('#hits > li').length == 40")


def test_where_nothing_is_found_the_nearest_are_a_press_away(visit, site):
    def silent(route):
        if "anyway=true" in route.request.url:
            route.continue_()
            return
        answer = route.fetch()
        nothing = {"hits": [], "total": 0, "total_weak": 0, "no_hits": {"reason": "not_answered"}}
        route.fulfill(response=answer, json=answer.json() | nothing)

    with visit(site, None) as page:
        page.route("**/api/v1/search?*", silent)
        page.goto(site.url + "/?q=bread")
        press = page.get_by_role("button", name="Show the nearest items anyway")
        press.click()
        page.wait_for_function(f"() => {FIRST}")
        assert "anyway=true" in page.url
        assert press.count() == 0
        page.go_back()
        press.wait_for()
        page.go_forward()
        page.wait_for_function(f"() => {FIRST}")
        page.fill("#q", "guitar")
        press.wait_for()
        assert "anyway" not in page.url


def test_the_nearest_are_as_many_as_one_page_has(visit, site):
    def all_weak(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"total": 0, "total_weak": 200})

    with visit(site, None) as page:
        page.route("**/api/v1/search?*", all_weak)
        page.goto(site.url + "/?q=bread&anyway=true&k=60")
        loaded(page)
        assert page.locator("#hits > li").count() == 20
        assert page.inner_text("#status") == "The 20 nearest items: all match only weakly"
        assert page.locator("#more").is_hidden()
        assert page.locator("#facets input").count() == 0


def test_weak_matches_are_below_all_others_behind_the_last_one(visit, site):
    asked = json.loads(site.get("/api/v1/search?q=guitar&k=1")[2])
    total, n_weak = asked["total"], asked["total_weak"]
    assert 0 < total < 20 < n_weak
    with visit(site, "/?q=guitar") as page:
        loaded(page)
        assert page.inner_text("#status") == f"{total} results"
        assert page.locator("#hits > li").count() == total
        page.get_by_role("button", name=f"Show {n_weak} weaker matches").click()
        page.wait_for_function(f"() => document.querySelectorAll('#hits > li').length > {total}")
        assert address(page)["weak"] == ["true"]
        grades = page.locator("#hits .match").all_inner_texts()
        assert set(grades[total:]) == {"weak match"}
        assert "weak match" not in grades[:total]
        below = page.locator("#hits > li:has(.below)")
        assert below.count() == 1
        below.locator(".title").click()
        page.wait_for_selector(".explanation .waterfall")
        assert page.inner_text("#more") == "More"
        page.fill("#q", "bread")
        page.wait_for_function("() => !location.search.includes('weak')")


def test_a_page_says_why_there_is_nothing_in_its_language(visit, site):
    where = "category%20%3D%20'nothing'"
    for language, filtered, clear, unknown in (
        ("en", "Without these filters", "Clear all filters", "None of these words"),
        ("zh", "去掉这些筛选", "清除所有筛选", "目录里没有这些词"),
    ):
        with visit(site, f"/?q=guitar&where={where}&lang={language}") as page:
            loaded(page)
            assert filtered in page.inner_text("#notes")
            page.get_by_role("button", name=clear).click()
            page.wait_for_function(f"() => {FIRST}")
            page.fill("#q", "xqzvw")
            page.wait_for_selector("#notes >> text=xqzvw")
            assert unknown in page.inner_text("#notes")


def test_examples_of_an_empty_box_find_something(visit, site):
    with visit(site) as page:
        loaded(page)
        links = page.locator("#examples a").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))"
        )
        assert len(set(links)) == 3
        for link in links:
            page.goto(site.url + "/" + link)
            loaded(page)
            assert int(page.inner_text("#status").split()[0]) > 0
            assert page.locator("#first").is_hidden()


@pytest.mark.parametrize(
    ("titles", "examples"),
    [
        (
            ["Rain jacket red 0", "Down jacket: 3 sizes", "Rain jacket red 7"],
            ["Rain jacket red", "Down jacket"],
        ),
        (
            ["河谷地质：第一课", "Why do rivers bend and where do they go"],
            ["河谷地质", "Why do rivers"],
        ),
        (["1984", ""], []),
    ],
)
def test_examples_are_made_of_titles(visit, site, titles, examples):
    with visit(site, "/?q=bread") as page:
        loaded(page)
        made = page.evaluate(
            """async titles => (await import("/static/search/popular.js")).examplesOf(titles)""",
            titles,
        )
    assert made == examples


def test_where_nothing_is_found_popular_items_are_shown_beside_the_results(visit, site):
    with visit(site, "/?q=zzzxqv") as page:
        page.wait_for_selector("#popular li")
        assert page.locator("#hits > li").count() == 0
        assert page.inner_text("#popular h2") == "Most popular"
        first = json.loads(site.get("/api/v1/items?sort=users&k=12")[2])["rows"]
        shown = page.locator("#popular .title").all_inner_texts()
        assert shown == [row["title"] for row in first]
        page.fill("#q", "bread")
        page.wait_for_selector("#hits li[data-id]")
        page.locator("#popular").wait_for(state="hidden")


def test_more_is_listed_once_however_often_it_is_asked_for(visit, site, until, rested):
    with visit(site, "/?sort=users") as page:
        loaded(page)
        held = []
        page.route("**/api/v1/items?**offset=**", lambda route: held.append(route))
        more = page.get_by_role("button", name="More", exact=True)
        more.dblclick()
        until(page, lambda: held)
        held.pop().continue_()
        page.wait_for_function("() => document.querySelectorAll('#hits > li').length > 20")
        rested(page)
        listed = page.locator("#hits > li").evaluate_all("all => all.map(one => one.dataset.id)")
        assert len(listed) == len(set(listed)) == 40
        assert held == []
        more.click()
        until(page, lambda: held)
        held.pop().continue_()
        page.wait_for_function("() => document.querySelectorAll('#hits > li').length == 60")


def test_more_ends_where_an_address_does(visit, site):
    with visit(site, "/?k=95") as page:
        loaded(page)
        page.get_by_role("button", name="More", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('#hits > li').length == 100")
        page.locator("#more").wait_for(state="hidden")
        assert address(page)["k"] == ["100"]


def test_an_empty_box_asks_one_thing_at_a_time(visit, site):
    with visit(site, "/?q=bread") as page:
        loaded(page)
        page.evaluate(COUNTED)
        page.fill("#q", "")
        page.wait_for_function(
            "() => document.querySelector('#status').textContent.includes('375')"
        )
        asked = page.evaluate("asked")
        assert [path.split("/")[-1].split("?")[0] for path, _ in asked] == ["items", "facets"]
        assert [running for _, running in asked] == [1, 1]


def test_without_a_place_to_keep_a_token_the_page_works(visit, site):
    with visit(site, None) as page:
        page.add_init_script(
            """Object.defineProperty(window, "sessionStorage", {
              get() { throw new DOMException("not allowed", "SecurityError"); } });"""
        )
        page.goto(site.url + "/?q=bread")
        loaded(page)
        assert page.locator("#hits > li").count() > 0


def test_results_come_while_typing_and_enter_searches_for_the_whole_word(visit, site):
    with visit(site) as page:
        loaded(page)
        page.keyboard.press("/")
        page.keyboard.type("sourdo")
        page.wait_for_function(
            "() => document.querySelector('#hits .title')?.textContent.includes('Sourdough')"
        )
        assert address(page)["prefix"] == ["true"]
        page.keyboard.type("ugh bread")
        page.keyboard.press("Enter")
        page.wait_for_function("() => !location.search.includes('prefix')")
        loaded(page)
        assert address(page)["q"] == ["sourdough bread"]
        assert page.locator("#hits mark").first.inner_text().lower() in ("sourdough", "bread")
        assert re.match(r"\d+ result", page.inner_text("#said"))


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_reasons_add_up_to_the_score_in_every_table(visit, site, by):
    with visit(site, "/?q=sourdogh+bread&weak=true") as page:
        loaded(page)
        if by == "mouse":
            page.locator("#hits .title").nth(1).click()
        else:
            page.keyboard.press("/")
            for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
                page.keyboard.press(key)
        panel = page.locator("#hits > li:nth-child(2) .explanation")
        page.wait_for_selector(".waterfall")
        assert panel.locator(".heat").count() == 0
        further(page)
        score = shown(page.inner_text("#hits > li:nth-child(2) .figures b"))
        for table in panel.locator(".waterfall:has(tfoot)").all():
            near(numbers(table.locator("tbody .number")), score)
            assert shown(table.locator(".sum, tfoot .number").inner_text()) == score
        tables = 0
        for button in panel.locator(".heads button").all():
            button.click()
            whole = shown(panel.locator(".heat tfoot tr:last-child .number").inner_text())
            cells = numbers(panel.locator(".heat tbody td.gives, .heat tbody td.takes"))
            beside = numbers(panel.locator(".heat tfoot tr:not(.sums) .number"))
            near([*cells, *beside], whole)
            rows = panel.locator(".heat").evaluate(SHOWN_ROWS)
            check_margins(rows)
            assert rows[-1][-1] + sum(map(thousandths, beside)) == thousandths(whole)
            exact = page.evaluate(
                """() => [...document.querySelectorAll(
                  '.heat tbody td[data-value]:not(:last-child), .heat tfoot tr:not(.sums) td')]
                  .reduce((sum, cell) => sum + Number(cell.dataset.value), 0)"""
            )
            assert exact == pytest.approx(whole, abs=0.0006)
            tables += 1
        assert tables >= 3  # all, words, meaning
        assert whole != score
        assert address(page)["open"] == [page.get_attribute("#hits > li:nth-child(2)", "data-id")]
        page.locator("#hits .title").nth(1).focus()
        page.keyboard.press("Escape")
        assert panel.count() == 0
        assert page.get_attribute("#hits > li:nth-child(2) .title", "aria-expanded") == "false"
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.id") == "q"


@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_wrong_with_a_filter_can_be_seen_in_the_pages_language(site, visit, width):
    options = {"viewport": {"width": width, "height": 844}, "expected": ("400",)}
    with visit(site, "/?q=river&lang=zh&where=seconds+<+<+5", **options) as page:
        page.wait_for_selector("#where-fault", state="visible")
        assert "处有错误" in page.text_content("#where-fault")
    with visit(site, "/?q=river&lang=zh&filter=seconds:5..=nan", **options) as page:
        page.wait_for_selector("#notes .bad", state="visible")
        assert "筛选" in page.text_content("#notes .bad")
        assert "NaN" not in page.text_content("#chosen")


BESIDE = """async lists => {
  const { ShownNumbers } = await import("/static/waterfall.js");
  return lists.map(([reasons, values, total]) => {
    const numbers = new ShownNumbers();
    const some = values.slice(0, 3);
    return [
      numbers.reasons(reasons, total),
      numbers.addingUp(values, total),
      numbers.addingUp(some, some[0] + some[1] + some[2]),
    ];
  });
}"""


def test_a_number_in_two_lists_of_one_score_is_shown_as_the_same(site, visit):
    rng = np.random.default_rng(3)
    lists = []
    for _ in range(200):
        # First some words are one line; in the table each is its own.
        one, several = rng.normal(size=5), rng.normal(size=4)
        total = float(one.sum() + several.sum())
        reasons = [{"text": f"word {n}", "value": value} for n, value in enumerate(one.tolist())]
        reasons[4]["text"] = AVERAGE_ITEM
        reasons.insert(4, {"text": "4 other words", "value": float(several.sum())})
        lists.append((reasons, [*one.tolist(), *several.tolist()], total))
    with visit(site, "/") as page:
        shown = page.evaluate(BESIDE, lists)
    for (reasons, _, total), (first, second, third) in zip(lists, shown, strict=True):
        pairs = [(reason["text"], reason["value"]) for reason in reasons]
        assert first == reasons_adding_up(pairs, total)
        assert second[:5] == [*first[:4], first[5]]
        assert third == first[:3]
        assert sum(second) == pytest.approx(round(total, 3), abs=1e-9)


PAIRS = """async pairs => {
  const { addingUp } = await import("/static/words.js");
  return pairs.map(([values, total, digits]) => addingUp(values, total, digits));
}"""


def drawn_sums():
    """Numbers with their sum, with a sum that float32 rounds, and with one that lacks something."""
    rng = np.random.default_rng(7)
    for n in [*range(0, 12), 40, 300] * 6:
        values = rng.normal(size=n) * 10.0 ** rng.integers(-5, 3)
        total = float(values.sum())
        digits = int(rng.integers(1, 6))
        for shown_total in (total, float(np.float32(total)), total + 1.5):
            yield values.tolist(), shown_total, digits


@pytest.mark.slow
def test_the_page_rounds_addends_as_python_does(visit, site):
    given = list(drawn_sums())
    with visit(site) as page:
        loaded(page)
        rounded = page.evaluate(PAIRS, given)
    assert rounded == [adding_up(*arguments) for arguments in given]


def test_the_address_says_everything(visit, site):
    path = "/?q=bread&filter=category:Cooking&heads=lexical&where=seconds+%3C+900&k=3&open=v135"
    with visit(site, path) as page:
        loaded(page)
        found = json.loads(site.get("/api/v1/search" + path[1:].removesuffix("&open=v135"))[2])
        assert titles(page) == [hit["title"] for hit in found["hits"]]
        assert page.input_value("#q") == "bread"
        assert page.input_value("#where") == "seconds < 900"
        assert page.locator("#chosen .chip").count() == 3  # a head, a value, a condition
        assert page.locator("[data-filter='category:Cooking']").is_checked()
        assert (
            page.locator("#heads button", has_text="Words").get_attribute("aria-pressed") == "true"
        )
        page.get_by_role("button", name="Clear all filters").click()
        page.wait_for_function("() => !location.search.includes('filter')")
        loaded(page)
        with page.expect_event("load"):  # for which the page goes back by itself
            page.go_back()
        loaded(page)
        assert address(page)["filter"] == ["category:Cooking"]


def test_values_of_a_facet_are_alternatives(visit, site):
    with visit(site) as page:
        loaded(page)
        for value in ("Cooking", "Crafts"):
            page.get_by_label(value).click()
            page.wait_for_function("value => location.search.includes(value)", arg=value)
            loaded(page)
            assert page.evaluate("document.activeElement.dataset.filter") == f"category:{value}"
        assert "71 items match" in page.inner_text("#status")
        assert page.get_by_label("Nature").count() == 1
        page.get_by_role("button", name="Remove the filter category: Cooking").click()
        page.wait_for_function("() => !location.search.includes('Cooking')")
        loaded(page)
        assert "41 items match" in page.inner_text("#status")


def test_one_head_alone_and_a_taste(visit, site):
    with visit(site, "/?q=bread") as page:
        loaded(page)
        scores = page.locator("#hits .figures b")
        before = scores.all_inner_texts()
        page.click("#options summary")
        page.get_by_role("button", name="Words").first.click()
        page.wait_for_function("() => location.search.includes('heads=lexical')")
        loaded(page)
        assert len(titles(page)) == 3
        assert "Ranked by: Words" in page.inner_text("#chosen")
        page.get_by_role("button", name="Everything").click()
        page.locator("#user").fill("w001")
        page.locator("#user").press("Enter")
        page.wait_for_function("() => location.search.includes('user=w001')")
        loaded(page)
        assert scores.all_inner_texts() != before
        assert page.locator("#heads button").last.inner_text() == "Taste"


def test_similar_items_and_the_way_back(visit, site):
    with visit(site, "/?q=sourdough") as page:
        loaded(page)
        page.locator("#hits .like").first.click()
        page.wait_for_url("**similar=v018**")
        loaded(page)
        assert "Sourdough from nothing" in page.inner_text("#chosen")
        page.locator("#hits .title").first.click()
        further(page)
        page.locator("#chosen .chip").click()
        page.wait_for_function("() => !location.search.includes('similar')")
        loaded(page)


def test_a_slow_server_never_has_old_answers_after_new_ones(visit, site, until):
    asked, held = [], []

    def hold(route):
        asked.append(parse_qs(urlsplit(route.request.url).query)["q"][0])
        held.append(route)

    with visit(site) as page:
        loaded(page)
        page.route("**/api/v1/search?**", hold)
        page.evaluate(WATCH)
        for text in ("guitar", "bread", "knots", "sourdough"):
            page.fill("#q", text)
            until(page, lambda: held)
        assert asked == ["guitar"]  # the others wait
        held.pop().continue_()
        until(page, lambda: held)
        held.pop().continue_()
        page.wait_for_function(
            "() => document.querySelector('#hits .title').textContent.includes('Sourdough')"
        )
        loaded(page)
        assert asked == ["guitar", "sourdough"]
        assert "Sourdough" in page.evaluate("seen.at(-1)")
        assert page.input_value("#q") == "sourdough"


def test_titles_are_text_whatever_they_contain(visit, serving, hostile_path):
    with (
        serving(hostile_path) as server,
        visit(server, "/?q=rain&k=60&open=x2&open=" + "%3Ci%3E%220%22") as page,
    ):
        loaded(page)
        assert page.locator("#hits > li").count() == 60
        further(page)
        assert page.title().startswith("Search")
        assert page.locator("main img, main script, main i:not([class])").count() == 0
        found = titles(page)
        assert any('<img src=x onerror="document.title=1"' in title for title in found)
        assert all(len(title) < 400 for title in found)
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.inner_text("main"))
        assert page.locator("#hits .title > bdi").count() == 60
        for box in range(3):
            page.locator("#facets fieldset", has_text="kind").locator("input").nth(box).click()
            page.wait_for_function(CHOSEN, arg=box + 1)
            loaded(page)
        assert page.locator("#hits > li").count() == 20
        page.locator("#hits .like").first.click()
        page.wait_for_url("**similar=**")
        loaded(page)
        assert page.locator("#hits > li").count() > 1


def test_nothing_jumps_while_it_loads(visit, site):
    for path in ("/", "/?q=sourdogh+bread&open=v018"):
        with visit(site, path, viewport={"width": 360, "height": 800}) as page:
            loaded(page)
            assert page.evaluate(MOVED) < 0.1
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_results_come_first_and_the_switch_to_reasons_is_remembered(visit, site, expect):
    with visit(site, "/?q=bread", reasons=False) as page:
        expect(page.locator("#hits .title").first).to_be_visible()
        expect(page.locator("#hits .figures b").first).to_be_hidden()
        expect(page.locator("#hits .match").first).to_be_visible()
        expect(page.locator("#hits .weight").first).to_be_hidden()
        assert re.search(r"\b\d+ min\b", page.locator("#hits .cells").first.inner_text())
        why = page.get_by_role("switch", name="Why")
        why.click()
        expect(page.locator("#hits .figures b").first).to_be_visible()
        page.reload()
        expect(page.locator("#hits .figures b").first).to_be_visible()
        why.click()
        expect(page.locator("#hits .figures b").first).to_be_hidden()


DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'


@pytest.fixture(scope="module")
def shop(chromium, serving, tmp_path_factory):
    """A server of a catalog with images, pages, prices and lengths of time, and some scripts."""
    n = 40
    columns = {
        "id": [f"s{i}" for i in range(n)],
        "title": [f"tent number {i}" for i in range(n)],
        "price": [f"${19 + i}.50" for i in range(n)],
        "minutes": [20 + 7 * i for i in range(n)],
        "brand": [["Alpin", "Fjord"][i % 2] for i in range(n)],
        "image": [f"https://images.example/{i}.png" for i in range(n)],
        "website": [f"https://shop.example/{i}" for i in range(n)],
    }
    path = tmp_path_factory.mktemp("shop") / "ws"
    engine = qkvsearch.build(path, items=pd.DataFrame(columns), encoder="corpus")
    script = "javascript:document.title=1"
    evil = {"id": "s0", "title": "tent number 0", "image": script, "website": script}
    engine.add(pd.DataFrame([evil]))
    engine.close()
    with serving(path, "--read-only") as server:
        yield server


def test_another_query_is_suggested_in_the_language_of_the_page(in_shop, shop):
    page, _ = in_shop
    said = {"en": "Did you mean Length: 41 min?", "zh": "是不是想找 时长: 41分钟？"}
    for language, suggested in said.items():
        page.goto(f"{shop.url}/?q=tent%2041&lang={language}")
        loaded(page)
        assert suggested in page.inner_text("#notes")
        page.locator("#notes a").click()
        loaded(page)
        assert address(page)["q"] == ["tent minutes:41"]
        assert "41" in page.locator("#hits > li").inner_text()


SUGGESTED = """async ([clause, typed, unknown]) => {
  const { suggestion } = await import("/static/search/suggestions.js");
  const columns = [{ name: "brand", shown_as: "text" }, { name: "added", shown_as: "date" }];
  const made = suggestion(clause, { columns, typed, unknown, to: q => `?${q}` });
  return [made.textContent, made.getAttribute("href")];
}"""


@pytest.mark.parametrize(
    ("clause", "typed", "unknown", "called", "asks"),
    [
        ("brand:Acme", "brnd:Acme tent", "brnd", "Brand: Acme", "brand:Acme tent"),
        ("brand:Acme", 'tent Brand:"Ac me"', None, "Brand: Acme", "tent brand:Acme"),
        ('brand:"Blue Heron"', "tent", None, "Brand: Blue Heron", 'tent brand:"Blue Heron"'),
        ("added:2020..2029", "tents of 2020s", None, "Added: 2020 – 2029", None),
        ('"blue heron"', '"blu heron" tent', None, '"blue heron"', '"blue heron" tent'),
    ],
)
def test_a_suggested_query_is_called_as_a_person_reads_it(
    visit, site, clause, typed, unknown, called, asks
):
    with visit(site) as page:
        loaded(page)
        shown, href = page.evaluate(SUGGESTED, [clause, typed, unknown])
    assert shown == called
    assert href == f"?{asks or f'{typed} {clause}'}"


@pytest.fixture(scope="module")
def plain_shop(chromium, serving, tmp_path_factory):
    """A server of a shop whose prices have no currency, with ratings up to 5."""
    n = 60
    columns = {
        "id": [f"s{i}" for i in range(n)],
        "title": [
            "A rain jacket of a very long name, " * 6 if i == 0 else f"jacket {i}" for i in range(n)
        ],
        "price": [1299.0 if i == 1 else 20 + i + 0.5 for i in range(n)],
        "stock": [i % 50 for i in range(n)],
        "rating": [round(2.5 + (i % 26) / 10, 1) for i in range(n)],
        "brand": [["Acme", "Blue Heron"][i % 2] for i in range(n)],
    }
    path = tmp_path_factory.mktemp("plain") / "ws"
    qkvsearch.build(path, items=pd.DataFrame(columns), encoder="corpus").close()
    with serving(path, "--read-only") as server:
        yield server


def test_a_price_without_a_currency_is_shown_as_one_with_its_stock(visit, plain_shop):
    with visit(plain_shop, "/?q=jacket&k=60") as page:
        loaded(page)
        prices, stocks = (
            page.locator(f"#hits [data-id={id_}] .{part}").inner_text()
            for id_, part in (("s1", "price"), ("s50", "stock"))
        )
        assert prices == "1,299.00"
        assert stocks == "Out of stock"
        assert page.locator("#hits [data-id=s2] .price").inner_text() == "22.50"
        assert "price" not in page.locator("#hits [data-id=s2] .cells").inner_text()


def test_a_range_ends_at_a_value_that_occurs_and_holds_what_was_chosen(visit, plain_shop):
    with visit(plain_shop) as page:
        loaded(page)
        most = page.get_by_role("slider", name="Rating: to")
        assert most.get_attribute("max") == "5"
        assert page.get_by_role("slider", name="Stock: to").get_attribute("max") == "49"
        # What is empty says what the catalog has, and not a round number of its ranges.
        price = page.get_by_role("spinbutton", name="Price: to")
        assert price.get_attribute("placeholder") == "1299"
    with visit(plain_shop, "/?q=jacket&filter=rating:1..%3D3.4") as page:
        loaded(page)
        assert page.get_by_role("slider", name="Rating: from").input_value() == "1"
        assert page.get_by_role("slider", name="Rating: to").input_value() == "3.4"
        chip = page.locator("#chosen .chip").inner_text()
        assert chip.startswith("Rating: 1 – 3.4")


def test_filters_fold_where_there_is_no_room_beside_the_results(visit, plain_shop):
    narrow, wide = ({"width": width, "height": 800} for width in (390, 1280))
    with visit(plain_shop, "/?q=jacket&filter=brand:Acme", viewport=narrow) as page:
        loaded(page)
        summary, done = page.locator("#filters > summary"), page.locator("#done")
        assert " ".join(summary.inner_text().split()) == "Filters (1)"
        assert page.locator("#facets").is_hidden()
        summary.press("Enter")
        assert done.inner_text() == "Show 30 items"
        place = done.bounding_box()
        assert place["y"] + place["height"] <= narrow["height"]  # without scrolling
        done.press("Enter")
        assert page.locator("#facets").is_hidden()
        assert summary.evaluate("one => one === document.activeElement")
        page.set_viewport_size(wide)
        page.locator("#facets").wait_for()
        assert done.is_hidden()
        page.set_viewport_size(narrow)
        page.locator("#facets").wait_for(state="hidden")


def test_a_range_that_leaves_nothing_can_be_changed(visit, plain_shop):
    with visit(plain_shop, "/?q=jacket&filter=price:1200..%3D1250") as page:
        loaded(page)
        assert page.locator("#hits > li").count() == 0
        least = page.get_by_role("spinbutton", name="Price: from")
        assert least.input_value() == "1200"
        least.fill("20")
        least.press("Enter")
        page.wait_for_selector("#hits > li")


def test_numbers_stay_ranges_among_a_few_results(visit, plain_shop):
    with visit(plain_shop, "/?q=jacket&where=price+%3C+24") as page:
        loaded(page)
        assert page.locator("#hits > li").count() == 3
        for column in ("Price", "Stock", "Rating"):
            assert page.get_by_role("slider", name=f"{column}: to").count() == 1
        assert page.locator("#facets input[type=checkbox]").count() == 2  # the brands


def test_a_few_different_numbers_are_a_range_as_well(visit, serving, tmp_path):
    rows = {"id": ["a", "b", "c"], "title": ["red tent", "blue tent", "tent"]}
    rows |= {"price": [1207.0, 121.5, 158.5], "stock": [0, 3, 3], "new": ["yes", "no", "no"]}
    qkvsearch.build(tmp_path / "ws", items=pd.DataFrame(rows), encoder="corpus").close()
    with serving(tmp_path / "ws", "--read-only") as server, visit(server, "/?q=tent") as page:
        loaded(page)
        assert page.get_by_role("slider", name="Stock: to").get_attribute("max") == "3"
        boxes = page.locator("#facets label").all_inner_texts()
        assert [box.split()[0] for box in boxes] == ["no", "yes"]  # they are no numbers
        ends = [page.get_by_role("spinbutton", name=f"Price: {end}") for end in ("from", "to")]
        assert [end.get_attribute("placeholder") for end in ends] == ["121.5", "1207"]


def test_a_range_in_an_address_may_have_its_larger_end_first(visit, plain_shop):
    with visit(plain_shop, "/?q=jacket&filter=price:40..%3D30") as page:
        loaded(page)
        assert address(page)["filter"] == ["price:30..=40"]
        assert page.locator("#hits > li").count() == 10
        assert page.locator("#chosen").inner_text().startswith("Price: 30 – 40")


@pytest.mark.parametrize(
    ("query", "left"),
    [("jacket brand:Acmee", "jacket"), ('brand:"Blue Heron" jacket -jacket', "jacket")],
)
def test_what_nothing_has_is_left_out_by_a_button(visit, plain_shop, query, left):
    with visit(plain_shop, f"/?{urlencode({'q': query})}") as page:
        loaded(page)
        page.get_by_role("button", name="Search without").click()
        page.wait_for_selector("#hits > li")
        assert address(page)["q"] == [left]


@pytest.mark.parametrize(
    ("spoken", "none", "end"), [("en-US", "No results", "."), ("zh-CN", "没有找到", "。")]
)
def test_what_was_not_searched_is_not_said_to_have_no_results(visit, plain_shop, spoken, none, end):
    path = "/?q=jacket&where=price+%3C+%27cheap%27"
    with visit(plain_shop, path, locale=spoken, expected=("400",)) as page:
        page.wait_for_selector("#where-fault", state="visible")
        assert page.inner_text("#where-fault").endswith(end)
        assert none not in page.inner_text("#status")
        assert page.inner_text("#notes") == ""


def test_a_tile_shows_the_beginning_of_an_endless_title(visit, plain_shop):
    with visit(plain_shop, "/") as page:
        loaded(page)
        title = page.locator("#hits.tiles > [data-id=s0] .title")
        assert title.inner_text().endswith("very long name, A rain…")
        assert len(title.inner_text()) <= 80
        assert title.get_attribute("title").startswith("A rain jacket")


def test_where_nothing_is_found_titles_are_cut_as_on_the_first_page(visit, plain_shop):
    with visit(plain_shop, "/?q=jacket+brand:Nobody") as page:
        page.wait_for_selector("#popular-items > li")
        title = page.locator("#popular-items > [data-id=s0] .title")
        assert title.inner_text().endswith("…")
        assert len(title.inner_text()) <= 80


def test_filters_are_counted_where_they_are_folded(visit, plain_shop):
    path = "/?q=jacket&filter=brand:Acme&filter=price:30..%3D50"
    with visit(plain_shop, path, viewport={"width": 390, "height": 844}) as page:
        loaded(page)
        assert page.inner_text("#filters > summary").strip() == "Filters (2)"
        clear = page.get_by_role("button", name="Clear all filters")
        assert "×" not in clear.inner_text()
        below = clear.bounding_box()["y"] + clear.bounding_box()["height"]
        assert page.locator("#hits > li").first.bounding_box()["y"] - below >= 12
        clear.click()
        page.wait_for_function("() => !document.querySelector('#n-filters').textContent")


def test_the_bars_of_kinds_have_their_colours(visit, site):
    with visit(site, "/?q=river") as page:
        loaded(page)
        page.locator("#hits .title.opens, #hits .opens").first.click()
        further(page)
        shown = page.evaluate("""() =>
          [...document.querySelectorAll(".further .waterfall tbody tr")].map(row =>
            [".head-name i", ".bar-fill"]
            .map(part => getComputedStyle(row.querySelector(part)).backgroundColor))""")
        assert len({bar for _, bar in shown}) > 1
        assert all(swatch == bar for swatch, bar in shown)


@pytest.mark.parametrize(
    ("language", "first", "last"),
    [("en", "oldest first", "newest first"), ("zh", "从早到晚", "从晚到早")],
)
def test_dates_are_sorted_by_words_for_dates(visit, serving, tmp_path, language, first, last):
    rows = {"id": range(9), "title": [f"tent {n}" for n in range(9)]}
    rows["added"] = [f"2024-0{n + 1}-15" for n in range(9)]
    qkvsearch.build(tmp_path / "ws", items=pd.DataFrame(rows), encoder="corpus").close()
    path = f"/?q=tent&lang={language}"
    with serving(tmp_path / "ws", "--read-only") as server, visit(server, path) as page:
        loaded(page)
        names = page.locator("#sort option").all_text_contents()
        assert any(name.endswith(first) for name in names), names
        assert any(name.endswith(last) for name in names), names


def test_the_table_of_words_has_the_largest_rows_first_and_few(visit, site):
    with visit(site, "/?q=river") as page:
        loaded(page)
        page.locator("#hits .opens").first.click()
        further(page)
        sums = page.locator(".heat tbody tr > td:last-child").all_inner_texts()
        rows = page.locator(".heat tbody th").all_inner_texts()
        assert 1 < len(rows) <= 11
        sizes = [abs(shown(text)) for text in sums[: len(rows) - 1]]
        assert all(one >= other - 0.0011 for one, other in itertools.pairwise(sizes))
        assert "other" in rows[-1]
        assert "overall meaning" not in " ".join(rows)


LABEL = """async text => {
  const { explanation } = await import("/static/search/reasons.js");
  const cut = { query: 0, keys: 0 };
  const map = { heads: [], query: [], keys: [], cut, values: [], constant: [], other: [] };
  const hit = { score: 1, heads: {}, map, reasons: [{ text, value: 1 }] };
  return explanation(hit, () => null).querySelector(".waterfall tbody th").textContent;
}"""


def test_a_word_of_the_item_in_a_reason_is_told_from_the_query(visit, site):
    reason = "coat, jacket: similar meaning +1.000, same word +0.500"
    for language, paired in (("en", "“jacket” of the item"), ("zh", "条目里的“jacket”")):
        with visit(site, f"/?lang={language}") as page:
            loaded(page)
            assert page.evaluate(LABEL, reason).startswith(f"coat {paired}")


CONDITIONS = [
    "price < 'cheap'", "price <", "foo = 3", '"prise" > 3', "price LIKE 'x'", "SELECT 1",
    "sleep(3)", "max(price)", "title", "title > 3", "price = NULL", "brand = 3", "has(brand, 'x')",
    "has(brand)", "CAST(price AS BLOB)", "price = 2e", "price > ?", "brand GLOB 3",
    "trim(brand, 3)", "brand LIKE 'a' ESCAPE 'xy'", "price > 3; price < 5", "price + brand > 3",
    "round(price, 1, 2) > 3", "items.price > 3", "price MATCH 'a'", "brand REGEXP 'a'",
    "price BETWEEN 'a' AND 4", "CASE WHEN price > 3 THEN 'a' ELSE 4 END = 'a'",
    " OR ".join(["id>3"] * 210),
]  # fmt: skip
FAULT = "async said => (await import('/static/search/conditions.js')).faultOf(said)"
# What each page may ask for that the server refuses.
REFUSED = {
    "/": [
        "search?q=x&filter=foo:1", "search?q=x&filter=price", "search?q=x&heads=foo",
        "search?q=x&sort=foo", "search?q=x&distinct=foo", "search?k=99999&q=x",
        "similar?items=nope", "explain/search?q=jacket&rank=9999", f"search?q={'x' * 2001}",
    ],
    "/map": ["map?head=foo", "map?colour=foo", "map?query=x&user=y", "map?user=nobody"],
    "/attend": ["attend?text=x&encoder=foo", "attend?text=x&hide=9"],
    "/recommend": ["similar?items=nope", "nowhere"],
}  # fmt: skip
REFUSAL = "async said => (await import('/static/server.js')).refusal(said)"
# What stands for what a page has no words for.
UNTRANSLATED = ("服务器说", "服务器没有接受")
CHINESE = re.compile("[\u4e00-\u9fff]")


def assert_chinese(said):
    assert [asked for asked, text in said.items() if text.startswith(UNTRANSLATED)] == []
    assert [asked for asked, text in said.items() if not CHINESE.search(text)] == []


def test_what_is_wrong_in_a_condition_is_said_in_the_language_of_the_page(visit, plain_shop):
    said = {}
    with visit(plain_shop, locale="zh-CN") as page:
        loaded(page)
        for condition in CONDITIONS:
            query = urlencode({"q": "x", "where": condition})
            status, _, body = plain_shop.get(f"/api/v1/search?{query}")
            assert status == 400, condition
            said[condition] = page.evaluate(FAULT, json.loads(body)["detail"])
    assert_chinese(said)


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_refused_is_said_in_the_language_of_the_page(visit, plain_shop, path):
    said = {}
    with visit(plain_shop, path, locale="zh-CN") as page:
        page.wait_for_load_state("networkidle")
        for asked in REFUSED[path]:
            status, _, body = plain_shop.get(f"/api/v1/{asked}")
            problem = {"status": status, "message": json.loads(body)["detail"]}
            said[asked] = page.evaluate(REFUSAL, problem)
    assert_chinese(said)


NOTED = {
    "/recommend": [
        "No user 'u 1' here: these are the most popular items.",
        "No user 'u 1' here: only what the question names counts.",
        "`without`: not in this history, so nothing changes: Heat (6).",
        "Named more than once, and counted once: 6.",
    ],
    "/map": [
        "Not drawn: 3 of 1,200 items that this head does not know.",
        "100,000 of 200,000 items, a random sample, always the same.",
        "Nothing in the catalog answers this: these hits come nearest to it.",
        "lsa knows nothing about it.",
    ],
    "/attend": ["no word is in both texts"],
}
NOTE = """async said => {
  const made = (await import("/static/server.js")).noted(said);
  return made.textContent ?? made;
}"""


@pytest.mark.parametrize("path", NOTED)
def test_what_is_noted_is_said_in_the_language_of_the_page(visit, plain_shop, path):
    with visit(plain_shop, path, locale="zh-CN") as page:
        page.wait_for_load_state("networkidle")
        assert_chinese({note: page.evaluate(NOTE, note) for note in NOTED[path]})


def test_a_filter_that_is_no_date_is_not_told_as_a_condition(visit, site, expect):
    with visit(site, "/?q=river&filter=added:13..x", expected=("400",)) as page:
        loaded(page)
        expect(page.locator("#where-fault")).to_be_hidden()
        assert page.inner_text("#notes") == "One of these filters cannot be used. Remove it above."


@pytest.fixture
def in_shop(browsing, shop):
    """A page of the shop, and what was requested for its images."""
    with browsing() as context:
        page, asked = context.new_page(), []

        def image(route):
            asked.append(route.request.headers)
            route.fulfill(body=DOT, content_type="image/svg+xml")

        page.route("https://images.example/**", image)
        page.goto(shop.url + "/?q=tent")
        loaded(page)
        yield page, asked


def test_images_links_prices_and_times_are_shown_and_scripts_are_not(in_shop, shop):
    page, asked = in_shop
    page.wait_for_function("() => [...document.images].some(one => one.naturalWidth)")
    assert asked
    assert not any("referer" in headers for headers in asked)
    hit = page.locator("[data-id=s3]")
    assert hit.locator(".price").inner_text() == "$22.50"
    assert "$" not in hit.locator(".cells").inner_text()
    assert "41 min" in hit.locator(".cells").inner_text()
    link = hit.locator("a.title")
    assert link.get_attribute("href") == "https://shop.example/3"
    assert "tent" in link.inner_text()
    picture = hit.locator("img").bounding_box()
    assert picture["width"] == picture["height"]
    page.goto(shop.url + "/?q=tent&sort=price&k=60")
    loaded(page)
    assert page.locator("[data-id=s0]").count() == 1
    assert (
        page.locator("[data-id=s0] img, main [href^=javascript], main [src^=javascript]").count()
        == 0
    )
    price, length = (
        page.locator("#facets fieldset", has_text=name) for name in ("Price ($)", "Length (min)")
    )
    assert price.locator("input[type=checkbox]").count() == 0
    assert price.locator("input[type=range]").count() == 2
    assert length.locator("input[type=number]").count() == 2


def test_results_are_sorted_by_a_column_and_one_is_shown_of_each_value(in_shop):
    page, _ = in_shop
    page.select_option("#sort", "-price")
    page.wait_for_function(f"() => {FIRST}.includes('number 39')")
    assert re.match(r"\d+ results; the first 20 are shown", page.inner_text("#status"))
    assert address(page)["sort"] == ["-price"]
    why = page.locator("#hits > li").first.get_by_role("button", name="Why?")
    why.click()
    page.wait_for_selector("#hits > li:first-child .explanation .waterfall")
    assert why.get_attribute("aria-expanded") == "true"
    why.focus()
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.explanation')")
    assert why.get_attribute("aria-expanded") == "false"
    page.click("#options summary")
    page.select_option("#distinct", "brand")
    page.wait_for_function("() => document.querySelectorAll('#hits > li').length < 5")
    brands = [text.split()[0] for text in page.locator("#hits .cells").all_inner_texts()]
    assert sorted(brands)[:2] == ["Alpin", "Fjord"]
    assert len(brands) == 3  # and the one without a brand


def test_what_is_not_there_is_not_sorted(visit, site, expect):
    with visit(site, "/?q=xqzvwk") as page:
        loaded(page)
        expect(page.locator("#sort")).to_be_hidden()
        page.fill("#q", "bread")
        page.wait_for_selector("#hits > li")
        expect(page.locator("#sort")).to_be_visible()


def test_a_long_title_stands_beside_the_image_on_a_telephone(in_shop):
    page, _ = in_shop
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(page.url.split("?")[0] + "?q=tent")
    loaded(page)
    page.evaluate(
        """() => { const item = document.querySelector("#hits li:has(img)");
        item.querySelector(".title").textContent = "A tent of many words, for a long winter"; }"""
    )
    item = page.locator("#hits li:has(img)").first
    image, title = item.locator("img").bounding_box(), item.locator("h2").bounding_box()
    assert title["y"] < image["y"] + image["height"] / 2
    assert title["x"] >= image["x"] + image["width"]


def test_a_range_is_typed_and_one_end_may_be_open(in_shop):
    page, _ = in_shop
    least, most = (page.get_by_role("spinbutton", name=f"price: {end}") for end in ("from", "to"))
    least.fill("29")
    least.press("Enter")
    page.wait_for_function("() => location.search.includes('filter=price%3A29..')")
    loaded(page)
    prices = page.locator("#hits .price").all_inner_texts()
    assert prices
    assert min(float(price.removeprefix("$")) for price in prices) >= 29
    assert "from $29" in page.inner_text("#chosen")
    most.fill("19")  # the other way round
    most.press("Tab")
    page.wait_for_function("() => location.search.includes('filter=price%3A19..%3D29')")
    loaded(page)
    assert address(page)["filter"] == ["price:19..=29"]
    for end, left in ((least, "filter=price%3A..%3D29"), (most, "q=tent")):
        end.fill("")
        end.press("Tab")
        page.wait_for_function("left => location.search.endsWith(left)", arg=left)
        loaded(page)


@pytest.mark.parametrize(("first", "last"), [("22", "45"), ("45", "22")])
def test_a_range_is_typed_key_by_key_while_answers_come(visit, plain_shop, first, last):
    with visit(plain_shop, "/?q=jacket") as page:
        loaded(page)
        page.get_by_role("spinbutton", name="Price: from").click()
        page.keyboard.type(first, delay=100)
        page.keyboard.press("Tab")
        # The answer to the first end comes between two keys of the other one.
        page.keyboard.type(last, delay=800)
        page.keyboard.press("Enter")
        page.wait_for_function("() => location.search.includes('filter=price%3A22..%3D45')")
        loaded(page)
        ends = [page.get_by_role("spinbutton", name=f"Price: {end}") for end in ("from", "to")]
        assert [end.input_value() for end in ends] == ["22", "45"]
        # The fields are those of the answer now: one may go on.
        page.keyboard.press("Control+a")
        page.keyboard.type("25")
        page.keyboard.press("Tab")
        page.wait_for_function("() => location.search.includes('filter=price%3A22..%3D25')")


def test_a_day_is_typed_key_by_key_while_answers_come(visit, serving, tmp_path):
    rows = {"id": range(9), "title": [f"tent {n}" for n in range(9)]}
    rows["added"] = [f"202{n % 3}-0{n + 1}-15" for n in range(9)]
    qkvsearch.build(tmp_path / "ws", items=pd.DataFrame(rows), encoder="corpus").close()
    with (
        serving(tmp_path / "ws", "--read-only") as server,
        visit(server, "/?q=tent&lang=en", locale="en-US") as page,
    ):
        loaded(page)
        day = page.get_by_role("textbox", name="Added: from")
        day.focus()
        page.keyboard.type("03012021", delay=250)
        page.keyboard.press("Tab")
        page.wait_for_function("() => location.search.includes('added%3A2021-03-01..')")
        loaded(page)
        assert day.input_value() == "2021-03-01"


def test_a_range_is_dragged_and_its_ends_are_in_it(in_shop):
    page, _ = in_shop
    slider = page.get_by_role("slider", name="price: to")
    slider.focus()
    slider.press("PageDown")
    page.wait_for_function("() => /price%3A..%3D\\d/.test(location.search)")
    loaded(page)
    most = page.get_by_role("spinbutton", name="price: to")
    assert float(most.input_value()) < float(slider.get_attribute("max"))
    assert page.evaluate("document.activeElement.type") == "range"
    most.fill("30.5")
    most.press("Enter")
    page.wait_for_function("() => location.search.includes('30.5')")
    loaded(page)
    prices = [
        float(text.removeprefix("$")) for text in page.locator("#hits .price").all_inner_texts()
    ]
    assert max(prices) == 30.5


def test_a_length_that_is_typed_finds_all_that_are_shown_so(visit, site):
    with visit(site) as page:
        loaded(page)
        for end in ("from", "to"):
            page.get_by_role("spinbutton", name=f"length: {end}").fill("11")
            page.get_by_role("spinbutton", name=f"length: {end}").press("Enter")
            page.wait_for_function(
                "end => location.search.includes(end)", arg="%3A" if end == "from" else "%3D"
            )
            loaded(page)
        n = int(page.inner_text("#status").split()[0])
        shown = page.locator("#hits .cells").all_inner_texts()
        assert all("11 min" in text for text in shown[: min(n, 20)])
        said = page.inner_text("#chosen")
        assert "Length: 11 min" in said
        where = "seconds+%3E%3D+630+AND+seconds+%3C+690"
        assert n == json.loads(site.get(f"/api/v1/items?k=0&where={where}")[2])["total"]


CHINESE_NOTES = {
    "River+Zzyxw": "没有条目含有 “Zzyxw”",
    "kategory:Film": "没有名为“kategory”的列",
    "%22Nix+Nada%22+river": "已去掉引号",
    "river+Nix*": "没有条目符合 Nix*",
    "the": "太常见",
    "river+seconds:900..1": "seconds:900..1 已按 seconds:1..900 搜索",
}


@pytest.mark.parametrize("query", CHINESE_NOTES)
def test_notes_are_in_the_language_of_the_page_and_keep_capitals(visit, site, query):
    with visit(site, f"/?q={query}&lang=zh") as page:
        loaded(page)
        assert CHINESE_NOTES[query] in page.inner_text("#notes")
        assert page.locator("#notes [lang=en]").count() == 0


def test_what_is_wrong_in_a_field_is_told_once_beside_it(visit, site, expect):
    with visit(site, "/?q=river&user=nobody-knows") as page:
        loaded(page)
        expect(page.locator("#user-fault")).to_contain_text("nobody-knows")
        assert page.locator("#notes").inner_text() == ""
        page.locator("#user").fill("w001")
        page.locator("#user").press("Enter")
        expect(page.locator("#user-fault")).to_be_hidden()
    with visit(site, "/?q=river&where=nonsense(", expected=("400",)) as page:
        loaded(page)
        expect(page.locator("#where-fault")).to_contain_text("no function nonsense()")
        assert "nonsense" not in page.inner_text("#notes") + page.inner_text("#status")


def test_a_token_to_search_with_finds_a_page_that_searches(
    serving, visit, videos_path, tmp_path, expect
):
    for name in ("owner", "search"):
        (tmp_path / name).write_text(f"0123456789abcdef0123456789-{name}")
    options = ("--token-file", tmp_path / "owner", "--search-token", tmp_path / "search")
    with (
        serving(videos_path, *options) as server,
        visit(server, "/?lang=zh", expected=("401", "403")) as page,
    ):
        page.locator("dialog[open] input").fill((tmp_path / "search").read_text())
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("请输入要找的内容。")
        page.fill("#q", "bread")
        page.wait_for_selector("#hits li[data-id]")
        assert not re.search("[A-Za-z]{4}", page.inner_text("#status") + page.inner_text("#notes"))


def test_what_the_owner_pinned_says_so(serving, visit, videos_path, tmp_path):
    path = tmp_path / "ws"
    shutil.copytree(videos_path, path)
    with qkvsearch.open(path) as engine:
        engine.add_rule(pin="bread", items=["v137"])
    with serving(path, "--read-only") as server, visit(server, "/?q=bread") as page:
        loaded(page)
        first = page.locator("#hits > li").first
        assert first.get_attribute("data-id") == "v137"
        assert "pinned" in first.locator(".match-line").inner_text()
        assert "strong match" not in first.inner_text()


def test_on_a_telephone_the_menu_is_a_button(visit, site, expect):
    with visit(site, viewport={"width": 360, "height": 740}) as page:
        loaded(page)
        links = page.locator("header.bar nav a")
        expect(links.first).to_be_hidden()
        page.get_by_role("button", name="Menu").click()
        expect(links.first).to_be_visible()
        page.keyboard.press("Escape")
        expect(links.first).to_be_hidden()
        assert page.locator("header.bar").bounding_box()["height"] < 64


@pytest.mark.parametrize("item", ["v001", "v018", "v100"])
def test_reasons_for_similar_items_are_in_the_language_of_the_page(site, visit, item):
    """Guards against a sentence of the engine that the page leaves in English."""
    said = []
    with visit(site, f"/?similar={item}", locale="zh-CN") as page:
        loaded(page)
        for place in (1, 2, 3):
            hit = page.locator(f"#hits > li:nth-child({place})")
            hit.locator(".title").click()
            reasons = hit.locator(".explanation .waterfall tbody th")
            reasons.first.wait_for()
            said += reasons.all_text_contents()
    assert len(said) >= 3
    english = [
        text
        for text in said
        if re.search("people:|who liked|who chose| more$|meaning|same words", text)
    ]
    assert english == []


def test_the_words_without_which_a_hit_would_not_be_here_are_said(visit, site):
    with visit(site, "/?q=bank+of+the+river") as page:
        loaded(page)
        page.locator("#hits .title").first.click()
        further(page)
        gone = page.locator("#hits .without .gone")
        gone.wait_for()
        words = json.loads(gone.get_attribute("data-smallest"))
        assert words
        assert set(words) <= {"bank", "river"}
        assert all(word in gone.inner_text() for word in words)
    with visit(site, "/?similar=v001") as page:  # by no words
        loaded(page)
        page.locator("#hits .title").first.click()
        further(page)
        assert page.locator("#hits .without").inner_text() == ""

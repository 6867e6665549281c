"""The search box on a page of another site, as its visitors use it."""

import http.server
import threading
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest

import qkvsearch

OWNER, SEARCH = "the-owner-0123456789", "a-page-0123456789abc"
KINDS = ["tent", "sleeping bag", "stove", "kettle", "lantern"]
WORDS = ["Light", "Two person", "Winter", "Compact", "Family", "Classic"]
PAGE = """<!doctype html><html lang="{lang}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="style-src 'none'">
<title>A shop</title><main><h1>A shop</h1><p>Find something:</p>
<script src="{url}/box.js" data-url="{url}/" data-token="{token}" {more}></script>
<p>The end of the page.</p></main>"""
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


class Pages(http.server.BaseHTTPRequestHandler):
    """Somebody else's site: its page with the box, images and items."""

    url = ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        asked = urlsplit(self.path)
        said = {name: values[0] for name, values in parse_qs(asked.query).items()}
        text, kind = f"<!doctype html><title>{self.path}</title>", "text/html"
        if asked.path == "/":
            known = {"lang": "en", "token": SEARCH, "more": "", "url": self.url}
            text = PAGE.format(**known | said)
        if asked.path.endswith(".svg"):
            text, kind = DOT, "image/svg+xml"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def other_site():
    """The address of a site of its own on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def shop(serving, chromium, tmp_path_factory):
    """The address of the site that may ask, and of one that may not."""
    folder = tmp_path_factory.mktemp("shop")
    with other_site() as allowed, other_site() as foreign:
        items = [
            {
                "id": number,
                "title": f"{word} {kind} {number}",
                "about": f"A {word.lower()} {kind} for long tours.",
                "price": f"€{20 + number}.50",
                "image": f"{allowed}/{number}.svg",
                "url": f"{allowed}/item/{number}",
            }
            for number, (kind, word) in enumerate((k, w) for k in KINDS for w in WORDS)
        ]
        items[-4]["image"] = ""  # the winter lantern has none
        items.append({**items[0], "id": 99, "title": "冬季双人帐篷", "about": "高山露营的帐篷"})
        qkvsearch.build(folder / "ws", items=pd.DataFrame(items), encoder="corpus")
        for name in (OWNER, SEARCH):
            (folder / name).write_text(name, encoding="utf-8")
        tokens = ("--token-file", str(folder / OWNER), "--search-token", str(folder / SEARCH))
        with serving(folder / "ws", *tokens, "--allow-origin", allowed) as server:
            Pages.url = server.url
            yield allowed, foreign


@pytest.fixture
def on(browsing):
    """Opens a page with the box. Nothing may be complained of but `expected` texts."""

    @contextmanager
    def opened(address, expected=(), **options):
        with browsing(**options) as context:
            page = context.new_page()
            complaints = []
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(address)
            yield page
            left = [text for text in complaints if not any(e in text for e in expected)]
            assert left == []
            assert context.cookies() == []

    return opened


def typed(page, text):
    box = page.get_by_role("combobox")
    box.click()
    box.press_sequentially(text)
    return box


def test_it_finds_while_one_types_with_image_and_price(shop, on, expect):
    with on(shop[0]) as page:
        box = typed(page, "winter te")
        first = page.get_by_role("row").first
        expect(first).to_contain_text("Winter tent 2")
        expect(first).to_contain_text("€22.50")
        expect(first.locator("img")).to_have_js_property("naturalWidth", 9)
        expect(box).to_have_attribute("aria-expanded", "true")
        box.fill("")
        expect(page.get_by_role("grid")).to_be_hidden()
        expect(box).to_have_attribute("aria-expanded", "false")


def test_keys_go_through_hits_and_their_reasons(shop, on, expect):
    with on(shop[0]) as page:
        box = typed(page, "tent")
        expect(page.get_by_role("row").first).to_be_visible()

        def active():
            return page.evaluate(
                """() => { const root = document.querySelector(".qkvsearch-box").shadowRoot;
                const id = root.activeElement.getAttribute("aria-activedescendant");
                return id && root.getElementById(id).textContent; }"""
            )

        assert active() is None
        box.press("ArrowDown")
        first = active()
        assert "tent" in first
        box.press("ArrowDown")
        assert "tent" in active() != first
        box.press("ArrowUp")
        assert active() == first
        box.press("ArrowRight")
        assert active() == "Why?"
        box.press("Enter")
        lines = page.locator(".reasons p")
        expect(lines.last).to_contain_text("= ")
        numbers = [text.replace("−", "-") for text in lines.locator("span").all_inner_texts()]
        score = float(numbers[-1].removeprefix("= "))
        assert abs(sum(map(float, numbers[:-1])) - score) < 1e-9
        expect(page.locator(".why").first).to_have_attribute("aria-expanded", "true")
        box.press("Enter")
        expect(lines).to_have_count(0)
        box.press("ArrowLeft")
        box.press("ArrowLeft")
        assert active() is None
        box.press("Escape")
        expect(page.get_by_role("grid")).to_be_hidden()
        assert box.input_value() == "tent"
        box.press("ArrowDown")
        box.press("Enter")
        page.wait_for_url("**/item/*")


def test_more_are_shown_below_those_that_are_there(shop, on, expect):
    with on(shop[0]) as page:
        typed(page, "tour")
        rows = page.get_by_role("row")
        expect(rows).to_have_count(7)
        page.locator(".why").first.click()
        expect(page.locator(".reasons p").first).to_be_visible()
        page.get_by_text("More").click()
        expect(page.locator(".hit")).to_have_count(30)
        expect(page.locator(".reasons p").first).to_be_visible()
        titles = page.locator(".hit .title").all_inner_texts()
        assert len(set(titles)) == len(titles)


def test_half_composed_characters_are_not_asked_for(shop, on, expect, until):
    from tests.web.browser.test_input_methods import COMPOSE, END, PRESS

    with on(f"{shop[0]}/?lang=zh-CN") as page:
        asked = []
        page.on("request", lambda request: "/search?" in request.url and asked.append(request.url))
        box = page.get_by_role("combobox")
        for text in ("z", "zh", "帐"):
            box.evaluate(COMPOSE, [text, True])
        box.evaluate(PRESS)
        page.wait_for_timeout(400)
        assert asked == []
        box.evaluate(COMPOSE, ["帐篷", True])
        box.evaluate(END)
        expect(page.get_by_role("row").first).to_contain_text("冬季双人帐篷")
        expect(page.locator(".why").first).to_have_text("为什么？")
        page.locator(".why").first.click()
        expect(page.locator(".reasons")).to_contain_text("相同的词")
        expect(box).to_have_attribute("placeholder", "搜索")


def test_the_tag_says_where_hits_lead_and_what_is_shown(shop, on, expect):
    more = "data-link='/p/{id}?n={about}' data-price='' data-placeholder='Find'"
    with on(f"{shop[0]}/?more={more.replace(' ', '+').replace('?', '%3F')}") as page:
        box = typed(page, "winter tent")
        expect(box).to_have_attribute("placeholder", "Find")
        first = page.get_by_role("row").first
        expect(first).to_contain_text("Winter tent 2")
        expect(first).not_to_contain_text("€")
        address = first.locator("a").get_attribute("href")
        assert address == f"{shop[0]}/p/2?n=A%20winter%20tent%20for%20long%20tours."


def test_the_page_may_take_a_hit_itself(shop, on, expect):
    with on(shop[0]) as page:
        page.evaluate(
            """() => document.addEventListener("qkvsearch-pick", (event) => {
            event.preventDefault(); document.title = event.detail.title; })"""
        )
        typed(page, "winter tent")
        page.locator(".hit").first.click()
        expect(page).to_have_title("Winter tent 2")
        assert urlsplit(page.url).path == "/"


def test_what_is_not_found_and_what_is_misspelled_is_said(shop, on, expect):
    with on(shop[0]) as page:
        box = typed(page, "xqzvwk")
        expect(page.locator(".note")).to_have_text("No results.")
        expect(page.get_by_role("status")).to_contain_text("No results.")
        box.fill("wintr tent")
        box.press("Enter")
        expect(page.locator(".note")).to_contain_text("winter")
        expect(page.locator(".hit").first).to_contain_text("Winter tent")
        expect(page.get_by_role("status")).to_contain_text("result")


def test_what_strangers_wrote_is_text_and_leads_to_web_pages_alone(shop, on, expect):
    script = "<img src=x onerror='document.title = 1'></script><script>document.title = 1</script>"
    addresses = ["javascript:document.title=1", "JavaScript:alert(1)", "data:text/html,a", "//x"]
    hits = [
        {"rank": rank, "id": rank, "title": script, "price": script, "image": to, "url": to}
        for rank, to in enumerate(addresses, 1)
    ]
    reasons = [{"text": script, "value": 1.0}]
    correction = {"kind": "spelling", "typed": script, "read": script}
    answers = {
        "search": {"hits": hits, "total": 4, "corrections": [correction]},
        "explain/search": {"hit": {**hits[0], "score": 1.0, "reasons": reasons}},
    }

    def answer(route):
        found = answers[urlsplit(route.request.url).path.removeprefix("/api/v1/")]
        route.fulfill(json=found, headers={"Access-Control-Allow-Origin": "*"})

    with on(shop[0]) as page:
        for name in answers:
            page.route(f"**/api/v1/{name}?*", answer)
        typed(page, "tent")
        expect(page.locator(".title")).to_have_text([script] * 4)
        expect(page.locator(".price")).to_have_text([script] * 4)
        expect(page.locator(".note")).to_contain_text(script[:60])
        page.locator(".why").first.click()
        expect(page.locator(".reasons p").first).to_contain_text(script)
        assert page.locator(".popup").locator("a, img, script").count() == 0
        page.locator(".hit").first.click()
        expect(page).to_have_title("A shop")


def test_an_answer_does_not_open_a_box_that_was_left(shop, on, expect):
    with on(shop[0]) as page:
        page.evaluate(
            """() => {
            const real = fetch;
            const held = new Promise((answer) => { window.answer = answer; });
            window.fetch = async (...asked) => { await held; return real(...asked); }; }"""
        )
        box = typed(page, "tent")
        box.press("Tab")
        page.evaluate("window.answer()")
        expect(page.locator(".hit")).not_to_have_count(0)
        expect(box).to_have_attribute("aria-expanded", "false")
        expect(page.get_by_role("grid")).to_be_hidden()
        box.blur()
        box.focus()
        expect(page.get_by_role("grid")).to_be_visible()


def test_where_all_is_weak_the_nearest_are_shown_on_request(shop, on, expect):
    with on(shop[0]) as page:
        box = typed(page, "cheapest xqzvwk blorpt tent")
        expect(page.locator(".note")).to_have_text("No results.")
        expect(page.locator(".hit")).to_have_count(0)
        box.press("ArrowDown")
        box.press("Enter")
        expect(page.locator(".hit").first).to_contain_text("tent")
        expect(page.locator(".note")).to_be_hidden()
        page.locator(".why").first.click()
        expect(page.locator(".reasons p").last).to_contain_text("= ")


def test_titles_begin_at_one_line_also_where_an_image_is_missing(shop, on, expect):
    with on(shop[0]) as page:
        typed(page, "winter")
        expect(page.get_by_text("Winter lantern")).to_be_visible()
        titles = page.locator(".hit .title")
        assert len({title.bounding_box()["x"] for title in titles.all()}) == 1
        pictures = page.locator(".hit").filter(has=page.locator("img")).count()
        assert pictures < titles.count()


def test_a_site_that_is_not_named_gets_nothing(shop, on, expect):
    with on(shop[1], expected=("CORS", "Failed to load", "qkvsearch:")) as page:
        typed(page, "tent")
        expect(page.locator(".note")).to_contain_text("does not answer")
        expect(page.get_by_role("row")).to_have_count(0)


def test_a_wrong_token_is_told_to_who_made_the_page(shop, on, expect):
    address = f"{shop[0]}/?token=another-0123456789abc"
    with on(address, expected=("401", "demands its token")) as page:
        typed(page, "tent")
        expect(page.locator(".note")).to_contain_text("does not answer")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_and_it_fits(shop, on, expect, axe, language, scheme, width):
    window = {"viewport": {"width": width, "height": 700}, "color_scheme": scheme}
    with on(f"{shop[0]}/?lang={language}", **window) as page:
        box = typed(page, "tent")
        expect(page.get_by_role("row").first).to_be_visible()
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            box.press(key)
        expect(page.locator(".reasons p").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert found["passes"]
    assert [(rule["id"], [n["html"] for n in rule["nodes"]]) for rule in found["violations"]] == []

"""What holds of every page: axe-core finds nothing serious, it fits a telephone, keys and links
work, nothing is asked of another origin or complained of, and nothing moves as it is filled.
"""

import pytest

# Each with something on it, and what is there once it is filled.
PAGES = {
    "/?q=bread": "#hits li[data-id]",
    "/?q=bread&filter=category:Cooking&open=v018": ".explanation .waterfall",
    "/recommend?user=w001": "#hits li",
    "/map": "#near > li",
    "/attend?text=the+bank+of+the+river": "#sentence-words [aria-current]",
    "/learn": "#main a",
    "/learn/softmax": "#main h2",
    "/inside": "#main table tbody tr",
    "/searches": "#main section",
    "/docs": ".opblock",
}
MOST_BYTES = 158_000
SHIFT = """() => new Promise((done) => {
  let total = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) total += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(total), 200);
})"""


def in_chinese(path):
    return f"{path}{'&' if '?' in path else '?'}lang=zh"


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/docs"])  # a library's
@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "en"), ("light", "zh")])
def test_axe_finds_nothing_serious(path, scheme, language, axe, site, visit):
    address = in_chinese(path) if language == "zh" else path
    with visit(site, address, color_scheme=scheme) as page:
        page.wait_for_selector(PAGES[path])
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert found["passes"], "axe looked at nothing"
    serious = [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("path", PAGES)
def test_it_fits_the_window_and_nothing_moves(path, width, site, visit):
    with visit(site, path, viewport={"width": width, "height": 740}) as page:
        page.wait_for_selector(PAGES[path])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SHIFT) < 0.1  # what is called good


@pytest.mark.parametrize("path", [p for p in PAGES if not p.startswith(("/learn/", "/docs"))])
def test_its_own_files_are_small(path, site, visit):
    with visit(site, None) as page:
        answers = []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(site.url + path)
        page.wait_for_selector(PAGES[path])
        page.wait_for_load_state("networkidle")
        own = sum(len(answer.body()) for answer in answers if "/api/" not in answer.url)
    assert 5_000 < own <= MOST_BYTES


def test_keys_lead_to_every_page_and_are_listed(site, visit, expect):
    with visit(site) as page:
        page.wait_for_selector("#hits li[data-id]")
        page.locator("body").press("?")
        dialog = page.locator("dialog[open]")
        assert "/" in dialog.inner_text()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        links = page.locator("header.bar nav a")
        for place in range(links.count()):
            address = links.nth(place).get_attribute("href")
            page.evaluate("document.activeElement.blur()")
            with page.expect_navigation(url=f"{site.url}{address}**"):
                page.keyboard.press(str(place + 1))


def test_single_keys_are_switched_off_in_their_list_and_stay_so(site, visit, expect):
    with visit(site) as page:
        page.wait_for_selector("#hits li[data-id]")
        page.locator("body").press("?")
        page.get_by_role("checkbox", name="Single keys").uncheck()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        page.reload()
        page.wait_for_selector("#hits li[data-id]")
        for key in ("2", "/", "?"):
            page.locator("body").press(key)
        assert page.evaluate("location.pathname") == "/"
        assert page.evaluate("document.activeElement.id") != "q"
        assert page.locator("dialog").count() == 0
        page.keyboard.press("ArrowDown")  # no single key: it is one on its own in any case
        assert page.evaluate("document.activeElement.className").startswith("title")
        page.click("#help")
        page.get_by_role("checkbox", name="Single keys").check()
        page.keyboard.press("Escape")
        with page.expect_navigation(url=f"{site.url}/recommend**"):
            page.locator("body").press("2")


def test_the_language_stays_from_page_to_page(site, visit):
    with visit(site, "/?lang=zh") as page:
        assert page.locator("html").get_attribute("lang") == "zh-Hans"
        page.locator("header.bar nav a").nth(1).click()
        page.wait_for_url("**/recommend?lang=zh")
        assert page.locator("html").get_attribute("lang") == "zh-Hans"
        page.locator("header.bar .language").click()
        page.wait_for_url("**/recommend?lang=en")


def test_a_place_in_the_page_is_gone_to_without_loading_it_again(site, visit):
    for path, link in (("/?q=bread", ".skip"), ("/learn/softmax", 'main a[href^="#"]')):
        with visit(site, path) as page:
            page.wait_for_selector(PAGES.get(path, "#main h2"))
            page.evaluate("window.stays = true")
            page.locator(link).first.focus()
            page.keyboard.press("Enter")
            page.wait_for_function("() => location.hash")
            page.wait_for_timeout(500)
            assert page.evaluate("window.stays")
            page.go_back()
            page.wait_for_timeout(500)
            assert page.evaluate("window.stays")


# What says what was asked and found, and what nobody can press on paper.
PRINTED = {
    "/?q=bread&filter=category:Cooking": (("#q", ".chip", "#hits .title"), ("#more", ".help")),
    "/map?query=bread": (("#query", "#near .title"), ("#zoom button", "#clear")),
    "/attend?text=the+bank+of+the+river": (
        ("#text", "#sentence-words button"),
        ("#examples", ".help"),
    ),
    "/recommend?user=w001": (("#hits .title", "#hits .reason-line"), (".act", "#more")),
}


@pytest.mark.parametrize("path", PRINTED)
def test_on_paper_are_words_and_no_controls(path, site, visit):
    there, gone = PRINTED[path]
    with visit(site, path) as page:
        page.locator(there[-1]).first.wait_for()
        page.emulate_media(media="print")
        for selector in there:
            assert page.locator(selector).first.is_visible(), selector
        for selector in gone:
            assert not page.locator(selector).first.is_visible(), selector


def test_a_token_is_asked_for_once(serving, visit, videos_path, tmp_path):
    token = "0123456789abcdef0123456789abcdef"
    path = tmp_path / "token"
    path.write_text(token)
    with (
        serving(videos_path, "--token-file", path) as server,
        visit(server, "/?q=bread", expected=("401",)) as page,
    ):
        assert not page.locator("dialog[open] [role=alert]").count()
        page.locator("dialog[open] input").fill("another")
        page.keyboard.press("Enter")
        page.locator("dialog[open] [role=alert]").wait_for()
        page.locator("dialog[open] input").fill(token)
        page.keyboard.press("Enter")
        page.wait_for_selector(PAGES["/?q=bread"])
        page.goto(server.url + "/recommend?user=w001")
        page.wait_for_selector(PAGES["/recommend?user=w001"])
        assert not page.locator("dialog[open]").count()

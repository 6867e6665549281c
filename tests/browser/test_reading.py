"""The page is for everyone: accessibility, narrow screens, paper, and a reader without a script."""

import pytest

pytestmark = pytest.mark.xdist_group("browser")

SERIOUS = ("serious", "critical")
# What is wider than the page, and does not scroll within it.
STICKS_OUT = """() => [...document.querySelectorAll("body *")].filter(element =>
  !element.closest(".scroll > *, .unseen") &&
  element.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).map(element => element.outerHTML.slice(0, 80))"""


# Contrast takes most of the time: colours are the same in both languages, all else in both schemes.
CONTRAST = {"runOnly": ["color-contrast"]}
ALL_ELSE = {"rules": {"color-contrast": {"enabled": False}}}


@pytest.mark.parametrize(
    ("language", "scheme", "rules"),
    [("file", "light", {}), ("file", "dark", CONTRAST), ("chinese_file", "light", ALL_ELSE)],
)
def test_axe_finds_nothing_serious(language, scheme, rules, axe, visit, request):
    with visit(request.getfixturevalue(language), color_scheme=scheme) as page:
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        for form in page.locator("[data-quiz]").all()[:4]:
            form.locator("input").first.evaluate("i => i.type == 'radio' ? i.click() : i.value = 9")
            form.locator("button").click()
        page.locator("[data-given] input").first.fill("?")
        page.locator("[data-given] input").first.press("Enter")
        page.evaluate(axe)
        found = page.evaluate("rules => axe.run({resultTypes: ['violations'], ...rules})", rules)
    bad = [
        (violation["id"], node["html"], node["failureSummary"])
        for violation in found["violations"]
        for node in violation["nodes"]
        if violation["impact"] in SERIOUS
    ]
    assert not bad
    assert found["passes"], "axe looked at nothing"


@pytest.mark.parametrize("width", [320, 768])
@pytest.mark.parametrize("language", ["file", "chinese_file"])
def test_nothing_sticks_out_of_the_page(language, width, visit, request):
    path = request.getfixturevalue(language)
    with visit(path, viewport={"width": width, "height": 900}) as page:
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(STICKS_OUT) == []


def test_what_scrolls_can_be_reached_by_keyboard(visit, file):
    with visit(file, viewport={"width": 320, "height": 900}) as page:
        wide = page.locator('.scroll[tabindex="0"]')
        wide.first.wait_for(state="attached")
        assert wide.first.get_attribute("aria-label").endswith(", scrolls sideways")
        page.set_viewport_size({"width": 4000, "height": 900})
        # A function: an expression is read again at each try, which the page's policy forbids.
        page.wait_for_function("() => !document.querySelector('.scroll[tabindex]')")


def test_the_first_tab_skips_to_the_lessons(visit, file, expect):
    with visit(file) as page:
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the lessons")
        assert skip.evaluate("link => link === document.activeElement")
        assert skip.bounding_box()["y"] >= 0
        outline = skip.evaluate("link => getComputedStyle(link).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        expect(page.locator("#lessons")).to_be_focused()


def test_paper_shows_no_controls_and_cuts_no_table(visit, file):
    # A4 within its margins, in CSS pixels.
    with visit(file, viewport={"width": 672, "height": 950}) as page:
        page.emulate_media(media="print")
        for name in ("nav", ".controls", ".check", ".skip", ".hint", ".back", ".worked"):
            assert not any(found.is_visible() for found in page.locator(name).all()), name
        edges = page.evaluate(
            "[...document.querySelectorAll('table')]"
            ".map(table => [table.getBoundingClientRect().right, table.caption.textContent])"
        )
        assert [caption for edge, caption in edges if edge > 672] == []
        styles = page.evaluate(
            "[...document.querySelectorAll('.matrix, .table')]"
            ".map(figure => getComputedStyle(figure).breakInside)"
        )
        assert set(styles) == {"avoid"}


def test_without_a_script_all_can_be_read(visit, file, course):
    with visit(file, java_script_enabled=False) as page:
        assert page.locator(".controls").first.is_hidden()
        assert page.locator("td > input").count() == 0
        assert page.locator("article").count() == len(course)
        page.locator(".worked summary").first.click()
        assert page.locator(".worked p").first.is_visible()
        outputs = page.locator('[data-bench="self-attention.layer"] [data-step="outputs"]')
        assert outputs.locator("tbody td").first.inner_text().startswith("1.94")


def test_the_contents_follow_the_reader(visit, file):
    with visit(file) as page:
        page.get_by_role("navigation").locator('a[href="#masks"]').click()
        here = page.locator('#contents a[aria-current="true"]')
        page.wait_for_function(
            "() => document.querySelector('#contents [aria-current]')?.hash === '#masks'"
        )
        assert here.count() == 1
        assert page.locator("#contents .here ol").is_visible()


def test_chinese_headings_of_narrow_tables_keep_their_words(visit, chinese_file):
    with visit(chinese_file, viewport={"width": 390, "height": 800}) as page:
        page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
        broken = page.locator("thead th").evaluate_all(
            """all => all.filter(th => {
                const text = document.createRange();
                text.selectNodeContents(th);
                const isWord = /^[\u4e00-\u9fff]{2,6}$/.test(th.innerText.trim());
                return isWord && text.getClientRects().length > 1;
            }).map(th => th.innerText)"""
        )
        assert broken == []

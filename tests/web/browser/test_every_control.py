"""Every page and lesson with every control operated: no script throws, no request fails, and the
cells of a table stand below their headings.
"""

from pathlib import Path

import pytest

from qkvsearch.lessons import LESSONS
from tests.web.browser.test_every_page import PAGES, in_chinese

# The documentation of the API is a library's page.
OURS = {path: filled for path, filled in PAGES.items() if path not in ("/docs", "/learn/softmax")}
LESSON_PAGES = {f"/learn/{name}": "#main h2" for name in LESSONS}
EVERY = {**OURS, **LESSON_PAGES}
WIDTHS = (390, 1280)

# A function in JavaScript: what it does by the name that it is given.
IN_PAGE = (Path(__file__).parent / "controls.js").read_text(encoding="utf-8")


def told_of(answer):
    return answer.status, answer.url, answer.request.post_data


def is_bad(answer):
    """The page expects that a hit is opened while a shorter list is on its way: it has no rank."""
    is_gone = answer.status == 404 and answer.url.endswith("/explain/recommend")
    return answer.status >= 400 and not is_gone


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", EVERY)
def test_every_control_works_and_what_it_shows_is_in_its_place(path, language, width, site, visit):
    address = in_chinese(path) if language == "zh" else path
    expected = ("status of 404",) if path.startswith("/recommend") else ()
    window = {"width": width, "height": 800}
    with visit(site, None, expected=expected, viewport=window) as page:
        failed = []
        page.on("dialog", lambda dialog: dialog.dismiss())
        page.on("response", lambda answer: is_bad(answer) and failed.append(told_of(answer)))
        page.goto(site.url + address)
        page.wait_for_selector(EVERY[path])
        assert page.evaluate(IN_PAGE, "astray") == []
        assert page.evaluate(IN_PAGE, "overlapping") == []
        assert page.evaluate(IN_PAGE, "operate") > 0
        page.wait_for_load_state("networkidle")
        assert page.evaluate(IN_PAGE, "astray") == []
        assert failed == []

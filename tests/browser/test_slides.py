"""The slides in a browser: each is in the window as a whole."""

import pytest

from qkvsearch.lessons.exports.page.slides import to_slides

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize("name", ["ask-match-mix", "masks"])
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1024, 768)])
def test_no_slide_is_higher_than_the_window(name, width, height, course, visit, tmp_path):
    file = tmp_path / "slides.html"
    file.write_text(to_slides([course[name]]), encoding="utf-8")
    with visit(file, viewport={"width": width, "height": height}) as page:
        n_slides = page.locator(".slide").count()
        for n in range(n_slides):
            high = page.evaluate("document.documentElement.scrollHeight")
            assert high <= height, f"slide {n + 1}"
            page.keyboard.press("PageDown")

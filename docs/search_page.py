"""Draws the README's picture: two searches side by side, the reasons of their first hits open.

It goes by roles and names, as a person does: a hit is an item of the list `#hits`, its button is
"Why?", and its reasons end in "= 5.648". The picture ends below them. Where one of these is not
there, where both pages do not fit, or where no font here has a character, nothing is drawn.

PYTHONPATH=. python docs/search_page.py    (needs the extras `web` and `browser`, and Chromium)
"""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path
from urllib.parse import quote_plus

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from benchmarks.support.http_load import serving

PICTURE = Path(__file__).with_name("search-page.png")
# The same word in two meanings.
QUERIES = ("river bank", "bank account")
# Of each of the two pages, in pixels; the height is what a picture may have at most.
WIDTH, MOST = 640, 1100
SCALE = 2
# Below the reasons.
MARGIN = 12
SCORE = re.compile(r"=\s*\d+\.\d+")
WHY = re.compile(r"^Why")
# The characters of the page that look like one that no font has.
MISSING = """() => {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const drawn = (sign) => {
    context.clearRect(0, 0, 60, 60);
    context.font = `24px ${getComputedStyle(document.body).fontFamily}`;
    context.fillText(sign, 10, 40);
    return context.getImageData(0, 0, 60, 60).data.join();
  };
  const missing = drawn("\\u{10FFFE}");
  const signs = new Set(document.body.innerText.replace(/\\s/g, ""));
  return [...signs].filter((sign) => drawn(sign) === missing);
}"""


def draw() -> None:
    with serving(Path("sample:videos")) as port, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"))
        pages = [opened(browser, port, query) for query in QUERIES]
        height = max(end_of_reasons(page) for page in pages)
        if height > MOST:
            raise SystemExit(f"the reasons end at {height} pixels, which is more than {MOST}")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
        shots = [page.screenshot(clip=clip, full_page=True) for page in pages]
        page = browser.new_page(
            viewport={"width": 2 * WIDTH, "height": height}, device_scale_factor=SCALE
        )
        sources = (f"data:image/png;base64,{base64.b64encode(shot).decode()}" for shot in shots)
        images = "".join(f'<img width={WIDTH} src="{source}">' for source in sources)
        page.set_content(f'<body style="margin:0;display:flex">{images}</body>')
        page.wait_for_function("[...document.images].every((image) => image.complete)")
        page.screenshot(path=PICTURE)
        browser.close()


def opened(browser: Browser, port: int, query: str) -> Page:
    """Return the page of a search with the reasons of the first hit open."""
    page = browser.new_page(
        viewport={"width": WIDTH, "height": MOST},
        color_scheme="light",
        device_scale_factor=SCALE,
        locale="en",
    )
    page.goto(f"http://127.0.0.1:{port}/?q={quote_plus(query)}")
    first = first_hit(page)
    first.get_by_role("button", name=WHY).first.click()
    first.get_by_text(SCORE).last.wait_for()
    page.wait_for_load_state("networkidle")
    # Without the mark of the keyboard's focus, and where a person would look at it.
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.mouse.move(0, 0)
    if missing := page.evaluate(MISSING):
        raise SystemExit(f"no font here has {' '.join(missing)}: the picture was not drawn")
    return page


def first_hit(page: Page) -> Locator:
    return page.locator("#hits > li").first


def end_of_reasons(page: Page) -> int:
    """Return where the reasons of the first hit end, in pixels from the top."""
    box = first_hit(page).get_by_text(SCORE).last.bounding_box()
    assert box is not None, "the score at the end of the reasons is not shown"
    return round(box["y"] + box["height"]) + MARGIN


if __name__ == "__main__":
    draw()

"""Draws the README's picture: two searches side by side, the reasons of their first hits open.

Fails where the page has a character that no font here can draw.

PYTHONPATH=. python docs/search_page.py    (needs the extras `web` and `browser`, and Chromium)
"""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from urllib.parse import quote_plus

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.support.http_load import serving

PICTURE = Path(__file__).with_name("search-page.png")
# The same word in two meanings.
QUERIES = ("river bank", "bank account")
# Of each of the two pages, in pixels.
SIZE = {"width": 640, "height": 856}
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
        shots = [opened(browser, port, query).screenshot() for query in QUERIES]
        page = browser.new_page(viewport={"width": 2 * SIZE["width"], "height": SIZE["height"]})
        pictures = (base64.b64encode(shot).decode() for shot in shots)
        images = "".join(f'<img src="data:image/png;base64,{one}">' for one in pictures)
        page.set_content(f'<body style="margin:0;display:flex">{images}</body>')
        page.wait_for_function("[...document.images].every((image) => image.complete)")
        page.screenshot(path=PICTURE)
        browser.close()


def opened(browser: Browser, port: int, query: str) -> Page:
    """Return the page of a search with the reasons of the first hit open."""
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.add_init_script("localStorage.setItem('qkvsearch-reasons', 'yes')")
    page.goto(f"http://127.0.0.1:{port}/?q={quote_plus(query)}")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".waterfall .sum").first.wait_for()
    page.wait_for_load_state("networkidle")
    if missing := page.evaluate(MISSING):
        raise SystemExit(f"no font here has {' '.join(missing)}: the picture was not drawn")
    return page


if __name__ == "__main__":
    draw()

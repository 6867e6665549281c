"""Draws the README's picture: the search page with the reasons of the first hit open.

PYTHONPATH=. python docs/search_page.py    (needs the extras `web` and `browser`, and Chromium)
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.support.http_load import serving

PICTURE = Path(__file__).with_name("search-page.png")


def draw() -> None:
    with serving(Path("sample:videos")) as port, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1100, "height": 860}, color_scheme="light")
        page.add_init_script("localStorage.setItem('qkvsearch-reasons', 'yes')")
        page.goto(f"http://127.0.0.1:{port}/?q=bank+of+the+river")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_text("adds up to").last.wait_for()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    draw()

"""What a person sees on every page at 390 and 1,280 pixels, in both languages and both themes.

Positions are compared, not pixels: no text out of the window, cut off, broken inside a word,
covered by another or under a box, no Chinese upside down, and no sign that no font has. The
screenshots stay in the test's folder.
"""

from pathlib import Path

import pytest

COMPLAINTS = Path(__file__).with_name("layout.js").read_text(encoding="utf-8")

WIDTHS = (390, 1280)
THEMES = ("light", "dark")

# What folds away is opened, but for menus, which lie over the page; the steps of a lesson that
# shows one at a time stand below one another, as on paper.
UNFOLD = """() => {
  for (const one of document.querySelectorAll("main details:not(.drop)")) one.open = true;
  for (const one of document.querySelectorAll("article > .step")) one.hidden = false;
}"""

# Each page with something on it, and what is there once it is filled.
PAGES = {
    "search": ("/?q=bank+of+the+river&open=v001", "#hits li"),
    "search, first visit": ("/", "main li"),
    "search, nothing found": ("/?q=xylophonist", "main li"),
    "search, a bad condition": ("/?q=river&where=seconds+<+<+5", "#where-fault:not([hidden])"),
    "recommend": ("/recommend?likes=v018&likes=v001", "main li"),
    "recommend, first visit": ("/recommend", "main"),
    "map": ("/map?query=river", "canvas"),
    "attend": ("/attend?text=The+animal+crossed+the+street", "#sentence-words button"),
    # The videos' own encoder knows none of these words: there is the form, and what is said of it.
    "attend, Chinese": ("/attend?text=他把苹果洗了，苹果很甜", "#size"),
    "learn": ("/learn", "#main a"),
    "lesson 0": ("/learn/ask-match-mix", "#main h2"),
    "lesson 8": ("/learn/masks", "#main h2"),
    "inside": ("/inside", "#main table tbody tr"),
    "unknown": ("/nowhere", "main a"),
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_right(name, language, site, visit, rested, tmp_path):
    path, filled = PAGES[name]
    address = f"{path}{'&' if '?' in path else '?'}lang={language}"
    with visit(site, address, expected=("404", "400")) as page:
        page.wait_for_selector(filled, state="attached")
        page.evaluate(UNFOLD)
        complaints = {}
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                rested(page)
                page.screenshot(path=tmp_path / f"{width}-{theme}.png", full_page=True)
                found = page.evaluate(COMPLAINTS)
                if found:
                    complaints[width, theme] = found
    assert complaints == {}

"""Pages that ask while somebody types wait until an input method has composed its characters."""

import pytest

COMPOSE = """(input, [text, isComposing]) => {
  input.focus();
  input.value = text;
  input.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing }));
}"""
PRESS = """(input) => {
  for (const more of [{ isComposing: true }, { keyCode: 229 }])
    input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, ...more }));
}"""
END = (
    """(input) => input.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }))"""
)


@pytest.mark.parametrize(
    ("path", "box"),
    [
        ("/", "#q"),
        ("/recommend", "#box"),
        ("/map", "#query"),
        ("/attend", "#text"),
        ("/attend", "#against"),
    ],
)
def test_half_composed_characters_are_not_asked_for(visit, site, rested, until, path, box):
    with visit(site, path) as page:
        rested(page)
        asked = []
        page.on("request", lambda request: "/api/" in request.url and asked.append(request.url))
        for text in ("m", "mi", "mia"):
            page.locator(box).evaluate(COMPOSE, [text, True])
        page.locator(box).evaluate(PRESS)
        rested(page)
        assert asked == []
        page.locator(box).evaluate(COMPOSE, ["bread", True])
        page.locator(box).evaluate(END)
        until(page, lambda: any("bread" in url for url in asked))
        asked.clear()
        page.locator(box).evaluate(COMPOSE, ["guitar", False])
        until(page, lambda: any("guitar" in url for url in asked))

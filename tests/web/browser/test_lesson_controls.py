"""Every control of every lesson by keyboard alone, and by touch on a phone."""

import pytest

from qkvsearch.lessons import LESSONS

EVERY = pytest.mark.parametrize("name", LESSONS)
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
CONTROLS = "#main :is(button, select, summary, input, textarea)"
# Goes from step to step; the test does so itself.
TURNS = ("Next step", "Previous step")
MAX_STOPS = 400

# Marks all that can be used now, each once, counts the clicks that reach it, and returns the marks.
MARK = """(selector) => {
  window.marked ??= 0;
  const seen = [...document.querySelectorAll(selector)]
    .filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.disabled);
  for (const one of seen) {
    if (one.dataset.mark) continue;
    one.dataset.mark = window.marked += 1;
    one.addEventListener("click", () => (one.dataset.clicks = Number(one.dataset.clicks ?? 0) + 1));
  }
  return seen.map(one => one.dataset.mark);
}"""
# What has the focus: its mark, kind and value; null outside of the lesson.
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one.closest("#main")) return null;
  const kind = one.tagName === "INPUT" ? one.type : one.tagName.toLowerCase();
  return { mark: one.dataset.mark ?? "", kind, value: one.value ?? "", name: one.innerText ?? "" };
}"""
# Cells of a matrix share one stop of Tab, and so do the choices of a question; arrow keys go on.
SHARED = """() => [...document.querySelectorAll("[data-mark]")]
  .filter(one => (one.closest("[role=grid]") && one.tabIndex < 0) ||
    (one.type === "radio" && one.name))
  .map(one => one.dataset.mark)"""


def clicks(page, mark):
    return page.evaluate(
        "mark => Number(document.querySelector(`[data-mark='${mark}']`)?.dataset.clicks ?? 0)", mark
    )


def pages_of(page):
    """Each step of a lesson that shows one at a time; otherwise the page as it is, once."""
    yield
    forth = page.get_by_role("button", name="Next step")
    while forth.count() and forth.is_visible():
        forth.click()
        yield


# --- by keyboard ---


@EVERY
def test_every_control_is_reached_by_tab_and_used_by_keys(name, site, visit):
    with visit(site, f"/learn/{name}", viewport={"width": 1280, "height": 800}) as page:
        for _ in pages_of(page):
            wanted = set(page.evaluate(MARK, CONTROLS))
            reached = set()
            page.evaluate(
                """() => { const first = document.querySelector("#main");
                first.tabIndex = -1; first.focus({ preventScroll: true }); }"""
            )
            for _ in range(MAX_STOPS):
                page.keyboard.press("Tab")
                page.evaluate(MARK, CONTROLS)
                focused = page.evaluate(FOCUSED)
                if focused is None:
                    break
                if focused["mark"] and focused["mark"] not in reached:
                    reached.add(focused["mark"])
                    use_by_keys(page, focused)
            missed = wanted - reached - set(page.evaluate(SHARED))
            assert not missed, [told(page, mark) for mark in missed]


def told(page, mark):
    return page.locator(f"[data-mark='{mark}']").evaluate("one => one.outerHTML.slice(0, 120)")


def use_by_keys(page, focused):
    mark, kind = focused["mark"], focused["kind"]
    if focused["name"].strip(" ←→") in TURNS:
        return
    if kind in ("button", "summary"):
        for key in ("Enter", "Space"):
            before = clicks(page, mark)
            page.keyboard.press(key)
            assert clicks(page, mark) > before, (key, told(page, mark))
            if page.evaluate(FOCUSED) is None:  # what a control opened has the focus
                page.locator(f"[data-mark='{mark}']").focus()
    elif kind in ("range", "select"):
        # At one of its ends it goes the other way alone.
        values = {focused["value"]}
        for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
            page.keyboard.press(key if kind == "range" else key.replace("Right", "Down"))
            values.add(page.evaluate(FOCUSED)["value"])
        if kind == "select":
            page.keyboard.press("Home")
            page.keyboard.press("ArrowDown")
            values.add(page.evaluate(FOCUSED)["value"])
        assert len(values) > 1, told(page, mark)
    elif kind in ("radio", "checkbox"):
        page.keyboard.press("Space")
        assert page.locator(f"[data-mark='{mark}']").is_checked()
    elif kind in ("text", "textarea"):
        page.keyboard.press("Control+A")
        page.keyboard.type("1")
        assert page.evaluate(FOCUSED)["value"].endswith("1"), told(page, mark)


# --- by touch ---


@EVERY
def test_every_control_answers_a_finger(name, site, visit):
    with visit(site, f"/learn/{name}", **PHONE) as page:
        for _ in pages_of(page):
            used = set()
            for mark in page.evaluate(MARK, CONTROLS):
                control = page.locator(f"[data-mark='{mark}']")
                if mark in used or not control.count() or not control.is_visible():
                    continue
                used.add(mark)
                use_by_finger(page, control, mark)
            for figure in page.locator("[data-drawing=flow]").all():
                if figure.is_visible():
                    last = figure.locator(".cell").last
                    last.tap()
                    assert "chosen" in last.get_attribute("class").split()


def use_by_finger(page, control, mark):
    kind = control.evaluate("one => one.type || one.tagName.toLowerCase()")
    if control.inner_text().strip(" ←→") in TURNS:
        return
    if kind == "range":
        box = control.bounding_box()
        values = set()
        for share in (0.2, 0.8):
            control.scroll_into_view_if_needed()
            box = control.bounding_box()
            page.touchscreen.tap(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
            values.add(control.input_value())
        assert len(values) == 2, told(page, mark)
        return
    if "handle" in (control.get_attribute("class") or ""):
        drag(page, control)
        return
    before = clicks(page, mark)
    control.tap()
    if kind == "select-one":
        options = control.locator("option")
        control.select_option(index=options.count() - 1)
    elif kind in ("radio", "checkbox"):
        assert control.is_checked()
    else:
        assert clicks(page, mark) > before, told(page, mark)


def drag(page, handle):
    """Move the tip of an arrow by a finger."""
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    before = handle.get_attribute("aria-label")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x - 20, "y": y - 30}]),
        ("touchMove", [{"x": x - 40, "y": y + 30}]),
        ("touchEnd", []),
    ):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        # A finger that leaves while it moves is a fling, which the next tap would only stop.
        page.wait_for_timeout(150)
    assert handle.get_attribute("aria-label") != before

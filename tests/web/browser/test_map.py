"""The page with the items in two dimensions, by mouse and by keyboard."""

import re

import pytest


@pytest.fixture(scope="module")
def films(chromium, serving, movies_path):
    """A server of the movies."""
    with serving(movies_path, "--read-only") as server:
        yield server


@pytest.fixture
def page(visit, films):
    with visit(films, "/map", viewport={"width": 1200, "height": 800}) as found:
        drawn(found)
        yield found


def drawn(page):
    """Once all is placed on a canvas that has its size."""
    page.wait_for_selector("#near > li")
    page.wait_for_function("""() => {
      const [map, over] = ["map", "over"].map(id => document.getElementById(id));
      return over.width === Math.round(map.clientWidth * devicePixelRatio)
        && over.height === Math.round(map.clientHeight * devicePixelRatio);
    }""")


def answered(page):
    """Ask the server for what the page's address says."""
    return page.evaluate("() => fetch('/api/v1/map' + location.search).then(a => a.json())")


# How many pixels of a canvas are set.
INK = """id => {
  const canvas = document.getElementById(id);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, place) => place % 4 === 3 && value > 0).length;
}"""


# More readings than one of the same canvas, which only a test takes.
READBACK = ("willReadFrequently",)


# Whether other titles are listed.
OTHERS = """before => [...document.querySelectorAll("#near .title")].map(one => one.textContent)
  .join() !== before.join()"""

# Where the item of a row lies in the window while all of the map is shown.
PLACE = """async (row) => {
  const { laid } = await import("/static/map/plane.js");
  const { items } = await fetch("/api/v1/map" + location.search).then(a => a.json());
  const { at } = laid(items.x, items.y, innerWidth >= 640);
  const places = items.x.map((x, i) => at(x, items.y[i]));
  const ends = [0, 1].map(axis => places.map(place => place[axis]))
    .map(values => [Math.min(...values), Math.max(...values)]);
  const box = document.getElementById("over").getBoundingClientRect();
  const sizes = [box.width, box.height];
  const scale = 0.94 * Math.min(...ends.map(([low, high], axis) => sizes[axis] / (high - low)));
  const [x, y] = ends.map(([low, high], axis) => (places[row][axis] - (low + high) / 2) * scale);
  return [box.left + box.width / 2 + x, box.top + box.height / 2 - y];
}"""


def titles(page):
    return page.locator("#near .title").all_text_contents()


def test_all_items_are_drawn_and_what_the_map_keeps_is_said(visit, films, rested):
    with visit(films, "/map", READBACK) as page:
        drawn(page)
        answer = answered(page)
        kept = 100 * answer["neighbours_kept"]
        said = page.text_content("#explained")
        assert f"{answer['n']} items" in said
        assert float(re.search(r"([\d.]+)% are among", said)[1]) == pytest.approx(kept, abs=0.051)
        rested(page)
        assert page.evaluate(INK, "points") > answer["n"] * 10
        legend = page.locator("#legend bdi").all_text_contents()
        others = ["other, or none"] * (-1 in answer["colour"]["codes"])
        assert legend == [*answer["colour"]["labels"], *others]
        page.select_option("#colour", "-")
        page.wait_for_selector("#legend-box", state="hidden")
        assert "colour=-" in page.url


def test_the_list_is_of_the_items_nearest_to_the_middle(page):
    answer = answered(page)
    x, y = answer["items"]["x"], answer["items"]["y"]
    middle = ((min(x) + max(x)) / 2, (min(y) + max(y)) / 2)
    far = sorted(
        (((a - middle[0]) ** 2 + (b - middle[1]) ** 2), i)
        for i, (a, b) in enumerate(zip(x, y, strict=True))
    )
    assert titles(page) == [answer["items"]["titles"][i] for _, i in far[:10]]


def test_a_query_has_lines_to_its_best(visit, films, rested):
    with visit(films, "/map", READBACK) as page:
        drawn(page)
        rested(page)
        words = page.evaluate(INK, "over")
        assert words > 0  # of groups
        page.fill("#query", "space adventure")
        page.wait_for_selector("#clear:not([hidden])")
        hits = answered(page)["point"]["hits"]
        assert titles(page) == [hit["title"] for hit in hits]
        assert "the query: 10 lines" in page.text_content("#said")
        rested(page)
        assert abs(page.evaluate(INK, "over") - words) > 500
        page.click("#clear")
        rested(page)
        assert abs(page.evaluate(INK, "over") - words) < 300  # the cross of the middle
        assert "query" not in page.url


def test_a_user_by_their_embedding(page):
    page.select_option("#sense", label="Taste")
    page.fill("#user", "u001")
    page.press("#user", "Enter")
    page.wait_for_selector("text=Nearest to the user u001")
    assert "head=collaborative" in page.url
    assert titles(page) == [hit["title"] for hit in answered(page)["point"]["hits"]]


def test_the_mouse_shows_titles_and_chooses(page):
    answer = answered(page)
    y = answer["items"]["y"]
    i = max(range(len(y)), key=lambda i: y[i])  # the outermost, and nothing near it
    px, py = page.evaluate(PLACE, i)
    page.mouse.move(px, py)
    said = page.text_content("#tip")
    assert said.startswith(answer["items"]["titles"][i])
    colour = answer["colour"]
    assert said.endswith(f"{colour['column'].capitalize()}: {colour['labels'][colour['codes'][i]]}")
    page.mouse.click(px, py)
    page.wait_for_selector("#clear:not([hidden])")
    assert answer["items"]["titles"][i] in page.text_content("#near-title")
    assert f"item={answer['items']['ids'][i]}" in page.url
    neighbours = page.evaluate(
        "id => fetch(`/api/v1/similar?items=${id}&k=10`).then(a => a.json())",
        answer["items"]["ids"][i],
    )
    assert titles(page) == [hit["title"] for hit in neighbours["hits"]]
    # Its card stays while the mouse is elsewhere.
    page.mouse.move(1, 1)
    assert page.text_content("#tip").startswith(answer["items"]["titles"][i])
    assert page.is_visible("#tip")


def test_keys_alone_move_it_and_choose(page, rested):
    before = titles(page)
    page.focus("#over")
    for key in ("+", "+", "ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    rested(page)
    # On a busy machine the list follows the map a moment later.
    page.wait_for_function(
        "before => document.querySelector('#near .title')?.textContent !== before", arg=before[0]
    )
    moved = titles(page)
    assert page.text_content("#said") == moved[0]
    assert page.text_content("#tip").startswith(moved[0])
    page.keyboard.press("Enter")
    page.wait_for_selector("#clear:not([hidden])")
    assert moved[0] in page.text_content("#near-title")
    page.keyboard.press("Escape")
    page.wait_for_selector("#clear", state="hidden")
    assert page.evaluate("() => document.activeElement.id") == "query"
    page.focus("#over")
    page.keyboard.press("0")
    rested(page)
    assert titles(page) == before


def test_the_wheel_makes_it_larger_around_the_mouse(page):
    box = page.locator("#over").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    before = titles(page)
    page.mouse.wheel(0, -800)
    page.wait_for_function(OTHERS, arg=before)


def test_an_answer_that_nobody_asks_for_any_more_is_not_shown(page, until, rested):
    held = []
    page.route("**/api/v1/map?**items=false**", lambda route: held.append(route))
    page.fill("#query", "space adventure")
    until(page, lambda: held)
    page.fill("#query", "")
    with page.expect_response("**/api/v1/map?**"):
        held[0].continue_()
    rested(page)
    assert not page.locator("#clear").is_visible()
    assert "middle" in page.inner_text("#near-title")


def test_an_item_is_not_overtaken_by_the_query_before_it(page, until, rested):
    held = []
    page.route("**/api/v1/map?**items=false**", lambda route: held.append(route))
    page.fill("#query", "space adventure")
    until(page, lambda: held)
    name = titles(page)[0]
    page.locator("#near .pick").first.click()
    rested(page)
    with page.expect_response("**/api/v1/map?**"):
        held[0].continue_()
    page.wait_for_function(
        "() => document.querySelector('#near-title').textContent.includes('Similar')"
    )
    rested(page)
    assert page.inner_text("#near-title").startswith(f"Similar to “{name}")
    assert page.input_value("#query") == ""
    assert "item=" in page.url


def shows(page):
    """Once the years and the query are there."""
    page.wait_for_selector("#legend-title:has-text('year')")
    page.wait_for_selector("#clear:not([hidden])")


def test_a_link_says_everything(visit, films, page):
    page.select_option("#colour", "year")
    page.fill("#query", "a robot that feels")
    shows(page)
    shown = page.locator("#side").inner_text()
    with visit(films, re.sub(r"^http://[^/]+", "", page.url)) as again:
        shows(again)
        assert again.locator("#side").inner_text() == shown


def test_a_range_that_gives_the_colour_is_no_value_of_an_item(page):
    listed = []
    for colour in ("-", "year"):
        # The list is drawn anew, and once more with all cells of its items.
        page.locator("#near li").evaluate_all("all => all.forEach(one => one.dataset.former = 1)")
        page.select_option("#colour", colour)
        page.wait_for_url(f"**colour={colour}**")
        new = page.locator("#near li:not([data-former])")
        new.filter(has_text="Comedy, Romance").first.wait_for()
        listed.append(new.all_text_contents())
    assert listed[0] == listed[1]
    assert listed[0]
    assert all(re.search(r"year (19|20)\d\d(?!\d|\s*[–-])", one) for one in listed[1])


def test_an_unknown_user_is_named_below_the_field(visit, films):
    with visit(films, "/map?user=nobody", ("404 (Not Found)",)) as page:
        fault = page.locator("#user-fault")
        fault.wait_for()
        assert fault.text_content() == "There is no user nobody here. Check the id."
        field, said = page.locator("#user").bounding_box(), fault.bounding_box()
        assert field["y"] + field["height"] <= said["y"] < field["y"] + field["height"] + 24
        assert field["x"] - 1 <= said["x"] < field["x"] + field["width"]
        assert page.get_attribute("#user", "aria-invalid") == "true"
        boxes = [page.locator(f"#{name}").bounding_box()["y"] for name in ("query", "colour")]
        assert boxes == [field["y"]] * 2
        page.fill("#user", "")
        page.press("#user", "Enter")
        fault.wait_for(state="hidden")
        assert page.get_attribute("#user", "aria-invalid") == "false"


# All cells of an item.
ITEM = "id => fetch(`/api/v1/items/${id}`).then(a => a.json())"

# What is drawn on the canvas: the boxes of the texts of the newest drawing, and those of its rings.
RECORD = """
  window.written = [];
  window.rings = [];
  const { arc, clearRect, fillText } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    clearRect(...box) {
      window.written = [];
      window.rings = [];
      clearRect.apply(this, box);
    },
    arc(x, y, r, ...angles) {
      window.rings.push([x - r, y - r, x + r, y + r]);
      arc.call(this, x, y, r, ...angles);
    },
    fillText(text, x, y) {
      const size = parseFloat(this.font.match(/([\\d.]+)px/)[1]);
      const { width } = this.measureText(text);
      window.written.push({ text, size, box: [x, y - size / 2, x + width, y + size / 2] });
      fillText.call(this, text, x, y);
    },
  });
"""


def apart(a, b):
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize("path", ["/map", "/map?query=war"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_words_of_the_map_lie_on_others_or_on_what_is_found(visit, films, rested, width, path):
    with visit(films, None, viewport={"width": width, "height": 800}) as page:
        page.add_init_script(RECORD)
        page.goto(films.url + path)
        drawn(page)
        rested(page)
        boxes = [one["box"] for one in page.evaluate("window.written")]
        rings = page.evaluate("window.rings")
        over = page.locator("#over").bounding_box()
    assert len(boxes) > 3
    assert bool(rings) == ("query" in path)
    for place, a in enumerate(boxes):
        assert a[0] >= 0
        assert a[2] <= over["width"]
        assert all(apart(a, b) for b in boxes[place + 1 :] + rings)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_button_lies_on_the_map(visit, films, width):
    with visit(films, "/map", viewport={"width": width, "height": 800}) as page:
        drawn(page)
        over, zoom = (page.locator(name).bounding_box() for name in ("#over", "#zoom"))
    assert zoom["y"] >= over["y"] + over["height"]


# The points on the screen that the names beside a query cover, and how many names there are.
COVERED = """async () => {
  const { drawOver } = await import("/static/map/draw.js");
  const { Points } = await import("/static/map/points.js");
  const { PLACE } = await import("/static/map/plane.js");
  const { View } = await import("/static/map/view.js");
  const view = Object.assign(new View(), { width: 600, height: 600 });
  view.fit([-1, -1, 1, 1]);
  // The query has hits around it, and other items right of each.
  const at = (x, y) => [x, y];
  const ends = [at(-0.5, 0.5), at(-0.5, -0.5), at(0.1, 0.6), at(0.1, -0.6)];
  const others = [...ends, at(-0.1, 0)].map(([x, y]) => at(x + 0.12, y));
  const points = new Points(...[0, 1].map((axis) => [...ends, ...others].map((one) => one[axis])));
  const hits = ends.map((end, i) => ({ title: `A name ${i}`, weight: 1, [PLACE]: end }));
  const canvas = Object.assign(document.createElement("canvas"), { width: 600, height: 600 });
  const ink = { ink: "#000", paper: "#fff", accent: "#00f", bad: "#f00", font: "14px sans-serif" };
  drawOver(canvas, view, { from: at(-0.1, 0), name: "query", hits, labels: [] }, ink, points, 10);
  const places = others.map((other) => view.toScreen(...other));
  const isIn = ([x, y], box) => x > box[0] && x < box[2] && y > box[1] && y < box[3];
  const covered = places.filter((place) => window.written.some(({ box }) => isIn(place, box)));
  return [covered.length, window.written.length];
}"""


def test_names_beside_a_query_stand_where_no_other_item_is(visit, films):
    with visit(films, None) as page:
        page.add_init_script(RECORD)
        page.goto(films.url + "/attend")
        assert page.evaluate(COVERED) == [0, 5]


# The words of a group in the middle of points of this size, and how far a point is from their box
# at least. Points are everywhere but in a gap `free` pixels high, which lies below the middle.
GROUP = """async ([size, free]) => {
  const { drawOver } = await import("/static/map/draw.js");
  const { Points } = await import("/static/map/points.js");
  const { View } = await import("/static/map/view.js");
  const view = Object.assign(new View(), { width: 328, height: 328 });
  view.fit([-1, -1, 1, 1]);
  const steps = Array.from({ length: 27 }, (_, i) => 4 + 12 * i);
  const all = steps.flatMap((x) => steps.map((y) => [x, y]));
  const onScreen = all.filter(([, y]) => Math.abs(y - 190) >= free / 2);
  const places = onScreen.map(([x, y]) => view.toPlane(x, y));
  const points = new Points(...[0, 1].map((axis) => places.map((one) => one[axis])));
  const canvas = Object.assign(document.createElement("canvas"), { width: 328, height: 328 });
  const ink = { ink: "#000", paper: "#fff", accent: "#00f", bad: "#f00", font: "13px sans-serif" };
  const labels = [{ words: "tents, warm", place: [0, 0] }];
  drawOver(canvas, view, { from: null, hits: [], labels }, ink, points, size);
  const gap = ([x, y], [left, top, right, bottom]) =>
    Math.max(left - x, x - right, top - y, y - bottom);
  const { written } = window;
  return written.map(({ box }) => Math.min(...onScreen.map((place) => gap(place, box))));
}"""


def test_words_of_a_group_touch_no_point_where_points_are_large(visit, films):
    with visit(films, None) as page:
        page.add_init_script(RECORD)
        page.goto(films.url + "/attend")
        (distance,) = page.evaluate(GROUP, [8, 40])
        assert distance >= 4
        assert page.evaluate(GROUP, [8, 0]) == []
        # Among thousands of small ones, words lie over some, on a ground of their own.
        assert len(page.evaluate(GROUP, [4.5, 24])) == 1


@pytest.mark.parametrize("height", [700, 900, 1400])
def test_beside_the_map_nothing_hangs_below_it_and_the_window_is_used(visit, films, height):
    with visit(films, "/map", viewport={"width": 1280, "height": height}) as page:
        drawn(page)
        whole = page.evaluate("document.documentElement.scrollHeight")
        assert whole <= max(height, 760)
        side = page.locator("#side").bounding_box()
        assert side["y"] + side["height"] >= height - 90
        # All of the list is there: it scrolls in itself.
        page.locator("#near > li").last.scroll_into_view_if_needed()
        last = page.locator("#near > li").last.bounding_box()
        assert last["y"] + last["height"] <= side["y"] + side["height"] + 1


def test_words_are_placed_by_meaning_and_names_of_heads_are_opened(visit, films):
    with visit(films, "/map?head=collaborative") as page:
        drawn(page)
        assert page.locator("#sense option:checked").inner_text() == "Taste"
        assert "collaborative" not in page.inner_text("main")
        page.fill("#query", "space adventure")
        page.wait_for_selector("text=Nearest to “space adventure”")
        assert page.locator("#sense option:checked").inner_text() == "Meaning"
        page.click("#about summary")
        page.select_option("#head", "contrastive")
        page.wait_for_function("() => location.search.includes('head=contrastive')")


def test_what_is_listed_for_a_query_has_the_cells_of_a_result(visit, films):
    with visit(films, "/map?query=space") as page:
        page.wait_for_selector("#clear:not([hidden])")
        hits = answered(page)["point"]["hits"]
        cells = page.locator("#near > li .cells").all_text_contents()
        assert len(cells) == len(hits)
        for hit, said in zip(hits, cells, strict=True):
            year = page.evaluate(
                "id => fetch(`/api/v1/items/${id}`).then(a => a.json())", hit["id"]
            )
            assert str(year["year"]) in said


def test_some_item_stays_in_sight_however_large_the_map_is(visit, films, rested):
    """The middle of a map is often empty."""
    drawn_points = """() => {
      const canvas = document.getElementById("points");
      const [width, height] = [canvas.width, canvas.height];
      return canvas.getContext("2d").getImageData(0, 0, width, height).data.some((value) => value);
    }"""
    with visit(films, "/map") as page:
        drawn(page)
        for _ in range(10):
            page.click("#zoom button[value=in]")
            rested(page)
        assert page.evaluate(drawn_points)

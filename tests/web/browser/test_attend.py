"""The page on which a sentence attends to itself, by mouse and by keyboard."""

import re
import shutil

import pytest

SENTENCE = "/attend?text=deep+season+red+sea&encoder=minilm&layer=1&head=0"


@pytest.fixture(scope="module")
def layered(chromium, serving, videos_path, tiny_bert, tmp_path_factory):
    """A server of the videos, with a random transformer as the minilm that is installed."""
    models = tmp_path_factory.mktemp("models")
    shutil.copytree(tiny_bert, models / "minilm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QKVSEARCH_MODELS", str(models))
        with serving(videos_path, "--read-only") as server:
            yield server


@pytest.fixture
def plain(chromium, serving, videos_path, tmp_path, monkeypatch):
    """A server of the videos without a transformer."""
    monkeypatch.setenv("QKVSEARCH_MODELS", str(tmp_path))
    with serving(videos_path, "--read-only") as server:
        yield server


@pytest.fixture
def page(visit, layered):
    with visit(layered, SENTENCE) as found:
        found.wait_for_selector("#sentence-words [aria-current]")
        yield found


def percents(page):
    """What the chosen word attends to, as the numbers beside the lines say."""
    said = page.locator("#lines output").all_text_contents()
    return [float(number.rstrip("%")) for number in said]


def opened(page, name):
    """Open what is folded away."""
    page.evaluate("id => { document.getElementById(id).open = true }", name)


def word(page, i):
    return page.locator("#sentence-words button").nth(i)


def answered(page, about="v1/attend"):
    """Ask again what the page asked last of those questions that have this in their address."""
    asked = f"performance.getEntriesByType('resource').findLast(e => e.name.includes('{about}'))"
    return page.evaluate(f"() => fetch({asked}.name).then(answer => answer.json())")


def test_an_example_is_there_at_once(visit, layered):
    with visit(layered, "/attend") as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        assert page.input_value("#text").startswith("The animal")
        assert page.locator("#heads button").count() == 2 * (3 + 1)
        page.wait_for_function("() => location.search.includes('text=The+animal')")


def test_the_sentence_says_what_the_chosen_word_attends_to(page):
    answer = answered(page)
    weights = next(one for one in answer["maps"] if (one["layer"], one["head"]) == (1, 0))[
        "weights"
    ]
    sizes = page.locator("#sentence-words .written").evaluate_all(
        "all => all.map(one => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert max(sizes) >= 24
    for i, name in enumerate(answer["words"]):
        word(page, i).click()
        assert f"“{name}” attends most to" in page.text_content("#sentence")
        said = page.locator("#sentence-words small").all_text_contents()
        for share, weight in zip(said, weights[i], strict=True):
            assert (share == "") == (weight < 0.02)
            assert not share or float(share.rstrip("%")) == pytest.approx(100 * weight, abs=0.051)
        shades = page.locator("#sentence-words button").evaluate_all(
            "all => all.map(one => Number(/([\\d.]+)%/.exec(one.style.backgroundColor)[1]))"
        )
        assert shades == pytest.approx([45 * weight**0.5 for weight in weights[i]], abs=0.06)


def test_a_word_is_struck_out_in_place_and_shown_again(page, expect):
    first = answered(page)
    word(page, 4).click()
    page.click("#strike")
    word(page, 2).click()
    expect(page.locator("#sentence-words s")).to_have_text(["season"])
    expect(page.locator("#sentence-words [aria-current] .written")).to_have_text("sea")
    assert word(page, 2).locator("small").text_content() == "hidden"
    struck = answered(page)
    assert all(row[2] is None for one in struck["maps"] for row in one["weights"])
    assert sum(percents_of(struck, page)) == pytest.approx(1, abs=1e-3)
    page.wait_for_function("() => location.search.includes('hide=2')")
    page.click("#strike")
    word(page, 2).focus()
    page.keyboard.press("x")
    expect(page.locator("#sentence-words s")).to_have_count(0)
    assert answered(page)["maps"] == first["maps"]
    page.keyboard.press("x")
    expect(page.locator("#sentence-words s")).to_have_count(1)
    page.click("#all-words")
    expect(page.locator("#sentence-words s")).to_have_count(0)
    assert page.locator("#all-words").is_hidden()


def percents_of(answer, page):
    """The row of the word "sea" in the head that is shown."""
    one = next(one for one in answer["maps"] if (one["layer"], one["head"]) == (1, 0))
    return [weight or 0 for weight in one["weights"][answer["words"].index("sea")]]


def test_the_control_shows_the_same_head_and_word(page, expect):
    page.fill("#against", "deep season red bread")
    page.wait_for_selector("#control-words .word")
    other = page.evaluate(
        "() => fetch('/api/v1/attend?encoder=minilm&text=deep+season+red+bread')"
        ".then(answer => answer.json())"
    )
    weights = next(one for one in other["maps"] if (one["layer"], one["head"]) == (1, 0))["weights"]
    word(page, 2).click()
    expect(page.locator("#control-words [aria-current] .written")).to_have_text("season")
    said = page.locator("#control-words small").all_text_contents()
    for share, weight in zip(said, weights[2], strict=True):
        assert not share or float(share.rstrip("%")) == pytest.approx(100 * weight, abs=0.051)
    assert "“season”" in page.text_content("#control-said")
    word(page, 4).click()
    assert page.text_content("#control-said") == "“sea” does not occur here."
    # A head that is chosen in either grid is shown in both.
    page.locator("#control-heads button").nth(1).click()
    assert page.text_content("#place") == "layer 1, head 2"
    for grid in ("#heads", "#control-heads"):
        assert page.locator(f"{grid} button").nth(1).get_attribute("aria-pressed") == "true"
    page.fill("#against", "")
    page.wait_for_selector("#control", state="hidden")
    assert page.locator("#control-heads").is_hidden()


@pytest.mark.parametrize("width", [390, 1280])
def test_sentences_of_three_to_sixty_words_fit_the_window(visit, layered, width):
    for text in ("deep red sea", "deep season red sea " * 15, "他把苹果洗了，又把梨放进海里"):
        address = f"/attend?encoder=minilm&text={text.strip()}&against={text.strip()}"
        with visit(layered, address, viewport={"width": width, "height": 800}) as page:
            page.wait_for_selector("#sentence-words [aria-current]")
            for name in ("lines-box", "map-box"):
                opened(page, name)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            inside = page.locator(".words .word").evaluate_all(
                "all => all.every(one => one.getBoundingClientRect().right <= innerWidth)"
            )
            assert inside


def test_the_layers_of_a_sentence_too_long_for_an_answer_come_one_by_one(page, until):
    whole = page.locator("#heads button").count()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.fill("#text", f"deep {' ' * 120} sea")
    until(page, lambda: page.locator("#sentence-words button").count() == 4)
    assert sum("layer=" in url for url in asked) == 2
    assert page.locator("#heads button").count() == whole


def test_numbers_are_those_of_the_answer_word_by_word(page):
    opened(page, "lines-box")
    opened(page, "map-box")
    answer = answered(page)
    chosen = next(one for one in answer["maps"] if (one["layer"], one["head"]) == (1, 0))
    assert page.text_content("#place") == "layer 2, head 1"
    for i, name in enumerate(answer["words"]):
        page.locator("#lines ol").first.locator("button").nth(i).hover()
        for shown, weight in zip(percents(page), chosen["weights"][i], strict=True):
            assert shown == pytest.approx(100 * weight, abs=0.051)
        assert f"“{name}” attends most to" in page.text_content("#sentence")
        row = page.locator("table.map tbody tr").nth(i)
        assert row.get_attribute("class") == "chosen"
        numbers = [int(cell) for cell in row.locator("td").all_text_contents()]
        assert numbers == pytest.approx([100 * weight for weight in chosen["weights"][i]], abs=0.51)


def test_keys_alone_go_through_words_heads_and_layers(page, expect):
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "text"
    page.keyboard.press("ArrowDown")
    current = "() => document.activeElement.querySelector('.written').textContent"
    assert page.evaluate(current) == "deep"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(current) == "season"
    assert "“season” attends most to" in page.text_content("#said")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(current) == "[CLS]"
    for key, place in (("]", "layer 2, head 2"), ("[", "layer 2, head 1"), ("[", "layer 2, head 3"),
                       ("{", "layer 1, head 3"), ("}", "layer 2, head 3")):  # fmt: skip
        page.keyboard.press(key)
        assert page.text_content("#place") == place
        assert page.text_content("#said").startswith(place)
    assert page.evaluate(current) == "[CLS]"
    page.locator("#heads button[aria-pressed=true]").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#place") == "layer 1, head 2"
    page.keyboard.press("?")
    assert "previous, next head" in page.text_content("dialog")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_the_mean_over_heads(page):
    answer = answered(page)
    opened(page, "lines-box")
    page.locator("#heads button.mean").nth(1).click()
    assert page.text_content("#place") == "layer 2, mean of its 3 heads"
    heads = [one["weights"] for one in answer["maps"] if one["layer"] == 1]
    page.locator("#lines ol").first.locator("button").nth(2).click()
    rows = [one[2] for one in heads]
    mean = [sum(column) / 3 for column in zip(*rows, strict=True)]
    assert percents(page) == pytest.approx([100 * weight for weight in mean], abs=0.06)


def test_a_word_on_the_right_leads_to_the_head_that_reads_most_from_it(page):
    answer = answered(page)
    opened(page, "lines-box")
    i, j = 1, 3
    page.locator("#lines ol").first.locator("button").nth(i).click()
    page.locator("#lines .to button").nth(j).click()
    best = max(answer["maps"], key=lambda one: one["weights"][i][j])
    assert page.text_content("#place") == f"layer {best['layer'] + 1}, head {best['head'] + 1}"


def test_characters_of_east_asia_stand_upright_over_their_column(page):
    opened(page, "map-box")
    page.fill("#text", "bank 河 bank")
    page.wait_for_selector("table.map thead th:has-text('河')")
    turned = page.locator("table.map thead th").evaluate_all(
        "heads => heads.map(head => [head.textContent, getComputedStyle(head).transform])"
    )
    assert {word: turn == "none" for word, turn in turned if word in ("河", "bank")} == {
        "河": True,
        "bank": False,
    }


def test_hidden_cells_are_marked(page):
    opened(page, "map-box")
    page.check("#causal")
    page.wait_for_selector("table.map td.off")
    n = page.locator("table.map tbody tr").count()
    assert page.locator("table.map td.off").count() == n * (n - 1) // 2
    said = page.text_content("#map-said")
    assert f"{n * (n - 1) // 2} of {n * n} pairs are hidden" in said
    page.uncheck("#causal")
    page.wait_for_selector("table.map td.off", state="detached")


def test_padding_is_struck_out_until_somebody_shows_it(page, expect):
    page.fill("#text", "deep sea <PAD>")
    expect(page.locator("#sentence-words s")).to_have_text(["<PAD>"])
    assert "hidden" in page.locator("#lines .to").nth(3).text_content()
    page.check("#causal")
    page.wait_for_function("() => location.search.includes('mask=causal')")
    expect(page.locator("#sentence-words s")).to_have_text(["<PAD>"])
    page.uncheck("#causal")
    page.click("#all-words")
    expect(page.locator("#sentence-words s")).to_have_count(0)
    page.wait_for_function("() => location.search.includes('mask=none')")
    page.click("#strike")
    word(page, 3).click()
    expect(page.locator("#sentence-words s")).to_have_text(["<PAD>"])


def test_a_second_sentence_layer_by_layer(page):
    page.fill("#against", "red water")
    page.wait_for_selector("#cosines tbody tr")
    answer = answered(page, "against=")
    assert answer["against"]["words"] == ["red"]
    cells = page.locator("#cosines tbody td.number").all_text_contents()
    wanted = [row[0] for row in answer["against"]["cosines"]]
    assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx(wanted, abs=0.0051)
    page.fill("#against", "water")
    page.wait_for_selector("#comparison", state="hidden")
    assert "no word in common" in page.text_content("#notes")


def test_a_link_says_everything(visit, layered, page):
    page.locator("#heads button.mean").nth(1).click()
    page.keyboard.press("{")
    word(page, 3).click()
    page.wait_for_function("() => /view=mean&layer=0&word=3/.test(location.search)")
    shown = page.locator("#reading").inner_text()
    address = re.sub(r"^http://[^/]+", "", page.url)
    with visit(layered, address) as again:
        again.wait_for_selector("#sentence-words [aria-current]")
        assert again.locator("#reading").inner_text() == shown


def test_without_layers_there_is_one_map(visit, layered):
    with visit(layered, "/attend?text=guitar+lesson+video&encoder=lsa") as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        assert page.locator("#layers").is_hidden()
        assert "no layers and heads" in page.text_content("#map-said")
        page.keyboard.press("]")
        assert "Q = K = V = X" in page.text_content("#place")


def test_without_a_transformer_the_page_opens_with_a_recorded_example(visit, plain):
    with visit(plain, "/attend") as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        assert page.input_value("#encoder") == "recorded"
        assert "Recorded" in page.text_content("#notes")
        assert "“it” attends most to “animal”" in page.text_content("#sentence")
        assert page.locator("#strike").is_disabled()
        # What MiniLM made of the sentence with another ending: a weight is no reason by itself.
        assert "28.1%, in your sentence with 67.7%" in page.text_content("#control-said")
        page.locator("#examples button").nth(2).click()
        page.wait_for_selector("#sentence-words s")
        # What was not recorded is read by the encoder of the build.
        page.fill("#text", "guitar lesson")
        page.wait_for_selector("#layers", state="hidden")
        assert page.input_value("#encoder") == "lsa"
        assert page.text_content("#notes") == ""
        assert "Q = K = V = X" in page.text_content("#place")
        page.select_option("#encoder", "recorded")
        page.wait_for_selector("#layers", state="visible")
        assert page.input_value("#text").startswith("The animal")


def test_a_page_in_chinese_opens_with_a_recorded_example_in_chinese(visit, plain):
    with visit(plain, "/attend?lang=zh") as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        assert page.input_value("#text") == "动物没有过马路，它太累了。"
        assert page.text_content("#encoder option:checked") == "e5（录制）"
        assert "qkvsearch model fetch e5" in page.text_content("#notes")
        assert "“它”最关注“动物”" in page.text_content("#sentence")
        page.locator("#examples button").nth(1).click()
        page.wait_for_selector("#sentence-words [aria-current] >> text=苹果")
        assert "打电话" in page.text_content("#sentence")


def test_an_answer_that_nobody_asks_for_any_more_is_not_shown(page, until, rested):
    held = []
    page.route("**/api/v1/attend?**", lambda route: held.append(route))
    page.fill("#text", "red water")
    until(page, lambda: held)
    page.fill("#text", "")
    with page.expect_response("**/api/v1/attend?**"):
        held[0].continue_()
    rested(page)
    assert not page.locator("#reading").is_visible()
    assert page.inner_text("#size") == "Type a sentence."


def test_what_is_refused_is_said(visit, layered):
    text = "+".join(["sea"] * 400)
    expected = ("400 (Bad Request)",)
    with visit(layered, "/attend?text=x&encoder=lsa", expected) as page:
        page.fill("#text", text.replace("+", " "))
        page.wait_for_selector("#notes .bad")
        page.fill("#text", "")
        assert page.text_content("#size") == "Type a sentence."


def test_small_maps_are_drawn_anew_where_the_theme_changes(page, rested):
    strongest = """() => {
      const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      pen.drawImage(document.querySelector("#heads canvas"), 0, 0);
      return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }"""
    page.emulate_media(color_scheme="light")
    rested(page)
    light = page.evaluate(strongest)
    page.emulate_media(color_scheme="dark")
    rested(page)
    assert sum(page.evaluate(strongest)) > sum(light) + 100


@pytest.mark.parametrize(("language", "said"), [("en", "Examples"), ("zh", "示例")])
def test_on_a_telephone_nothing_hangs_out_and_a_table_shows_that_it_scrolls(
    site, visit, language, said
):
    path, size = f"/attend?lang={language}", {"width": 390, "height": 844}
    with visit(site, path, viewport=size) as page:
        page.wait_for_selector("#heads .mean")
        assert said in page.inner_text("#examples")
        mean = page.locator("#heads > span.mean").bounding_box()
        grid = page.locator("#heads").bounding_box()
        assert mean["x"] + mean["width"] <= grid["x"] + grid["width"] + 1
        box = page.locator("#cosines")
        if box.evaluate("box => box.scrollWidth > box.clientWidth"):
            assert "gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage")


def test_what_takes_a_while_is_said_to_be_under_way(visit, layered):
    with visit(layered, SENTENCE, ("net::ERR_FAILED",)) as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        check_busy(page)


def check_busy(page):
    held = []
    page.route("**/api/v1/attend?**", lambda route: held.append(route))
    before = page.text_content("#size")
    page.fill("#text", "deep season")
    page.wait_for_selector("#reading[aria-busy=true]")
    page.wait_for_function("() => document.getElementById('size').textContent === 'Loading…'")
    held.pop().continue_()
    page.wait_for_selector("#reading[aria-busy=false]")
    assert page.text_content("#size") not in (before, "Loading…")
    page.fill("#text", "deep")
    page.wait_for_function("() => document.getElementById('size').textContent === 'Loading…'")
    held.pop().abort()
    page.wait_for_selector("#notes .bad")
    page.wait_for_selector("#reading[aria-busy=false]")
    assert page.text_content("#size") == ""


def test_whose_a_weight_is_stays_in_sight_where_the_table_is_scrolled(visit, layered):
    sentence = "+".join(["deep", "season", "red", "sea"] * 4)
    address = f"/attend?text={sentence}&encoder=minilm&layer=1&head=0"
    with visit(layered, address, viewport={"width": 320, "height": 844}) as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        head = page.locator("table.map tbody th").first
        before = head.bounding_box()["x"]
        scrolled = head.evaluate(
            """one => {
              const around = one.closest(".scrolls");
              around.scrollLeft = 80;
              return around.scrollLeft;
            }"""
        )
        assert scrolled > 30
        assert abs(head.bounding_box()["x"] - before) < 20


def test_a_sentence_opens_on_a_word(visit, layered):
    with visit(layered, "/attend?text=%2C+deep+season&encoder=minilm&layer=1&head=0") as page:
        page.wait_for_selector("#sentence-words [aria-current]")
        assert page.text_content("#sentence-words [aria-current] .written") == "deep"

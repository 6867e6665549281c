"""Every drawing of every lesson, driven as a reader does, beside NumPy."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS
from qkvsearch.lessons.drawings import Arrows, Flow, Heads, Turning
from qkvsearch.lessons.exports.markdown import to_markdown
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.parts import Formula

pytestmark = pytest.mark.xdist_group("browser")

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
WITHOUT_DRAWINGS = ("mask-details", "check")
EVERY = pytest.mark.parametrize("name", [n for n in LESSONS if n not in WITHOUT_DRAWINGS])


@pytest.fixture
def figures(course, visit, lesson_file):
    """By the kind of a drawing: each of a lesson, with its figure on the page."""

    def of(page, name, kind):
        parts = [part for step in course[name].steps for part in step.parts]
        for part in parts:
            if isinstance(part, kind):
                yield part, page.locator(f'[data-place="{name}.{part.name}"]')

    return of


def table(figure):
    """All numbers of a figure's tables, in order, unrounded."""
    return figure.locator(".numbers td.number").evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.value))"
    )


def press(figure, does):
    figure.locator(f'[data-does="{does}"]').click()


def slide(figure, name, value):
    figure.locator(f'[data-control="{name}"]').evaluate(
        """(field, value) => {
            field.value = value;
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        str(value),
    )


def pick(figure, name, value):
    choice = figure.locator(f'select[data-control="{name}"]')
    # By value alone: what a layer is called is its number from 1, the value of another one.
    option = choice.locator(f'option[value="{value}"]').element_handle()
    choice.select_option(element=option)


# --- attention ---


@EVERY
def test_flows_compute_what_numpy_does(name, visit, lesson_file, figures):
    with visit(lesson_file(name)) as page:
        for flow, figure in figures(page, name, Flow):
            for mask in flow.bench.masks:
                if len(flow.bench.masks) > 1:
                    pick(figure, "mask", mask)
                agree(flow, figure, mask)
            if figure.locator('[data-control="temperature"]').count():
                slide(figure, "temperature", 0.5)
                warm = replace(flow, bench=replace(flow.bench, temperature=0.5))
                agree(warm, figure, flow.bench.masks[-1])


def agree(flow, figure, mask):
    wanted = flow.steps(mask)
    shape = wanted["scores"].shape
    for stage in flow.stages:
        button = figure.locator(f'[data-stage="{stage}"][data-does]')
        if not button.count():
            continue  # no division before the temperature was turned
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        cells = figure.locator(".cell").evaluate_all("all => all.map(c => c.dataset.value)")
        shown = "weights" if stage == "outputs" else stage
        found = np.array([float(cell.replace("Infinity", "inf")) for cell in cells])
        np.testing.assert_allclose(found.reshape(shape), wanted[shown], **CLOSE)
    if flow.has_values:
        if figure.locator(".mixed").count():
            agree_mix(figure, wanted)
        elif figure.locator("[data-words]").count():
            agree_own_mixes(figure, wanted)
        else:
            lines = figure.locator(".flows path[data-at]")
            flows = lines.evaluate_all("all => all.map(p => p.dataset.value)")
            flowing = wanted["weights"]
            if flow.value_names:
                # Of each weight, a ribbon for each number of the value.
                flowing = flowing[:, :, None] * wanted["values"]
            found = np.array(flows, float).reshape(flowing.shape)
            np.testing.assert_allclose(found, flowing, **CLOSE)
        outputs = table(figure)[-wanted["outputs"].size :]
        np.testing.assert_allclose(outputs, wanted["outputs"].ravel(), **CLOSE)


def agree_mix(figure, wanted):
    """Each value brings weight × value to a row of the mix, whose parts are as long as that."""
    parts = wanted["weights"][0][:, None] * wanted["values"]
    flows = figure.locator(".flows path").evaluate_all(
        "all => all.map(p => [p.dataset.at.split(' ')[1], p.dataset.quality, p.dataset.value])"
    )
    for j, k, value in flows:
        assert float(value) == pytest.approx(parts[int(j), int(k)], abs=1e-6)
    rows = figure.locator(".mixed").evaluate_all("all => all.map(row => row.dataset.value)")
    np.testing.assert_allclose(np.array(rows, float), wanted["outputs"][0], **CLOSE)
    if (parts >= 0).all():
        widths = figure.locator(".mixed").evaluate_all(
            """rows => rows.map(row => [...row.querySelectorAll("[data-part]")]
                .map(box => Number(box.getAttribute("width"))))"""
        )
        lengths = np.array(widths).T
        assert lengths.sum() > 0
        share = parts / parts.sum()
        np.testing.assert_allclose(lengths / lengths.sum(), share, atol=0.005)


def agree_own_mixes(figure, wanted):
    """Each row of weights has a bar of length 1 with a segment as long as each number of its mix,
    and each key one of its value.
    """
    for name, role in (("outputs", "output"), ("values", "value")):
        for place, vector in enumerate(wanted[name]):
            end = figure.locator(f'[data-end="{role} {place}"]')
            boxes = end.locator(".track, .amount-of").evaluate_all(
                "all => all.map(box => ['x', 'width'].map(name => Number(box.getAttribute(name))))"
            )
            (left, whole), *segments = boxes
            begins = np.cumsum([0, *vector[:-1]])
            shares = (np.array(segments) - [left, 0]) / whole
            np.testing.assert_allclose(shares, np.transpose([begins, vector]), atol=0.002)


def test_the_mix_comes_at_its_stage_and_each_step_adds_a_value(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.recommend"]')
        late = figure.locator(".late")
        stages = figure.locator('[data-does="stage"]')
        for stage in stages.all()[:-1]:
            stage.click()
            assert late.evaluate("e => getComputedStyle(e).visibility") == "hidden"
        press(figure, "step")
        assert late.evaluate("e => getComputedStyle(e).visibility") == "visible"


def test_a_drawing_of_the_mix_alone_opens_with_it_and_each_step_adds_a_value(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.search"]')
        mix = figure.locator(".mixed")
        # One stage alone is no choice; those before it are named.
        assert figure.locator('[data-does="stage"]').count() == 0
        assert "query · key → ÷ T" in figure.locator(".known").inner_text()
        amounts = []
        for _ in range(8):
            press(figure, "step")
            amounts.append(mix.nth(0).locator(".amount").text_content())
        # Two of the eight videos are of this category, the first and the fifth.
        assert amounts == ["0.31"] * 4 + ["0.41"] * 4
        assert mix.nth(0).locator(".addends").text_content() == "0.31 + 0.10"
        assert "0.07 × Education" in figure.locator(".told").inner_text()


def test_a_number_of_the_query_is_typed_where_it_stands(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        entry = figure.get_by_label("number of the query: toy")
        svg = figure.locator("svg")
        place = svg.evaluate(STAYS)
        figure.locator("[data-stage=outputs][data-does]").click()
        crafts = figure.locator(".mixed .amount").first
        entry.fill("")
        for typed in ("0", ".", "5"):
            page.keyboard.type(typed)
        # The stage stays, and what it shows follows.
        assert figure.locator("[data-stage=outputs]").get_attribute("aria-pressed") == "true"
        assert figure.locator(".of-query").all_text_contents() == ["1", "0.5"]
        less = float(crafts.text_content())
        page.keyboard.press("Escape")
        assert figure.locator(".of-query").all_text_contents() == ["1", "1"]
        assert less < float(crafts.text_content()) == pytest.approx(0.96)
        assert svg.evaluate(STAYS) == place
        assert entry.input_value() == "1"
        entry.fill("0,5")
        entry.press("Tab")
        assert entry.input_value() == "0.5"
        press(figure, "restart")
        assert entry.input_value() == "1"


# Of each bar: where it begins, from where that of the first number does, and its length.
BARS = """figure => [...figure.querySelectorAll(".cell")].map(({ firstElementChild: box }) => {
  const moved = Number(box.getAttribute("transform")?.match(/translate\\((\\S+)/)?.[1] ?? 0);
  return [moved, Number(box.getAttribute("width"))];
})"""


def test_bars_keep_their_scale_while_a_number_of_the_query_is_typed(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.scores"]')
        entry = figure.locator(".entry-of-query")
        heading = figure.locator(".stage-name")
        axis = figure.locator(".zero")
        _, first = np.array(figure.evaluate(BARS)).T
        drawn = page.evaluate(
            "figure => figure.querySelector('.cell rect').dataset.wide", figure.element_handle()
        )
        entry.fill("2")
        starts, twice = np.array(figure.evaluate(BARS)).T
        np.testing.assert_allclose(twice, 2 * first, rtol=1e-9)
        assert not starts.any()
        assert twice.max() <= float(drawn) + 1e-6
        assert heading.text_content() == "score"
        assert axis.get_attribute("visibility") == "hidden"
        # Below 0 the bars are as long, and end at the line that the others begin at.
        entry.fill("-1")
        starts, below = np.array(figure.evaluate(BARS)).T
        np.testing.assert_allclose(below, first, rtol=1e-9)
        np.testing.assert_allclose(starts + below, first.max(), rtol=1e-9)
        assert axis.get_attribute("visibility") == "inherit"
        # What would leave the drawing has a smaller scale, and the heading says so.
        entry.fill("3")
        _, thrice = np.array(figure.evaluate(BARS)).T
        np.testing.assert_allclose(thrice, 3 * first / 2, rtol=1e-9)
        assert heading.text_content() == "score (scale ÷ 2)"
        entry.fill("-40")
        starts, far = np.array(figure.evaluate(BARS)).T
        np.testing.assert_allclose(far, 40 * first / 20, rtol=1e-9)
        assert starts.min() >= -1e-6
        assert heading.text_content() == "score (scale ÷ 20)"


@pytest.mark.parametrize("name", ["weights", "context", "list"])
def test_divided_by_the_temperature_bars_of_scores_get_longer_on_the_same_scale(
    name, visit, lesson_file
):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
        heading = figure.locator(".stage-name")
        room = float(figure.locator(".cell rect").first.get_attribute("data-wide"))

        def bars_at(stage):
            button = figure.locator(f'[data-stage="{stage}"][data-does]')
            if button.count():
                button.click()
            return np.array(figure.evaluate(BARS))[:, 1]

        numbers = figure.locator(".numbers table").first.locator("tbody tr > :nth-child(3)")
        scores = numbers.evaluate_all("all => all.map(cell => +cell.dataset.value)")
        long = bars_at("scaled")
        # T is 0.5, and the longest bar fits.
        np.testing.assert_allclose(long / long.max(), np.array(scores) / max(scores), rtol=1e-6)
        assert 0.9 * room < long.max() <= room + 1e-6
        if name != "weights":
            np.testing.assert_allclose(long, 2 * bars_at("scores"), rtol=1e-9)
            bars_at("scaled")
        assert heading.text_content() == "score ÷ T"
        slide(figure, "temperature", 2)
        np.testing.assert_allclose(bars_at("scaled"), long / 4, rtol=1e-9)
        assert heading.text_content() == "score ÷ T"
        # Ten times as long, they would leave the drawing.
        slide(figure, "temperature", 0.1)
        np.testing.assert_allclose(bars_at("scaled"), long, rtol=1e-9)
        assert heading.text_content() == "score ÷ T (scale ÷ 5)"


def test_numbers_of_a_product_have_the_colours_of_query_and_key(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        below = figure.locator(".calculation").first
        assert below.text_content() == "1 × 4.74 + 1 × 7.23"
        assert below.locator(".by-query").all_text_contents() == ["1", "1"]
        assert below.locator(".by-key").all_text_contents() == ["4.74", "7.23"]


def test_the_last_step_is_the_last(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        step = figure.locator('[data-does="step"]')
        assert not is_spent(step)
        figure.locator('[data-stage="outputs"][data-does]').click()
        assert is_spent(step)
        figure.locator(".cell").first.click()
        told = figure.locator(".told").inner_text()
        step.click()
        assert figure.locator(".told").inner_text() == told
        press(figure, "back")
        assert not is_spent(step)


def is_spent(step):
    """Whether Step is drawn as one that does nothing; it can be pressed all the same."""
    has_class = "spent" in (step.get_attribute("class") or "").split()
    opacity = float(step.evaluate("e => getComputedStyle(e).opacity"))
    assert has_class == (opacity < 1)
    return has_class


def test_a_large_number_of_the_query_is_computed_and_a_word_is_complained_of(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        entry = figure.get_by_label("number of the query: toy")
        figure.locator("[data-stage=powers][data-does]").click()
        entry.fill("1000")
        assert figure.locator(".cell .amount").first.text_content() == ">10³⁰⁸"
        figure.locator(".cell").first.click()
        assert "e14469.48 >10³⁰⁸" in figure.locator(".told").inner_text()
        figure.locator("[data-stage=weights][data-does]").click()
        assert figure.locator(".cell .amount").first.text_content() == "1"
        entry.fill("much")
        entry.press("Tab")
        assert entry.get_attribute("aria-invalid") == "true"
        assert "1000" in figure.locator(".problem").inner_text()


def test_a_field_stands_over_its_number_and_covers_no_word(visit, lesson_file):
    for width in (390, 1280):
        with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
            page.wait_for_timeout(100)
            for figure in page.locator("figure:has(.entry-of-query)").all():
                fields = [one.bounding_box() for one in figure.locator(".entry-of-query").all()]
                words = figure.locator("text[data-row]:not(.of-query)").all()
                boxes = [one.bounding_box() for one in words]
                for box in boxes:
                    for field in fields:
                        left, right = sorted((box, field), key=lambda one: one["x"])
                        assert left["x"] + left["width"] <= right["x"] + 1


def test_powers_and_their_sum_are_drawn_and_exponents_stand_above_the_line(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.weights"]')
        figure.locator("[data-stage=powers][data-does]").click()
        below = figure.locator(".calculation").first
        assert below.text_content() == "e9.48"
        assert below.locator("tspan.above").text_content() == "9.48"
        assert figure.locator(".cell .amount").first.text_content() == "13095"
        # As whole numbers they give 42509.
        assert figure.locator(".sum .amount").text_content() == "≈ 42508"
        figure.locator("[data-stage=weights][data-does]").click()
        assert below.text_content() == "13095 ÷ 42508"
        assert figure.locator(".sum .amount").text_content() == "1"
        figure.locator(".cell").first.click()
        told = figure.locator(".told")
        assert told.locator("sup").text_content() == "9.48"
        assert "13095 ÷ 42508 ≈ 0.31" in told.inner_text()


@pytest.mark.parametrize("name", ["search", "attend"])
def test_what_flows_lies_where_python_lays_it(name, visit, lesson_file, course):
    parts = [part for step in course["ask-match-mix"].steps for part in step.parts]
    (flow,) = (part for part in parts if isinstance(part, Flow) and part.name == name)
    drawn = flow.pictures("here")[-1]
    group = re.search(r'<g class="flows".*?</g>', drawn, re.DOTALL)[0]
    wanted = re.findall(r' d="([^"]+)"', group)
    # On a telephone, where the drawing is as wide as Python draws it.
    with visit(lesson_file("ask-match-mix"), viewport={"width": 390, "height": 844}) as page:
        paths = page.locator(f'[data-place="ask-match-mix.{name}"] .flows path')
        found = paths.evaluate_all("all => all.map(one => one.getAttribute('d'))")
    for ours, theirs in zip(wanted, found, strict=True):
        np.testing.assert_allclose(numbers_of(ours), numbers_of(theirs), atol=0.11)


def test_the_outline_of_a_hidden_bar_says_how_long_it_was(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.list"]')
        lengths = []
        for stage in ("scaled", "masked", "weights"):
            figure.locator(f"[data-stage={stage}][data-does]").click()
            bar = figure.locator(".cell").nth(3)
            lengths.append(float(bar.locator("rect").first.get_attribute("width")))
        assert lengths[0] == lengths[1] > 0 == lengths[2]
        assert "hides" in bar.get_attribute("class")


@pytest.mark.parametrize("name", ["search", "attend"])
def test_what_flows_is_wider_where_there_is_room_and_stays_inside(name, visit, lesson_file):
    # What flows into one bar is as wide as that is high.
    by = {"search": 1.5, "attend": 0.95}[name]
    thickest = []
    for width in (390, 1280):
        with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 844}) as page:
            figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
            ribbons = figure.locator(".flows path").evaluate_all(
                """all => all.map(one => {
                  const { right } = one.getBoundingClientRect();
                  return [Number(one.getAttribute("stroke-width")), right];
                })"""
            )
            edge = figure.bounding_box()["x"] + figure.bounding_box()["width"]
            thickest.append(max(wide for wide, _ in ribbons))
            assert all(right + wide / 2 < edge for wide, right in ribbons)
    assert thickest[1] > by * thickest[0]


def numbers_of(path):
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", path)]


def test_another_viewer_can_be_chosen_who_asks(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.list"]')
        figure.locator("[data-stage=weights][data-does]").click()
        weights = figure.locator(".cell").evaluate_all("all => all.map(c => +c.dataset.value)")
        pick(figure, "asker", 1)
        others = figure.locator(".cell").evaluate_all("all => all.map(c => +c.dataset.value)")
        # What the first question asks: vision is first, and attention is masked.
        assert int(np.argmax(others)) == 7
        assert others[5] == 0 < weights[5]
        assert figure.locator("text[data-row]:not(.of-query)").all_text_contents() == [
            "word",
            "viewer 1",
        ]
        assert figure.get_by_label("number of the query: viewer 1").count() == 1
        asking = figure.locator(".numbers tbody tr > :first-child")
        assert set(asking.all_text_contents()) == {"word + viewer 1"}
        pick(figure, "asker", 0)
        assert set(asking.all_text_contents()) == {"word + viewer 2"}
        again = figure.locator(".cell").evaluate_all("all => all.map(c => +c.dataset.value)")
        assert again == weights


def test_the_first_bar_is_chosen_from_the_list_where_none_was(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.match"]')
        keys = figure.locator('[data-control="column"]')
        assert keys.input_value() == ""
        pick(figure, "column", 0)
        assert figure.locator(".cell.chosen").get_attribute("data-at") == "0 0"
        assert "model: 2 ÷ √16" in figure.locator(".told").inner_text()
        pick(figure, "column", "")
        assert figure.locator(".cell.chosen").count() == 0
        assert "Choose a bar" in figure.locator(".told").inner_text()
        # A bar that is chosen is the one in the list.
        figure.locator(".cell").nth(1).click()
        assert keys.input_value() == "1"
        page.keyboard.press("Escape")
        assert keys.input_value() == ""


def test_boxes_that_are_filled_in_both_words_are_framed(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.match"]')
        figure.locator(".cell").first.click()
        assert figure.locator(".vector[data-key='0'] .joint").count() == 2
        assert figure.locator(".vector[data-role=query] .joint").count() == 2
        assert "2 ÷ √16 = 0.50" in figure.locator(".told").inner_text()


@EVERY
def test_under_the_pointer_row_and_column_light_up_and_products_add_up(
    name, visit, lesson_file, figures
):
    with visit(lesson_file(name)) as page:
        for flow, figure in figures(page, name, Flow):
            if "scores" not in flow.stages:
                continue
            if len(flow.stages) > 1:
                figure.locator('[data-does="stage"]').first.click()
            L, S = flow.steps()["scores"].shape
            for i, j in {(0, 0), (L - 1, S - 1), (L // 2, S // 2)}:
                cell = figure.locator(f'.cell[data-at="{i} {j}"]')
                is_brief = L > 1 and flow.steps()["keys"].shape[1] <= 8
                cell.hover() if is_brief else cell.click()
                lit = figure.locator(".cell.lit").evaluate_all("all => all.map(c => c.dataset.at)")
                wanted = {f"{a} {b}" for a in range(L) for b in range(S) if a == i or b == j}
                assert set(lit) == wanted
                assert figure.locator(".cell.chosen").get_attribute("data-at") == f"{i} {j}"
                assert figure.locator("text.lit[data-row]").first.get_attribute("data-row") == str(
                    i
                )
                told = figure.locator(".told").inner_text()
                assert sum_of(told) == pytest.approx(flow.steps()["scores"][i, j], abs=0.05)


def sum_of(told):
    """The sum of the products that a sentence shows, or its quotient of counts."""
    sums = re.split(" [=≈] ", told.rpartition(": ")[2])[0].replace("−", "-").replace("- ", "+ -")
    if "÷" in sums:
        shared, below = sums.split(" ÷ ")
        return int(shared) / (int(below) if below.isdigit() else int(below.strip("√")) ** 0.5)
    # "2 × (0.35 × 0.71)" is twice the same product.
    products = [re.sub("[()]", "", product).split("×") for product in sums.split(" + ")]
    return sum(np.prod([float(factor) for factor in found]) for found in products)


def test_a_drawing_plays_stops_and_is_stepped(visit, lesson_file):
    with visit(lesson_file("self-attention")) as page:
        figure = page.locator('[data-place="self-attention.layer"]')
        told = figure.locator(".told")
        press(figure, "play")  # from the first cell, though a whole stage is shown
        press(figure, "play")
        pressed = figure.locator('[data-does="stage"][aria-pressed="true"]')
        moments = [(pressed.get_attribute("data-stage"), told.inner_text().partition(":")[0])]
        first = told.inner_text()
        for _ in range(17):
            press(figure, "step")
            moments.append(
                (pressed.get_attribute("data-stage"), told.inner_text().partition(":")[0])
            )
        pairs = [("scores", f"{row} · {column}") for row in "abc" for column in "abc"]
        later = [(stage, row) for stage in ("masked", "weights", "outputs") for row in "abc"]
        assert moments == [*pairs, *later]
        press(figure, "restart")  # as it opened: the first stage as a whole
        assert figure.locator(".cell.chosen").count() == 0
        press(figure, "step")
        assert told.inner_text() == first
        press(figure, "step")
        second = told.inner_text()
        assert first != second
        assert figure.locator(".cell.chosen").get_attribute("data-at") == "0 1"
        press(figure, "back")
        assert told.inner_text() == first
        play = figure.locator('[data-does="play"]')
        play.click()
        assert play.inner_text() == "Pause"
        assert told.get_attribute("aria-live") == "off"
        page.wait_for_function(
            "([told, first]) => told.textContent !== first", arg=[told.element_handle(), first]
        )
        play.click()
        stopped = told.inner_text()
        page.wait_for_timeout(1200)
        assert told.inner_text() == stopped
        assert play.inner_text() == "Play"
        assert told.get_attribute("aria-live") is None


STAYS = "e => Math.round(scrollY + e.getBoundingClientRect().top)"


def test_a_drawing_opens_at_its_first_stage_and_stays_where_it_is(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        for figure in page.locator("[data-drawing=flow]").all():
            stages = figure.locator('[data-does="stage"]')
            pressed = stages.evaluate_all("all => all.map(one => one.ariaPressed)")
            assert pressed == ["true"] * bool(pressed) + ["false"] * (len(pressed) - 1)
            svg = figure.locator("svg").first
            place = svg.evaluate(STAYS)
            for button in stages.all():
                button.click()
                figure.locator(".cell").first.click()
                assert svg.evaluate(STAYS) == place


def test_what_is_rounded_is_shown_as_about_and_one_query_has_no_choice_of_queries(
    visit, lesson_file
):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        assert figure.locator('[data-control="row"]').count() == 0
        figure.locator('[data-stage="scaled"][data-does]').click()
        figure.locator(".cell").first.click()
        told = figure.locator(".told").inner_text()
        assert "1 × 4.74 + 1 × 7.23 = 11.97" in told
        assert "11.97 ÷ 0.5 = 23.94" in told


def test_bars_of_one_query_use_the_width_that_there_is(visit, lesson_file):
    # Half of the room is for larger numbers, which may be typed.
    for width, at_least in ((390, 20), (1280, 80)):
        with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
            bar = page.locator('[data-place="ask-match-mix.context"] .cell rect').first
            page.wait_for_timeout(100)
            assert bar.bounding_box()["width"] > at_least


def test_query_and_key_are_chosen_by_keyboard(visit, lesson_file, expect):
    with visit(lesson_file("masks")) as page:
        figure = page.locator('[data-place="masks.masks"]')
        figure.locator('select[data-control="row"]').focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        # A query alone: all its keys.
        expect(figure.locator("text.lit[data-row]")).to_have_attribute("data-row", "1")
        assert figure.locator(".cell.chosen").count() == 0
        pick(figure, "column", 3)
        assert figure.locator(".cell.chosen").get_attribute("data-at") == "1 3"
        pick(figure, "mask", "padding")
        assert figure.locator(".cell.chosen").get_attribute("data-at") == "1 3"
        assert figure.locator(".cell.hides").count() == 4


# --- arrows ---


@EVERY
def test_arrows_follow_the_pointer_and_the_keys(name, visit, lesson_file, figures):
    with visit(lesson_file(name)) as page:
        for part, figure in figures(page, name, Arrows):
            figure.scroll_into_view_if_needed()
            box = part.box
            same(part, figure, box)
            for place in range(len(part.vectors)):
                part = dragged(page, part, figure, place)
                same(part, figure, box)
            handle = figure.locator("button.handle").first
            handle.focus()
            page.keyboard.press("ArrowUp")
            page.keyboard.press("Shift+ArrowLeft")
            spacing = box[2]
            vectors = read(figure, part)
            moved = part.vectors[0] + [-spacing, 0.1 * spacing]
            np.testing.assert_allclose(vectors[0], np.clip(moved, *box[:2]), atol=0.006)
            same(replace(part, vectors=vectors), figure, box)
            press(figure, "restart")
            assert read(figure, part)[0] != pytest.approx(vectors[0])


def read(figure, part):
    rows = np.reshape(table(figure), (-1, 5))
    return rows[: len(part.vectors), :2]


def dragged(page, part, figure, place):
    """The arrow, moved by the mouse to the middle of the half that it is not in."""
    box = figure.locator("svg").bounding_box()
    handle = figure.locator("button.handle").nth(place).bounding_box()
    x, y = (handle[a] + handle[b] / 2 for a, b in (("x", "width"), ("y", "height")))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + (0.3 + 0.05 * place) * box["height"])
    page.mouse.up()
    vectors = read(figure, part)
    return replace(part, vectors=vectors)


def same(part, figure, box):
    """The plane stays as it was drawn, wherever the arrows are."""
    columns = [part.all_vectors, part.lengths, part.degrees, part.products]
    wanted = np.column_stack(columns)
    np.testing.assert_allclose(np.reshape(table(figure), wanted.shape), wanted, **CLOSE)
    nearest = figure.locator(".dot.nearest")
    if part.nearest >= 0:
        assert nearest.get_attribute("data-dot") == str(part.nearest)
    # The tip is where the vector says.
    low, high, _ = box
    unit = (360 - 28) / (high - low)
    for place, (x, y) in enumerate(part.all_vectors):
        points = figure.locator(f'[data-arrow="{place}"] polygon').get_attribute("points")
        tip = np.array(points.split()[0].split(","), float)
        np.testing.assert_allclose(tip, [14 + (x - low) * unit, 346 - (y - low) * unit], atol=0.06)


def test_a_dragged_arrow_lands_under_the_pointer(visit, lesson_file, course):
    (part,) = [p for p in course["dot-product"].steps[0].parts if isinstance(p, Arrows)]
    with visit(lesson_file("dot-product")) as page:
        figure = page.locator('[data-place="dot-product.angles"]')
        figure.scroll_into_view_if_needed()
        moved = dragged(page, part, figure, 1)
        low, high, _ = part.box
        unit = (360 - 28) / (high - low)
        wanted = [low + (0.7 * 360 - 14) / unit, low + (0.65 * 360 - 14) / unit]
        np.testing.assert_allclose(moved.vectors[1], wanted, atol=0.03)
        handle = figure.locator("button.handle").nth(1)
        assert handle.get_attribute("aria-label").startswith("tip of b1: ")


@pytest.mark.parametrize("place", [0, 1])
def test_where_tips_are_at_one_place_each_arrow_can_be_dragged(place, visit, lesson_file):
    with visit(lesson_file("softmax")) as page:
        figure = page.locator("figure:has(button.handle)").first
        figure.scroll_into_view_if_needed()
        handles = [figure.locator("button.handle").nth(n) for n in (0, 1)]
        names = [handle.get_attribute("aria-label") for handle in handles]
        assert names[0].partition(": ")[2] == names[1].partition(": ")[2]
        box = handles[place].bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 40, y - 60)
        page.mouse.up()
        assert handles[place].bounding_box()["y"] < box["y"] - 50
        assert handles[1 - place].get_attribute("aria-label") == names[1 - place]


# --- heads ---


@EVERY
def test_heads_show_the_weights(name, visit, lesson_file, figures):
    with visit(lesson_file(name)) as page:
        for part, figure in figures(page, name, Heads):
            same_weights(part, figure, part.readings[0], part.layer, part.head)
            n_layers, n_heads = part.first.weights.shape[:2]
            for place, reading in list(enumerate(part.readings))[:3]:
                if len(part.readings) > 1:
                    pick(figure, "reading", place)
                if n_layers > 1:
                    pick(figure, "layer", 0)
                if n_heads > 1:
                    pick(figure, "head", n_heads - 2)
                layer, head = 0 if n_layers > 1 else part.layer, max(n_heads - 2, 0)
                same_weights(part, figure, reading, layer, head)


def same_weights(part, figure, reading, layer, head):
    weights = reading.weights[layer, head]
    np.testing.assert_allclose(table(figure), weights.ravel(), **CLOSE)
    lines = figure.locator(".lines path").evaluate_all(
        "all => all.map(p => [...p.dataset.at.split(' ').map(Number), Number(p.dataset.value)])"
    )
    assert len(lines) == (weights >= 0.01).sum()
    for i, j, weight in lines:
        assert weight == pytest.approx(weights[i, j], abs=1e-6)


def test_a_word_under_the_pointer_is_alone_and_a_head_is_chosen_at_a_glance(visit, lesson_file):
    with visit(lesson_file("learning")) as page:
        figure = page.locator('[data-place="learning.heads"]')
        figure.locator('[data-asks="2"]').hover()
        clear = figure.locator(".lines path:not(.faint)").evaluate_all(
            "all => all.map(p => p.dataset.at.split(' ')[0])"
        )
        assert set(clear) == {"2"}
        assert "animal → " in figure.locator(".told").inner_text()
        canvas = figure.locator("canvas")
        box = canvas.bounding_box()
        side = box["width"] / 12
        canvas.click(position={"x": 3.5 * side, "y": 2.5 * side})
        assert figure.locator('select[data-control="layer"]').input_value() == "2"
        assert figure.locator('select[data-control="head"]').input_value() == "3"
        press(figure, "step")
        assert "layer 3, head 5" in figure.locator(".told").inner_text()


# --- for everyone ---


def test_without_motion_nothing_moves_by_itself(visit, lesson_file):
    with visit(lesson_file("self-attention")) as page:
        figure = page.locator('[data-place="self-attention.layer"]')
        press(figure, "play")
        names = figure.locator(".flows path[data-at]").evaluate_all(
            "all => all.map(p => getComputedStyle(p).animationName)"
        )
        assert set(names) == {"none"}


def test_the_first_step_is_the_first_key_and_a_bar_of_the_mix_says_its_sum(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.search"]')
        told = figure.locator(".told")
        figure.locator('[data-does="step"]').click()
        assert "toy truck" in told.inner_text()
        figure.locator('[data-does="step"]').click()
        assert "robot film" in told.inner_text()
        figure.locator('.mixed[data-quality="0"]').click()
        assert told.inner_text() == "Crafts: 0.31 × 1 + 0.10 × 1 = 0.41"
        # One key is chosen: the others have no frame.
        figure.locator(".cell").nth(2).click()
        frames = figure.locator(".cell rect").evaluate_all(
            "all => all.map(one => getComputedStyle(one).stroke !== 'none')"
        )
        assert frames.count(True) == 1


def test_numbers_of_values_and_of_mixes_say_how_they_come_about(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        told = figure.locator(".told")
        mix = figure.locator('[data-end="output 2"]')
        mix.locator(".entry").first.click()
        said = told.inner_text()
        assert said == "transformer · Crafts: 0.22 × 0.5 + 0.17 × 1 + 0.61 × 0.25 ≈ 0.43"
        assert mix.locator(".chosen").count() == 1
        alone = figure.locator('[data-alone="2"]')
        assert sum(map(float, alone.locator(".alone-entry").all_text_contents())) == 1
        # A cell says its weight and what that brings.
        figure.locator(".cell").nth(7).click()
        said = told.inner_text().splitlines()
        assert said[0].startswith("transformer · railway: e0.71 ÷ (")
        assert said[1:] == [
            "0.17 × Crafts",
            "transformer: Crafts 0.43, Education 0.15, Film 0.08, Science 0.15, Technology 0.19",
        ]


def test_a_number_of_a_mix_is_chosen_alone(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        for name, number in (("all", '[data-end="output 2"] .entry'), ("search", ".mixed")):
            figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
            for stage in figure.locator('[data-stage="outputs"][data-does]').all():
                stage.click()
            figure.locator(".cell").first.click()
            assert figure.locator(".cell.chosen").count() == 1
            figure.locator(number).first.click()
            assert figure.locator(".cell.chosen, .lit").count() == 0
            assert "Crafts: " in figure.locator(".told").inner_text()


def test_start_again_sets_the_temperature_and_who_asks(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        for name in ("weights", "list"):
            figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
            before = table(figure)
            slide(figure, "temperature", 2)
            if name == "list":
                pick(figure, "asker", 1)
            assert table(figure) != before
            press(figure, "restart")
            assert table(figure) == before
            assert figure.locator('[data-output="temperature"]').inner_text() == "0.5"


def test_a_drawing_has_no_room_for_a_mix_that_is_not_there(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.context"]')
        svg = figure.locator("svg[data-early]")
        low, place = svg.bounding_box()["height"], svg.evaluate(STAYS)
        figure.locator('[data-stage="outputs"][data-does]').click()
        assert svg.bounding_box()["height"] > low + 50
        assert svg.evaluate(STAYS) == place


@pytest.mark.parametrize("width", [390, 1280])
def test_each_mix_is_in_line_with_its_weights_or_below_them(width, visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        before = 0
        for row in range(3):
            cells = [figure.locator(f'[data-at="{row} {j}"] rect').bounding_box() for j in range(3)]
            mix = figure.locator(f'[data-end="output {row}"] .track').bounding_box()
            alone = figure.locator(f'[data-alone="{row}"] .track').bounding_box()
            top, end = cells[0]["y"], cells[0]["y"] + cells[0]["height"]
            assert before < top
            # It is thin, and stands right above the mix, as long as that.
            assert alone["height"] < 0.6 * mix["height"]
            assert 0 < mix["y"] - alone["y"] - alone["height"] < 10
            assert alone["x"] == mix["x"]
            assert alone["width"] == mix["width"]
            if width == 1280:
                assert mix["x"] > cells[-1]["x"] + cells[-1]["width"]
                assert top < alone["y"] < mix["y"] + mix["height"] < end + 1
            else:
                assert end < alone["y"]
            before = mix["y"] + mix["height"]


def test_numbers_of_a_mix_do_not_overlap_and_a_step_adds_a_mix(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 390, "height": 844}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        for place in range(4):
            pick(figure, "replacement", place)
            for line in figure.locator("[data-alone], [data-end^=output]").all():
                found = line.locator(".entry, .alone-entry").evaluate_all(
                    """all => all.filter(one => one.textContent).map(one => {
                      const { left, right } = one.getBoundingClientRect();
                      return [left, right];
                    })"""
                )
                # Each segment has one; a line leads to it where its segment is narrow.
                lengths = line.locator(".segment").evaluate_all(
                    "all => all.map(one => Number(one.getAttribute('width')))"
                )
                assert len(found) == sum(length > 0 for length in lengths)
                assert all(a[1] < b[0] for a, b in itertools.pairwise(found))
        press(figure, "restart")
        leaders = figure.locator('[data-end="output 0"] .leader')
        assert any(one.get_attribute("d") for one in leaders.all())
        seen = []
        for _ in range(3):
            press(figure, "step")
            ends = figure.locator("[data-end^=output]").evaluate_all(
                "all => all.map(one => getComputedStyle(one).visibility)"
            )
            seen.append(ends.count("visible"))
        assert seen == [1, 2, 3]


@pytest.mark.parametrize("width", [390, 1280])
def test_what_a_word_is_alone_stands_above_what_it_is_and_wedges_lead_down(
    width, visit, lesson_file
):
    with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 844}) as page:
        figure = page.locator('[data-place="ask-match-mix.attend"]')
        amounts, alone = figure.locator(".mixed .amount"), figure.locator(".alone-entry")
        assert alone.all_text_contents() == ["0.25", "0.25", "0.125", "0.25", "0.125"]
        assert amounts.all_text_contents() == ["0.43", "0.15", "0.08", "0.15", "0.19"]
        tracks = [one.bounding_box() for one in figure.locator(".late > .track").all()]
        assert tracks[0]["y"] + tracks[0]["height"] < tracks[1]["y"]
        # Both bars are as long as one another, and segments fill them.
        for box, kind in zip(tracks, (".alone", "[data-part]"), strict=True):
            assert (box["x"], box["width"]) == (tracks[0]["x"], tracks[0]["width"])
            found = figure.locator(f".mixed {kind}").evaluate_all(
                "all => all.map(box => Number(box.getAttribute('width')))"
            )
            room = float(figure.locator(".late > .track").first.get_attribute("width"))
            assert sum(found) == pytest.approx(room, abs=0.5)
        # Each wedge leads from one end of its segments to the other.
        for row in figure.locator(".mixed").all():
            above = row.locator(".alone").bounding_box()
            below = [one.bounding_box() for one in row.locator("[data-part]").all()]
            wedge = row.locator(".wedge").bounding_box()
            left = min(above["x"], *(one["x"] for one in below))
            assert wedge["x"] == pytest.approx(left, abs=1.5)
            assert wedge["y"] + wedge["height"] == pytest.approx(below[0]["y"], abs=1.5)
        # What flows begins behind the bars and their numbers, which do not cover one another.
        edge = figure.locator(".flows path").first.bounding_box()["x"]
        for line in (alone, amounts):
            boxes = [one.bounding_box() for one in line.all()]
            assert boxes[-1]["x"] + boxes[-1]["width"] <= edge + 1
            assert all(a["x"] + a["width"] < b["x"] for a, b in itertools.pairwise(boxes))
        pick(figure, "replacement", 1)
        assert amounts.first.text_content() == "0.25"
        press(figure, "restart")
        press(figure, "step")
        assert not figure.locator(".wedge").first.is_visible()


def test_on_a_phone_tables_of_values_need_no_scrolling(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 390, "height": 844}) as page:
        for table in page.locator(".matrix[data-role=value] .scroll").all():
            wide = table.evaluate("one => [one.scrollWidth, one.clientWidth]")
            assert wide[0] <= wide[1]


def test_what_is_below_0_stands_in_brackets_and_a_value_is_written_as_in_its_table(
    visit, lesson_file
):
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator('[data-place="ask-match-mix.list"]')
        pick(figure, "asker", 1)
        figure.locator(".cell").nth(3).click()
        assert "1 × (−0.08)" in figure.locator(".told").inner_text()
        assert "1 × (−0.08)" in figure.locator(".calculation").nth(3).text_content()
        figure = page.locator('[data-place="ask-match-mix.attend"]')
        figure.locator(".cell").last.click()
        assert "Film 0.125" in figure.locator(".told").inner_text()
        # Beside a value stand its bars alone, and below a weight the score that it comes from.
        assert figure.locator("[data-value-of]").count() == 0
        scores = figure.locator(".calculation").all_text_contents()
        assert scores == ["score 0.50", "score 0.35", "score 1.00"]
        pick(figure, "replacement", 1)
        scores = figure.locator(".calculation").all_text_contents()
        assert scores == ["score 0.50", "score 0.50", "score 1.00"]
        bars = figure.locator('[data-bars-of="1"] rect:not(.track)').evaluate_all(
            "all => all.map(one => Number(one.getAttribute('height')))"
        )
        assert [bar > 0 for bar in bars] == [False, False, False, True, False]


def test_boxes_have_numbers_and_what_is_first_to_do_stands_beside_the_bars(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.match"]')
        over = figure.locator("svg > text.side").all_text_contents()
        assert [text for text in over if text.isdigit()] == [str(n) for n in range(1, 9)]
        for name in ("weights", "list", "match"):
            figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
            told, drawn = (figure.locator(one).bounding_box() for one in (".tries", "svg"))
            assert told["x"] > drawn["x"] + drawn["width"]
            assert drawn["y"] <= told["y"] < drawn["y"] + 150
            begins = figure.locator("svg").bounding_box()["y"] - figure.bounding_box()["y"]
            assert begins < 300


def test_a_mix_that_is_not_drawn_yet_says_nothing_under_the_pointer(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        mix = figure.locator('[data-end="output 2"] .touch').first
        press(figure, "step")
        mix.scroll_into_view_if_needed()
        said = figure.locator(".told").inner_text()
        box = mix.bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(*middle)
        assert figure.locator(".told").inner_text() == said
        for _ in range(2):
            press(figure, "step")
        mix.hover()
        assert figure.locator(".told").inner_text().startswith("transformer · Crafts")


def test_on_a_phone_numbers_of_every_word_are_large_enough_to_read(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 390, "height": 800}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        sizes = figure.locator(".cell text, .entry, .alone-entry").evaluate_all(
            "all => all.map(one => parseFloat(getComputedStyle(one).fontSize)"
            " * one.getScreenCTM().a)"
        )
        assert len(sizes) == 2 * 9 + 2 * 15
        assert min(sizes) >= 12


@pytest.mark.parametrize("name", ["attend", "all"])
def test_another_word_in_the_sentence_moves_the_mix_and_leaves_what_it_was(
    name, visit, lesson_file, course
):
    parts = [part for step in course["ask-match-mix"].steps for part in step.parts]
    (flow,) = (part for part in parts if isinstance(part, Flow) and part.name == name)
    # Ticks stand where the bars of the word alone would end; of every word, such a bar is drawn.
    alone_in = {
        "attend": """all => all.map(one => {
            const middle = Number(one.getAttribute("x")) + one.getAttribute("width") / 2;
            return middle - one.parentElement.querySelector("rect").getAttribute("x");
        })""",
        "all": "all => all.map(one => Number(one.getAttribute('width')))",
    }[name]
    bars = {"attend": ".mixed .alone", "all": '[data-alone="2"] .alone-of'}[name]
    with visit(lesson_file("ask-match-mix")) as page:
        figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
        outlines = figure.locator(bars)
        # As long as the word's own value, whatever stands beside it.
        alone = flow.alone(len(flow.bench.rows) - 1)
        assert alone.tolist() == [0.25, 0.25, 0.125, 0.25, 0.125]
        for place, one in list(enumerate(flow.replacements))[::-1]:
            pick(figure, "replacement", place)
            other = flow.having(one)
            wanted = other.steps()["outputs"]
            agree(replace(other, begins=flow.begins), figure, "none")
            np.testing.assert_allclose(table(figure)[-wanted.size :], wanted.ravel(), **CLOSE)
            labels = figure.locator("text[data-column]:not(.of-key)").all_text_contents()
            assert labels == list(one.columns)
            options = figure.locator('[data-control="column"] option').all_text_contents()
            assert options == ["choose", *one.columns]
            pairs = figure.locator(".numbers tbody").first.locator("tr td:nth-child(2)")
            assert pairs.all_text_contents() == list(one.columns) * len(one.rows)
            assert figure.locator(".sentence").inner_text() == " ".join(one.columns)
            assert figure.locator(".sentence strong").inner_text() == one.label
            if name == "attend":
                values = page.locator(".step:has(.sentence) .matrix[data-role=value] tbody")
                headings = page.locator(".step:has(.sentence) .matrix[data-role=value] thead th")
                assert headings.all_text_contents()[-3:] == list(one.columns)
                numbers = values.locator("td").all_text_contents()
                np.testing.assert_array_equal(np.array(numbers, float), one.values.T.ravel())
            seen = np.array(outlines.evaluate_all(alone_in))
            np.testing.assert_allclose(seen / seen.max(), alone / alone.max(), atol=0.01)
        pick(figure, "replacement", 2)
        said = figure.locator(".told").inner_text().splitlines()
        assert said[0].startswith("transformer: ")
        assert said[1].startswith("transformer, before: Crafts 0.43")
        figure.locator(".cell").first.hover()
        assert figure.locator(".told").inner_text().splitlines() == said
        # Of another temperature it would be another one.
        slide(figure, "temperature", 1)
        assert "before" not in figure.locator(".told").inner_text()
        # To start again is to have the first word and the first temperature.
        press(figure, "restart")
        assert figure.locator(".sentence").inner_text() == "model railway transformer"
        assert figure.locator('[data-control="replacement"]').input_value() == "0"
        assert figure.locator('[data-control="temperature"]').input_value() == "0.5"
        assert figure.locator('[data-output="temperature"]').inner_text() == "0.5"
        agree(replace(flow, begins=flow.begins), figure, "none")


def test_what_is_said_of_a_click_stays_until_another_one_or_escape(visit, lesson_file):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.all"]')
        told = figure.locator(".told")
        nothing = told.inner_text()
        entry = figure.locator('[data-end="output 0"] .entry').first
        other = figure.locator('[data-end="output 2"] .entry').first
        entry.hover()
        assert told.inner_text().startswith("model · Crafts")
        figure.locator("figcaption").hover()
        assert told.inner_text() == nothing
        entry.click()
        said = told.inner_text()
        for elsewhere in (other, figure.locator("figcaption"), figure.locator(".cell").last):
            elsewhere.hover()
            assert told.inner_text() == said
        other.click()
        assert told.inner_text().startswith("transformer · Crafts")
        page.keyboard.press("Escape")
        assert told.inner_text() == nothing
        assert figure.locator(".chosen").count() == 0
        # So does a cell of one query, and a bar of its mix.
        figure = page.locator('[data-place="ask-match-mix.search"]')
        told = figure.locator(".told")
        for clicked in (figure.locator(".cell").nth(2), figure.locator(".mixed").first):
            clicked.click()
            said = told.inner_text()
            figure.locator("figcaption").hover()
            assert told.inner_text() == said
            page.keyboard.press("Escape")
            assert "Choose a bar" in told.inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_stages_and_player_stand_in_a_line_and_no_click_moves_the_drawing(
    width, visit, lesson_file
):
    with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
        for figure in page.locator("[data-drawing=flow]").all():
            stages = figure.locator(".stages")
            if stages.count() and width == 1280:
                tops = [one.bounding_box()["y"] for one in (stages, figure.locator(".player"))]
                assert tops[0] == pytest.approx(tops[1], abs=1)
            svg = figure.locator("svg").first
            place = svg.evaluate(STAYS)
            for button in figure.locator(".controls button").all():
                button.click()
                assert svg.evaluate(STAYS) == place
            press(figure, "restart")
            for name in ("asker", "replacement"):
                choice = figure.locator(f'select[data-control="{name}"]')
                if choice.count():
                    choice.select_option("1")
                    assert svg.evaluate(STAYS) == place


def test_an_entry_that_is_mended_is_no_longer_complained_of(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        field = page.locator(".entry-of-query").first
        field.fill("abc")
        field.press("Tab")
        assert page.locator(".problem").count() == 1
        field.fill("0.5")
        assert page.locator(".problem").count() == 0
        assert field.get_attribute("aria-invalid") is None


# Beside how a reader reads them: "e9.48" is a power, "3.85·10²⁰" one number.
POWER_OF_10 = re.compile("·10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def computed(left):
    """What the left of an equation gives, as it is written."""
    plain = left.replace("−", "-").replace("≈", "").replace("-∞", "-9e9")
    plain = POWER_OF_10.sub(lambda found: "e" + found[1].translate(RAISED), plain)
    plain = re.sub(r"√(\d+)", r"(\1 ** 0.5)", plain)
    # An exponent stands above the line, so that its "^" is no text.
    plain = re.sub(r"\be(-?[\d.]+(?:e\d+)?)", r"np.exp(\1)", plain)
    return float(eval(plain.replace("×", "*").replace("÷", "/"), {"np": np}))


def is_what_is_shown(left, right):
    found, right = computed(left), right.replace("≈", "")
    if POWER_OF_10.search(right):
        return f"{found:.2e}" == f"{computed(right):.2e}"
    decimals = len(right.partition(".")[2])
    wanted = computed(right)
    return abs(found - wanted) <= (0.5 + 1e-6) * 10**-decimals


@pytest.mark.parametrize("temperature", [0.1, 0.3, 0.5, 0.7, 4])
def test_what_is_shown_on_the_left_gives_what_is_shown_on_the_right(
    temperature, visit, lesson_file
):
    with visit(lesson_file("ask-match-mix")) as page:
        for figure in page.locator("[data-drawing=flow]").all():
            if figure.locator('[data-control="temperature"]').count():
                slide(figure, "temperature", temperature)
            buttons = figure.locator("[data-does=stage]").all()
            if buttons:
                buttons[-1].click()
            for chosen in figure.locator(".cell, .mixed, .end .entry").all():
                chosen.dispatch_event("click")
                for line in figure.locator(".told").inner_text().splitlines():
                    for left, right in re.findall(r"(?:^|: )([^:]+) [=≈] (\S+)$", line):
                        assert is_what_is_shown(left, right), line
        figure = page.locator('[data-place="ask-match-mix.weights"]')
        if temperature == 0.1:
            assert figure.locator(".calculation").first.text_content() == "3.85·10²⁰ ÷ 4.14·10²⁰"


def test_addends_of_a_mix_add_up_as_they_are_written(visit, lesson_file):
    with visit(lesson_file("ask-match-mix")) as page:
        for name in ("search", "context", "list", "recommend"):
            figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
            if figure.locator("[data-does=stage]").count():
                figure.locator('[data-stage="outputs"][data-does]').click()
            rows = figure.locator(".mixed").evaluate_all(
                "all => all.map(one => [one.querySelector('.addends').textContent,"
                " one.querySelector('.amount').textContent])"
            )
            assert any(addends for addends, _ in rows) or name in ("context", "attend")
            for addends, amount in rows:
                if addends:
                    total = sum(map(float, addends.split(" + ")))
                    assert abs(total - float(amount)) < 0.6 * 10 ** -len(amount.split(".")[1])
            figure.locator(".cell").last.click()
            assert "≈ ≈" not in figure.locator(".told").inner_text()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["weights", "list"])
def test_what_is_said_of_a_stage_stands_above_its_bars_or_beside_them(
    name, width, visit, lesson_file
):
    with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
        figure = page.locator(f'[data-place="ask-match-mix.{name}"]')
        remarks = figure.locator(".remark")
        svg = figure.locator("svg")
        place = svg.evaluate(STAYS)
        for button in figure.locator("[data-does=stage]").all():
            button.click()
            seen = [one for one in remarks.all() if one.is_visible()]
            assert len(seen) == 1
            assert seen[0].get_attribute("data-stage") == button.get_attribute("data-stage")
            assert seen[0].inner_text().strip()
            box, drawn = seen[0].bounding_box(), svg.bounding_box()
            if width == 1280:
                assert drawn["x"] + drawn["width"] < box["x"]
                assert drawn["y"] < box["y"] < drawn["y"] + 200
            else:
                assert box["y"] + box["height"] <= drawn["y"]
                assert drawn["y"] - box["y"] < 200
            assert svg.evaluate(STAYS) == place


def test_a_drawing_of_lesson_0_is_in_view_as_a_whole_and_sums_stand_beside_its_bars(
    visit, lesson_file
):
    with visit(lesson_file("ask-match-mix"), viewport={"width": 1280, "height": 800}) as page:
        for figure in page.locator("[data-drawing=flow]").all():
            for stage in figure.locator("[data-does=stage]").all() or [None]:
                if stage:
                    stage.click()
                height = figure.bounding_box()["height"]
                assert height <= 700
                if not figure.locator("svg[data-stretch]").count():
                    continue
                for cell in (figure.locator(".cell").first, figure.locator(".cell").last):
                    cell.click()
                    drawn, told = (figure.locator(one).bounding_box() for one in ("svg", ".told"))
                    assert drawn["x"] + drawn["width"] < told["x"]
                    assert drawn["y"] < told["y"]
                    # What is said of a bar moves nothing, not even what stands below.
                    assert figure.bounding_box()["height"] == pytest.approx(height, abs=1)
                page.keyboard.press("Escape")


def test_the_worked_line_of_a_stage_is_the_lesson_s_and_follows_what_is_changed(
    visit, lesson_file, course
):
    parts = [part for step in course["ask-match-mix"].steps for part in step.parts]
    formulas = [part for part in parts if isinstance(part, Formula) and part.stage]
    assert [part.stage for part in formulas] == ["scaled", "powers", "weights", "scores"]
    with visit(lesson_file("ask-match-mix")) as page:
        worked = page.locator(".remark:has(p + p) .in-numbers[data-key]")
        texts = worked.all_text_contents()
        for formula in formulas:
            assert formula.text.replace("^", "") in texts
        figure = page.locator('[data-place="ask-match-mix.weights"]')
        slide(figure, "temperature", 1)
        assert "4.74 ÷ 1 = 4.74" in figure.locator(".in-numbers").all_text_contents()
        figure = page.locator('[data-place="ask-match-mix.list"]')
        figure.locator(".entry-of-query").first.fill("0")
        assert "0 × 4.14 + 1 × 1.54 = 1.54" in figure.locator(".in-numbers").all_text_contents()


def test_without_the_script_all_that_is_said_of_stages_is_there_in_order(course):
    page = to_page([course["ask-match-mix"]])
    figure = page[page.index('data-place="ask-match-mix.weights"') :]
    figure = figure[: figure.index("</figure>")]
    places = [
        figure.index(words) for words in ("Divide by T", "raise <em>e</em>", "Last, divide", "<svg")
    ]
    assert places == sorted(places)
    # It is said once on a page; elsewhere it stands below the drawing.
    assert page.count("No power of it is negative") == 1
    written = to_markdown([course["ask-match-mix"]])
    places = [
        written.index(words)
        for words in ("Divide by T", "4.74 ÷ 0.5 = 9.48", "raise *e*", "Last, divide")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [390, 1280])
def test_a_table_of_videos_turns_to_the_boxes_of_words(width, visit, lesson_file, course):
    parts = [part for step in course["ask-match-mix"].steps for part in step.parts]
    (table,) = (part for part in parts if isinstance(part, Turning))
    (match,) = (part for part in parts if isinstance(part, Flow) and part.name == "match")
    # Turned, its boxes are those of the keys of the drawing below.
    np.testing.assert_array_equal(table.array.T, match.steps()["keys"])
    places = """all => all.map(box => {
        const { x, y } = box.getBoundingClientRect();
        return [...box.dataset.box.split(" ").map(Number), x, y];
    })"""
    with visit(lesson_file("ask-match-mix"), viewport={"width": width, "height": 900}) as page:
        figure = page.locator('[data-place="ask-match-mix.shared"]')
        svg = figure.locator("svg").first
        assert not figure.locator("svg").nth(1).is_visible()
        boxes = svg.locator("[data-box]")
        assert boxes.count() == 24
        said, place = figure.locator(".told").inner_text(), svg.evaluate(STAYS)
        after = page.locator('[data-place="ask-match-mix.match"]').evaluate(STAYS)
        # The rows are videos, as in the first table, and then words.
        for row, column, n_rows in ((0, 1, 8), (1, 0, 3), (0, 1, 8)):
            seen = boxes.evaluate_all(places)
            assert len({round(one[3]) for one in seen}) == n_rows
            for axis, place_in in ((row, 3), (column, 2)):
                by_number = sorted(seen, key=lambda one: (one[1 - axis], one[axis]))
                for a, b in itertools.pairwise(by_number):
                    if a[1 - axis] == b[1 - axis]:
                        assert a[place_in] < b[place_in]
            button = figure.locator('[data-does="turn"]')
            button.focus()
            page.keyboard.press("Enter")
            assert svg.evaluate(STAYS) == place
        assert figure.locator(".told").inner_text() != said
        assert page.locator('[data-place="ask-match-mix.match"]').evaluate(STAYS) == after
        # In the drawing below, the boxes are as dark.
        shade = "all => all.map(one => Number(one.getAttribute('fill-opacity')))"
        below = page.locator('[data-place="ask-match-mix.match"] .vector[data-key] rect')
        shades = np.array(boxes.evaluate_all(shade)).reshape(8, 3)
        wanted = np.array(below.evaluate_all(shade)).reshape(3, 8)
        np.testing.assert_allclose(shades.T, wanted, atol=0.002)

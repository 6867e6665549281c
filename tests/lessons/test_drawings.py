"""Drawings hold what was computed: their numbers are the lesson's, and each is told in words."""

import itertools
import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from qkvsearch.attention import attention, cosine_score
from qkvsearch.cli.lesson.drawn import bar, drawing_view
from qkvsearch.lessons import LESSONS, lesson
from qkvsearch.lessons.compute import learning
from qkvsearch.lessons.drawings import Arrows, Drawing, Flow, Heads, Total, Turning
from qkvsearch.lessons.drawings.attention_lines import LEVELS
from qkvsearch.lessons.drawings.one_query import ribbons
from qkvsearch.lessons.exports.markdown import to_markdown
from qkvsearch.lessons.exports.notebook import to_notebook
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.exports.page.drawings import alone, as_address
from qkvsearch.lessons.parts import Given
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.pretrained.fetch import find

EVERY = pytest.mark.parametrize("name", LESSONS)


def drawings(made, kind=Drawing):
    return [part for step in made.steps for part in step.parts if isinstance(part, kind)]


# --- all of them ---


@EVERY
def test_every_picture_is_named_and_told(taught, name):
    for drawing in drawings(taught(name)):
        assert drawing.caption
        for picture in drawing.pictures("here"):
            assert picture.count("<svg") == 1
            assert ' role="img" aria-labelledby="' in picture
            assert re.search(r"<title id=[^>]*>[^<]{10,}</title>", picture)
            assert re.search(r"<desc id=[^>]*>[^<]{20,}</desc>", picture)
            assert "nan" not in re.sub("<(title|desc|text).*?</", "", picture)
        for headings, rows in drawing.tables:
            assert rows
            assert {len(row) for row in rows} == {len(headings)}


@pytest.mark.slow
@pytest.mark.xdist_group("the whole course")
def test_the_course_has_every_kind_of_picture_enough_of_them_and_stays_small(taught):
    course = [taught(name) for name in LESSONS]
    assert {type(drawing) for made in course for drawing in drawings(made)} == {
        Arrows,
        Flow,
        Heads,
        Total,
        Turning,
    }
    page = to_page(course)
    assert len(re.findall(r"<(?:svg|canvas)\b", page)) >= 24
    assert len(page.encode()) < 3e6


@EVERY
def test_a_picture_alone_is_a_file_with_its_own_style(taught, name):
    from xml.etree import ElementTree

    for drawing in drawings(taught(name)):
        for picture in drawing.pictures(drawing.name):
            root = ElementTree.fromstring(alone(picture))
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert "--ink" in root.find("{http://www.w3.org/2000/svg}style").text
            assert as_address(picture).startswith("data:image/svg+xml;base64,")


@EVERY
def test_in_markdown_and_notebooks_pictures_stand_at_the_end_of_the_text(taught, name):
    made = taught(name)
    wanted = [p for d in drawings(made) for p in d.pictures(d.name)]
    text = to_markdown([made])
    body, _, held = text.partition("\n[drawing-1]: ")
    assert re.findall(r"\]\[drawing-(\d+)\]", body) == [str(n + 1) for n in range(len(wanted))]
    assert "base64" not in body
    found = re.findall(r"data:image/svg\+xml;base64,(\S+)", held)
    assert [b64decode(one).decode() for one in found] == [alone(picture) for picture in wanted]
    cells = json.loads(to_notebook([made]))["cells"]
    shown = "".join("".join(cell["source"]) for cell in cells)
    assert shown.count("data:image/svg+xml;base64,") == len(wanted)


@EVERY
@pytest.mark.parametrize("width", [40, 80])
def test_the_terminal_draws_no_wider_than_it_is(taught, name, width):
    for drawing in drawings(taught(name)):
        lines = "\n".join(text.plain for text in drawing_view(drawing, width)).split("\n")
        assert max(map(cell_len, lines)) <= width
        assert drawing.caption.split()[0] in lines[0]


def test_numbers_too_large_are_drawn_all_the_same():
    given = {
        name: np.array([[1e308, -1e308], [1.0, 2.0]]) for name in ("queries", "keys", "values")
    }
    flow = Flow("f", "c", Workbench("b", "", given, "ab", "ab"), "q", "k")
    for picture in flow.pictures("here"):
        assert not re.search(r'="[^"]*(?:nan|inf)[^"]*"', re.sub("data-value=.*?>", "", picture))
    assert flow.told
    assert list(drawing_view(flow, 80))


def test_bars_are_as_long_as_weights():
    assert [bar(share, 8) for share in (1.0, 0.5, 1 / 64, 0.0, np.inf)] == [
        "█" * 8, "█" * 4, "▏", "", "█" * 8,
    ]  # fmt: skip


# --- attention ---


@EVERY
def test_a_flow_is_what_attention_computes(taught, name):
    for flow in drawings(taught(name), Flow):
        for mask in flow.bench.masks:
            steps = flow.steps(mask)
            q, k = steps["queries"], steps["keys"]
            np.testing.assert_allclose(steps["scores"], q @ k.T, atol=1e-12)
            if not flow.has_values or flow.bench.normalize != "softmax":
                continue
            outputs, weights = attention(
                q,
                k,
                steps["values"],
                mask=flow.visible(mask),
                scale=flow.factor,
                return_weights=True,
            )
            np.testing.assert_allclose(steps["weights"], weights, atol=1e-12)
            np.testing.assert_allclose(steps["outputs"], outputs, atol=1e-12)


def test_what_was_seen_before_is_hidden_under_every_mask():
    bench = Workbench(
        "b", "", dict.fromkeys(("queries", "keys", "values"), np.eye(3)), "abc", "abc",
        masks=("none", "look-ahead"),
    )  # fmt: skip
    seen = np.array([[False, True, True]] * 3)
    flow = Flow("f", "c", bench, "q", "k", seen=seen)
    for mask in bench.masks:
        assert (flow.steps(mask)["weights"][:, 0] == 0).all()
    assert flow.visible("look-ahead").tolist() == [
        [False, False, False], [False, True, False], [False, True, True],
    ]  # fmt: skip
    assert "masked" in flow.stages


def test_stages_in_which_nothing_happens_are_left_out():
    given = {"queries": np.eye(2), "keys": np.eye(2)}
    bench = Workbench("b", "", given, "ab", "cd", scale=1.0)
    assert Flow("f", "", bench, "q", "k").stages == ["scores"]
    bench = Workbench("b", "", {**given, "values": np.eye(2)}, "ab", "cd", scale=1.0)
    assert Flow("f", "", bench, "q", "k").stages == ["scores", "weights", "outputs"]
    bench = Workbench("b", "", {**given, "values": np.eye(2)}, "ab", "cd", temperature=2.0)
    assert "scaled" in Flow("f", "", bench, "q", "k").stages


def test_of_one_query_in_words_powers_are_a_stage_and_add_up():
    given = {"queries": np.ones((1, 1)), "keys": np.ones((2, 1)), "values": np.eye(2)}
    bench = Workbench("b", "", given, "a", "cd", scale=1.0, temperature=0.5)
    flow = Flow("f", "", bench, "q", "k", in_words=True)
    assert flow.stages == ["scores", "scaled", "powers", "weights", "outputs"]
    steps = flow.steps()
    np.testing.assert_allclose(steps["powers"] / steps["powers"].sum(), steps["weights"])
    assert "powers" not in Flow("f", "", bench, "q", "k").computed
    later = Flow("f", "", bench, "q", "k", in_words=True, begins="weights")
    assert later.stages == ["weights", "outputs"]
    assert later.computed == flow.computed


def test_numbers_of_one_kind_have_the_same_decimals():
    keys = np.array([[4.0], [5.93]])
    given = {"queries": np.ones((1, 1)), "keys": keys, "values": np.eye(2)}
    bench = Workbench("b", "", given, "a", "cd", scale=1.0)
    (drawn,) = Flow("f", "", bench, "q", "k", in_words=True).pictures("here")
    assert re.findall(r'class="of-key"[^>]*>([^<]+)<', drawn) == ["4.00", "5.93"]


def test_what_flows_lies_side_by_side():
    parts = np.array([[0.3, 0.0], [0.0, 0.2], [0.4, 0.1]])
    found = ribbons(parts, parts > 0, [0, 40, 80], [150, 180])
    assert {(one.key, one.quality) for one in found} == {(0, 0), (1, 1), (2, 0), (2, 1)}
    for ends in ("lane", "end"):
        edges = sorted((getattr(one, ends) - one.width / 2, one.width) for one in found)
        for (left, width), (right, _) in itertools.pairwise(edges):
            assert left + width <= right + 1e-9
    assert sum(one.width for one in found) == pytest.approx(18)
    # What begins higher runs further out.
    first, third = (next(o for o in found if (o.key, o.quality) == at) for at in ((0, 0), (2, 0)))
    assert first.lane > third.lane


# --- arrows ---


@EVERY
def test_angles_are_those_of_the_cosines(taught, name):
    for part in drawings(taught(name), Arrows):
        cosines = cosine_score(part.vectors[[part.against]], part.all_vectors)[0]
        np.testing.assert_allclose(np.cos(np.radians(part.degrees)), cosines, atol=1e-6)
        products = part.all_vectors @ part.vectors[part.against]
        np.testing.assert_allclose(part.products, products, atol=1e-12)


def test_the_computed_arrow_points_to_queen(taught):
    (part,) = drawings(taught("embeddings"), Arrows)
    a, b, c = part.vectors
    np.testing.assert_allclose(part.all_vectors[-1], a - b + c)
    assert part.dot_labels[part.nearest] == "queen"
    assert "queen" in part.told


def test_an_arrow_without_length_has_no_angle():
    part = Arrows("a", "", np.array([[1.0, 0], [0, 0]]), "ab", ("x", "y"))
    assert np.isnan(part.degrees[1])
    assert part.pictures("here")


# --- sums ---


def test_each_bar_of_a_sum_begins_where_the_last_one_ended():
    numbers = np.array([3.0, -1.0])
    part = Total("t", "", "ab", numbers, 2.0, "others", "all", ["of", "number"])
    (drawn,) = part.pictures("here")
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    starts, lengths = np.array(bars, float).T
    unit = lengths[0] / 3
    np.testing.assert_allclose(lengths / unit, [3, 1, 2, 4], atol=0.02)
    np.testing.assert_allclose((starts - starts[0]) / unit, [0, 2, 2, 0], atol=0.02)
    assert part.total == 4
    # A person asks with a 1 for each of them; the others are one number.
    asked = replace(part, query=1.0).pictures("here")[0]
    amounts = re.findall(r'class="amount[^>]*>(.*?)</text>', re.sub("</?tspan[^>]*>", "", asked))
    assert amounts == ["1 × 3", "1 × (−1)", "2", "4"]


def test_what_a_viewer_watched_adds_up_to_the_key_that_is_drawn_next(taught):
    step = next(s for s in taught("ask-match-mix").steps if "three" in s.computed)
    (total,) = [part for part in step.parts if isinstance(part, Total)]
    (flow,) = [part for part in step.parts if isinstance(part, Flow)]
    assert total.total == pytest.approx(flow.steps()["keys"][2, 1])


# --- heads ---


def test_what_was_recorded_are_twelve_sentences_of_one_model():
    found = learning.recorded_texts()
    assert len(found) == 12
    for reading in found:
        n = len(reading.words)
        assert reading.weights.shape == (6, 12, n, n)
        np.testing.assert_allclose(reading.weights.sum(axis=-1), 1, atol=1e-12)
        np.testing.assert_array_equal(reading.weights * LEVELS, reading.codes)
    assert " ".join(found[0].words[1:-1]) == (
        "The animal didn't cross the street because it was too tired"
    )


def test_bytes_are_less_than_one_level_off_and_rows_add_up(script):
    weights = np.random.default_rng(0).dirichlet(np.full(9, 0.2), size=(3, 4))
    codes = script("minilm_heads").in_bytes(weights)
    assert codes.dtype == np.uint8
    assert (codes.sum(axis=-1) == LEVELS).all()
    assert np.abs(codes / LEVELS - weights).max() < 1 / LEVELS


@pytest.mark.slow
@pytest.mark.usefixtures("own_models")
def test_what_was_recorded_is_what_the_model_attends_to():
    if find("minilm") is None:
        pytest.skip("needs minilm: qkvsearch model fetch minilm")
    encoder = pretrained("minilm")
    for reading in learning.recorded_texts():
        text = " ".join(word for word in reading.words if word not in ("[CLS]", "[SEP]"))
        weights = encoder.attend(text).word_weights()
        assert np.abs(weights - reading.weights).max() < 1 / LEVELS + 1e-4


def test_of_ones_own_sentence_the_heads_are_the_encoders(tiny_bert):
    given = Given(sentence="the cat sat on it", encoder=str(tiny_bert))
    (part,) = drawings(lesson("learning", given), Heads)[-1:]
    weights = pretrained(str(tiny_bert)).attend("the cat sat on it").word_weights()
    np.testing.assert_array_equal(part.first.weights, weights)
    assert part.first.codes is None


def test_lesson_12_ends_with_lines_also_where_nothing_is_installed(monkeypatch):
    monkeypatch.setattr(learning, "find", lambda name: None)
    for given in (Given(), Given(sentence="a river bank")):
        (part,) = drawings(lesson("learning", given), Heads)[-1:]
        assert len(part.readings) == 12
        i, j = (list(part.first.words).index(word) for word in ("it", "animal"))
        weights = part.first.weights
        assert part.weights[i, j] == weights[:, :, i, j].max()

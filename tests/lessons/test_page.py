"""The page as a file: it loads nothing, it is well made, and it holds every number."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS, language
from qkvsearch.lessons.drawings import Arrows, AttendedText, Drawing, Flow, Heads
from qkvsearch.lessons.exports.document import compared_weights
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Curve, Formula, Lesson, Matrix, ShownTable, Step, Switch, Text
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

pytestmark = pytest.mark.xdist_group("the whole course")  # computed once, by one process

VOID = {"meta", "input", "br"}
REFERENCES = ("src", "href", "action", "srcset", "data", "poster", "background", "formaction")


class Page(HTMLParser):
    """Elements in order as (tag, attributes), tables, and the texts of style and script."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.tables, self.texts = [], [], [], {}
        self.feed(text)
        assert not self.open, "unclosed"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "table":
            self.tables.append({"attributes": attributes, "rows": [], "text": ""})
        if tag == "tr":
            self.tables[-1]["rows"].append([])
        if tag == "td" and "data-value" in attributes:
            self.tables[-1]["rows"][-1].append(float(attributes["data-value"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        here = self.open[-1] if self.open else ""
        self.texts[here] = self.texts.get(here, "") + data
        if "table" in self.open:
            self.tables[-1]["text"] += data

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    def values(self, attribute):
        return [found[attribute] for _, found in self.elements if attribute in found]


@pytest.fixture(scope="module")
def text(taught):
    return to_page([taught(name) for name in LESSONS])


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def one_page(*parts, quizzes=()):
    steps = [Step("A <b>step</b>", parts)]
    return to_page([Lesson("odd", 1, "Odd & new", "See *that*.", 1, steps, list(quizzes))])


# --- it loads nothing ---


def test_it_refers_to_nothing_but_itself(page):
    links = [value for name in REFERENCES for value in page.values(name)]
    assert links
    assert {link[0] for link in links} == {"#"}
    assert not page.all("link", "img", "iframe", "object", "embed", "base")
    style, script = page.texts["style"], page.texts["script"]
    assert not re.search(r"url\(|@import|@font-face|://", style)
    assert not re.search(r"fetch|XMLHttpRequest|WebSocket|import\b|sendBeacon|://|eval\(", script)
    assert not re.search(r"cookie|sessionStorage|indexedDB", script, re.IGNORECASE)


def test_the_policy_allows_this_style_and_this_script_and_no_more(page, text):
    (meta,) = [found for found in page.all("meta") if "http-equiv" in found]
    policy = dict(part.split(" ", 1) for part in meta["content"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    for tag in ("style", "script"):
        (inline,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not page.values("style")
    assert not [name for _, found in page.elements for name in found if name.startswith("on")]


# --- it is well made ---


def test_ids_are_unique_and_whatever_is_referred_to_is_there(page):
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    links = {link.removeprefix("#") for link in page.values("href")}
    for name in ("for", "aria-labelledby", "aria-describedby"):
        links |= {ident for value in page.values(name) for ident in value.split()}
    assert links <= set(ids)
    assert {*LESSONS, "lessons", "contents"} <= links


def test_in_chinese_the_page_says_so(taught):
    with language("zh"):
        page = Page(to_page([taught("masks")]))
    assert page.all("html")[0]["lang"] == "zh-Hans"
    assert "目录" in page.texts["h2"]


# --- it holds every number ---


@pytest.mark.parametrize("name", LESSONS)
def test_every_matrix_table_and_workbench_is_there_unrounded(name, taught):
    page = Page(to_page([taught(name)]))
    tables = iter(page.tables)
    for step in taught(name).steps:
        for part in step.parts:
            if isinstance(part, Matrix):
                check(next(tables), part.name, part.array)
            if isinstance(part, ShownTable):
                check_table(next(tables), part)
            if isinstance(part, Switch):
                for setting in part.settings:
                    check(next(tables), setting.matrix.name, setting.matrix.array)
            if isinstance(part, Workbench):
                check_bench(tables, part)
            if isinstance(part, Drawing):
                check_drawing(tables, part)
    assert next(tables, None) is None


def check(table, name, array):
    assert name.replace("_", "") in table["text"].replace("_", "")
    found = [row for row in table["rows"] if row]
    assert np.array_equal(np.array(found), np.asarray(array, dtype=float), equal_nan=True)


def check_table(table, part):
    numbers = [[float(cell) for cell in row[1:] if not isinstance(cell, str)] for row in part.rows]
    np.testing.assert_equal(table["rows"][1:], numbers)
    for row in part.rows:
        # A symbol is set: W_Q has its Q below the line.
        name = row[0].replace("_", "") if isinstance(row[0], str) else shown(row[0])
        assert name in table["text"].replace("_", "")


def check_drawing(tables, part):
    for headings, rows in part.tables:
        check_table(next(tables), ShownTable(part.caption, headings, rows))


def check_bench(tables, part):
    steps = part.steps()
    wanted = [("data-given", name, array) for name, array in part.matrices.items()]
    wanted += [("data-step", name, steps[name]) for name in steps if name not in part.matrices]
    n_given = len(part.matrices)
    for place, (kind, name, array) in enumerate(wanted):
        if place == n_given:
            check_compared(tables, part)
        table = next(tables)
        assert table["attributes"][kind] == name
        check(table, "", array)


def check_compared(tables, part):
    """The weights under several masks stand between what is given and what follows."""
    for mask, matrix in zip(part.compared, compared_weights(part), strict=True):
        table = next(tables)
        assert table["attributes"]["data-step"] == "weights"
        assert table["attributes"]["data-mask"] == mask
        check(table, matrix.name, matrix.array)


def test_a_role_is_named_beside_its_colour(page, text):
    roles = re.findall(r'class="matrix" data-role="(\w+)"', text)
    named = re.findall(r'<span class="role">([\w ]+)</span>', text)
    assert len(roles) == len(named)
    assert set(zip(roles, named, strict=True)) >= {
        ("key", "key"), ("query", "query"), ("value", "value"), ("input", "input"),
        ("score", "score"), ("weights", "weights"), ("weighted", "weighted value"),
        ("output", "output"), ("weight", "weight matrix"),
    }  # fmt: skip


# --- parts that no lesson may have, or not like this ---


def test_what_is_written_is_text_and_never_markup():
    evil = '</svg></script><script>alert("x")</script>'
    array, two = np.ones((1, 1)), {"queries": np.eye(2), "keys": np.eye(2)}
    bench = Workbench("c", evil, two, [evil, "b"], [evil, "d"])
    text = one_page(
        Text(f"{evil} & `{evil}`"),
        Formula(evil),
        Matrix(evil, array, [evil], [evil], "score", np.array([[evil]])),
        ShownTable(evil, [evil, evil], [[evil, evil]]),
        Curve(evil, evil, np.arange(3)),
        Workbench("b", evil, {"queries": array, "keys": array}, [evil], [evil], normalize="none"),
        Flow("f", evil, bench, evil, evil),
        Arrows("a", evil, np.eye(2), [evil, "b"], (evil, evil)),
        Heads("h", evil, (AttendedText([evil, "b"], np.full((1, 1, 2, 2), 0.5)),)),
        quizzes=[Quiz("odd.1", evil, 1.0, evil, choices=(evil, "b"))],
    )
    assert "alert(" not in Page(text).texts["script"]
    assert len(Page(text).all("script")) == 2
    assert not Page(text).all("b")


def test_hidden_cells_are_marked_in_words_and_infinities_are_numbers():
    array = np.array([[-np.inf, np.inf, np.nan]])
    visible = np.array([[False, True, True]])
    text = one_page(Matrix("m", array, ["a"], ["x", "y", "z"], "score", None, visible))
    assert text.count('<span class="unseen">hidden</span>') == 1
    (table,) = Page(text).tables
    np.testing.assert_array_equal(table["rows"][1], array[0])
    assert "−∞" in table["text"]


def test_a_curve_is_told_in_words():
    text = one_page(Curve("loss", "step", np.array([4.0, 1.0, 2.0])))
    words = "loss over step, 3 values: from 4 to 2, between 1 and 4."
    assert f">{words}</title>" in text
    (line,) = Page(text).all("polyline")
    heights = [float(point.split(",")[1]) for point in line["points"].split()]
    assert heights[0] < heights[2] < heights[1], "larger is higher"


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0], [np.inf, 1.0, 2.0]])
def test_a_curve_of_few_or_odd_values_is_still_drawn(values):
    page = Page(one_page(Curve("loss", "step", np.array(values))))
    (line,) = page.all("polyline")
    assert len(line["points"].split()) == np.isfinite(values).sum()
    assert "nan" not in line["points"]

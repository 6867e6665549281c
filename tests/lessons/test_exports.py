"""A lesson as a document, as Markdown and as a notebook: nothing lost or broken, and it runs."""

import ast
import json
import re

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from rich.cells import cell_len

from qkvsearch.lessons import LESSONS, Given, language, lesson
from qkvsearch.lessons.exports.document import to_document
from qkvsearch.lessons.exports.markdown import to_markdown
from qkvsearch.lessons.exports.notebook import to_notebook
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Curve, Lesson, Matrix, ShownTable, Step, Text
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

pytestmark = pytest.mark.xdist_group("the whole course")  # computed once, by one process

EVERY = pytest.mark.parametrize("name", LESSONS)
# A reader's own inputs and weights: other shapes than the lessons' own.
RNG = np.random.default_rng(0)
SHAPES = {"inputs": (5, 3), "w_query": (3, 2), "w_key": (3, 2), "w_value": (3, 4)}
OWN = {name: RNG.normal(size=shape) for name, shape in SHAPES.items()}
BARS = re.compile(r"(?<!\\)\|")


@pytest.fixture
def odd():
    """A lesson of what the others may not have."""
    array = np.array([[-np.inf, np.inf], [np.nan, 1 / 3]])
    visible = np.array([[False, True], [True, True]])
    parts = [
        Text("Then `a < b`, and <PAD> is a token."),
        Matrix("scores", array, ["a", "<PAD>"], ["a", "p|q"], "score", None, visible),
        ShownTable("words", ["word", "count"], [["水", np.int64(3)], ["a", 0.5]]),
        Curve("loss", "step", np.linspace(1, 0, 101)),
    ]
    quiz = Quiz("odd.1", "Which?", 1.0, "Because.", choices=("this", "that"))
    return Lesson("odd", 11, "Odd", "See.", 1, [Step("All", parts)], [quiz])


# --- the document ---


@EVERY
def test_a_document_is_json_and_holds_every_number_unrounded(taught, name):
    made = taught(name)
    document = to_document(made)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(document["quizzes"]) == len(made.quizzes)
    for step, written in zip(made.steps, document["steps"], strict=True):
        for part, record in zip(step.parts, written["parts"], strict=True):
            kind = "table" if isinstance(part, ShownTable) else type(part).__name__.lower()
            assert record["kind"] == kind
            if isinstance(part, Matrix):
                assert np.array_equal(numbers(record["values"]), part.array, equal_nan=True)
            if isinstance(part, Workbench):
                matrices = {key: numbers(values) for key, values in record["matrices"].items()}
                assert matrices.keys() == part.matrices.keys()
                assert all(np.array_equal(matrices[key], part.matrices[key]) for key in matrices)


def test_numbers_that_json_lacks_are_words(odd):
    _, matrix, table, curve = to_document(odd)["steps"][0]["parts"]
    assert matrix["values"] == [["-inf", "inf"], ["nan", 1 / 3]]
    assert matrix["visible"] == [[False, True], [True, True]]
    assert table["rows"] == [["水", 3], ["a", 0.5]]
    assert curve["values"][50] == 0.5


def test_a_document_without_quizzes_has_none(taught):
    document = to_document(taught("self-attention"), quizzes=False)
    assert document["quizzes"] == []


def test_what_is_no_part_is_refused(odd):
    broken = Lesson("odd", 11, "", "", 1, [Step("", ["a string"])], [])
    for export in (to_document, lambda one: to_markdown([one])):
        with pytest.raises(TypeError, match="no part of type str"):
            export(broken)


# --- Markdown ---


@EVERY
def test_tables_in_markdown_are_well_formed_and_hold_the_numbers(taught, name):
    made = taught(name)
    text = to_markdown([made])
    # The sentence of one's own, and the questions.
    assert text.count("\n### ") == len(made.steps) + bool(made.explain) + 1
    found = list(tables(text))
    for matrix in parts(made, Matrix):
        rows, columns = matrix.array.shape
        with matrix.in_its_decimals():
            cells = [[shown(value) for value in row] for row in matrix.array]
        bare = [[[cell.removesuffix(" ✕") for cell in row[1:]] for row in rows] for rows in found]
        assert cells in bare, matrix.name
        assert f"{rows} × {columns})" in text


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_a_course_in_markdown_asks_first_and_answers_at_the_end(spoken):
    with language(spoken):
        made = [lesson("self-attention"), lesson("masks")]
        text, plain = to_markdown(made), to_markdown(made, quizzes=False)
    asked, _, answered = text.rpartition("\n## ")
    for quiz in [quiz for one in made for quiz in one.quizzes]:
        assert asked.count(f"**{quiz.name}** ") == 1
        assert answered.count(f"- **{quiz.name}** ") == 1
        assert quiz.name not in plain
    for one in made:
        assert f"\n## {one.number}. {one.title}\n" in text


def test_markdown_says_what_is_hidden_and_escapes_what_is_no_markup(odd):
    text = to_markdown([odd])
    assert "Then `a < b`, and &lt;PAD> is a token." in text
    scores, words, loss = tables(text)
    assert scores[0] == ["a", "−∞ ✕", "∞"]
    assert scores[1] == ["&lt;PAD>", "NaN", "0.33"]
    assert "p\\|q" in text
    assert "(score, 2 × 2)" in text
    assert "✕: hidden." in text
    assert words == [["水", "3"], ["a", "0.5"]]
    assert loss[0] == ["0", "1"]
    assert loss[-1] == ["100", "0"]
    assert "1. this\n2. that" in text
    assert "- **odd.1** that — Because." in text


# --- the notebook ---


@EVERY
def test_a_notebook_computes_what_the_lesson_found(taught, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    same_in_a_notebook(taught(name))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("self-attention", Given(mask="padding")),
        ("self-attention", Given(mask="look-ahead")),
        ("self-attention", Given(mask="both")),
        ("self-attention", Given(**OWN)),
        ("self-attention", Given(**OWN, mask="both")),
        ("masks", Given(**OWN, mask="look-ahead")),
        ("masks", Given(mask="both")),
        ("search", Given(sentence="attention query")),
        ("context", Given(sentence="a dog is a dog")),
    ],
)
def test_a_notebook_computes_what_the_lesson_found_of_ones_own(name, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    same_in_a_notebook(lesson(name, given))


def same_in_a_notebook(made):
    """Whether each cell of code gives what its step found, and each workbench its steps."""
    name = made.name
    notebook = nbformat.reads(to_notebook([made]), as_version=4)
    nbformat.validate(notebook)
    namespace, results = {}, {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            results[cell.id] = run_cell(cell.source, namespace)
    for n, step in enumerate(made.steps, start=1):
        has_matrix = any(isinstance(part, Matrix) for part in step.parts)
        assert step.code or not has_matrix, f"{name} {n} shows a matrix, but not how it is made"
        if step.code:
            result = results[f"{name}-{n}-code"]
            assert is_same(result, step.code.value), f"{name} {n}: {step.code.text()}"
            for value in result if isinstance(result, tuple) else [result]:
                found = any(is_same(value, one) for one in step.computed.values())
                assert found, f"{name} {n} computes what it does not show: {step.code.text()}"
        benches = [part for part in step.parts if isinstance(part, Workbench)]
        for place, bench in enumerate(benches, start=1):
            tried, wanted = results[f"{name}-{n}-try-{place}"], bench.steps()
            assert tried.keys() == wanted.keys()
            assert all(np.array_equal(tried[key], wanted[key], equal_nan=True) for key in wanted)


def is_same(a, b):
    """Whether these are the same numbers but for rounding, in the same shape."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(is_same(a[k], b[k]) for k in a)
    try:
        np.shape(b)
    except ValueError:  # arrays of unequal shapes
        return False
    if isinstance(b, dict) or np.shape(a) != np.shape(b):
        return False
    is_text = np.asarray(b).dtype.kind in "UO" or np.asarray(a).dtype.kind in "UO"
    return np.array_equal(a, b) if is_text else np.allclose(a, b, equal_nan=True)


@pytest.mark.slow  # each lesson's cells are run one by one above
def test_the_whole_course_runs_as_one_notebook(taught, tmp_path, monkeypatch):
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.reads(to_notebook([taught(name) for name in LESSONS]), as_version=4)
    nbformat.validate(notebook)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    done = client.execute()
    code = [cell for cell in done.cells if cell.cell_type == "code"]
    assert {cell.id.rsplit("-", 2)[0] for cell in code} >= {"masks", "learning"}
    for cell in code:
        assert [output for output in cell.outputs if output.output_type == "error"] == []
        assert any(output.output_type == "execute_result" for output in cell.outputs), cell.id


def test_ids_of_cells_are_stable_and_answers_come_last(taught):
    made = taught("self-attention")
    cells = json.loads(to_notebook([made]))["cells"]
    ids = [cell["id"] for cell in cells]
    assert ids == [cell["id"] for cell in json.loads(to_notebook([made]))["cells"]]
    assert ids[:3] == ["course", "self-attention", "self-attention-1"]
    assert ids[-2:] == ["self-attention-questions", "answers"]
    plain = json.loads(to_notebook([made], quizzes=False))["cells"]
    assert [cell["id"] for cell in plain] == ids[:-2]


def run_cell(source, namespace):
    """The value of a cell's last line, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), source
    exec(compile(tree, "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def parts(made, kind):
    return [part for step in made.steps for part in step.parts if isinstance(part, kind)]


def numbers(values):
    return np.array([[float(value) for value in row] for row in values])


def tables(text):
    """The rows of every table, without the head, checked as they are read."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        lines = block.splitlines()
        assert len(lines) > 2, block
        assert len({cell_len(line) for line in lines}) == 1, block
        assert len({len(BARS.findall(line)) for line in lines}) == 1, block
        assert re.fullmatch(r"\|( -+:? \|)+", lines[1]), block
        yield [[cell.strip() for cell in BARS.split(line)[1:-1]] for line in lines[2:]]

"""The documents of the lessons: both languages agree, and what a document may hold is run."""

import re
from collections import Counter

import numpy as np
import pytest

from qkvsearch._utils.spoken import ORIGINAL
from qkvsearch.errors import DataError
from qkvsearch.lessons import LANGUAGES, Given, lesson
from qkvsearch.lessons.exports.markdown import to_markdown
from qkvsearch.lessons.parser import folders, parse
from qkvsearch.lessons.runner import Names, literal, names_of, run

EVERY = pytest.mark.parametrize("name", folders())
EVERY_TRANSLATION = pytest.mark.parametrize("code", sorted(set(LANGUAGES) - {ORIGINAL}))
CHINESE = re.compile("[\u4e00-\u9fff]")
HEAD = "---\ntitle: T\ngoal: G\nminutes: 1\n---\n\n"


@pytest.fixture
def document(tmp_path):
    def make(body):
        path = tmp_path / "en.md"
        path.write_text(HEAD + body, encoding="utf-8")
        return parse(path)

    return make


def by_step(source):
    """The blocks of each step, those of the setup first."""
    steps = [[]]
    for block in source.blocks:
        if block.kind == "heading":
            steps.append([])
        steps[-1].append(block)
    return steps


def slots_of(blocks):
    return Counter(slot for block in blocks for slot in block.slots())


@EVERY
@EVERY_TRANSLATION
def test_a_translation_has_the_same_fences_and_slots(code, name):
    english = parse(folders()[name] / f"{ORIGINAL}.md")
    translation = parse(folders()[name] / f"{code}.md")
    english.translated(translation)  # raises where the fences differ
    for ours, theirs in zip(by_step(english), by_step(translation), strict=True):
        fences = {block.key: block for block in theirs if block.kind != "prose"}
        # A formula that is the same in both languages is not repeated.
        repeated = [b for b in ours if b.kind != "formula" or fences[b.key].text]
        assert slots_of(repeated) == slots_of(theirs)
        for block in ours:
            if block.kind not in ("prose", "python", "heading"):
                assert len(block.items) == len(fences[block.key].items), block.name


@EVERY
def test_translations_are_chinese_and_hold_no_code(name):
    source = parse(folders()[name] / "zh.md")
    assert all(CHINESE.search(source.fields[field]) for field in ("title", "goal", "wrong", "ask"))
    for block in source.blocks:
        assert block.kind != "python"
        assert not block.expressions, block.name
        assert block.kind not in ("prose", "heading") or CHINESE.search(block.text), block.text


@EVERY
def test_each_snippet_runs_alone(taught, name):
    snippets = re.findall(r"```python\n(.*?)```", to_markdown([taught(name)]), flags=re.DOTALL)
    assert snippets or name == "check"
    for snippet in snippets:
        exec(compile(snippet, name, "exec"), {})


@EVERY
def test_questions_tell_what_wrong_answers_show_and_a_third_asks_for_a_transfer(taught, name):
    quizzes = taught(name).quizzes
    assert sum(quiz.is_transfer for quiz in quizzes) >= len(quizzes) / 3
    for quiz in quizzes:
        if any(quiz.misconceptions):
            wrong = [m for n, m in enumerate(quiz.misconceptions) if n != quiz.answer]
            assert all(wrong), quiz.question
        for slip, shows in quiz.slips:
            assert not quiz.is_right(slip), quiz.question
            assert quiz.hint(slip) == shows


def test_slots_are_filled_as_the_course_writes_numbers_or_as_they_ask(document):
    source = document(
        "```python hidden\nx = np.array([1 / 3, -2])\n```\n\n## T\n\n{x} {x[1]:.3f}\n"
    )
    (step,), _ = run(source, Given())
    assert step.parts[0].text == "[0.33, −2] −2.000"


def test_a_fence_brings_what_it_needs_and_no_more(document):
    source = document(
        "```python setup hidden\nfrom math import tau\na, b = np.eye(2), 3\n\n\n"
        "def twice(x):\n    return tau * x * b\n```\n\n## One\n\n```python one\ntwice(a)\n```\n"
    )
    (step,), _ = run(source, Given())
    assert step.code.source.startswith("import numpy as np\nfrom math import tau\n")
    assert "def twice(x):" in step.code.source
    assert step.code.source.endswith("twice(a)")
    np.testing.assert_allclose(step.code.value, np.eye(2) * 6 * np.pi)


def test_what_has_a_condition_is_there_where_it_holds(document):
    body = (
        "```python hidden\nx = given.mask\nis_plain = x is None\n```\n\n## T\n\n"
        "```python a if:x\n1 + 1\n```\n\n```python b unless:x\n2 + 2\n```\n\n"
        "```paragraph note\nwhen = x\ntext: Hidden by {x}.\n```\n\n"
        "## Only without\n<!-- points: 1; when: is_plain -->\n"
    )
    without, _ = run(document(body), Given())
    assert [len(step.parts) for step in without] == [0, 0]
    assert without[0].code.value == 4
    (one,), _ = run(document(body), Given(mask="both"))
    assert (one.code.value, one.parts[0].text) == (2, "Hidden by both.")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("## T\n\n{nothing}\n", "line 9.*NameError"),
        ("## T\n\n```matrix m\ncaption m\n```\n", "line 10: write `name: text`"),
        ("## T\n\n```matrix m\n", "line 9: the fence has no end"),
        ("## T\n\n```python p\na = 1\n```\n", "line 9, python p.*end with an expression"),
        ("## T\n\n```novel n\n```\n", "there is no fence `novel`"),
    ],
)
def test_mistakes_in_a_document_are_told_with_their_line(document, body, message):
    with pytest.raises(DataError, match=message):
        run(document(body), Given())


def test_names_are_those_that_the_code_needs_from_elsewhere():
    code = "y = [x + z for x in rows]\nprint(y, len(y))\n"
    needed, stored = names_of(code)
    assert {"z", "rows"} <= set(needed)
    assert not {"x", "y"} & set(needed)
    assert stored == ["y"]


@pytest.mark.parametrize(
    "value", [np.array([[0.1, np.inf]]), np.array([True]), np.float32([0.1]), {"a": (1, [None])}]
)
def test_what_is_written_is_what_it_was(value):
    again = eval(literal(value), {"np": np})
    assert np.array_equal(again, value) if isinstance(value, np.ndarray) else again == value
    assert getattr(again, "dtype", None) == getattr(value, "dtype", None)


def test_what_code_cannot_write_is_refused():
    with pytest.raises(ValueError, match="`x` is a object, which code cannot write"):
        Names({"x": object()}).prelude("x")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("embeddings", Given(sentence="a film"), "`sentence` has no place in the lesson embed"),
        ("search", Given(encoder="static"), "takes `sentence`"),
        ("softmax", Given(sentence="a"), "takes nothing of your own"),
        ("translation", Given(mask="padding"), "`mask`"),
        ("self-attention", Given(sentence="a saw"), "`sentence` has no place in the lesson self"),
        ("masks", Given(sentence="I saw a saw"), "`sentence`"),
        ("context", Given(mask="both"), "`mask` has no place in the lesson context, which takes"),
        ("learning", Given(inputs=np.eye(2)), "`inputs` has no place in the lesson learning"),
    ],
)
def test_a_lesson_takes_what_its_document_says(name, given, message):
    with pytest.raises(DataError, match=message):
        lesson(name, given)

"""Lesson 7: the eight steps show what they say, by their own numbers (points 35 to 46, T2)."""

import re
import warnings

import numpy as np
import pytest

from qkvsearch.errors import DataError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute.self_attention import W_VALUE, X
from qkvsearch.lessons.own_numbers import read_matrix
from qkvsearch.lessons.parts import Formula, Matrix, Text
from qkvsearch.lessons.workbench import Workbench, mask_of

MASKED = pytest.mark.parametrize("mask", ["padding", "look-ahead", "both"])

OUTPUTS = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351454, 7.963991595132215, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.35838929467511527],
]


@pytest.fixture(scope="module")
def course():
    return lesson("self-attention")


@pytest.fixture(scope="module")
def steps(course):
    """What each of the eight steps found, counted from 1."""
    return {n: step.computed for n, step in enumerate(course.steps, start=1)}


@pytest.mark.point(35)
def test_the_eight_steps_go_from_inputs_to_outputs(course):
    assert len(course.steps) == 8
    names = "inputs", "w_value", "values", "scores", "weights", "weighted", "output", "outputs"
    for step, name in zip(course.steps, names, strict=True):
        value = step.code.value
        last = value[-1] if isinstance(value, tuple) else value
        np.testing.assert_array_equal(last, step.computed[name])
    assert all(35 in step.points for step in course.steps)


@pytest.mark.point(36)
def test_three_inputs_of_four_numbers_become_representations_of_three(steps):
    assert steps[1]["inputs"].shape == (3, 4)
    assert [steps[2][name].shape for name in ("w_key", "w_query", "w_value")] == [(4, 3)] * 3
    assert [steps[3][name].shape for name in ("keys", "queries", "values")] == [(3, 3)] * 3


@pytest.mark.point(37)
def test_values_of_width_5_make_outputs_of_width_5(steps):
    assert steps[3]["wide"].shape == steps[8]["wide"].shape == (3, 5)
    np.testing.assert_allclose(steps[8]["wide"][:, :3], OUTPUTS, rtol=1e-12)
    own = lesson("self-attention", Given(w_value=np.eye(4, 5))).steps[7].computed
    assert own["outputs"].shape == (3, 5)


@pytest.mark.point(39)
def test_one_by_one_is_all_at_once(steps):
    np.testing.assert_array_equal(steps[3]["singly"], steps[3]["values"])
    np.testing.assert_allclose(steps[8]["singly"], steps[8]["outputs"], rtol=1e-12)


@pytest.mark.point(39)
@MASKED
def test_one_by_one_is_all_at_once_under_a_mask(mask, steps):
    found = lesson("self-attention", Given(mask=mask)).steps[7].computed
    np.testing.assert_allclose(found["singly"], found["outputs"], rtol=1e-12)
    assert np.abs(found["outputs"] - steps[8]["outputs"]).max() > 0.01


@pytest.mark.point(40)
def test_a_bias_of_zeros_changes_nothing_and_one_of_ones_every_number(steps):
    np.testing.assert_array_equal(steps[3]["no_bias"], steps[3]["values"])
    np.testing.assert_array_equal(steps[3]["biased"], steps[3]["values"] + 1)


@pytest.mark.point(41)
def test_keys_queries_values_and_scores(steps):
    np.testing.assert_array_equal(steps[3]["keys"], [[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    np.testing.assert_array_equal(steps[3]["queries"], [[1, 0, 2], [2, 2, 2], [2, 1, 3]])
    np.testing.assert_array_equal(steps[3]["values"], [[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    np.testing.assert_array_equal(steps[4]["scores"], [[2, 4, 4], [4, 16, 12], [4, 12, 10]])


@pytest.mark.point(42)
def test_softmax_of_the_scores(steps):
    expected = [
        [0.06337893833303762, 0.4683105308334812, 0.4683105308334812],
        [6.0336648546e-06, 0.9820078648958167, 0.01798610143932864],
        [2.9538722303456e-4, 0.8805369017749616, 0.11916771100200385],
    ]
    np.testing.assert_allclose(steps[5]["weights"], expected, rtol=1e-11)


@pytest.mark.point(43)
def test_values_weighted_as_the_text_does(steps):
    np.testing.assert_array_equal(steps[5]["rounded_row"], [0, 0.5, 0.5])
    np.testing.assert_array_equal(steps[6]["easy"], [[0, 0, 0], [1, 4, 0], [1, 3, 1.5]])


@pytest.mark.point(44)
def test_the_first_output_exactly_and_as_the_text_has_it(steps):
    np.testing.assert_allclose(steps[7]["output"], OUTPUTS[0], rtol=1e-12)
    np.testing.assert_array_equal(steps[7]["easy"], [2.0, 7.0, 1.5])


@pytest.mark.point(45)
def test_all_outputs_exactly_rounded_and_scaled(steps):
    np.testing.assert_allclose(steps[8]["outputs"], OUTPUTS, rtol=1e-12)
    np.testing.assert_allclose(steps[8]["easy"][1:], [[2.0, 8.0, 0.0], [2.0, 7.8, 0.3]])
    np.testing.assert_allclose(steps[8]["scaled"][0], [1.86387, 6.31937, 1.70419], atol=5e-6)


@pytest.mark.point(46)
def test_every_matrix_says_what_it_is_in_words_beside_its_role(course):
    shown = [part for step in course.steps for part in step.parts if isinstance(part, Matrix)]
    words = {
        "input": "inputs", "weight": "W_", "key": "keys", "query": "queries", "value": "values",
        "score": "scores", "weights": "weights", "weighted": "weighted", "output": "output",
    }  # fmt: skip
    assert {matrix.role for matrix in shown} == set(words)
    assert [m.name for m in shown if not m.name.startswith(words[m.role])] == []


def test_trap_2_exact_weights_come_before_the_texts(course, steps):
    softmax = course.steps[4]
    matrix = next(i for i, part in enumerate(softmax.parts) if isinstance(part, Matrix))
    np.testing.assert_allclose(softmax.parts[matrix].array[0], [0.06338, 0.46831, 0.46831], 1e-4)
    told = softmax.parts[-1].text
    assert matrix < len(softmax.parts) - 1
    assert "[0, 0.5, 0.5]" in told  # the text's
    assert "[0.1, 0.5, 0.5]" in told  # by ordinary rounding
    names = [part.name for part in course.steps[5].parts if isinstance(part, Matrix)]
    assert [name.split()[-1] for name in names] == ["exact", "rounded"]
    np.testing.assert_array_equal(np.round(steps[5]["weights"][0], 1), [0.1, 0.5, 0.5])


# --- the reader's own ---


def test_own_inputs_go_through_all_steps():
    own = lesson("self-attention", Given(inputs=X[:2] + 1, mask="look-ahead"))
    assert own.steps[0].computed["inputs"].shape == (2, 4)
    outputs = own.steps[7].computed["outputs"]
    np.testing.assert_allclose(outputs[0], (X[0] + 1) @ W_VALUE)  # the first sees itself alone


def test_a_single_input_is_enough():
    own = lesson("self-attention", Given(inputs=X[:1]))
    np.testing.assert_array_equal(own.steps[7].computed["outputs"], X[:1] @ W_VALUE)
    assert own.quizzes[0].answer == own.steps[3].computed["scores"][0, 0]
    assert own.quizzes[1].is_right("a")


def test_as_many_inputs_as_there_are_letters_can_be_asked_about():
    rng = np.random.default_rng(0)
    asked = lesson("self-attention", Given(inputs=rng.normal(size=(26, 4)))).quizzes[1]
    assert [choice for choice in asked.choices if asked.is_right(choice)] == [asked.solution]


def parts(step, kind):
    return [part for part in step.parts if isinstance(part, kind)]


@MASKED
def test_a_mask_is_told_and_shown_on_the_scores_and_on_the_weights(mask, course):
    own, seen = lesson("self-attention", Given(mask=mask)), mask_of(mask, 3, 3, padded=1)
    masked, weights = parts(own.steps[4], Matrix)
    for matrix in (masked, weights):
        np.testing.assert_array_equal(np.broadcast_to(matrix.visible, (3, 3)), seen)
    np.testing.assert_array_equal(
        masked.array, np.where(seen, course.steps[3].computed["scores"], -np.inf)
    )
    np.testing.assert_array_equal(weights.array > 0, seen)
    assert "mask that you chose" in parts(own.steps[4], Text)[0].text
    assert parts(own.steps[7], Formula)[0].text == "softmax(Q·Kᵀ + M)·V"


def test_without_a_mask_none_is_told(course):
    (weights,) = parts(course.steps[4], Matrix)
    assert weights.visible is None
    assert parts(course.steps[7], Formula)[0].text == "softmax(Q·Kᵀ)·V"
    assert [
        text for step in course.steps[:7] for text in parts(step, Text) if "mask" in text.text
    ] == []


@pytest.mark.parametrize(
    ("given", "example"),
    [
        (Given(), "In row 1, [2, 4, 4] became [0.063, 0.47, 0.47]."),
        (Given(mask="look-ahead"), "In row 1, [2, −∞, −∞] became [1, 0, 0]."),
        (Given(mask="padding"), None),
        (Given(inputs=X[[0, 1]]), None),
        (Given(inputs=X[[0, 1, 1]]), "In row 1, [2, 4, 4]"),
        (Given(inputs=X[[2, 0, 0]]), "In row 1, [10, 4, 4]"),
    ],
)
def test_the_question_on_equal_scores_has_an_example_in_which_they_are(given, example):
    quiz = lesson("self-attention", given).quizzes[2]
    assert (example or "equal scores, equal weights.") in quiz.worked
    assert ("In row" in quiz.worked) == (example is not None)
    assert ("after the mask" in quiz.question) == (given.mask is not None)


@pytest.mark.parametrize(
    ("given", "is_the_texts"),
    [
        (Given(inputs=X.copy(), mask="none"), True),
        (Given(inputs=X + 1), False),
        (Given(w_value=2 * W_VALUE), False),
        (Given(mask="look-ahead"), False),
    ],
)
def test_what_a_text_says_of_its_numbers_is_not_said_of_others(given, is_the_texts):
    own = lesson("self-attention", given)
    told = " ".join(text.text for step in own.steps for text in parts(step, Text))
    names = [matrix.name for step in own.steps for matrix in parts(step, Matrix)]
    assert [re.search(word, told) is not None for word in ("Raimi Karim", "round")] == [
        is_the_texts
    ] * 2
    assert any("text" in name or "rounded" in name for name in names) == is_the_texts
    assert any("easy" in step.computed for step in own.steps) == is_the_texts


@pytest.mark.parametrize("name", ["self-attention", "masks"])
@pytest.mark.parametrize("mask", ["none", "both"])
def test_numbers_too_large_for_exp_are_computed_without_a_warning(name, mask):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.pad(X, ((0, 1), (0, 0)))
        fits = dict.fromkeys(("w_query", "w_key", "w_value"), np.ones((4, 2)))
        own = Given(inputs=1e200 * x, mask=mask, **fits)
        made = lesson(name, own)
        assert len(made.quizzes) >= 3
        (bench,) = (part for step in made.steps for part in parts(step, Workbench))
        found = bench.steps()
    assert np.isinf(found["scores"]).any()


@pytest.mark.parametrize("mask", ["padding", "both"])
def test_a_mask_that_leaves_nothing_is_refused(mask):
    with pytest.raises(DataError, match=f"`mask` {mask} hides the last input, and there is no oth"):
        lesson("self-attention", Given(inputs=X[:1], mask=mask))
    alone = lesson("self-attention", Given(inputs=X[:1], mask="look-ahead"))
    np.testing.assert_array_equal(alone.steps[4].computed["weights"], [[1]])


def test_the_workbench_computes_what_the_steps_show(course, steps):
    (bench,) = parts(course.steps[7], Workbench)
    np.testing.assert_allclose(bench.steps()["outputs"], steps[8]["outputs"])


# --- read from a file ---


@pytest.mark.parametrize(
    "text", ["1,2\n3,4", "a,b\n1,2\n3,4\n", "1;2\n\n3;4", "\ufeffx y\n1 2\n3 4", '"1"\t2\n3\t4']
)
def test_rows_of_numbers_with_or_without_headings(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_matrix(tmp_path / "a.csv"), [[1, 2], [3, 4]])


@pytest.mark.parametrize("text", ["1,5;2\n-0,25;1,25\n", '"1,5"; 2,0\n-0,25;1.25'])
def test_commas_are_decimal_ones_where_semicolons_part_the_columns(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(read_matrix(tmp_path / "a.csv"), [[1.5, 2], [-0.25, 1.25]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan,nan\n1,2", "line 1, column 1: 'nan' is not a number"),
        ("1,2\ninf,1", "line 2, column 1: 'inf' is not a number"),
        ("inf,-inf\n1,2", "line 1, column 1: 'inf' is not a number"),
        ("a,1\n1,2", "line 1, column 1: 'a' is not a number"),
        ("1,1_0\n1,2", "line 1, column 2: '1_0' is not a number"),
        ("1_0\n2", "line 1, column 1: '1_0' is not a number"),
        ("1;2\n3;4,5,6", "line 2, column 2: '4.5.6' is not a number"),
        ("1,2\n3,4,5", "line 2: 3 numbers, but line 1 has 2"),
        ("a,b\n", "there are no numbers in it"),
        (f"1,2\n3,{'4' * 200_000}", "line 2: cannot read: field larger than field limit"),
    ],
)
def test_what_is_no_number_is_named_by_its_line_and_column(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        read_matrix(tmp_path / "a.csv")
    assert str(caught.value).startswith(f"{tmp_path / 'a.csv'}")
    assert said in str(caught.value)

"""Lesson 10: attention's matrices, how they are learned, and what a real model looks at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.errors import DataError, QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.course import learning
from qkvsearch.lessons.course.context.outputs import ANIMAL, meanings
from qkvsearch.lessons.course.learning import at_work
from qkvsearch.lessons.parts import Curve, Text
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.texts.pretrained import fetch as models


@pytest.fixture(scope="module")
def course():
    return lesson("learning")


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(at_work, "find", lambda name: None)


def test_it_has_its_points_a_workbench_and_quizzes(course):
    shown = {point for step in course.steps for point in step.points}
    assert shown == {14, 16, 17, 31, 32, 33}
    assert any(isinstance(part, Workbench) for step in course.steps for part in step.parts)
    assert len(course.quizzes) >= 3


@pytest.mark.point(16)
def test_without_weights_it_is_softmax_of_x_xᵀ_over_the_root_of_d_times_x(course):
    found = course.showing(16).found
    np.testing.assert_allclose(
        found["outputs"][0], [0.8446375965, 0.7330436052, 0.8446375965, 0.7330436052]
    )
    assert found["apart"] == 0  # with three identity matrices
    x = np.random.default_rng(0).normal(size=(5, 3))
    other = learning.no_weights(x).found
    scores = np.exp(x @ x.T / np.sqrt(3))
    np.testing.assert_allclose(other["outputs"], scores / scores.sum(axis=1, keepdims=True) @ x)
    np.testing.assert_allclose(other["projected"], other["outputs"], rtol=1e-12)


@pytest.mark.point(17)
def test_three_layers_make_a_row_for_each_token(course):
    shapes = course.showing(17).found["shapes"]
    assert shapes["X"] == (3, 4)
    assert [shapes[name] for name in ("Q", "K", "V", "outputs")] == [(3, 3)] * 4
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(6, d)) for d in (2, 2, 6))
    shapes = learning.still_x(rng.normal(size=(5, 6)), *weights).found["shapes"]
    assert (shapes["Q"], shapes["K"]) == ((5, 2), (5, 2))
    assert shapes["outputs"] == shapes["X"] == (5, 6)  # still X


@pytest.mark.point(31)
def test_the_column_convention_is_the_transpose(course):
    found = course.showing(31).found
    np.testing.assert_array_equal(found["A"].T, found["rows"]["scores"])
    np.testing.assert_allclose(found["weights"].sum(axis=0), np.ones(3))
    np.testing.assert_allclose(found["weights"].T, found["rows"]["weights"], rtol=1e-12)
    np.testing.assert_allclose(found["O"].T, found["rows"]["outputs"], rtol=1e-12)


@pytest.mark.point(31)
def test_how_far_columns_are_from_rows_is_computed_and_told(course, monkeypatch):
    assert course.showing(31).found["apart"] < 1e-12
    right = learning.trace_self_attention

    def wrong(*given, **options):
        return {s.name: replace(s, array=s.array + 0.25) for s in right(*given, **options)}

    monkeypatch.setattr(learning, "trace_self_attention", wrong)
    wrong = learning.columns()
    assert wrong.found["apart"] == pytest.approx(0.25)
    assert any("by 0.25 at most" in part.text for part in wrong.parts if isinstance(part, Text))


@pytest.mark.point(32)
def test_entry_i_j_is_the_score_of_query_j_for_key_i(course):
    found = course.showing(32).found
    np.testing.assert_array_equal(found["A"], [[1, 0, 1], [6, 4, 8], [4, 2, 5]])
    for i, j in np.ndindex(3, 3):
        assert found["A"][i, j] == found["rows"]["scores"][j, i]
        assert found["names"][i, j] == f"α{j + 1},{i + 1}"
    assert not np.array_equal(found["A"], found["A"].T)  # else it would show nothing


@pytest.mark.point(33)
def test_the_matrices_are_drawn_at_random_and_learned(course):
    found = course.showing(33).found
    losses = found["losses"]
    assert losses[-1] < 1e-3 * losses[0]
    for name, drawn in found["drawn"].items():
        assert np.abs(drawn).max() < 0.5
        assert np.abs(found["w"][name] - drawn).max() > 0.5
    # At first a token looks everywhere, at last at the one before.
    np.testing.assert_allclose(found["before"], np.full((4, 4), 0.25), atol=0.02)
    np.testing.assert_allclose(found["weights"], np.roll(np.eye(4), 1, axis=0), atol=0.05)
    curve = next(p for p in course.showing(33).parts if isinstance(p, Curve))
    np.testing.assert_array_equal(curve.values, losses)


@pytest.mark.point(33)
def test_what_is_learned_holds_for_sequences_that_it_did_not_see():
    _, w, _ = learning.train(*learning.task(seed=0))
    x, target = learning.task(seed=9)
    outputs = attention(*(x @ w[name] for name in ("query", "key", "value")))
    assert np.square(outputs - target).mean() < 1e-3 * np.square(target).mean()


@pytest.mark.point(14)
def test_by_hand_it_looks_at_itself_the_animal_and_the_street(course):
    assert course.showing(14).found["top"][:3] == ["it", "animal", "street"]
    wide = meanings()
    wide[ANIMAL.index("street")] *= 2
    assert at_work.by_hand(wide).found["top"][:1] == ["street"]


# --- what is installed ---


def test_without_a_model_the_lesson_says_so_and_is_whole(nothing_installed):
    course = lesson("learning", Given(sentence="the dog ran as it was late"))
    assert len(course.steps) == 6
    assert "No pretrained model is installed here" in course.steps[-1].parts[0].text


def test_a_model_that_cannot_be_read_is_named(nothing_installed, monkeypatch):
    def refuse(name):
        raise QkvError("no package 'tokenizers' here")

    monkeypatch.setattr(at_work, "find", lambda name: name)
    monkeypatch.setattr(at_work, "pretrained", refuse)
    parts = lesson("learning").steps[-1].parts
    assert "cannot be read: no package 'tokenizers' here" in parts[1].text
    with pytest.raises(QkvError, match="no package 'tokenizers'"):  # asked for, it is an error
        lesson("learning", Given(encoder="minilm"))


def test_the_folder_of_a_transformer_may_be_given(tiny_bert):
    found = lesson("learning", Given(encoder=str(tiny_bert))).steps[-1].found
    assert found["heads"].shape == (2, 3)
    assert found["weight"] == found["heads"].max() == found["heads"][found["layer"], found["head"]]
    assert len(found["cosines"]) == 3


def test_static_says_that_it_is_no_transformer():
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    course = lesson("learning")  # there is no minilm: `no_models`
    step = course.steps[-1]
    assert step.found["encoder"] == "static"
    assert "This is no transformer" in step.parts[1].text
    assert (step.found["word"], step.found["target"]) == ("it", "animal")
    row = step.found["row"]
    assert row.sum() == pytest.approx(1, abs=1e-5)
    assert step.found["weight"] == pytest.approx(row[step.found["words"].index("animal")])


@pytest.mark.parametrize(("sentence", "word"), [("dogs like it", "it"), ("Dogs are cats", "cats")])
def test_in_a_sentence_of_ones_own_a_word_is_chosen(sentence, word):
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    found = lesson("learning", Given(sentence=sentence, encoder="static")).steps[-1].found
    assert found["word"] == word
    assert found["target"] != word


def test_a_sentence_without_words_is_refused():
    if models.find("static") is None:
        pytest.skip("needs the static table: pip install 'qkvsearch[encoders]'")
    with pytest.raises(QkvError, match="no words to look at one another"):
        lesson("learning", Given(sentence="...", encoder="static"))


@pytest.mark.usefixtures("own_models")
class TestMinilm:
    @pytest.fixture(autouse=True)
    def needs_minilm(self):
        if models.find("minilm") is None:
            pytest.skip("needs minilm: qkvsearch model fetch minilm")

    def test_a_head_of_minilm_looks_from_it_to_the_animal(self):
        found = lesson("learning").steps[-1].found
        assert found["encoder"] == "minilm"
        assert found["heads"].shape == (6, 12)
        assert (found["layer"], found["head"]) == (5, 11)
        assert found["weight"] == found["heads"].max() > 0.6
        assert found["words"][found["row"].argmax()] == "animal"
        assert found["cosines"][-1] > found["cosines"][0] + 0.5  # point 15, by a real model

    def test_another_sentence_has_another_answer(self):
        given = Given(sentence="The trophy did not fit into the suitcase as it was too big")
        assert lesson("learning", given).steps[-1].found["word"] == "it"


# --- questions ---


def test_what_it_has_no_use_for_is_refused():
    with pytest.raises(DataError, match="--input has no place in the lesson learning"):
        lesson("learning", Given(inputs=np.eye(2)))


def test_quizzes_judge_right_and_wrong(course):
    shape, column, before, identity = course.quizzes
    assert (shape.is_right("3 × 3"), shape.is_right("3 × 4")) == (True, False)
    assert (column.is_right("1, 3"), column.is_right("3, 1")) == (True, False)
    assert (before.is_right("2"), before.is_right("3")) == (True, False)
    assert (identity.is_right("b"), identity.is_right("a")) == (True, False)

"""Lesson 6: points 10 to 13 and 23, and the first two slips of trap T4."""

import numpy as np
import pytest

from qkvsearch.attention.layers import MultiHeadAttention
from qkvsearch.lessons.compute.translation import DENSE, SOURCE, written
from qkvsearch.lessons.parts import Matrix, ShownTable, Text
from qkvsearch.lessons.workbench import Workbench


@pytest.fixture
def steps(taught):
    return taught("translation").showing


@pytest.fixture
def whole(taught):
    """The trace of the lesson's own numbers."""
    (bench,) = parts(taught("translation").steps[-1], Workbench)
    return bench.trace(bench.matrices)


def parts(step, kind):
    return [part for part in step.parts if isinstance(part, kind)]


def text(step):
    return " ".join(part.text for part in parts(step, Text))


@pytest.mark.point(10)
def test_three_words_attend_to_four_characters(steps, taught):
    said = text(steps(10))
    assert "潮水退了，才知道谁没穿裤子" in said
    assert "When the tide goes out, we know who is not wearing pants." in said
    step = taught("translation").steps[1]
    weights = step.computed["weights"]
    assert weights.shape == (3, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_array_equal(
        step.computed["scores"], [[6, 6, 0, 0], [9, 6, 0, 0], [0, 0, 9, 6]]
    )
    drawn = parts(step, Matrix)[-1]
    assert list(drawn.rows) == ["When", "the", "tide"]
    assert list(drawn.columns) == ["潮", "水", "退", "了"]
    # After “the” the noun, after “tide” what it does.
    assert step.computed["most"][1:] == ["潮", "退"]
    assert (weights[:2, :2].sum(axis=1) > 0.9).all()
    assert weights[2, 2:].sum() > 0.9


@pytest.mark.point(11)
def test_three_steps_of_a_person_beside_three_of_vectors(steps, whole):
    step = steps(11)
    table = next(part for part in step.parts if isinstance(part, ShownTable))
    assert len(table.columns) == 2
    assert len(table.rows) == 3
    for found, name in zip(
        ("query", "weights", "output"), ("queries", "weights", "outputs"), strict=True
    ):
        np.testing.assert_allclose(step.computed[found], whole[name].array[-1], rtol=1e-14)
    assert "退" in table.rows[1][0]
    assert step.computed["word"] in table.rows[2][0]


@pytest.mark.point(12)
def test_the_prediction_vector_becomes_the_next_word(steps):
    step = steps(12)
    assert step.computed["word"] == "goes"
    assert step.computed["scores"].shape == (6,)
    np.testing.assert_allclose(step.computed["probabilities"].sum(), 1)
    table = next(part for part in step.parts if isinstance(part, ShownTable))
    assert max(table.rows, key=lambda row: row[1])[0] == "goes"


@pytest.mark.point(12)
def test_the_toy_is_made_for_its_last_query_and_would_not_write_what_was_written(steps):
    """After “When” the sentence goes on with “the”."""
    assert steps(12).computed["all_words"] == ["tide", "tide", "goes"]
    assert "After “When” this toy would write “tide”" in text(steps(12))


@pytest.mark.point(13)
def test_the_query_comes_from_the_decoder_keys_and_values_from_the_encoder(taught):
    """T4, its first slip."""
    step = taught("translation").steps[0]
    assert "*queries* come from the decoder" in text(step)
    assert [list(part.rows) for part in parts(step, Matrix)] == [
        ["When", "the", "tide"],
        ["潮", "水", "退", "了"],
        ["潮", "水", "退", "了"],
    ]


@pytest.mark.point(13)
def test_a_sentence_that_attends_to_itself_is_self_attention(taught):
    found = taught("translation").steps[5].computed
    assert found["difference"] == 0
    np.testing.assert_array_equal(found["own"], found["alone"])
    assert np.abs(found["across"] - found["own"]).max() > 0.5
    # Its rows differ, because its queries attend to different keys.
    assert np.ptp(found["own"], axis=0).max() > 1
    queries = taught("translation").steps[0].computed["queries"]
    layer = MultiHeadAttention.create(4, n_heads=1, rng=1, dtype=np.float64)
    weights = layer(queries, return_weights=True)[1].reshape(3, 3)
    assert len(set(weights.argmax(axis=1))) > 1


@pytest.mark.point(10)
def test_the_second_output_takes_the_weights_of_the_second_query(taught, whole):
    """T4, its second slip: b² = Σᵢ α′₂ᵢ·vⁱ."""
    step = taught("translation").steps[3]
    alpha, v = whole["weights"].array, whole["values"].array
    np.testing.assert_allclose(step.computed["b2"], sum(alpha[1, i] * v[i] for i in range(4)))
    np.testing.assert_allclose(step.computed["weighted"].sum(axis=0), step.computed["b2"])
    assert np.abs(step.computed["b2"] - step.computed["b1"]).max() > 0.5


@pytest.mark.point(23)
def test_the_model_chooses_the_length(taught):
    step = taught("translation").showing(23)
    assert "3 vectors went in, 2 came out" in text(step)
    assert "".join(step.computed["words"]) == "不错"
    assert len(step.computed["vectors"]) == 2
    assert len(step.computed["passes"]) == 3  # the last of them chose the end


@pytest.mark.point(23)
def test_the_length_is_not_that_of_the_source_and_not_fixed():
    assert [one.word for one in written(source=SOURCE[2:])] == ["不", "错", "<end>"]
    eager = DENSE.copy()
    eager[2, 1] = 2  # after 不 the end now wins over 错
    assert [one.word for one in written(dense=eager)] == ["不", "<end>"]
    never = DENSE * [[1], [1], [-1]]
    assert len(written(dense=never)) == 10


def test_the_page_has_a_bench_of_the_same_numbers(taught):
    course = taught("translation")
    (bench,) = (bench for step in course.steps for bench in parts(step, Workbench))
    np.testing.assert_array_equal(bench.steps()["outputs"], course.steps[-1].computed["outputs"])
    np.testing.assert_array_equal(bench.steps()["weights"], course.steps[1].computed["weights"])

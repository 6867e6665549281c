"""Lesson 11: what is around attention, each part beside what happens without it."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.lessons import lesson
from qkvsearch.lessons.compute.block import count_numbers, random_texts


@pytest.fixture
def course(taught):
    return taught("block")


@pytest.fixture
def found(course):
    return {step.title.partition(":")[0]: step.computed for step in course.steps}


def changed(step, **changes):
    """What a step, counted from 1, finds with these in place of the lesson's own."""
    return lesson("block", changes=changes).steps[step - 1].computed


def test_it_has_its_points_and_quizzes(course):
    assert {point for step in course.steps for point in step.points} == {67, 68, 69, 70}
    assert len(course.steps) == 7


@pytest.mark.point(70)
def test_positions_make_attention_notice_the_order(found):
    np.testing.assert_array_equal(found["Positions"]["without"].round(12), np.zeros(4))
    assert (found["Positions"]["noticed"] > 0.1).all()
    same = changed(2, order=[0, 1, 2, 3])  # no token changed places
    np.testing.assert_array_equal(same["noticed"], np.zeros(4))


@pytest.mark.point(70)
def test_positions_know_how_far_apart_they_are_wherever_they_are(found):
    products = found["Positions"]["products"]
    for n in range(len(products)):
        diagonal = np.diagonal(products, n)
        np.testing.assert_allclose(diagonal, diagonal[0])
    assert products[0, 0] > products[0, 1] > products[0, 2]
    others = np.random.default_rng(0).normal(size=products.shape)
    assert np.ptp(np.diagonal(others @ others.T, 1)) > 1  # not so of any positions


@pytest.mark.point(68)
def test_scores_grow_with_the_square_of_their_inputs():
    x, times = random_texts(0)[0], 7.0
    w_q, w_k = np.random.default_rng(0).normal(size=(2, x.shape[1], 4))
    spread = [((t * x @ w_q) @ (t * x @ w_k).T).std() for t in (1, times)]
    assert spread[1] / spread[0] == pytest.approx(times**2)
    once = [((t * x @ w_q) @ (x @ w_k).T).std() for t in (1, times)]
    assert once[1] / once[0] == pytest.approx(times)  # of one side alone they would not


@pytest.mark.point(67)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_the_residual_tokens_become_alike_at_once(seed):
    kept, lost = changed(3, seed=seed)["similar"]
    assert lost[0] > 0.5 > 0.3 > kept[0]
    assert lost[1] > 0.9 > kept[2]
    assert (lost > kept).all()


@pytest.mark.point(68)
def test_the_norm_brings_mean_0_and_variance_1_and_forgets_the_size(found):
    norm = found["The norm"]
    assert norm["by_hand"].mean() == pytest.approx(0, abs=1e-12)
    assert norm["by_hand"].var() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(norm["by_hand"], norm["by_layer"], atol=1e-12)
    np.testing.assert_allclose(norm["tenfold"], norm["by_layer"], atol=1e-5)


@pytest.mark.point(68)
def test_without_the_norm_numbers_grow_from_block_to_block(found):
    normed, grown = found["The norm"]["sizes"]
    np.testing.assert_allclose(normed, 1, atol=1e-3)
    assert (np.diff(grown) > 0).all()
    assert grown[-1] > 10


@pytest.mark.point(69)
def test_feed_forward_says_what_no_linear_layer_can(found):
    forward, answers = found["Feed forward"], [0, 1, 1, 0]
    np.testing.assert_array_equal(forward["outputs"], answers)
    np.testing.assert_array_equal(forward["by_forward"], answers)
    np.testing.assert_allclose(forward["line"], 0.5)
    assert forward["merged"] == 0
    assert np.abs(forward["without"] - answers).max() >= 1
    # A task that a line can do, it does: it is the task that needs more.
    first = changed(5, answers=np.array([0.0, 0.0, 1.0, 1.0]))["line"]
    np.testing.assert_allclose(first, [0, 0, 1, 1], atol=1e-12)


@pytest.mark.point(67, 68, 69, 70)
def test_the_parts_one_after_the_other_are_the_layer(found):
    block = found["All parts at once"]
    np.testing.assert_allclose(block["z"], block["whole"], atol=1e-12)
    np.testing.assert_allclose(block["z"].mean(axis=1), 0, atol=1e-6)
    counts = block["counts"]
    assert counts == [4 * (16 + 4), 2 * 4 * 16 + 16 + 4, 4 * 4]
    attends, forward, _ = count_numbers(512)
    assert counts[1] > counts[0]
    assert forward / attends == pytest.approx(2, rel=0.01)


@pytest.mark.point(67, 68, 69, 70)
@pytest.mark.parametrize("seed", [0, 3])
def test_each_part_left_out_is_missed_where_it_should_be(seed):
    whole, positions, residual, norm, forward = changed(7, seed=seed)["measures"]
    assert positions[2] == 0 < 0.05 < whole[2]
    assert residual[0] > 0.999 > whole[0]
    assert norm[1] > 3 * whole[1]
    assert abs(forward[1] - whole[1]) < 0.01
    assert forward[2] > 0.05


def test_answers_and_near_misses(course):
    right = ["-1 1", "1", "-1", "b", "0", "a", "a", "c"]
    wrong = ["1 -1", "2", "3", "a", "0.4", "b", "b", "a"]
    for quiz, good, bad in zip(course.quizzes, right, wrong, strict=True):
        assert (quiz.is_right(good), quiz.is_right(bad)) == (True, False), quiz.name

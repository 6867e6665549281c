"""Lesson 11: what stands around attention, each part beside what happens without it."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.lessons.course import block
from qkvsearch.lessons.course.block import parts, together


@pytest.fixture
def course(taught):
    return taught("block")


@pytest.fixture
def found(course):
    return {step.title.partition(":")[0]: step.found for step in course.steps}


def test_it_has_its_points_and_quizzes(course):
    assert {point for step in course.steps for point in step.points} == {67, 68, 69, 70}
    assert len(course.steps) == 7


@pytest.mark.point(70)
def test_positions_make_attention_notice_the_order(found):
    np.testing.assert_array_equal(found["Positions"]["without"].round(12), np.zeros(4))
    assert (found["Positions"]["noticed"] > 0.1).all()
    same = block.positions(order=(0, 1, 2, 3)).found  # nobody changed places
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
    x, times = parts.drawn(0), 7.0
    w_q, w_k = np.random.default_rng(0).normal(size=(2, x.shape[1], 4))
    spread = [((t * x @ w_q) @ (t * x @ w_k).T).std() for t in (1, times)]
    assert spread[1] / spread[0] == pytest.approx(times**2)
    once = [((t * x @ w_q) @ (x @ w_k).T).std() for t in (1, times)]
    assert once[1] / once[0] == pytest.approx(times)  # of one side alone they would not


@pytest.mark.point(67)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_the_residual_tokens_become_alike_at_once(seed):
    kept, lost = parts.residual(parts.drawn(seed)).found["alike"]
    assert lost[0] > 0.6
    assert kept[0] < 0.5
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
    forward = found["Feed forward"]
    np.testing.assert_array_equal(forward["outputs"], parts.TRUE)
    np.testing.assert_allclose(forward["line"], 0.5)
    assert forward["merged"] == 0
    assert np.abs(forward["without"] - parts.TRUE).max() >= 1
    # A task that a line can do, it does: it is the task that needs more.
    np.testing.assert_allclose(parts.nearest_line(parts.EITHER, parts.EITHER[:, 0]), [0, 0, 1, 1],
                               atol=1e-12)  # fmt: skip


@pytest.mark.point(67, 68, 69, 70)
def test_the_parts_one_after_the_other_are_the_layer(found):
    whole = found["All parts at once"]
    assert whole["apart"] == 0
    np.testing.assert_allclose(whole["by_hand"].mean(axis=1), 0, atol=1e-6)
    sizes = list(whole["sizes"].values())
    assert sizes == [4 * (16 + 4), 2 * 4 * 16 + 16 + 4, 4 * 4]
    assert sizes[1] > sizes[0]


@pytest.mark.point(67, 68, 69, 70)
@pytest.mark.parametrize("seed", [0, 3])
def test_each_part_left_out_is_missed_where_it_should_be(seed):
    measures = together.taken_away(parts.drawn(seed)).found["measures"]
    whole, positions, residual, norm, forward = measures
    assert positions[2] == 0 < 0.05 < whole[2]
    assert residual[0] > 0.999 > whole[0]
    assert norm[1] > 3 * whole[1]
    assert abs(forward[1] - whole[1]) < 0.01
    assert forward[2] > 0.05


def test_answers_and_near_misses(course):
    right, wrong = ["-1 1", "1", "-1", "b", "0"], ["1 -1", "2", "3", "a", "0.4"]
    for quiz, good, bad in zip(course.quizzes, right, wrong, strict=True):
        assert (quiz.is_right(good), quiz.is_right(bad)) == (True, False), quiz.name

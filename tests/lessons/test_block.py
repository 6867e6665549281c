"""Lesson 12: what is around attention, each part beside what happens without it."""

import numpy as np
import pytest

from qkvsearch.lessons.compute.block import count_numbers


@pytest.fixture
def course(taught):
    return taught("block")


@pytest.fixture
def found(course):
    return {step.title.partition(":")[0]: step.computed for step in course.steps}


@pytest.mark.point(70)
def test_positions_make_attention_notice_the_order(found):
    np.testing.assert_array_equal(found["Positions"]["without"].round(12), np.zeros(4))
    assert (found["Positions"]["noticed"] > 0.1).all()


@pytest.mark.point(70)
def test_positions_know_how_far_apart_they_are_wherever_they_are(found):
    products = found["Positions"]["products"]
    for n in range(len(products)):
        diagonal = np.diagonal(products, n)
        np.testing.assert_allclose(diagonal, diagonal[0])
    assert products[0, 0] > products[0, 1] > products[0, 2]


@pytest.mark.point(67)
def test_without_the_residual_tokens_become_alike_at_once(course):
    kept, lost = course.steps[2].computed["similar"]
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
def test_each_part_left_out_is_missed_where_it_should_be(course):
    whole, positions, residual, norm, forward = course.steps[6].computed["measures"]
    assert positions[2] == 0 < 0.05 < whole[2]
    assert residual[0] > 0.999 > whole[0]
    assert norm[1] > 3 * whole[1]
    assert abs(forward[1] - whole[1]) < 0.01
    assert forward[2] > 0.05

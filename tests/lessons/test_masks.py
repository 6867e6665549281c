"""Lessons 8 and 9: points 47 to 49 and 52 to 62, trap T1, and the last slip of T4: row D."""

import numpy as np
import pytest

from qkvsearch.errors import DataError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute import masks
from qkvsearch.lessons.exports.document import compared_weights
from qkvsearch.lessons.parts import Matrix, ShownTable, Switch, Text
from qkvsearch.lessons.workbench import MASKS, Workbench


@pytest.fixture
def showing(taught):
    """The first step that shows a point, in the lessons on masks or in the appendix."""

    def find(point):
        lessons = map(taught, ("masks", "mask-details", "appendix"))
        return next(step for one in lessons for step in one.steps if point in step.points)

    return find


@pytest.fixture
def found(showing):
    return lambda point: showing(point).computed


def parts(step, kind):
    return [part for part in step.parts if isinstance(part, kind)]


# --- before the mask ---


@pytest.mark.point(47)
def test_symbols_evaluate_to_the_numbers(found, showing):
    np.testing.assert_array_equal(found(47)["queries"], [[3, 2], [1, 2], [1, 1], [3, 1]])
    np.testing.assert_array_equal(found(47)["keys"], [[2, 1], [2, 0], [1, 1], [1, 2]])
    np.testing.assert_array_equal(found(47)["values"], [[1, 3], [2, 1], [3, 1], [2, 3]])
    for name, evaluated in found(47)["evaluated"].items():
        np.testing.assert_allclose(evaluated, found(47)[name])
    written = [matrix.symbols for matrix in parts(showing(47), Matrix)]
    assert written[0][0, 0] == "a1·q11 + a2·q21 + a3·q31"
    assert written[2][3, 1] == "D1·v12 + D2·v22 + D3·v32"


@pytest.mark.point(49)
def test_the_scores_are_labelled_by_who_asks_and_who_is_asked(showing):
    (scores,) = parts(showing(49), Matrix)
    assert list(scores.rows) == ["a_Q", "b_Q", "c_Q", "D_Q"]
    assert list(scores.columns) == ["a_K", "b_K", "c_K", "D_K"]
    np.testing.assert_array_equal(
        scores.array, [[8, 6, 5, 7], [4, 2, 3, 5], [3, 2, 2, 3], [7, 6, 4, 5]]
    )
    assert scores.symbols[3, 0] == "D_Q·a_K"


@pytest.mark.point(52)
def test_without_a_mask_every_token_moves_every_output(found):
    assert (found(52)["weights"] > 0).all()
    assert (found(52)["influence"] > 0.1).all()


# --- padding ---


@pytest.mark.point(53)
def test_minus_infinity_is_added_before_the_softmax(found, showing):
    assert "softmax(Q·Kᵀ/√d + M)·V" in [getattr(part, "text", "") for part in showing(53).parts]
    np.testing.assert_array_equal(found(53)["M"], [[0, 0, 0, -np.inf]] * 4)
    masked = found(53)["masked"]
    np.testing.assert_array_equal(masked[:, 3], [-np.inf] * 4)
    np.testing.assert_array_equal(masked[:, :3], found(53)["scaled"][:, :3])
    # What `attention` makes of a mask.
    np.testing.assert_allclose(masked, found(54)["masked"], rtol=1e-15, atol=0)


@pytest.mark.point(54)
def test_the_paddings_column_is_0_and_its_row_still_sums_to_1(found):
    np.testing.assert_array_equal(found(54)["masked"][:, 3], [-np.inf] * 4)
    np.testing.assert_array_equal(found(54)["weights"][:, 3], [0] * 4)
    np.testing.assert_allclose(found(54)["weights"].sum(axis=1), [1] * 4)
    np.testing.assert_array_equal(found(54)["influence"][:3, 3], [0, 0, 0])
    assert (found(54)["influence"][:, :3] > 0.1).all()


@pytest.mark.point(54)
def test_row_d_holds_no_value_of_d_and_only_its_query_speaks_for_it(taught):
    """T4, its last slip."""
    step = taught("mask-details").showing(54)
    assert str(step.computed["symbols"][3]) == "S_Da·a_V + S_Db·b_V + S_Dc·c_V"
    moved = step.computed["moved"]
    np.testing.assert_array_equal(moved["key"], np.zeros(4))
    np.testing.assert_array_equal(moved["value"], np.zeros(4))
    np.testing.assert_array_equal(moved["query"] > 0, [False, False, False, True])


@pytest.mark.point(55)
def test_a_padded_batch_is_its_sentences_one_by_one(found):
    masked, unmasked = found(55)["differences"].T
    np.testing.assert_allclose(masked, 0, atol=1e-14)
    np.testing.assert_array_equal(unmasked > 0.1, [False, True, True])  # the first has no padding
    assert found(55)["with_mask"].shape == (3, 3, 2)


# --- padding as key and as query ---


@pytest.mark.point(56)
def test_masked_on_both_sides_row_d_is_undefined_and_a_program_must_choose(found):
    """T1: NaN, zero or uniform."""
    np.testing.assert_array_equal(found(56)["masked"], [-np.inf] * 4)
    rows = found(56)["rows"]
    assert np.isnan(rows["nan"]).all()
    np.testing.assert_array_equal(rows["zero"], [0] * 4)
    np.testing.assert_array_equal(rows["uniform"], [0.25] * 4)
    np.testing.assert_allclose(found(56)["uniform"], found(56)["mean"])
    np.testing.assert_allclose(found(56)["uniform"], [2, 2])
    np.testing.assert_allclose(found(56)["outputs"][:3], found(54)["outputs"][:3], atol=1e-14)


@pytest.mark.point(56)
def test_a_finite_number_is_uniform_only_where_it_replaces_the_scores(taught):
    """T1: −1e9 added is 1/4 in float32, and as if nothing were hidden in float64."""
    _, step = (step for step in taught("mask-details").steps if 56 in step.points)
    assert np.isnan(step.computed["undefined"]).all()
    np.testing.assert_array_equal(step.computed["replaced"], [0.25] * 4)
    assert step.computed["float32"].dtype == np.float32
    np.testing.assert_array_equal(step.computed["float32"], [0.25] * 4)
    np.testing.assert_allclose(step.computed["float64"], [0.032, 0.087, 0.237, 0.644], atol=5e-4)
    (table,) = parts(step, ShownTable)
    assert len(table.rows) == 4


# --- looking ahead ---


@pytest.mark.point(57)
def test_the_look_ahead_mask_is_a_triangle(found):
    np.testing.assert_array_equal(found(57)["masked"] > -np.inf, np.tri(4, dtype=bool))
    weights = found(57)["weights"]
    np.testing.assert_array_equal(weights[0], [1, 0, 0, 0])
    np.testing.assert_array_equal(weights > 0, np.tri(4, dtype=bool))
    np.testing.assert_array_equal(found(57)["influence"] > 0, np.tri(4, dtype=bool))
    assert [str(row) for row in found(57)["symbols"][:2]] == ["a_V", "S_ba·a_V + S_bb·b_V"]


@pytest.mark.point(58)
def test_three_passes_write_what_one_pass_computes(found):
    assert found(58)["words"] == ["cómo", "estás", "<end>"]
    assert len(found(58)["rows"]) == 3
    np.testing.assert_allclose(found(58)["rows"], found(58)["whole"], atol=1e-13)
    # Without the mask the first two rows see what comes later.
    seen = np.abs(found(58)["seen"] - found(58)["whole"]).max(axis=1)
    assert (seen[:2] > 0.01).all()


@pytest.mark.point(59)
def test_the_four_results_side_by_side(found, showing):
    np.testing.assert_allclose(
        found(59)["none"],
        [[1.52580877, 2.60885937], [1.86533187, 2.60885937],
         [1.83023845, 2.33952310], [1.52580877, 2.33952310]],
        atol=5e-9,
    )  # fmt: skip
    np.testing.assert_array_equal(found(59)["padding"], found(54)["outputs"])
    np.testing.assert_array_equal(found(59)["look-ahead"], found(57)["outputs"])
    np.testing.assert_allclose(found(59)["differences"], [0, 0, 0], atol=1e-14)
    assert len(parts(showing(59), Matrix)) == 4
    (own,) = parts(showing(59), Workbench)
    assert own.compared == MASKS
    for mask in MASKS:
        np.testing.assert_array_equal(own.steps(mask=mask)["outputs"], found(59)[mask])


def test_the_weights_under_both_masks_are_0_where_either_hides(showing):
    (own,) = parts(showing(59), Workbench)
    none, padding, look_ahead, both = (matrix.array > 0 for matrix in compared_weights(own))
    assert none.all()
    np.testing.assert_array_equal(both, padding & look_ahead)
    assert not np.array_equal(both, padding)
    assert not np.array_equal(both, look_ahead)


# --- a mask in another place ---


def test_a_mask_on_q_or_k_hides_nothing(taught):
    (switch,) = (part for step in taught("masks").steps[:6] for part in parts(step, Switch))
    column, in_k, in_q_and_k, row_too = (one.matrix.array for one in switch.settings)
    np.testing.assert_array_equal(column[:, 3], [0] * 4)
    np.testing.assert_allclose(column.sum(axis=1), [1] * 4)
    assert (in_k[:, 3] > 0).all()
    assert (in_q_and_k[:, 3] > 0).all()
    np.testing.assert_allclose(in_q_and_k[3], [0.25] * 4)
    np.testing.assert_array_equal(row_too[:3], column[:3])
    assert np.isnan(row_too[3]).all()


def test_each_setting_of_the_layers_shows_how_far_the_words_move(showing, found):
    (switch,) = parts(showing(60), Switch)
    shown = [one.matrix.array[0] for one in switch.settings]
    np.testing.assert_array_equal(shown, list(found(60)["moved"].values()))
    assert list(switch.settings[0].matrix.columns) == ["a", "b", "c"]


# --- in several layers ---


@pytest.mark.point(60)
def test_the_future_leaks_in_where_only_the_first_layer_has_the_look_ahead_mask(found):
    leak = found(60)["leaked"]
    assert leak["both"] == 0
    assert leak["first"] > 1e-3
    x = np.random.default_rng(3).normal(size=(6, 5))
    other = {"both": masks.moved_by_next(x, 2), "first": masks.moved_by_next(x, 1)}
    assert other["both"] == 0
    assert other["first"] > 1e-3


@pytest.mark.point(60)
def test_padding_must_be_hidden_in_every_layer(found):
    moved = found(60)["moved"]
    np.testing.assert_array_equal(moved["both"], [0, 0, 0])
    assert (moved["first"] > 1e-4).all()
    assert (moved["none"] > moved["first"]).all()


@pytest.mark.point(60)
def test_the_padding_goes_on_by_its_query_and_by_the_residual(found):
    """Each alone is enough; without both nothing is left to leak."""
    carried = found(60)["carried"]
    assert (carried["query"] > 1e-4).all()
    assert (carried["residual"] > 1e-4).all()
    np.testing.assert_array_equal(carried["both"], [0, 0, 0])
    nothing_cut = masks.moved_after_cut(masks.X, False, False)
    np.testing.assert_allclose(nothing_cut, found(60)["first"], atol=1e-14)


@pytest.mark.point(61)
def test_no_layer_moves_a_row(found):
    moved = found(61)["moved"]
    assert len(moved) == 5
    np.testing.assert_array_equal(moved > 1e-3, [[False, False, False, True]] * 5)
    np.testing.assert_array_equal(moved[:, :3], np.zeros((5, 3)))


@pytest.mark.point(48)
def test_weights_never_mix_rows_and_another_order_gives_another_order(found):
    for moved in found(48)["moved"].values():
        np.testing.assert_array_equal(moved > 0, [False, True, False, False])
    assert found(48)["difference"] < 1e-13
    np.testing.assert_allclose(
        found(48)["turned"], found(52)["outputs"][found(48)["order"]], atol=1e-13
    )
    assert found(48)["order"] != sorted(found(48)["order"])


@pytest.mark.point(62)
def test_the_three_questions_are_answered_by_the_steps_that_show_it(taught, showing):
    opening = " ".join(part.text for part in parts(taught("masks").steps[0], Text))
    assert opening.count("?") == 3
    layers, *answers, _ = parts(showing(62), Text)
    assert "(lesson 8)" in layers.text
    assert showing(60) in taught("masks").steps
    details = taught("mask-details").steps
    for point, answer in zip((56, 48), answers, strict=True):
        assert f"(step {details.index(showing(point)) + 1})" in answer.text


# --- numbers of one's own ---


def test_numbers_and_a_mask_of_ones_own():
    x = np.random.default_rng(1).normal(size=(6, 3))
    own = lesson("masks", Given(inputs=x, mask="both"))
    weights = own.showing(54).computed["weights"]
    np.testing.assert_array_equal(weights[:, 5], np.zeros(6))
    (last,) = parts(own.showing(59), Workbench)
    assert (last.mask, "".join(last.rows)) == ("both", "abcdef")
    shown = parts(own.showing(59), Matrix)
    np.testing.assert_array_equal(shown[3].array, last.steps()["outputs"])
    assert own.quizzes[1].is_right("f e d c")


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="give 3 or more"):
        lesson("masks", Given(inputs=np.ones((2, 3))))
    for width in (1, 2):  # of so few, LayerNorm leaves 0 or a sign
        fits = dict.fromkeys(("w_query", "w_key", "w_value"), np.ones((width, 2)))
        with pytest.raises(DataError, match=rf"{width} columns? (is|are) too few"):
            lesson("masks", Given(inputs=np.eye(4, width), **fits))

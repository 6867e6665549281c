"""Lesson 9: what attention tells apart, and how it stands beside other layers."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention import AdditiveScore, attention
from qkvsearch.errors import DataError, QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.course.context import Twice, layers, outputs, told_apart
from qkvsearch.lessons.parts import Table
from qkvsearch.lessons.workbench import Workbench


@pytest.fixture(scope="module")
def course():
    return lesson("context")


def test_it_has_its_points_a_workbench_and_quizzes(course):
    shown = {point for step in course.steps for point in step.points}
    assert shown == {14, 15, 18, 19, 20, 21, 22, 24, 25, 26, 27, 29, 34}
    benches = [p for step in course.steps for p in step.parts if isinstance(p, Workbench)]
    assert len({bench.name for bench in benches}) == len(benches) == 2
    assert len(course.quizzes) >= 3


# --- the same word twice ---


@pytest.mark.point(24)
def test_a_layer_for_each_word_cannot_tell_the_two_saws_apart(course):
    found = course.showing(24).found
    assert found["apart"] == 0
    np.testing.assert_array_equal(found["outputs"][1], found["outputs"][3])


@pytest.mark.point(24)
def test_trap_3_only_positions_or_a_look_ahead_mask_tell_them_apart(course):
    alone, unmasked, told = course.steps[:3]
    assert [24 in step.points for step in (alone, unmasked, told)] == [True] * 3
    assert unmasked.found["apart"] == 0
    np.testing.assert_allclose(*unmasked.found["outputs"][[1, 3]], rtol=1e-12)
    apart = told.found["apart"]
    assert apart["connected"] == apart["attention"] == 0
    assert apart["positions"] > 0.1
    assert apart["look-ahead"] > 0.1
    table = next(part for part in told.parts if isinstance(part, Table))
    assert [row[1] for row in table.rows] == list(apart.values())  # all are shown


@pytest.mark.point(24)
def test_without_a_mask_order_does_not_count_at_all(course):
    bench = next(p for p in course.steps[1].parts if isinstance(p, Workbench))
    order = [3, 2, 1, 0]
    turned = bench.steps({"inputs": bench.matrices["inputs"][order]})["outputs"]
    np.testing.assert_allclose(turned, bench.steps()["outputs"][order], rtol=1e-12)


@pytest.mark.parametrize(
    ("sentence", "word"),
    [("The dog bit the man.", "the"), ("她说她来", "她"), ("Buffalo see big buffalo", "buffalo")],
)
def test_a_sentence_of_ones_own(sentence, word):
    own = lesson("context", Given(sentence=sentence)).steps
    assert f'"{word}"' in own[0].parts[0].text
    apart = own[2].found["apart"]
    assert apart["connected"] == apart["attention"] == 0 < apart["look-ahead"]


@pytest.mark.parametrize("sentence", ["nothing comes again", "", "very very big", "a " * 7 + "b"])
def test_a_sentence_without_a_word_that_comes_back_is_refused(sentence):
    with pytest.raises(QkvError, match=r'no word that comes back.*"I saw a saw"'):
        lesson("context", Given(sentence=sentence))


def test_a_long_sentence_is_refused():
    with pytest.raises(QkvError, match="13 words, more than the 12"):
        lesson("context", Given(sentence="a b " * 6 + "a"))


def test_what_it_has_no_use_for_is_refused():
    with pytest.raises(DataError, match="`mask` has no place in the lesson context, which takes"):
        lesson("context", Given(mask="both"))


# --- what comes out ---


@pytest.mark.point(20)
def test_a_single_vector_has_weight_1(course):
    np.testing.assert_array_equal(course.showing(20).found["single"], [[1]])


@pytest.mark.point(21)
def test_this_is_good_is_positive(course):
    assert course.showing(21).found["sentence"] == "a positive judgement"
    bad = np.array(list(outputs.GOOD.values()), dtype=float) * [1, 1, 1, -1]
    assert outputs.labels(bad).found["sentence"] == "a negative judgement"


@pytest.mark.point(22)
def test_each_of_n_vectors_gets_a_label(course):
    found = course.showing(22).found
    assert found["said"] == ["pronoun", "verb", "adjective"]  # 代词, 动词, 形容词
    assert found["labels"].shape == (3, 3)
    words = np.array(list(outputs.GOOD.values()), dtype=float)
    turned = outputs.labels(words[[2, 0, 1, 0]]).found
    assert turned["said"] == ["adjective", "pronoun", "verb", "pronoun"]


@pytest.mark.point(19)
def test_patches_and_frames_are_sequences_too(course):
    found = course.showing(19).found
    # Patches 1 and 4 are light, 2 and 3 dark; frames 1 and 3 go up, 2 and 4 down.
    np.testing.assert_array_equal(
        found["weights"] > 0.25, [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]
    )
    np.testing.assert_array_equal(found["sound"] > 0.25, [[1, 0, 1, 0], [0, 1, 0, 1]] * 2)
    stripes = outputs.patches(np.array([[1.0, 1, -1, -1]] * 4)).found["weights"]
    np.testing.assert_array_equal(stripes > 0.25, [[1, 0, 1, 0], [0, 1, 0, 1]] * 2)


@pytest.mark.point(14)
def test_by_hand_it_looks_at_itself_the_animal_and_the_street(course):
    assert course.showing(14).found["top"][:3] == ["it", "animal", "street"]
    wide = outputs.meanings()
    wide[outputs.ANIMAL.index("street")] *= 2
    assert outputs.it(wide).found["top"][:1] == ["street"]


@pytest.mark.point(15)
def test_it_comes_nearer_to_what_it_attends_to_and_to_nothing_else(course):
    near = course.showing(15).found["near"]
    assert near["animal"][1] > near["animal"][0] + 0.05
    assert near["street"][1] > near["street"][0] + 0.04
    assert near["others"][1] < near["others"][0]
    # Without an animal to look at there is nothing to take from it.
    x = outputs.meanings()
    away = x.copy()
    away[outputs.ANIMAL.index("animal")] = outputs.SMALL_WORD
    there = outputs.ANIMAL.index("it")
    moved = outputs.it(away).found["mixed"][there] - course.showing(15).found["mixed"][there]
    assert np.abs(moved).max() > 0.1


@pytest.mark.point(15)
def test_context_by_hand_does_not_find_out_which_noun_is_meant(course):
    """Where the street is too wide, the animal stays nearer: our hand made it so."""
    found = course.showing(15).found
    for near in (found["near"], found["swapped"]):
        assert near["animal"][1] > near["street"][1] + 0.05
    assert found["near"]["animal"][0] > found["near"]["street"][0]


# --- beside other layers ---


@pytest.mark.point(25)
def test_parameters_grow_with_the_window_and_attentions_do_not(course):
    words, window, everything, heads = course.showing(25).found["weights"].T
    np.testing.assert_array_equal(window, 16 * words)
    np.testing.assert_array_equal(everything, 16 * words**2)
    np.testing.assert_array_equal(heads, np.full(len(words), 48))


@pytest.mark.point(26)
def test_a_layer_moves_one_row_and_attention_all(course):
    layer, mixed, again = course.showing(26).found["moved"]
    np.testing.assert_array_equal(layer > 0, [False, False, True, False])
    assert (mixed > 1e-3).all()
    assert (again > 1e-3).all()
    nothing = layers.turns(change=np.zeros((4, 1))).found["moved"]
    np.testing.assert_array_equal(nothing, np.zeros((3, 4)))


@pytest.mark.point(27)
def test_every_output_has_every_input_in_its_jacobian(course):
    found = course.showing(27).found
    assert (found["influence"] > 0.01).all()
    np.testing.assert_array_equal(found["ahead"] > 0, np.tri(4, dtype=bool))


@pytest.mark.point(27)
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_jacobian_is_that_of_finite_differences(is_causal):
    x = np.random.default_rng(5).normal(size=(4, 4))
    found, step = layers.jacobian(x, is_causal), 1e-6
    for place in np.ndindex(4, 4):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        slope = attention(up, up, up, is_causal=is_causal)
        slope = (slope - attention(down, down, down, is_causal=is_causal)) / (2 * step)
        np.testing.assert_allclose(found[(..., *place)], slope, atol=1e-8)


@pytest.mark.point(18)
def test_each_layer_brings_a_change_one_token_further(course):
    moved = course.showing(18).found["moved"]
    for n_layers, row in enumerate(moved, start=1):
        np.testing.assert_array_equal(row > 0, np.arange(6) <= n_layers)
    wide = layers.layers(n_layers=2, side=2).found["moved"]
    np.testing.assert_array_equal(wide > 0, [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]])


@pytest.mark.point(29)
def test_relu_in_place_of_softmax(course):
    found = course.showing(29).found
    np.testing.assert_array_equal(found["raw"][0], [18, 60, 18])
    np.testing.assert_allclose(found["normalized"][0], [1.8, 6, 1.8])
    bench = next(p for p in course.showing(29).parts if isinstance(p, Workbench))
    np.testing.assert_allclose(bench.steps()["outputs"], found["normalized"])


@pytest.mark.point(34)
def test_additive_scores_are_single_numbers_one_by_one_or_all_at_once_and_bounded(course):
    found = course.showing(34).found
    assert found["scores"].shape == (2, 3)
    np.testing.assert_allclose(found["scores"], found["loop"])
    assert np.abs(found["scores"]).max() <= found["bound"] == 3
    rng = np.random.default_rng(0)
    score = AdditiveScore(rng.normal(size=(3, 5)), rng.normal(size=(4, 5)), rng.normal(size=5))
    queries, keys = 100 * rng.normal(size=(4, 3)), 100 * rng.normal(size=(6, 4))
    with pytest.raises(ValueError, match="width"):  # the dot product needs equal widths
        layers.additive(queries, keys, score)
    large = layers.additive(queries, queries, AdditiveScore(score.w_query, score.w_query, score.w))
    np.testing.assert_allclose(large.found["scores"], large.found["loop"], atol=1e-12)
    assert np.abs(large.found["scores"]).max() <= large.found["bound"]


# --- questions ---


def test_quizzes_judge_right_and_wrong(course):
    same, which, weights, moved = course.quizzes
    assert (same.is_right("0"), same.is_right("1")) == (True, False)
    assert (which.is_right("3"), which.is_right("1")) == (True, False)
    assert (weights.is_right("112"), weights.is_right("28")) == (True, False)
    assert (moved.is_right("a, b, c, d"), moved.is_right("a b c")) == (True, False)


def test_the_sentence_decides_how_far_the_two_are_apart():
    found = told_apart(Twice.of("you know what you want")).found["apart"]
    assert found["positions"] != lesson("context").steps[2].found["apart"]["positions"]

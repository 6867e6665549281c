"""Lesson 9: what attention tells apart, and how it stands beside other layers."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention import attention, dot_score
from qkvsearch.errors import DataError, QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.compute import context
from qkvsearch.lessons.parts import Table
from qkvsearch.lessons.workbench import Workbench

GOOD = np.array([[3.0, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 2]])
SMALL_WORD = [0, 0, 0, 1]
ANIMAL, STREET, IT, TIRED = 1, 5, 7, 10


def showing(point, **changes):
    return lesson("context", changes=changes).showing(point).computed


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
    found = course.showing(24).computed
    assert found["apart"] == 0
    np.testing.assert_array_equal(found["connected"][1], found["connected"][3])


@pytest.mark.point(24)
def test_trap_3_only_positions_or_a_look_ahead_mask_tell_them_apart(course):
    alone, unmasked, told = course.steps[:3]
    assert [24 in step.points for step in (alone, unmasked, told)] == [True] * 3
    assert unmasked.computed["apart"] == 0
    np.testing.assert_allclose(*unmasked.computed["outputs"][[1, 3]], rtol=1e-12)
    apart = told.computed["apart"]
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
    assert f"“{word}”" in own[0].parts[0].text
    apart = own[2].computed["apart"]
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
    np.testing.assert_array_equal(course.showing(20).computed["single"], [[1]])


@pytest.mark.point(21)
def test_this_is_good_is_positive(course):
    assert course.showing(21).computed["verdict"] == "a positive judgement"
    assert showing(21, vectors=GOOD * [1, 1, 1, -1])["verdict"] == "a negative judgement"


@pytest.mark.point(22)
def test_each_of_n_vectors_gets_a_label(course):
    found = course.showing(22).computed
    assert found["chosen"] == ["pronoun", "verb", "adjective"]  # 代词, 动词, 形容词
    assert found["labels"].shape == (3, 3)
    turned = showing(22, vectors=GOOD[[2, 0, 1, 0]])
    assert turned["chosen"] == ["adjective", "pronoun", "verb", "pronoun"]


@pytest.mark.point(19)
def test_patches_and_frames_are_sequences_too(course):
    found = course.showing(19).computed
    # Patches 1 and 4 are light, 2 and 3 dark; frames 1 and 3 go up, 2 and 4 down.
    np.testing.assert_array_equal(
        found["weights"] > 0.25, [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]
    )
    np.testing.assert_array_equal(found["sound"] > 0.25, [[1, 0, 1, 0], [0, 1, 0, 1]] * 2)
    stripes = showing(19, image=np.array([[1.0, 1, -1, -1]] * 4))["weights"]
    np.testing.assert_array_equal(stripes > 0.25, [[1, 0, 1, 0], [0, 1, 0, 1]] * 2)


@pytest.mark.point(14)
def test_by_hand_it_looks_at_itself_the_animal_and_the_street(course):
    assert course.showing(14).computed["top"][:3] == ["it", "animal", "street"]
    vectors = meanings(course)
    vectors[STREET] *= 2
    assert showing(14, meanings=vectors)["top"][:1] == ["street"]


def meanings(course):
    """The vectors made by hand."""
    vectors = course.showing(14).computed["swapped_meanings"].copy()
    vectors[TIRED] = [0, 2, 0, 1]
    return vectors


@pytest.mark.point(15)
def test_it_becomes_more_similar_to_what_it_attends_to_and_to_few_others(course):
    found = course.showing(15).computed
    before, after = found["cosines"]
    assert after[ANIMAL] > before[ANIMAL] + 0.05
    assert after[STREET] > before[STREET] + 0.04
    others = [i for i in range(11) if i not in (ANIMAL, STREET, IT)]
    assert after[others].mean() < before[others].mean()
    # Not to no other word: *tired* shares a number with the animal. All are told.
    assert found["nearer"] == ["tired"]
    assert [i for i in others if after[i] > before[i]] == [TIRED]
    assert (before[10], after[10]) == (
        pytest.approx(0.572, abs=5e-4),
        pytest.approx(0.611, abs=5e-4),
    )
    # Without an animal to attend to there is nothing to take from it.
    away = meanings(course)
    away[ANIMAL] = SMALL_WORD
    moved = showing(15, meanings=away)["mixed"][IT] - found["mixed"][IT]
    assert np.abs(moved).max() > 0.1


@pytest.mark.point(15)
def test_context_by_hand_does_not_find_out_which_noun_is_meant(course):
    """Where the street is too wide, the animal stays nearer: our hand made it so."""
    found = course.showing(15).computed
    for cosines in (found["cosines"], found["swapped"]):
        assert cosines[1, ANIMAL] > cosines[1, STREET] + 0.05
    assert found["cosines"][0, ANIMAL] > found["cosines"][0, STREET]


# --- beside other layers ---


@pytest.mark.point(25)
def test_parameters_grow_with_the_window_and_attentions_do_not(course):
    words, window, everything, heads = course.showing(25).computed["weights"].T
    np.testing.assert_array_equal(window, 16 * words)
    np.testing.assert_array_equal(everything, 16 * words**2)
    np.testing.assert_array_equal(heads, np.full(len(words), 48))


@pytest.mark.point(26)
def test_a_layer_moves_one_row_and_attention_all(course):
    layer, mixed, again = course.showing(26).computed["moved"]
    np.testing.assert_array_equal(layer > 0, [False, False, True, False])
    assert (mixed > 1e-3).all()
    assert (again > 1e-3).all()
    nothing = showing(26, change=np.zeros((4, 1)))["moved"]
    np.testing.assert_array_equal(nothing, np.zeros((3, 4)))


@pytest.mark.point(27)
def test_every_output_has_every_input_in_its_jacobian(course):
    found = course.showing(27).computed
    assert (found["whole"] > 0.01).all()
    np.testing.assert_array_equal(found["ahead"] > 0, np.tri(4, dtype=bool))


@pytest.mark.point(27)
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_jacobian_is_that_of_finite_differences(is_causal):
    x = np.random.default_rng(5).normal(size=(4, 4))
    found, step = context.jacobian(x, is_causal), 1e-6
    for place in np.ndindex(4, 4):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        slope = attention(up, up, up, is_causal=is_causal)
        slope = (slope - attention(down, down, down, is_causal=is_causal)) / (2 * step)
        np.testing.assert_allclose(found[(..., *place)], slope, atol=1e-8)


@pytest.mark.point(18)
def test_each_layer_brings_a_change_one_token_further(course):
    moved = course.showing(18).computed["moved"]
    for n_layers, row in enumerate(moved, start=1):
        np.testing.assert_array_equal(row > 0, np.arange(6) <= n_layers)
    wide = showing(18, n_layers=2, side=2)["moved"]
    np.testing.assert_array_equal(wide > 0, [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]])


@pytest.mark.point(29)
def test_relu_in_place_of_softmax(course):
    found = course.showing(29).computed
    np.testing.assert_array_equal(found["raw"][0], [18, 60, 18])
    np.testing.assert_allclose(found["normalized"][0], [1.8, 6, 1.8])
    bench = next(p for p in course.showing(29).parts if isinstance(p, Workbench))
    np.testing.assert_allclose(bench.steps()["outputs"], found["normalized"])


@pytest.mark.point(34)
def test_additive_scores_are_single_numbers_one_by_one_or_all_at_once_and_bounded(course):
    found = course.showing(34).computed
    assert found["scores"].shape == (2, 3)
    np.testing.assert_allclose(found["scores"], found["loop"])
    assert np.abs(found["scores"]).max() <= found["bound"] == 3
    rng = np.random.default_rng(0)
    weights = {"w_query": rng.normal(size=(3, 5)), "w": rng.normal(size=5)}
    rows = {"queries": 100 * rng.normal(size=(4, 3)), "keys": 100 * rng.normal(size=(6, 4))}
    with pytest.raises(ValueError, match="width"):  # the dot product needs equal widths
        dot_score(rows["queries"], rows["keys"])
    other = showing(34, **rows, **weights, w_key=rng.normal(size=(4, 5)))
    np.testing.assert_allclose(other["scores"], other["loop"], atol=1e-12)
    rows["keys"] = rows["queries"]
    large = showing(34, **rows, **weights, w_key=weights["w_query"])
    np.testing.assert_allclose(large["scores"], large["loop"], atol=1e-12)
    assert np.abs(large["scores"]).max() <= large["bound"]


# --- questions ---


def test_quizzes_judge_right_and_wrong(course):
    same, which, weights, moved, order, history = course.quizzes
    assert (same.is_right("0"), same.is_right("1")) == (True, False)
    assert (which.is_right("3"), which.is_right("1")) == (True, False)
    assert (weights.is_right("112"), weights.is_right("28")) == (True, False)
    assert (moved.is_right("a, b, c, d"), moved.is_right("a b c")) == (True, False)
    assert order.is_right("a")
    assert history.is_right("a")


def test_the_sentence_decides_how_far_the_two_are_apart():
    own = lesson("context", Given(sentence="you know what you want"))
    found = own.steps[2].computed["apart"]
    assert found["positions"] != lesson("context").steps[2].computed["apart"]["positions"]

"""Lesson 10 and the appendix: what attention tells apart, and how it stands beside other layers."""

import numpy as np
import pytest

from qkvsearch.errors import QkvError
from qkvsearch.lessons import Given, lesson
from qkvsearch.lessons.parts import ShownTable
from qkvsearch.lessons.workbench import Workbench

ANIMAL, STREET, IT, TIRED = 1, 5, 7, 10


@pytest.fixture(scope="module")
def course():
    return lesson("context")


@pytest.fixture(scope="module")
def appendix():
    return lesson("appendix")


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
    table = next(part for part in told.parts if isinstance(part, ShownTable))
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


# --- what comes out ---


@pytest.mark.point(20)
def test_a_single_vector_has_weight_1(course):
    np.testing.assert_array_equal(course.showing(20).computed["single"], [[1]])


@pytest.mark.point(21)
def test_this_is_good_is_positive(course):
    assert course.showing(21).computed["verdict"] == "a positive judgement"


@pytest.mark.point(22)
def test_each_of_n_vectors_gets_a_label(course):
    found = course.showing(22).computed
    assert found["chosen"] == ["pronoun", "verb", "adjective"]  # 代词, 动词, 形容词
    assert found["labels"].shape == (3, 3)


@pytest.mark.point(19)
def test_patches_and_frames_are_sequences_too(appendix):
    found = appendix.showing(19).computed
    # Patches 1 and 4 are light, 2 and 3 dark; frames 1 and 3 go up, 2 and 4 down.
    np.testing.assert_array_equal(
        found["weights"] > 0.25, [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]
    )
    np.testing.assert_array_equal(found["sound"] > 0.25, [[1, 0, 1, 0], [0, 1, 0, 1]] * 2)


@pytest.mark.point(14)
def test_by_hand_it_looks_at_itself_the_animal_and_the_street(course):
    assert course.showing(14).computed["top"][:3] == ["it", "animal", "street"]


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


@pytest.mark.point(15)
def test_context_by_hand_does_not_find_out_which_noun_is_meant(course):
    """Where the street is too wide, the animal stays nearer: our hand made it so."""
    found = course.showing(15).computed
    for cosines in (found["cosines"], found["swapped"]):
        assert cosines[1, ANIMAL] > cosines[1, STREET] + 0.05
    assert found["cosines"][0, ANIMAL] > found["cosines"][0, STREET]


# --- beside other layers ---


@pytest.mark.point(25)
def test_parameters_grow_with_the_window_and_attentions_do_not(appendix):
    words, window, everything, heads = appendix.showing(25).computed["weights"].T
    np.testing.assert_array_equal(window, 16 * words)
    np.testing.assert_array_equal(everything, 16 * words**2)
    np.testing.assert_array_equal(heads, np.full(len(words), 48))


@pytest.mark.point(26)
def test_a_layer_moves_one_row_and_attention_all(appendix):
    layer, mixed, again = appendix.showing(26).computed["moved"]
    np.testing.assert_array_equal(layer > 0, [False, False, True, False])
    assert (mixed > 1e-3).all()
    assert (again > 1e-3).all()


@pytest.mark.point(27)
def test_every_output_has_every_input_in_its_jacobian(appendix):
    found = appendix.showing(27).computed
    assert (found["whole"] > 0.01).all()
    np.testing.assert_array_equal(found["ahead"] > 0, np.tri(4, dtype=bool))


@pytest.mark.point(18)
def test_each_layer_brings_a_change_one_token_further(course):
    moved = course.showing(18).computed["moved"]
    for n_layers, row in enumerate(moved, start=1):
        np.testing.assert_array_equal(row > 0, np.arange(6) <= n_layers)


@pytest.mark.point(29)
def test_relu_in_place_of_softmax(appendix):
    found = appendix.showing(29).computed
    np.testing.assert_array_equal(found["raw"][0], [18, 60, 18])
    np.testing.assert_allclose(found["normalized"][0], [1.8, 6, 1.8])
    bench = next(p for p in appendix.showing(29).parts if isinstance(p, Workbench))
    np.testing.assert_allclose(bench.steps()["outputs"], found["normalized"])


@pytest.mark.point(34)
def test_additive_scores_are_single_numbers_one_by_one_or_all_at_once_and_bounded(appendix):
    found = appendix.showing(34).computed
    assert found["scores"].shape == (2, 3)
    np.testing.assert_allclose(found["scores"], found["loop"])
    assert np.abs(found["scores"]).max() <= found["bound"] == 3

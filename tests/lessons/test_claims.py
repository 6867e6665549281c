"""Every claim of cause in the course, and the test that tries to refute it by a counterfactual.

A sentence that says why something is so, or what attends to what, stands here with the test that
takes the cause away; a new one without a test fails.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qkvsearch.attention.layers import EncoderLayer, Linear
from qkvsearch.labelled import LabelledVectors
from qkvsearch.lessons.course import embeddings, learning, masks
from qkvsearch.lessons.course.block import parts
from qkvsearch.lessons.course.heads import learned
from qkvsearch.lessons.course.masks import one_layer
from qkvsearch.lessons.course.recommender import descent
from qkvsearch.lessons.course.search import key_rows
from qkvsearch.texts.encoded_text import without_layers

HERE = Path(__file__).parent
COURSE = "qkvsearch/lessons/course/"
SENTENCE = re.compile(r"(?<=[.?!:;])\s+")
CAUSE = re.compile(
    r"\b(because|therefore|so that|that is why|is why|made it|attends? (most )?to|cannot|depends"
    r"|larger for)\b"
    r"|, so |^So |: so |; so |, for a ",
    re.IGNORECASE,
)

# A part of the sentence: the test that would fail if the cause were another one.
CLAIMS = {
    "so blocks can be stacked": "test_claims::test_blocks_can_be_stacked_as_none_changes_the_width",
    "So a vector that says the place": "test_block::test_positions_make_attention_notice_the_order",
    "depends only on how far apart": (
        "test_block::test_positions_know_how_far_apart_they_are_wherever_they_are"
    ),
    "so it grows with the square": "test_block::test_scores_grow_with_the_square_of_their_inputs",
    "so “two places on”": (
        "test_block::test_positions_know_how_far_apart_they_are_wherever_they_are"
    ),
    "So a block *adds*": "test_block::test_without_the_residual_tokens_become_alike_at_once",
    "Each residual adds something": "test_claims::test_it_is_the_residual_that_makes_numbers_grow",
    "So without ReLU the second": "test_block::test_feed_forward_says_what_no_linear_layer_can",
    "The same vector goes in both": (
        "test_context::test_a_layer_for_each_word_cannot_tell_the_two_saws_apart"
    ),
    "a layer for each word by itself cannot": (
        "test_context::test_a_layer_for_each_word_cannot_tell_the_two_saws_apart"
    ),
    "lets every word attend to all": (
        "test_context::test_every_output_has_every_input_in_its_jacobian"
    ),
    "But equal vectors make": (
        "test_context::test_trap_3_only_positions_or_a_look_ahead_mask_tell_them_apart"
    ),
    "It cannot grow beyond": (
        "test_context::test_additive_scores_are_single_numbers_one_by_one_or_all_at_once_and_bounded"
    ),
    "It can only attend to itself": "test_context::test_a_single_vector_has_weight_1",
    "equal things attend to each": "test_context::test_patches_and_frames_are_sequences_too",
    'By them "it" attends most to': (
        "test_context::test_by_hand_it_looks_at_itself_the_animal_and_the_street"
    ),
    "Mixed with what it attends to": (
        "test_context::test_it_comes_nearer_to_what_it_attends_to_and_to_nothing_else"
    ),
    "So it is positive for a small": (
        "test_dot_product::test_the_sign_goes_by_the_angle_of_any_arrows"
    ),
    "so they add up to {total}": "test_embeddings::test_another_film_has_other_numbers",
    "Large numbers make large": (
        "test_claims::test_it_is_the_lengths_that_let_a_film_match_another_more"
    ),
    "what one row of weights cannot do": (
        "test_heads::test_no_row_of_weights_takes_a_number_from_each_of_two"
    ),
    "{token} attends most to {first} in head 1": (
        "test_heads::test_a_head_sees_only_its_own_columns"
    ),
    "so guessing 0 would be wrong": "test_claims::test_guessing_0_is_wrong_by_the_variance",
    "so a head that looks at both": "test_heads::test_what_is_lost_with_a_head_says_what_it_is_for",
    "every token has learned to attend": (
        "test_claims::test_what_is_attended_to_is_learned_from_the_task"
    ),
    "so words attend to words of": (
        "test_claims::test_without_weight_matrices_the_nearest_are_attended_to"
    ),
    "{most} of the {n} tokens, [CLS]": (
        "test_learning::test_the_strongest_weight_is_given_by_most_words_and_for_the_other_ending"
    ),
    "So this weight is not what finds": (
        "test_learning::test_the_strongest_weight_is_given_by_most_words_and_for_the_other_ending"
    ),
    "So a weight tells where": "test_learning::test_the_most_weight_is_not_what_moves_it_most",
    "cannot be read off the weight": "test_learning::test_equal_weights_do_not_count_equally",
    "so shorter ones are filled up": "test_masks::test_a_padded_batch_is_its_sentences_one_by_one",
    "Its row would have nothing to attend": (
        "test_masks::test_masked_on_both_sides_row_d_is_undefined_and_a_program_must_choose"
    ),
    "because under the mask a row": "test_masks::test_three_passes_write_what_one_pass_computes",
    "What carries {last} through": (
        "test_masks::test_the_padding_goes_on_by_its_query_and_by_the_residual"
    ),
    "So one mask serves every layer": "test_masks::test_no_layer_moves_a_row",
    "so every token influences": "test_masks::test_without_a_mask_every_token_moves_every_output",
    "so is the weight": "test_masks::test_minus_infinity_is_added_before_the_softmax",
    "so its weights are exactly 0": (
        "test_masks::test_the_paddings_column_is_0_and_its_row_still_sums_to_1"
    ),
    "*Adding* it depends": (
        "test_masks::test_a_finite_number_is_uniform_only_where_it_replaces_the_scores"
    ),
    "so the scores drown": (
        "test_masks::test_a_finite_number_is_uniform_only_where_it_replaces_the_scores"
    ),
    "So each token sees itself": "test_masks::test_the_look_ahead_mask_is_a_triangle",
    "A later token cannot influence": "test_masks::test_a_later_token_moves_no_earlier_output",
    "No token attends to {last}": (
        "test_masks::test_row_d_holds_no_value_of_d_and_only_its_query_speaks_for_it"
    ),
    "The second layer lets them": "test_masks::test_padding_must_be_hidden_in_every_layer",
    "So move every number": (
        "test_claims::test_uphill_the_loss_grows_and_so_it_does_by_too_large_steps"
    ),
    "so no error moves its numbers": "test_recommender::test_a_film_without_ratings_learns_nothing",
    "its slope is 2 · error alone": (
        "test_recommender::"
        "test_a_bias_moves_by_the_error_alone_and_what_is_multiplied_by_what_multiplies_it"
    ),
    "so a score is one, too": "test_recommender::test_what_the_history_adds_is_the_score",
    "so its idf is": (
        "test_claims::test_a_word_counts_more_where_fewer_have_it_and_where_texts_are_shorter"
    ),
    "larger for a word that few videos": (
        "test_claims::test_a_word_counts_more_where_fewer_have_it_and_where_texts_are_shorter"
    ),
    "If W_V had {d_v} columns": (
        "test_self_attention::test_values_of_width_5_make_outputs_of_width_5"
    ),
    "Softmax depends on nothing": (
        "test_self_attention::test_the_question_on_equal_scores_has_an_example_in_which_they_are"
    ),
    "row by row, for a row": "test_softmax::test_a_query_changes_its_own_row_alone",
    "So every row adds up": "test_softmax::test_softmax_is_taken_per_row",
    "The output b¹ therefore": (
        "test_softmax::test_the_largest_score_dominates_and_the_output_becomes_its_value"
    ),
    "so the variance of a score": (
        "test_softmax::test_the_variance_is_d_where_numbers_are_independent_and_have_mean_0"
    ),
    "so it spreads more and more": "test_softmax::test_the_variance_of_a_score_is_about_the_width",
    "That is why a transformer divides": (
        "test_softmax::test_without_the_division_the_gradient_shrinks"
    ),
    "Because one weight is then": "test_softmax::test_without_the_division_the_gradient_shrinks",
    "the decoder attends most to": (
        "test_translation::test_a_changed_query_moves_its_row_and_no_other"
    ),
    "Every word attends to every": ("test_translation::test_three_words_look_at_four_characters"),
}
# They ask, name or calculate, or say why the course does something; nothing follows from a cause.
NO_CLAIMS = {
    "The mean is {mean}, so",
    "not exactly 0, but too small",
    "so that alike things look alike",
    "so a film has to become numbers",
    "so that the columns have names",
    'What does "{word}" attend',
    "then this step shows what",
    "One is here but cannot be read",
    'What "{word}" attends to most',
    "which token does the third attend",
    "Three usual ones, for a matrix",
    "so that they change nothing",
    "All that attends to one another",
    "Masks, or what a token may",
    "So a *row* is a token that asks",
    "So {n} sentences of {lengths}",
    "So let a computer find them",
    "together {score}, so {rating}",
    "it depends on the values",
    "which character it will attend",
    "see what it attends to",
    "Which character does the query",
}


@pytest.fixture(scope="module")
def sentences(script):
    """Every sentence of the lessons that says why, or what attends to what."""
    said = script("translations").said()
    texts = [m.value for p, m in said if p.startswith(COURSE) and isinstance(m, ast.Constant)]
    return {one for text in texts for one in SENTENCE.split(text) if CAUSE.search(one)}


def test_every_claim_of_cause_has_its_test(sentences):
    known = (*CLAIMS, *NO_CLAIMS)
    new = [one for one in sentences if not any(part in one for part in known)]
    assert new == [], "say in CLAIMS which test takes the cause away, or write one"


def test_no_claim_stands_here_that_the_course_no_longer_makes(sentences):
    gone = [part for part in (*CLAIMS, *NO_CLAIMS) if not any(part in one for one in sentences)]
    assert gone == []


@cache
def _tests_in(module: str) -> set[str]:
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_tests_are_there():
    pairs = [place.split("::") for place in CLAIMS.values()]
    assert [pair for pair in pairs if pair[1] not in _tests_in(pair[0])] == []


# --- counterfactuals that belong to no other file ---


def test_blocks_can_be_stacked_as_none_changes_the_width():
    x = parts.drawn()
    blocks = [EncoderLayer.create(x.shape[1], 2, 32, rng=n, dtype=np.float64) for n in range(2)]
    assert blocks[1](blocks[0](x)).shape == x.shape
    with pytest.raises(ValueError, match="does not fit"):
        blocks[1](Linear.create(x.shape[1], 8, rng=0, dtype=np.float64)(x))


def test_it_is_the_residual_that_makes_numbers_grow():
    x = parts.drawn()
    kept, left_out = (
        [y.std() for y in parts.through(x, 4, residual=how, norm=False, forward=True)]
        for how in (True, False)
    )
    assert (np.diff([x.std(), *kept]) > 0).all()
    assert (np.diff([x.std(), *left_out]) < 0).all()


def test_it_is_the_lengths_that_let_a_film_match_another_more():
    films = np.array([[0.2, 0.2, 0, 0], [0.9, 0.1, 0, 0], [0, 0, 1.0, 0]])
    assert (products := films @ films.T)[0, 1] > products[0, 0]
    same = films / np.linalg.norm(films, axis=1, keepdims=True)
    assert ((same @ same.T).argmax(axis=1) == [0, 1, 2]).all()
    products = embeddings.alike().found["products"]
    assert (products[0].argmax(), products[0, 0] < products[0, 1]) == (1, True)


def test_guessing_0_is_wrong_by_the_variance():
    _, target = learned.two_places(seed=9)
    assert np.square(target).mean() == pytest.approx(1, abs=0.15)


def test_what_is_attended_to_is_learned_from_the_task():
    """Another task, the token after: then that one is attended to, and the place left out again."""
    x, before = learning.task()
    after = np.roll(before, -2, axis=1)  # the numbers of the token after, in a ring
    for target, shift in ((before, 1), (after, -1)):
        _, w, _ = learning.train(x, target)
        scores = x[0] @ w["query"] @ (x[0] @ w["key"]).T
        assert (scores.argmax(axis=1) == np.roll(np.arange(4), shift)).all()
        assert np.abs(w["value"][2:]).max() < 0.2 * np.abs(w["value"][:2]).max()


def test_without_weight_matrices_the_nearest_are_attended_to():
    vectors = np.array([[1.0, 0.1], [0.9, 0.2], [0.0, 1.0]])
    near = without_layers(LabelledVectors(["a", "b", "c"], vectors), "none", [], "static")
    assert near.weights[0, 0, 0, 1] > near.weights[0, 0, 0, 2]
    turned = vectors[[0, 2, 1]]  # b and c change their meanings
    other = without_layers(LabelledVectors(["a", "b", "c"], turned), "none", [], "static")
    assert other.weights[0, 0, 0, 1] < other.weights[0, 0, 0, 2]


@pytest.mark.parametrize("rate", [-descent.RATE, 10 * descent.RATE])
def test_uphill_the_loss_grows_and_so_it_does_by_too_large_steps(rate):
    with np.errstate(all="ignore"):
        _, _, losses = descent.descend(descent.RATINGS, descent.WIDTH, rate, 10)
    assert np.nanmax(losses) > 10 * losses[0]


def test_a_word_counts_more_where_fewer_have_it_and_where_texts_are_shorter():
    """Of the last word: in one text of three, in all of them, and in a longer text."""
    few, all_, longer = (
        key_rows(texts)[0].max()
        for texts in (
            ["oven", "bread", "code"],
            ["oven", "oven bread", "oven code"],
            ["oven bread code query", "bread", "code"],
        )
    )
    assert few > longer
    assert few > all_


def test_tokens_meet_in_the_scores_and_in_the_mix_and_nowhere_else():
    x, w = masks.X, (masks.W_QUERY, masks.W_KEY, masks.W_VALUE)
    alone = np.eye(4, dtype=bool)  # each token sees itself: neither scores nor mix can matter
    assert (one_layer.influence(x, *w) > 0).all()
    np.testing.assert_array_equal(one_layer.influence(x, *w, alone) > 0, alone)

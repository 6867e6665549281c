"""Claims of cause in the course: each test takes the cause away, and the effect goes with it."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention.layers import EncoderLayer, Linear
from qkvsearch.lessons import lesson
from qkvsearch.lessons.compute import learning, masks, recommender
from qkvsearch.lessons.compute.block import random_texts, through
from qkvsearch.lessons.compute.heads import before_and_after
from qkvsearch.lessons.compute.search import key_rows
from qkvsearch.text.encoded_text import attend_without_layers
from qkvsearch.text.labelled import LabelledVectors


def test_blocks_can_be_stacked_as_none_changes_the_width():
    x = random_texts()[0]
    blocks = [EncoderLayer.create(x.shape[1], 2, 32, rng=n, dtype=np.float64) for n in range(2)]
    assert blocks[1](blocks[0](x)).shape == x.shape
    with pytest.raises(ValueError, match="does not fit"):
        blocks[1](Linear.create(x.shape[1], 8, rng=0, dtype=np.float64)(x))


def test_it_is_the_residual_that_makes_numbers_grow():
    x = random_texts()[0]
    kept, left_out = (
        [y.std() for y in through(x, 4, residual=how, norm=False)] for how in (True, False)
    )
    assert (np.diff([x.std(), *kept]) > 0).all()
    assert (np.diff([x.std(), *left_out]) < 0).all()


def test_it_is_the_lengths_that_let_a_film_match_another_more():
    films = np.array([[0.2, 0.2, 0, 0], [0.9, 0.1, 0, 0], [0, 0, 1.0, 0]])
    assert (products := films @ films.T)[0, 1] > products[0, 0]
    same = films / np.linalg.norm(films, axis=1, keepdims=True)
    assert ((same @ same.T).argmax(axis=1) == [0, 1, 2]).all()
    products = lesson("embeddings").steps[2].computed["products"]
    assert (products[0].argmax(), products[0, 0] < products[0, 1]) == (1, True)


def test_guessing_0_is_wrong_by_the_variance():
    _, target = before_and_after(seed=9)
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
    near = attend_without_layers(LabelledVectors(["a", "b", "c"], vectors), "none", [], "static")
    assert near.weights[0, 0, 0, 1] > near.weights[0, 0, 0, 2]
    turned = vectors[[0, 2, 1]]  # b and c change their meanings
    other = attend_without_layers(LabelledVectors(["a", "b", "c"], turned), "none", [], "static")
    assert other.weights[0, 0, 0, 1] < other.weights[0, 0, 0, 2]


@pytest.mark.parametrize("rate", [-recommender.RATE, 10 * recommender.RATE])
def test_uphill_the_loss_grows_and_so_it_does_by_too_large_steps(rate):
    with np.errstate(all="ignore"):
        _, _, losses = recommender.descend(recommender.RATINGS, rate, 10)
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
    assert (masks.influence(x, *w) > 0).all()
    np.testing.assert_array_equal(masks.influence(x, *w, alone) > 0, alone)

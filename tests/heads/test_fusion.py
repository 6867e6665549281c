"""Fused heads: standardized sums whose parts, constants included, add up to the scores."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from qkvsearch.learn.head_weights import standardized
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import MIN_DEVIATION, MIN_SPREAD, Scores, fuse

values = st.floats(-100, 100, width=32)


def head_of(name, scores, covered=None):
    """A head whose every score is made of three parts."""
    scores = np.array(scores, dtype=np.float32)

    def parts(position):
        score = float(scores[position])
        return Components.of(
            ScoreComponent(name, "x", i, part) for i, part in enumerate((score - 9, 4.0, 5.0))
        )

    covered = None if covered is None else np.array(covered, dtype=bool)
    return Scores(name, scores, parts, covered)


@st.composite
def heads(draw):
    n_items, n_heads = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    row = st.lists(values, min_size=n_items, max_size=n_items)
    constant = values.map(lambda value: [value] * n_items)
    rows = draw(st.lists(row | constant, min_size=n_heads, max_size=n_heads))
    shares = st.lists(st.floats(0.1, 5), min_size=n_heads, max_size=n_heads)
    return [head_of(f"h{i}", scores) for i, scores in enumerate(rows)], draw(shares)


@given(heads())
def test_parts_of_a_fused_head_add_up_to_its_scores(drawn):
    fused = fuse(*drawn)
    for position, score in enumerate(fused.scores):
        parts = [part.value for part in fused.parts(position)]
        tolerance = 1e-4 * max(1.0, sum(map(abs, parts)))
        assert sum(parts) == pytest.approx(score, abs=tolerance)
        assert sum(fused.by_names([position])[0].values()) == pytest.approx(score, abs=1e-4)


@given(row=st.lists(values | st.just(3e6), min_size=1, max_size=6), noise=st.booleans())
def test_weights_are_learned_from_scores_as_fusion_has_them(row, noise):
    scores = row if not noise else [3e6 + 0.25 * (i % 2) for i in range(len(row))]
    head = head_of("h", scores)
    learned_from = standardized(head.scores[None].astype(np.float64))[0]
    np.testing.assert_allclose(learned_from, fuse([head], [1]).scores, atol=1e-5)
    assert not noise or not learned_from.any()


@given(heads())
def test_every_head_has_one_constant_part_that_no_word_explains(drawn):
    names = [head.name for head in drawn[0]]
    constants = [part for part in fuse(*drawn).parts(0) if part.query is None and part.key is None]
    assert [part.head for part in constants] == names


@given(heads())
@example(([head_of("tiny", [0, 1e-40])], [1]))
@example(([head_of("rounding", [1, 1 + 16 * 2**-23])], [1]))
@example(([head_of("hardly more", [1, 1 + 17 * 2**-23])], [1]))
def test_fused_scores_are_weighted_standard_scores(drawn):
    """A deviation that is only rounding counts as none; the mean is rounded to float32."""
    expected, tolerance = 0.0, 1e-4
    for head, weight in zip(*drawn, strict=True):
        wide = head.scores.astype(np.float64)
        deviation, largest = wide.std(), np.abs(wide).max()
        least = max(MIN_SPREAD * largest, MIN_DEVIATION)
        assume(not np.isclose(deviation, least, rtol=1e-6, atol=0))
        if deviation > least:
            expected = expected + weight / sum(drawn[1]) * (wide - wide.mean()) / deviation
            tolerance += np.finfo(np.float32).eps * largest / deviation
    np.testing.assert_allclose(
        fuse(*drawn).scores, np.broadcast_to(expected, head.scores.shape), atol=tolerance
    )


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_a_head_that_scores_all_items_alike_adds_nothing_however_it_rounds(n):
    flat, other = head_of("flat", [0.1] * n), head_of("other", range(n))
    assert fuse([flat], [1.0]).scores.tolist() == [0.0] * n
    alone, together = fuse([other], [0.5]), fuse([flat, other], [0.5, 0.5])
    np.testing.assert_allclose(together.scores * 2, alone.scores, atol=1e-5)


def test_rounding_errors_are_not_blown_up_to_a_ranking():
    noise = np.array([0.5, np.nextafter(np.float32(0.5), np.float32(1)), 0.5])
    assert fuse([head_of("noise", noise)], [1.0]).scores.tolist() == [0.0, 0.0, 0.0]


def test_one_head_keeps_its_order_whatever_its_weight():
    np.testing.assert_allclose(
        fuse([head_of("a", [1, 2, 3])], [0.3]).scores, [-(1.5**0.5), 0, 1.5**0.5], atol=1e-6
    )


def test_a_fused_head_answers_for_an_item_if_any_of_its_heads_does():
    first = head_of("first", [1, 0, 0], [True, False, False])
    second = head_of("second", [0, 1, 0], [False, True, False])
    assert fuse([first, second], [1, 1]).covered.tolist() == [True, True, False]
    assert fuse([first, head_of("third", [1, 2, 3])], [1, 1]).covered is None


def test_a_fused_head_is_named_after_its_heads():
    fused = fuse([head_of("a", [1, 2]), head_of("b", [2, 1])], [1, 1])
    assert fused.name == "a+b"
    assert list(fused.by_names([0])[0]) == ["a", "b"]
    assert list(head_of("a", [1, 2]).by_names([0])[0]) == ["a"]

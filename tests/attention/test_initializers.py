"""Initializers: the variances their papers ask for, and what they are for."""

import numpy as np
import pytest

from qkvsearch.attention.layers import basic as initializers

XAVIER = [initializers.xavier_normal, initializers.xavier_uniform]


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [(f, 2 / 700) for f in XAVIER] + [(initializers.kaiming_normal, 2 / 400)],
)
def test_weights_have_the_papers_variance(initializer, variance):
    weights = initializer((300, 400), 0)
    assert weights.shape == (300, 400)
    assert weights.var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize(
    "initializer", [initializers.gaussian, initializers.kaiming_normal, *XAVIER]
)
def test_the_same_seed_gives_the_same_numbers(initializer):
    one, again, other = (initializer((3, 4), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_generator_goes_on_instead_of_starting_again():
    rng = np.random.default_rng(0)
    first = initializers.gaussian((3, 4), rng)
    assert not np.array_equal(first, initializers.gaussian((3, 4), rng))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (), (0, 4)])
def test_a_shape_without_fans_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(d_out, d_in\), got shape"):
        initializers.xavier_normal(shape, 0)

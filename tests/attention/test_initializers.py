"""Initializers: the variances their papers ask for, and what they are for."""

import numpy as np
import pytest

from qkvsearch.attention.layers import basic as initializers

FOUR_IN_THREE_OUT = (3, 4)
XAVIER = [initializers.xavier_normal, initializers.xavier_uniform]
KAIMING = [initializers.kaiming_normal, initializers.kaiming_uniform]


class Recorder(np.random.Generator):
    """A generator that notes the spread it was asked for."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))
        self.variance = 0.0

    def normal(self, loc=0, scale=1, size=None):
        self.variance = scale**2
        return super().normal(loc, scale, size)

    def uniform(self, low=0, high=1, size=None):
        self.variance = (high - low) ** 2 / 12
        return super().uniform(low, high, size)


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [(f, 2 / 7) for f in XAVIER] + [(f, 2 / 4) for f in KAIMING],
)
def test_four_inputs_and_three_outputs_have_the_papers_variance(initializer, variance):
    rng = Recorder()
    assert initializer(FOUR_IN_THREE_OUT, rng).shape == FOUR_IN_THREE_OUT
    assert rng.variance == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("initializer", [initializers.gaussian, *XAVIER, *KAIMING])
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

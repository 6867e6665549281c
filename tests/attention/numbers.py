"""Arrays, layers and gradients that tests of attention compute with."""

import numpy as np

from qkvsearch.attention.layers.state_dict import state

STEP = 1e-5


def random(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def made(kind, *sizes, **options):
    """A layer without a weight that is 0 or 1, so that each one shows."""
    layer = kind.create(*sizes, **{"rng": 0, "dtype": np.float64, **options})
    for i, weight in enumerate(state(layer).values()):
        weight += 0.3 * random(*weight.shape, seed=i)
    return layer


def numeric(function, array):
    """The gradient of function(), a number, by every entry of an array that it reads."""
    gradient = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + STEP
        above = function()
        array[place] = kept - STEP
        gradient[place] = (above - function()) / (2 * STEP)
        array[place] = kept
    return gradient

"""Claims of cause in the course: each test takes the cause away, and the effect goes with it."""

import numpy as np

from qkvsearch.lessons.compute import learning
from qkvsearch.lessons.compute.block import random_texts, through


def test_it_is_the_residual_that_makes_numbers_grow():
    x = random_texts()[0]
    kept, left_out = (
        [y.std() for y in through(x, 4, residual=how, norm=False)] for how in (True, False)
    )
    assert (np.diff([x.std(), *kept]) > 0).all()
    assert (np.diff([x.std(), *left_out]) < 0).all()


def test_what_is_attended_to_is_learned_from_the_task():
    """Another task, the token after: then that one is attended to, and the place left out again."""
    x, before = learning.task()
    after = np.roll(before, -2, axis=1)  # the numbers of the token after, in a ring
    for target, shift in ((before, 1), (after, -1)):
        _, w, _ = learning.train(x, target)
        scores = x[0] @ w["query"] @ (x[0] @ w["key"]).T
        assert (scores.argmax(axis=1) == np.roll(np.arange(4), shift)).all()
        assert np.abs(w["value"][2:]).max() < 0.2 * np.abs(w["value"][:2]).max()

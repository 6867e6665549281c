"""What every `random_state` takes, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import qkvsearch as qkv
from qkvsearch._utils.validation import model_generator, random_generator
from qkvsearch.embeddings import ContrastiveEncoder, CooccurrenceEncoder
from qkvsearch.errors import DataError
from qkvsearch.evaluation.metrics import resampled_means
from qkvsearch.evaluation.splits import split
from qkvsearch.evaluation.systems import Fused

TEXTS = ["deep sea diving", "deep red car", "red sea", "car diving"]
X = csr_matrix(np.arange(12).reshape(4, 3) % 4.0)
LOG = qkv.Interactions.from_columns(list("aaaaab"), [1, 2, 3, 4, 5, 1])
USES = {
    "lsa": lambda state: qkv.CorpusEncoder(2, random_state=state).fit(TEXTS),
    "ppmi": lambda state: CooccurrenceEncoder(2, random_state=state).fit(TEXTS),
    "contrastive": lambda state: ContrastiveEncoder(2, epochs=1, random_state=state).fit(TEXTS),
    "als": lambda state: qkv.ImplicitALS(2, max_iter=1, random_state=state).fit(X),
    "mf": lambda state: qkv.BiasedMF(2, max_iter=1, random_state=state).fit(X),
    "split": lambda state: split(LOG, "random", state),
    "means": lambda state: resampled_means(np.eye(2), n_resamples=2, random_state=state),
    "fused": lambda state: Fused(random_state=state),
    "next item": model_generator,
    "generator": random_generator,
}
VALID = {
    "none": lambda: None,
    "0": lambda: 0,
    "2**32": lambda: 2**32,
    "2**64": lambda: 2**64,
    "int64": lambda: np.int64(3),
    "generator": lambda: np.random.default_rng(3),
    "old generator": lambda: np.random.RandomState(3),
    "module": lambda: np.random,
}


@pytest.mark.parametrize("name", USES)
def test_every_random_state_is_taken_or_refused(name):
    for state in VALID.values():
        USES[name](state())
    for wrong in [-1, 1.5, "x", True]:
        with pytest.raises(DataError, match=r"random_state.*seed.*0 or above"):
            USES[name](wrong)


@pytest.mark.parametrize("kind", ["2**64", "int64", "generator", "old generator"])
def test_the_same_state_draws_the_same_users(kind):
    draws = [
        resampled_means(np.eye(9), n_resamples=5, random_state=VALID[kind]()) for _ in range(2)
    ]
    assert np.array_equal(*draws)

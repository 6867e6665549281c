"""How near to some item a query comes that means nothing: what a best hit must exceed."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

from qkvsearch.embeddings.encoders import Encoder

N_STRINGS, QUANTILE = 100, 0.95


def chance_level(encoder: Encoder, keys: np.ndarray, seed: int = 0) -> float:
    """The cosine with its nearest item that 95 of 100 strings of random letters stay below.

    keys: float32 (n_items, d), rows of length 1 or 0. An encoder that is made of subwords has a
    vector for every string, so that a search by it always finds something.

    >>> class Letters:
    ...     def encode_many(self, texts):
    ...         return np.array([[text.count("a"), text.count("b")] for text in texts], float)
    >>> chance_level(Letters(), np.array([[0.0, 0.0]]))
    0.0
    """
    rng = np.random.default_rng(seed)
    letters = np.array(list(ascii_lowercase))
    strings = [
        " ".join("".join(rng.choice(letters, rng.integers(4, 9))) for _ in range(2))
        for _ in range(N_STRINGS)
    ]
    nearest = (encoder.encode_many(strings) @ keys.T).max(axis=1, initial=0)
    return float(np.quantile(nearest, QUANTILE))

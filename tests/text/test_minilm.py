"""all-MiniLM-L6-v2 on our attention gives the numbers that sentence-transformers gives."""

import json
from pathlib import Path

import numpy as np
import pytest

from qkvsearch.text.pretrained import fetch as models
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder


@pytest.fixture(scope="module")
def minilm(own_models):
    path = models.find("minilm")
    if path is None:
        pytest.skip("needs minilm: qkvsearch model fetch minilm")
    return TransformerEncoder.from_folder(path)


def test_minilm_gives_the_vectors_of_sentence_transformers(minilm):
    recorded = json.loads(Path(__file__).with_name("minilm_vectors.json").read_text("utf-8"))
    expected = np.array(recorded["vectors"])
    assert expected.shape == (200, 8)
    many = minilm.encode_many(recorded["texts"])
    np.testing.assert_allclose(many[:, :8], expected, atol=1e-5)
    one_by_one = np.array([minilm.encode(text).total for text in recorded["texts"][::10]])
    np.testing.assert_allclose(one_by_one[:, :8], expected[::10], atol=1e-5)

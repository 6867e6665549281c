"""Passages are encoded as each of them is alone, although what they share is read once."""

import numpy as np
import pytest

from qkvsearch._utils.callbacks import silent
from qkvsearch.heads import passage_encoding
from qkvsearch.heads.passages import Passages
from qkvsearch.learn.texts import analyzed
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import learned_encoder

SENTENCES = "The river runs to the sea. A bank lends money. Kilns burn clay into bricks. "
FIELDS = [["Rivers", "Banks", "Kilns"], [SENTENCES * 40, "A short text.", SENTENCES * 60]]


@pytest.mark.parametrize("is_analyzed", [True, False])
def test_each_passage_has_its_own_keys_and_tokens(monkeypatch, is_analyzed):
    monkeypatch.setattr(passage_encoding, "PASSAGES_PER_BATCH", 5)
    columns, split = analyzed(FIELDS, Analyzer())
    encoder = learned_encoder("lsa", columns).encoder
    fields = split.fields if is_analyzed else Passages.of(FIELDS).fields(FIELDS)
    n_passages, keys, n_tokens = len(split.split), [], 0
    assert n_passages > 5
    for items, tokens in passage_encoding.encoded_passages("lsa", encoder, fields, silent, 9):
        keys.append(items.keys())
        n_tokens += len(tokens)
    assert n_tokens == n_passages
    alone = sum(encoder.encode_many(list(texts)) for texts in fields)
    alone /= np.maximum(np.linalg.norm(alone, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(np.concatenate(keys), alone, atol=1e-6)

"""A text's own attention: rows that sum to 1, what masks hide, and what it is a softmax of."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.encoded_text import COSINE_SCALE, MASKS, attend_without_layers
from qkvsearch.text.labelled import PADDING, LabelledVectors


def text_of(labels):
    rng = np.random.default_rng(7)
    vectors = np.array([rng.normal(size=3) * (label != PADDING) for label in labels])
    return LabelledVectors(list(labels), vectors.reshape(len(labels), 3))


def self_attend(text, mask="none"):
    return attend_without_layers(text, mask, [], "corpus").map()


labels = st.lists(st.sampled_from(["a", "b", "c", PADDING]), max_size=7)


@given(labels, st.sampled_from(MASKS))
def test_rows_sum_to_one_where_anything_is_visible(names, mask):
    attended = self_attend(text_of(names), mask)
    sees = attended.mask.any(axis=1)
    np.testing.assert_allclose(attended.weights.sum(axis=1), sees.astype(float), atol=1e-6)
    assert not attended.weights[~attended.mask].any()
    assert (attended.weights[attended.mask] > 0).all()


@given(labels)
def test_causal_hides_what_comes_after_and_nothing_else(names):
    mask = self_attend(text_of(names), "causal").mask
    np.testing.assert_array_equal(mask, np.tri(len(names), dtype=bool))


@given(labels)
def test_padding_hides_the_columns_of_padding_and_nothing_else(names):
    mask = self_attend(text_of(names), "padding").mask
    visible = np.array([name != PADDING for name in names], dtype=bool)
    np.testing.assert_array_equal(mask, np.broadcast_to(visible, (len(names), len(names))))


def test_weights_are_the_softmax_of_scaled_cosines_and_outputs_their_mix():
    text = text_of("abc")
    attended = self_attend(text)
    unit = text.vectors / np.linalg.norm(text.vectors, axis=1, keepdims=True)
    powers = np.exp(COSINE_SCALE * unit @ unit.T)
    np.testing.assert_allclose(attended.weights, powers / powers.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(attended.outputs, attended.weights @ text.vectors)


def test_records_and_frame_hold_every_pair():
    attended = self_attend(text_of("aba"), "causal")
    records = attended.to_records()
    assert len(records) == 9
    for record in records:
        i, j = record["query_position"], record["key_position"]
        assert (record["query"], record["key"]) == ("aba"[i], "aba"[j])
        assert record["weight"] == attended.weights[i, j]
        assert record["visible"] == (j <= i)
    np.testing.assert_array_equal(attended.to_frame().to_numpy(), attended.weights)


def test_records_say_which_layer_and_head_only_where_there_are_any():
    attended = self_attend(text_of("ab"))
    assert not {"layer", "head"} & set(attended.to_records()[0])
    of_a_head, mean = (replace(attended, layer=2, head=head) for head in (0, None))
    assert [(row["layer"], row["head"]) for row in of_a_head.to_records()] == [(2, 0)] * 4
    assert [(row["layer"], row["head"]) for row in mean.to_records()] == [(2, None)] * 4

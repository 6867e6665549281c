"""Maps of heads are the encoder's own weights; words look as their pieces do; cosines are right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils.limits import ATTENDED
from qkvsearch.attention import look_ahead_mask
from qkvsearch.errors import QkvError
from qkvsearch.text.encoded_text import MASKS, attend_without_layers, compare, focus
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary

TEXT = "deep season didn't redder sea"
TOKENS = ["[CLS]", "deep", "sea", "##son", "didn", "'", "t", "red", "##der", "sea", "[SEP]"]
WORDS = ["[CLS]", "deep", "season", "didn't", "redder", "sea", "[SEP]"]


def attend(encoder, text, mask="none", layer=None, head=None):
    return encoder.attend(text, mask).map(layer, head)


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return pretrained(str(tiny_bert))


@pytest.fixture(scope="module")
def plain():
    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    return TokenEncoder(Vocabulary.of(["bass", "fish", "guitar", "lake"]), vectors, np.ones(4))


@pytest.mark.parametrize("mask", MASKS)
def test_a_heads_map_is_the_models_own_weights(tiny, mask):
    keep = look_ahead_mask(len(TOKENS)) if mask == "causal" else np.ones((len(TOKENS),) * 2, bool)
    x = tiny.embedding(tiny.tokenizer.encode(TEXT).ids)
    _, layers = tiny.encoder(x, mask=keep, return_layers=True)
    for i in range(2):
        for j in range(3):
            found = attend(tiny, TEXT, mask, i, j)
            np.testing.assert_array_equal(found.weights, layers[i].weights[j])
            np.testing.assert_array_equal(found.outputs, layers[i].hidden)
            np.testing.assert_array_equal(found.mask, keep)
            assert (found.tokens, found.layer, found.head) == (TOKENS, i, j)


def test_without_a_head_it_is_the_mean_and_without_a_layer_the_last(tiny):
    found, weights = attend(tiny, TEXT), tiny.attend(TEXT).weights
    np.testing.assert_allclose(found.weights, weights[1].mean(axis=0))
    assert (found.layer, found.head) == (1, None)
    np.testing.assert_array_equal(attend(tiny, TEXT, head=2).weights, weights[1, 2])


@pytest.mark.parametrize(
    ("layer", "head", "said"),
    [(2, None, "no layer 2: there are layers 0 to 1"), (-1, 0, "no layer -1"), (0, 3, "0 to 2")],
)
def test_a_layer_or_head_that_is_not_there_names_those_that_are(tiny, layer, head, said):
    with pytest.raises(QkvError, match=said):
        attend(tiny, TEXT, layer=layer, head=head)
    with pytest.raises(QkvError, match=said):
        tiny.attend(TEXT).head_indices(layer, head)


def test_an_encoder_without_layers_attends_without_parameters_and_says_so(plain):
    text = "guitar bass fish bass"
    expected = attend_without_layers(plain.sequence(text), "causal", [], "corpus").map().weights
    np.testing.assert_array_equal(attend(plain, text, "causal").weights, expected)
    for place in ({"layer": 0}, {"head": 0}):
        with pytest.raises(QkvError, match=r"encoder here is corpus.*`encoder` minilm"):
            attend(plain, text, **place)


def test_more_words_than_anyone_reads_are_refused(plain):
    with pytest.raises(QkvError, match=f"600 words are too many to show; {ATTENDED.value}"):
        attend(plain, "guitar " * 600)


def test_words_are_their_pieces_from_the_mean_to_the_sum(tiny):
    reading = tiny.attend(TEXT)
    assert reading.words == WORDS
    pieces, words = reading.weights, reading.word_weights()
    np.testing.assert_allclose(words[..., 1, 2], pieces[..., 1, 2] + pieces[..., 1, 3], rtol=1e-5)
    np.testing.assert_allclose(
        words[..., 2, 1], (pieces[..., 2, 1] + pieces[..., 3, 1]) / 2, rtol=1e-5
    )
    np.testing.assert_allclose(words.sum(axis=-1), 1, rtol=1e-5)
    season = reading.hidden[:, 2:4].mean(axis=1)
    np.testing.assert_allclose(reading.word_vectors()[:, 2], season, rtol=1e-5)


pieces_of_text = st.lists(
    st.sampled_from(["deep", "season", "didn't", "注意", "🚀", ".", "<PAD>", "[SEP]", "  ", "É"])
)


@given(pieces_of_text, st.sampled_from(MASKS))
def test_any_text_is_read_with_rows_that_add_up(tiny, parts, mask):
    reading = tiny.attend(" ".join(parts), mask)
    n, m = len(reading.tokens), len(reading.words)
    assert reading.weights.shape == (2, 3, n, n)
    assert reading.word_weights().shape == (2, 3, m, m)
    assert reading.word_vectors().shape[:2] == (3, m)
    np.testing.assert_allclose(reading.word_weights().sum(axis=-1), 1, rtol=1e-4)
    assert reading.words.count("<PAD>") == reading.tokens.count("<PAD>")


def test_focus_finds_the_head_that_looks_most(tiny):
    reading = tiny.attend(TEXT)
    weights, found = reading.word_weights(), focus(reading, "SEASON")
    # Without "didn't", a stop word.
    largest = {
        word: weights[:, :, 2, WORDS.index(word)].max() for word in ("deep", "redder", "sea")
    }
    assert found.key == max(largest, key=largest.get)
    assert found.weight == pytest.approx(largest[found.key], rel=1e-6)
    layer, head = np.argwhere(weights[:, :, 2, WORDS.index(found.key)] == largest[found.key])[0]
    np.testing.assert_array_equal(found.row, weights[layer, head, 2])


def test_focus_at_a_word(tiny):
    reading = tiny.attend(TEXT)
    assert focus(reading, "deep", "didn't").key == "didn't"
    assert focus(reading, "deep", "[CLS]").weight == reading.word_weights()[:, :, 1, 0].max()


def test_focus_without_layers_is_a_row_of_the_map(plain):
    reading = plain.attend("guitar bass fish")
    found, row = focus(reading, "bass"), reading.map().weights[1]
    assert (found.key, found.weight) == (
        "guitar" if row[0] > row[2] else "fish",
        max(row[0], row[2]),
    )


def test_focus_on_what_is_not_there_or_alone_is_said(plain):
    reading = plain.attend("guitar bass")
    with pytest.raises(QkvError, match="no word 'bas' in the text; did you mean bass"):
        focus(reading, "bas")
    with pytest.raises(QkvError, match="there are guitar, bass"):
        focus(reading, "guitar", "zzz")
    with pytest.raises(QkvError, match="no other word"):
        focus(plain.attend("bass bass"), "bass")


def test_a_word_is_itself_in_the_same_text_and_before_any_context(tiny, plain):
    same = compare(tiny.attend(TEXT), tiny.attend(TEXT))
    assert same.words == WORDS[1:-1]
    np.testing.assert_allclose(same.cosines, 1, atol=1e-5)
    found = compare(plain.attend("bass guitar"), plain.attend("Bass fish guitar"))
    assert found.words == ["bass", "guitar"]
    np.testing.assert_allclose(found.cosines[0], 1, atol=1e-5)
    assert (found.cosines[1] < 0.9999).all()


def test_cosines_are_those_of_the_models_own_vectors(tiny):
    found = compare(tiny.attend("sea deep"), tiny.attend("a red sea"))
    a, b = tiny.attend("sea deep").hidden[:, 1], tiny.attend("a red sea").hidden[:, 3]
    expected = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(found.cosines[:, 0], expected, rtol=1e-5)
    assert found.words == ["sea"]


def test_texts_without_a_word_in_common_are_said(tiny):
    with pytest.raises(QkvError, match="no word is in both"):
        compare(tiny.attend("deep"), tiny.attend("sea ."))

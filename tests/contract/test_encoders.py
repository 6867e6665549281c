"""Every text encoder keeps the one protocol: what it can do needs not be asked of its class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import QkvError
from qkvsearch.text.encoded_text import EncodedText
from qkvsearch.text.encoders import CHOICES, DENSE_HEADS, LEARNED, SECOND_PASS, dense_heads
from qkvsearch.text.labelled import quantize_int8, unit_rows
from qkvsearch.text.learned.corpus_encoders import CorpusEncoder
from qkvsearch.text.pretrained import static, transformer_encoder
from qkvsearch.text.pretrained.static import StaticEncoder
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder
from qkvsearch.text.text_encoder import EncodedItems, encode_items

tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")

D = 3
TEXTS = ["deep sea", "", "Deep red water", "注意 sea 🚀", " \u200b", "sea sea deep", "\ud800", "a"]
WORDS = ["deep", "sea", "red", "water", "the", "zzqx", "注", ".", "\u0301", "<PAD>"]
# Two things to see that leave no token: a mark without a letter, and a variation selector.
VANISHING = ["\u0301", "\u0301\u0301"]
words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


def static_encoder():
    pieces = ["[UNK]", "deep", "sea", "red", "water", "注", "意", ".", "a", "the"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    vectors = np.random.default_rng(1).normal(size=(len(pieces), D)).astype(np.float32)
    return StaticEncoder(tokenizer, vectors)


@pytest.fixture(scope="module", params=["corpus", "static", "transformer"])
def encoder(request, tiny_bert):
    if request.param == "transformer":
        return TransformerEncoder.from_folder(tiny_bert)
    if request.param == "static":
        return static_encoder()
    return CorpusEncoder(n_components=D).fit(["deep sea", "red water", "water sea 注意"]).encoder_


def size(encoder):
    return encoder.encode_many([]).shape[1]


@given(text=words)
def test_the_parts_add_up_to_the_embedding(encoder, text):
    parts = encoder.encode(text)
    (embedding,) = encoder.encode_many([text])
    assert len(parts.labels) == len(parts.vectors)
    np.testing.assert_allclose(parts.vectors.sum(axis=0), embedding, atol=3e-6)
    assert np.linalg.norm(embedding) == pytest.approx(1 if len(parts) else 0, abs=1e-5)


@pytest.mark.parametrize("padding", ["<PAD>", "<pad>", "[PAD]", "[pad]"])
def test_padding_is_one_token_that_the_mask_hides(encoder, padding):
    attended = encoder.attend(f"deep {padding} sea{padding}", "padding")
    assert [token for token in attended.tokens if "pad" in token.lower()] == ["<PAD>"] * 2
    assert attended.tokens == attended.words
    columns = [j for j, token in enumerate(attended.tokens) if token == "<PAD>"]
    assert not attended.weights[..., columns].any()
    assert not attended.mask[:, columns].any()
    np.testing.assert_allclose(attended.weights.sum(axis=-1), 1, atol=1e-5)
    shown = encoder.attend(f"deep {padding} sea", "none")
    assert shown.weights[..., shown.tokens.index("<PAD>")].all()


@given(text=words)
def test_reading_gives_the_parts_and_the_tokens_of_the_second_pass(encoder, text):
    read = encoder.read(text)
    parts = encoder.encode(text)
    assert read.parts.labels == parts.labels
    np.testing.assert_array_equal(read.parts.vectors, parts.vectors)
    (stored,) = encoder.tokens_many([text], longest=99)
    assert len(read.tokens.labels) == len(read.tokens.vectors) == len(stored)
    if encoder.table is None:
        codes = quantize_int8(read.tokens.vectors)
        assert stored.dtype == np.int8
        assert np.abs(stored.astype(int) - codes).max(initial=0) <= 1
    else:
        assert stored.dtype == np.int32
        np.testing.assert_array_equal(encoder.table[stored], read.tokens.vectors)


@pytest.mark.parametrize("text", VANISHING)
def test_a_text_whose_tokens_all_vanish_has_no_vector_and_spoils_no_other(encoder, text):
    assert encoder.encode(text).vectors.shape == (0, size(encoder))
    assert encoder.read(text).tokens.vectors.shape == (0, size(encoder))
    assert encoder.attend(text).weights.shape[-2:] == (0, 0)
    found = encoder.encode_many([text, "deep sea", text])
    np.testing.assert_array_equal(found.any(axis=1), [False, True, False])
    tokens = encoder.tokens_many([text, "deep sea"], longest=9)
    assert [len(each) for each in tokens] == [0, 2]


def test_texts_beyond_a_batch_are_as_one_by_one(encoder, monkeypatch):
    for module in (static, transformer_encoder):
        monkeypatch.setattr(module, "BATCH", 3)
    texts = [*TEXTS, "deep " * 30, *TEXTS, "sea " * 30]
    steps = []
    found = encoder.encode_texts(texts, lambda *step: steps.append(step))
    for text, embedding in zip(texts, found.embeddings, strict=True):
        np.testing.assert_allclose(encoder.encode(text).vectors.sum(axis=0), embedding, atol=3e-6)
    long = [len(TEXTS), len(texts) - 1]
    assert found.cut.tolist() == ([] if encoder.limit is None else long)
    assert found.embeddings.dtype == np.float32
    assert steps == sorted(steps)
    assert not steps or steps[-1] == ("encoding", len(texts), len(texts))
    tokens = encoder.tokens_many(texts, longest=99)
    assert [len(each) for each in tokens] == [len(encoder.read(text).tokens) for text in texts]


def test_one_reading_of_many_texts_gives_embeddings_and_tokens(encoder, monkeypatch):
    for module in (static, transformer_encoder):
        monkeypatch.setattr(module, "BATCH", 3)
    texts = [*TEXTS, "deep " * 30, *TEXTS, "sea " * 30]
    steps = []
    batches = list(encoder.encode_with_tokens(texts, 2, lambda *step: steps.append(step)))
    expected = encoder.encode_texts(texts)
    embeddings = np.concatenate([found.embeddings for found, _ in batches])
    np.testing.assert_allclose(embeddings, expected.embeddings, atol=3e-6)
    assert embeddings.dtype == np.float32
    starts = np.cumsum([0, *(len(found.embeddings) for found, _ in batches)])
    cut = [found.cut + start for (found, _), start in zip(batches, starts, strict=False)]
    np.testing.assert_array_equal(np.concatenate(cut), expected.cut)
    assert steps == sorted(steps)
    assert not steps or steps[-1] == ("encoding", len(texts), len(texts))
    tokens = [each for _, some in batches for each in some]
    for made, alone in zip(tokens, encoder.tokens_many(texts, 2), strict=True):
        assert made.dtype == alone.dtype
        # A direction's last bit depends on the texts that it is multiplied with.
        assert np.abs(made.astype(int) - alone).max(initial=0) <= (encoder.table is None)


def test_words_that_are_no_part_of_an_embedding_are_unread(encoder):
    """To leave them out changes nothing; an encoder that reads every word has none."""
    text = "deep sea " * 3 + "zanzibarian of the deep " + "red " * 20 + "water"
    unread = encoder.unread(text)
    assert len(unread) == len(set(unread))
    assert set(unread) <= set(text.split())
    assert not unread or encoder.kind != static.StaticEncoder.kind
    if encoder.limit is None:
        rest = " ".join(word for word in text.split() if word not in unread)
        np.testing.assert_allclose(
            encoder.encode(rest).total, encoder.encode(text).total, atol=1e-6
        )
    else:
        assert unread == ["red", "water"] or unread[-1] == "water"


def test_only_the_first_tokens_of_a_text_are_kept(encoder):
    texts = ["deep sea water", "sea", "red sea water"]
    found = list(encoder.tokens_many(texts, longest=2))
    assert [len(each) for each in found] == [2, 1, 2]
    for text, stored in zip(texts, found, strict=True):
        np.testing.assert_array_equal(stored, next(encoder.tokens_many([text], 99))[:2])


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
def test_attention_gives_every_token_weights_that_sum_to_1(encoder, mask):
    found = encoder.attend("deep sea <PAD> water", mask)
    assert isinstance(found, EncodedText)
    n = len(found.tokens)
    assert found.weights.shape[2:] == found.mask.shape == (n, n)
    assert found.hidden.shape == (len(found.weights) + 1, n, size(encoder))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    assert not found.weights[..., ~found.mask].any()
    assert found.has_layers == (encoder.table is None)
    assert found.encoder == encoder.kind
    with pytest.raises(QkvError, match="no mask 'sideways'; there are none, padding, causal"):
        encoder.attend("deep sea", "sideways")


def test_nothing_attends_to_a_hidden_word(encoder):
    shown, found = encoder.attend("deep sea water"), encoder.attend("deep sea water", hide="SEA")
    j = shown.position("sea")
    assert not found.mask[:, found.owners == j].any()
    assert found.mask[:, found.owners != j].all()
    weights = found.word_weights()
    assert not weights[..., j].any()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    # Without learned layers, and in the first of them, the others share what it had.
    rest = np.delete(shown.word_weights()[0], j, axis=-1)
    if len(shown.words) == len(shown.tokens):
        wanted = rest / rest.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(np.delete(weights[0], j, axis=-1), wanted, atol=1e-5)
    by_place = encoder.attend("deep sea water", hide=[j])
    np.testing.assert_array_equal(by_place.weights, found.weights)
    nothing = encoder.attend("deep sea water", hide=range(len(shown.words)))
    assert not nothing.weights.any()
    assert np.isfinite(nothing.hidden).all()
    n = len(shown.words)
    with pytest.raises(QkvError, match=f"`hide`: no word {n}: there are words 0 to {n - 1}"):
        encoder.attend("deep sea water", hide=[n])
    with pytest.raises(QkvError, match="no word 'zebra' in the text"):
        encoder.attend("deep sea water", hide="zebra")


def test_what_is_beyond_the_limit_is_counted(encoder):
    read = encoder.read("deep " * 10 + "red sea red !")
    assert read.n_unread == (0 if encoder.limit is None else 3)
    assert encoder.attend("zzqx deep " * 3).left_out == (
        ["zzqx"] if encoder.kind == "corpus" else []
    )


def test_items_say_how_many_of_their_texts_were_cut(encoder):
    fields = [["deep sea", "deep " * 30], ["red", "sea " * 30]]
    steps = []
    columns, cut = encode_items("NAME", encoder, fields, lambda *step: steps.append(step))
    total = sum(encoder.encode_many(column) for column in fields)
    np.testing.assert_allclose(EncodedItems(columns, cut).keys(), unit_rows(total), atol=3e-6)
    assert (None if cut is None else cut.tolist()) == (None if encoder.limit is None else [0, 2])
    assert steps == sorted(steps)
    assert not steps or steps[-1] == ("encoding with NAME", 4, 4)


def test_what_was_learned_is_named_and_what_was_not_is_not_stored(encoder):
    assert encoder.is_pretrained == (encoder.kind != "corpus")
    assert set(encoder.learned_arrays()) == (
        set() if encoder.is_pretrained else {"terms", "vectors", "weights"}
    )


def test_every_head_of_a_choice_is_in_the_registry():
    for heads in CHOICES.values():
        assert next(iter(heads)) == "lexical"
        assert set(dense_heads(heads)) <= set(DENSE_HEADS)
    for name, head in DENSE_HEADS.items():
        assert (head.learn is None) != (head.load is None), name
    assert LEARNED == ("lsa", "contrastive")
    assert SECOND_PASS == {"static": 0.3, "minilm": 1 / 3, "e5": 1 / 3, "transformer": 1 / 3}

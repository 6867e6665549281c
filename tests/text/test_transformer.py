"""The transformer encoder: exact sums, the same by one and by many, the peer's own numbers."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkvsearch.attention.masks import look_ahead_mask
from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained.bert import STEPS
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")
numpy_files = pytest.importorskip(
    "safetensors.numpy", reason="needs safetensors: qkvsearch[encoders]"
)

D, D_HIDDEN, HEADS, LAYERS, POSITIONS, LIMIT = 24, 40, 3, 2, 16, 12
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["deep", "sea", "##son", "water", "red", "##der", "'", "t", "didn", "注", "意", ".", "a"]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": D,
    "intermediate_size": D_HIDDEN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "vocab_size": len(SPECIAL + WORDS),
    "layer_norm_eps": 1e-12,
}


def tensors():
    """Random weights under the names of a BERT file."""
    shapes = {
        "embeddings.word_embeddings.weight": (len(SPECIAL + WORDS), D),
        "embeddings.position_embeddings.weight": (POSITIONS, D),
        "embeddings.token_type_embeddings.weight": (2, D),
        "embeddings.LayerNorm": (D,),
        "pooler.dense": (D, D),
    }
    for i in range(LAYERS):
        name = f"encoder.layer.{i}"
        shapes |= {f"{name}.attention.self.{part}": (D, D) for part in ("query", "key", "value")}
        shapes |= {
            f"{name}.attention.output.dense": (D, D),
            f"{name}.attention.output.LayerNorm": (D,),
            f"{name}.intermediate.dense": (D_HIDDEN, D),
            f"{name}.output.dense": (D, D_HIDDEN),
            f"{name}.output.LayerNorm": (D,),
        }
    rng, made = np.random.default_rng(0), {}
    for name, shape in shapes.items():
        if name.endswith("weight"):
            made[name] = rng.normal(size=shape)
        else:
            made |= {
                f"{name}.weight": rng.normal(size=shape) / 3,
                f"{name}.bias": rng.normal(size=shape[0]),
            }
    return {name: array.astype(np.float32) for name, array in made.items()}


def write_folder(folder):
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "sentence_bert_config.json").write_text(f'{{"max_seq_length": {LIMIT}}}')
    numpy_files.save_file(tensors(), folder / "model.safetensors")
    vocabulary = {word: i for i, word in enumerate(SPECIAL + WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As in all-MiniLM-L6-v2's file, which pads and cuts to lengths that are not the model's.
    tokenizer.enable_padding(length=14)
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="module")
def encoder(folder):
    return TransformerEncoder.from_folder(folder)


TEXTS = [
    "deep sea",
    "",
    "Deep water. A red season didn't redder",
    "注意 sea 🚀",
    "deep " * 40,
    " \t\u200b",
    "a",
    "sea deep",
    "\ud800",
]
words = st.lists(
    st.sampled_from(["deep", "season", "didn't", "注意", "🚀", ".", "Ü", "[SEP]", "  "])
)


def in_padded_form(encoder, texts):
    """Plainly: pad all to one length, hide the padding, mean of the rest."""
    found = [encoder.tokenizer.encode(text) for text in texts]
    ids = np.zeros((len(texts), LIMIT), dtype=int)
    keep = np.zeros((len(texts), LIMIT), dtype=bool)
    for row, encoding in enumerate(found):
        ids[row, : len(encoding.ids)] = encoding.ids
        keep[row, : len(encoding.ids)] = True
    final = encoder.encoder(encoder.embedding(ids), mask=keep[:, None, :])
    means = (final * keep[..., None]).sum(axis=1) / keep.sum(axis=1, keepdims=True)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def test_a_token_is_its_word_place_and_the_first_kind_normed(encoder):
    stored, ids = tensors(), np.array([2, 4, 5, 3])
    words, places, kinds = (
        stored[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    )
    x = words[ids] + places[: len(ids)] + kinds[0]
    x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    norm = "embeddings.LayerNorm"
    expected = x * stored[f"{norm}.weight"] + stored[f"{norm}.bias"]
    np.testing.assert_allclose(encoder.embedding(ids), expected, atol=1e-5)


def test_many_packed_equal_the_encoder_in_padded_form(encoder):
    seen = [text for text in TEXTS if text.strip(" \t\u200b\ud800")] * 30
    np.testing.assert_allclose(encoder.encode_many(seen), in_padded_form(encoder, seen), atol=2e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu_new"])
def test_other_activations_packed_equal_the_padded_form(folder, tmp_path, activation):
    other = changed(folder, tmp_path, "config.json", {**CONFIG, "hidden_act": activation})
    encoder = TransformerEncoder.from_folder(other)
    np.testing.assert_allclose(
        encoder.encode_many(TEXTS[2:4]), in_padded_form(encoder, TEXTS[2:4]), atol=2e-6
    )


def test_labels_are_the_words_as_written(encoder):
    found = encoder.encode("A season: didn't 注 🚀")
    words = ["A", "season", ":", "didn't", "注", "🚀"]
    assert list(found.labels) == ["[CLS]", *words, "[SEP]"]
    assert encoder.read("Deep season's 注").tokens.labels == ["Deep", "season's", "注"]


def test_a_sequence_is_the_final_vectors_of_its_words(encoder):
    text = "deep redder sea"
    final = encoder.attend(text).hidden[-1]
    expected = np.stack([final[1], final[2:4].mean(axis=0), final[4]])
    np.testing.assert_allclose(encoder.read(text).tokens.vectors, expected, atol=1e-6)


def test_layers_show_every_piece_and_weights_that_sum_to_1(encoder):
    found = encoder.attend("A season 注")
    assert found.tokens == ["[CLS]", "A", "sea", "##son", "注", "[SEP]"]
    assert found.words == ["[CLS]", "A", "season", "注", "[SEP]"]
    assert found.owners.tolist() == [0, 1, 2, 2, 3, 4]
    assert found.hidden.shape == (LAYERS + 1, 6, D)
    assert found.weights.shape == (LAYERS, HEADS, 6, 6)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-6)
    total = found.hidden[-1].mean(axis=0)
    np.testing.assert_allclose(
        total / np.linalg.norm(total), encoder.encode("A season 注").total, atol=1e-6
    )


def test_masks_hide_padding_or_what_comes_later(encoder):
    text = "deep <PAD> sea <pad>"
    tokens = ["[CLS]", "deep", "<PAD>", "sea", "<PAD>", "[SEP]"]
    seen, hidden = encoder.attend(text), encoder.attend(text, "padding")
    assert seen.tokens == hidden.tokens == tokens
    assert (seen.weights[..., [2, 4]] > 0).all()
    assert not hidden.weights[..., [2, 4]].any()
    causal = encoder.attend(text, "causal")
    np.testing.assert_array_equal(causal.mask, look_ahead_mask(6))
    assert not causal.weights[..., ~look_ahead_mask(6)].any()
    with pytest.raises(QkvError, match="no mask 'sideways'; there are none, padding, causal"):
        encoder.attend(text, "sideways")


def test_long_texts_are_cut_and_counted(encoder):
    found = encoder.encode_texts(["deep " * (LIMIT - 2), "deep " * 300, "", "sea " * 11])
    assert found.cut.tolist() == [1, 3]
    np.testing.assert_allclose(found.embeddings[0], found.embeddings[1], atol=1e-6)
    assert len(encoder.read("deep " * 300).tokens) == LIMIT - 2 == encoder.limit - 2
    assert encoder.attend("deep " * 10 + "red sea red").left_out == ["red", "sea"]


# --- what cannot be read is refused by name ---


def header(dtype, length):
    """A safetensors file of four bytes that says what it likes of them."""
    text = json.dumps({"w": {"dtype": dtype, "shape": [length], "data_offsets": [0, 4]}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(4)


def changed(folder, tmp_path, name, content):
    """A copy of the folder with one file of other content, or without it."""
    copy = Path(shutil.copytree(folder, tmp_path / "changed"))
    (copy / name).unlink()
    if isinstance(content, bytes):
        (copy / name).write_bytes(content)
    elif content is not None:
        (copy / name).write_text(json.dumps(content))
    return copy


def reweighted(folder, tmp_path, weights):
    """A copy of the folder with these weights."""
    copy = changed(folder, tmp_path, "model.safetensors", None)
    numpy_files.save_file(weights, copy / "model.safetensors")
    return copy


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "no such file"),
        ("config.json", b"{", "not JSON"),
        ("config.json", [1], "not a JSON object"),
        (
            "config.json",
            {**CONFIG, "model_type": "mpnet"},
            "is 'mpnet'; what can be read is 'bert'",
        ),
        ("config.json", {**CONFIG, "hidden_act": "silu"}, "hidden_act is 'silu'"),
        ("config.json", {**CONFIG, "position_embedding_type": "rotary"}, "is 'rotary'"),
        ("config.json", {**CONFIG, "num_attention_heads": 5}, "do not divide into 5 heads"),
        ("config.json", {**CONFIG, "hidden_size": "wide"}, "hidden_size is 'wide'"),
        ("config.json", {**CONFIG, "layer_norm_eps": -1}, "layer_norm_eps is -1"),
        ("model.safetensors", None, "no such file"),
        ("model.safetensors", b"weights", "not a safetensors file"),
        ("tokenizer.json", None, "no such file"),
        ("tokenizer.json", b"{}", "not a tokenizer"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "is mean or cls"),
        ("1_Pooling/config.json", {"pooling_mode": {"mean": 1}}, "is mean or cls"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            "is mean or cls",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode": "mean", "include_prompt": False},
            "include_prompt is false",
        ),
        ("config.json", b"[" * 200_000, "nested too deeply"),
        ("config.json", b'{"hidden_size": ' + b"9" * 5000 + b"}", "not JSON"),
        ("config.json", {**CONFIG, "hidden_size": 10**30}, r"is \(2, 24\), not \(2, 1000"),
        ("config.json", {**CONFIG, "num_hidden_layers": 10**9}, r"no tensor 'encoder\.layer\.2\."),
        ("config.json", {**CONFIG, "layer_norm_eps": float("nan")}, "layer_norm_eps is nan"),
        ("sentence_bert_config.json", {"max_seq_length": 2}, "its own tokens leave none of the 2"),
        ("tokenizer.json", b"[" * 200_000, "not a tokenizer"),
        ("model.safetensors", header("F32", 10**12), "not a safet"),
        ("model.safetensors", header("PICKLE", 1), "not a safet"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused(folder, tmp_path, name, content, message):
    with pytest.raises(QkvError, match=message) as raised:
        TransformerEncoder.from_folder(changed(folder, tmp_path, name, content))
    assert Path(name).name in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder.layer.1.output.dense.bias": None}, "no tensor 'encoder.layer.1.output.dense.b"),
        ({"embeddings.LayerNorm.weight": np.ones(3, np.float32)}, r"is \(3,\), not \(24,\)"),
        ({"embeddings.LayerNorm.weight": np.ones(D, np.int8)}, "holds I8"),
        ({"embeddings.LayerNorm.weight": np.full(D, np.nan, "f4")}, "not finite"),
        ({"embeddings.LayerNorm.weight": np.full(D, 1e300)}, "not finite"),
    ],
)
def test_weights_of_another_model_are_refused(folder, tmp_path, change, message):
    weights = {**tensors(), **change}
    kept = {name: array for name, array in weights.items() if array is not None}
    with pytest.raises(QkvError, match=message):
        TransformerEncoder.from_folder(reweighted(folder, tmp_path, kept))


def test_names_under_bert_and_half_precision_are_read(folder, tmp_path):
    halves = {f"bert.{name}": array.astype(np.float16) for name, array in tensors().items()}
    half = TransformerEncoder.from_folder(reweighted(folder, tmp_path, halves))
    total = half.encode("deep sea").total
    assert total.dtype == np.float32
    np.testing.assert_allclose(
        total, TransformerEncoder.from_folder(folder).encode("deep sea").total, atol=0.02
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "has the step Dense"),
        ("modules.json", {"type": "Pooling"}, "not a JSON array"),
        ("modules.json", ["Pooling"], "has the step 'Pooling'"),
        ("config_sentence_transformers.json", {"prompts": {"query": 1}}, "not texts by name"),
    ],
)
def test_settings_of_a_sentence_encoder_that_cannot_be_read(
    folder, tmp_path, name, content, message
):
    copy = changed(folder, tmp_path, "config.json", CONFIG)
    (copy / name).write_text(json.dumps(content))
    with pytest.raises(QkvError, match=message) as raised:
        TransformerEncoder.from_folder(copy)
    assert name in str(raised.value)


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin"])
def test_weights_in_other_files_are_refused_with_what_to_do(folder, tmp_path, name):
    copy = changed(folder, tmp_path, "model.safetensors", None)
    (copy / name).write_bytes(b"{}")
    with pytest.raises(QkvError, match=r"no model\.safetensors: .*save"):
        TransformerEncoder.from_folder(copy)


@pytest.mark.parametrize("settings", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_the_first_token_is_the_text_where_the_model_pools_so(folder, tmp_path, settings):
    copy = changed(folder, tmp_path, "1_Pooling/config.json", settings)
    steps = [{"type": f"sentence_transformers.models.{name}"} for name in STEPS]
    (copy / "modules.json").write_text(json.dumps(steps))
    encoder = TransformerEncoder.from_folder(copy)
    text = "A season 注"
    first = encoder.attend(text).hidden[-1][0]
    expected = first / np.linalg.norm(first)
    read = encoder.read(text)
    np.testing.assert_allclose(read.parts.total, expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_many([text, "sea"])[0], expected, atol=1e-5)
    # The words of the second pass are those of any other encoder.
    words = TransformerEncoder.from_folder(folder).read(text).tokens
    np.testing.assert_allclose(read.tokens.vectors, words.vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "prompts"),
    [
        ({"prompts": {"query": "find: ", "document": "deep "}}, ("find: ", "deep ")),
        ({"prompts": {"query": "find: "}}, ("find: ", "")),
        ({"prompts": {"passage": "text: "}}, ("", "text: ")),
        ({"prompts": {"all": "deep "}, "default_prompt_name": "all"}, ("deep ", "deep ")),
        ({"prompts": {}, "default_prompt_name": None}, ("", "")),
        ({"prompts": None}, ("", "")),
    ],
)
def test_prompts_are_those_of_the_configuration(folder, tmp_path, settings, prompts):
    copy = changed(folder, tmp_path, "config.json", CONFIG)
    (copy / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = TransformerEncoder.from_folder(copy)
    assert encoder.prompts == prompts
    plain = TransformerEncoder.from_folder(folder)
    for prompt, own in zip(prompts, (encoder.encode_queries, encoder.encode_many), strict=True):
        expected = plain.encode_many([prompt + "sea"])
        np.testing.assert_allclose(own(["sea"]), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta"])
def test_positions_of_roberta_begin_behind_those_of_padding(folder, tmp_path, kind):
    config = {**CONFIG, "model_type": kind, "pad_token_id": 1, "type_vocab_size": 1}
    weights = tensors()
    kinds = "embeddings.token_type_embeddings.weight"
    copy = reweighted(folder, tmp_path, {**weights, kinds: weights[kinds][:1]})
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "sentence_bert_config.json").unlink()
    encoder = TransformerEncoder.from_folder(copy)
    assert encoder.limit == POSITIONS - 2
    shifted = {**weights}
    places = "embeddings.position_embeddings.weight"
    shifted[places] = np.roll(weights[places], -2, axis=0)
    bert = TransformerEncoder.from_folder(reweighted(folder, tmp_path / "bert", shifted))
    text = "deep redder sea"
    np.testing.assert_allclose(encoder.encode(text).total, bert.encode(text).total, atol=1e-6)


def retold(folder, tmp_path, change):
    """A copy of the folder whose tokenizer's JSON has passed through `change`."""
    settings = json.loads((folder / "tokenizer.json").read_text())
    change(settings)
    return changed(folder, tmp_path, "tokenizer.json", settings)


def test_a_token_without_a_row_is_refused(folder, tmp_path):
    def far(settings):
        settings["model"]["vocab"]["deep"] = 4_000_000_000

    def added(settings):
        settings["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [99]

    for i, change in enumerate((far, added)):
        copy = retold(folder, tmp_path / str(i), change)
        with pytest.raises(QkvError, match=r"has a token .*, and the model only 17 rows"):
            TransformerEncoder.from_folder(copy)


@pytest.mark.parametrize("ids", [[], [2, 2]])
def test_a_special_token_has_one_id(folder, tmp_path, ids):
    def change(settings):
        settings["post_processor"]["special_tokens"]["[CLS]"]["ids"] = ids

    copy = retold(folder, tmp_path, change)
    with pytest.raises(QkvError, match=r"tokenizer\.json: damaged: a special token has no id, or"):
        TransformerEncoder.from_folder(copy)


def test_a_tokenizer_that_fails_at_a_text_is_named(folder, tmp_path):
    def without_unknown(settings):
        settings["model"]["unk_token"] = "[GONE]"

    encoder = TransformerEncoder.from_folder(retold(folder, tmp_path, without_unknown))
    for ask in (encoder.read, encoder.attend, lambda text: encoder.encode_many([text])):
        with pytest.raises(QkvError, match=r"tokenizer\.json: cannot cut this text into tokens"):
            ask("unheard of")


def test_weights_that_make_no_numbers_are_told(folder, tmp_path):
    weights = {**tensors(), "embeddings.LayerNorm.bias": np.full(D, 3e38, np.float32)}
    encoder = TransformerEncoder.from_folder(reweighted(folder, tmp_path, weights))
    with np.errstate(all="ignore"), pytest.raises(QkvError, match="not finite"):
        encoder.encode_many(["deep sea"])


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_out_of_the_folder_is_not_followed_but_into_a_cache_it_is(folder, tmp_path):
    copy = changed(folder, tmp_path, "config.json", None)
    (copy / "config.json").symlink_to(folder / "config.json")
    with pytest.raises(QkvError, match=r"config\.json: a link out of the model's folder"):
        TransformerEncoder.from_folder(copy)
    cache = tmp_path / "models--a--b"
    snapshot, blobs = cache / "snapshots" / "1a2b", cache / "blobs"
    blobs.mkdir(parents=True)
    for path in folder.rglob("*.*"):
        place = snapshot / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        blob = blobs / path.relative_to(folder).as_posix().replace("/", "-")
        blob.write_bytes(path.read_bytes())
        place.symlink_to(os.path.relpath(blob, place.parent))
    assert TransformerEncoder.from_folder(snapshot).encode("deep sea").labels


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_whatever_is_changed_in_a_folder_it_is_read_or_refused(folder, tmp_path_factory, data):
    name = data.draw(st.sampled_from(["config.json", "model.safetensors", "tokenizer.json"]))
    content = bytearray((folder / name).read_bytes())
    end = min(len(content), 3000)  # of the tensors, what is said of them stands there
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, end - 1))
        content[place : place + 1] = data.draw(st.binary(max_size=3))
    copy = changed(folder, tmp_path_factory.mktemp("fuzzed"), name, bytes(content))
    try:
        with np.errstate(all="ignore"):
            TransformerEncoder.from_folder(copy).encode_many(["deep sea", "unheard"])
    except QkvError:
        pass

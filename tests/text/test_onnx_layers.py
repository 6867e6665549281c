"""onnxruntime gives the answers of NumPy: nearly the same vectors, exact sums, one model."""

import os
import shutil
import sys

import numpy as np
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.text.encoders import encoding_seconds
from qkvsearch.text.pretrained import fetch, onnx_layers, transformer_encoder
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

pytest.importorskip("onnxruntime", reason="needs onnxruntime: qkvsearch[fast]")
pytest.importorskip("onnx", reason="needs onnx: qkvsearch[fast]")

TEXTS = ["deep sea", "", "Deep water. A red season didn't redder", "注意 sea 🚀", "deep " * 40, "a"]


@pytest.fixture
def folder(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "bert")


@pytest.fixture(autouse=True)
def onnxruntime(monkeypatch):
    monkeypatch.setenv(onnx_layers.VARIABLE, "onnxruntime")


def numpy_encoder(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(onnx_layers.VARIABLE, "numpy")
        return TransformerEncoder.from_folder(folder)


def test_vectors_are_nearly_those_of_numpy_and_parts_add_up(folder, assert_adds_up):
    fast, plain = TransformerEncoder.from_folder(folder), numpy_encoder(folder)
    assert fast.fast is not None
    assert plain.fast is None
    many, expected = fast.encode_many(TEXTS), plain.encode_many(TEXTS)
    assert not many[1].any()
    is_text = expected.any(axis=1)
    assert ((many * expected).sum(axis=1)[is_text] > 0.99).all()
    for text, vector in zip(TEXTS, many, strict=True):
        read = fast.read(text)
        assert read.parts.labels == plain.read(text).parts.labels
        for part, whole in zip(read.parts.vectors.T, vector, strict=True):
            assert_adds_up(part, whole)
    assert np.array_equal(fast.attend("deep sea").weights, plain.attend("deep sea").weights)


def test_a_vector_does_not_depend_on_the_texts_beside_it(folder):
    encoder = TransformerEncoder.from_folder(folder)
    together = encoder.encode_many(TEXTS * 20)
    alone = np.concatenate([encoder.encode_many([text]) for text in TEXTS])
    assert np.array_equal(together, np.tile(alone, (20, 1)))


@pytest.mark.parametrize("activation", ["relu", "gelu_new"])
def test_other_activations(folder, activation):
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"gelu"', f'"{activation}"'))
    fast = TransformerEncoder.from_folder(folder).encode("deep water").total
    assert fast @ numpy_encoder(folder).encode("deep water").total > 0.99


def weights_of(encoder):
    """The first int8 weights of an encoder, as a graph stores them."""
    return onnx_layers.graph_of(encoder.encoder).graph.initializer[0].raw_data


def test_the_graph_is_made_once_and_again_for_another_model(folder, monkeypatch):
    first = TransformerEncoder.from_folder(folder).encode("deep sea").total
    graph = folder / fetch.GRAPH
    made = graph.read_bytes()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnx", None)  # needed to make a graph alone
        again = TransformerEncoder.from_folder(folder)
        assert np.array_equal(again.encode("deep sea").total, first)
        np.testing.assert_allclose(again.probe, numpy_encoder(folder).probe, atol=1e-6)
        os.utime(folder / "model.safetensors", (1, 1))
        with pytest.raises(QkvError, match=r"needs onnx: pip install .*\[fast\]"):
            TransformerEncoder.from_folder(folder)
    changed = bytearray(made)
    changed[made.index(weights_of(again))] ^= 64  # a graph all the same
    graph.write_bytes(changed)
    assert np.array_equal(TransformerEncoder.from_folder(folder).encode("deep sea").total, first)
    graph.write_bytes(made[: len(made) // 2])
    assert np.array_equal(TransformerEncoder.from_folder(folder).encode("deep sea").total, first)
    assert graph.stat().st_size > len(made) // 2


def test_a_model_whose_folder_cannot_be_written(folder):
    (folder / fetch.GRAPH).mkdir()  # even root cannot write a file there
    assert TransformerEncoder.from_folder(folder).fast is not None


def test_a_model_that_int8_serves_badly_is_left_to_numpy(folder, monkeypatch):
    monkeypatch.setattr(transformer_encoder, "MIN_COSINE", 1.1)
    for _ in range(2):
        encoder = TransformerEncoder.from_folder(folder)
        assert encoder.fast is None
    assert np.array_equal(encoder.encode("sea").total, numpy_encoder(folder).encode("sea").total)


def test_the_switch(folder, monkeypatch):
    seconds = {}
    for name in ("numpy", "onnxruntime"):
        monkeypatch.setenv(onnx_layers.VARIABLE, name)
        assert onnx_layers.runtime() == name
        seconds[name] = encoding_seconds([["a river"] * 10_000])
    assert seconds["numpy"] > seconds["onnxruntime"]
    monkeypatch.delenv(onnx_layers.VARIABLE)
    assert onnx_layers.runtime() == "onnxruntime"
    monkeypatch.setattr(onnx_layers, "find_spec", lambda name: None)
    assert onnx_layers.runtime() == "numpy"
    monkeypatch.setenv(onnx_layers.VARIABLE, "onxruntime")
    with pytest.raises(QkvError, match="did you mean onnxruntime"):
        TransformerEncoder.from_folder(folder)


@pytest.mark.slow
def test_a_build_of_either_answers_with_the_other(
    own_models, tmp_path, monkeypatch, assert_adds_up
):
    if fetch.find("minilm") is None:
        pytest.skip("needs minilm: qkvsearch model fetch minilm")
    queries = ["how rivers shape the land", "baking bread at home", "learn to play the guitar"]
    rankings = {}
    for made in ("numpy", "onnxruntime"):
        monkeypatch.setenv(onnx_layers.VARIABLE, made)
        qkv.build(tmp_path / made, "sample:videos", encoder="minilm").close()
        for used in ("numpy", "onnxruntime"):
            monkeypatch.setenv(onnx_layers.VARIABLE, used)
            with qkv.open(tmp_path / made) as engine:
                ranked = [engine.search(query) for query in queries]
                rankings[made, used] = [{hit.id for hit in ranking} for ranking in ranked]
                for ranking in ranked:
                    for i in range(3):
                        parts = [reason.value for reason in ranking.explain(i, full=True)]
                        assert_adds_up(parts, ranking[i].score)
    reference = rankings["numpy", "numpy"]
    for ids in rankings.values():
        shared = [len(a & b) for a, b in zip(ids, reference, strict=True)]
        assert sum(shared) >= 0.8 * 10 * len(queries)

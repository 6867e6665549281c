"""A BERT-type sentence encoder from its folder, as this package's own layers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.basic import (
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
)
from qkvsearch.attention.layers.transformer import Encoder, EncoderLayer, MultiHeadAttention
from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained.model_files import (
    Tensors,
    TokenizerFile,
    check_json_size,
    file_of,
    open_tensors,
)

CONFIG = "config.json"
TENSORS = "model.safetensors"
TOKENIZER = "tokenizer.json"
POOLING = "1_Pooling/config.json"
LENGTH = "sentence_bert_config.json"

# Rows of a matrix that are moved at a time, which takes half as long as all of them.
TILE = 16

# Their names in a Hugging Face configuration, and ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(eq=False)
class TokenEmbedding:
    """Word + position + kind, normed: what the first layer reads.

    words (n_words, d), positions (n_positions, d), kind (d,), the vector of a first sentence;
    ids (..., L) -> (..., L, d). places: int (L,), where each token stands in its text; by default
    one after the other.   Devlin et al. 2019 (BERT), section 3, figure 2.
    """

    words: Embedding
    positions: LearnedPositions
    kind: np.ndarray
    norm: LayerNorm

    def __call__(self, ids: npt.ArrayLike, places: np.ndarray | None = None) -> np.ndarray:
        return self.norm(self.positions(self.words(ids), places) + self.kind)


def read_bert(folder: Path) -> tuple[TokenizerFile, TokenEmbedding, Encoder, int]:
    """Tokenizer, embedding, layers, and the most tokens of a text, [CLS] and [SEP] included.

    Raises `QkvError` naming the file and what was found in it.
    """
    config = Config(folder, CONFIG)
    config.require("model_type", "bert")
    config.require("position_embedding_type", "absolute", default="absolute")
    _check_pooling(folder)
    with open_tensors(file_of(folder, TENSORS)) as file:
        tensors = BertTensors(file)
        embedding = _embedding(config, tensors)
        layers = [_layer(config, tensors, i) for i in range(config.number("num_hidden_layers"))]
    limit = _limit(folder, len(embedding.positions.weight))
    tokenizer = TokenizerFile(file_of(folder, TOKENIZER), limit)
    tokenizer.check_ids(len(embedding.words.weight))
    return tokenizer, embedding, Encoder(layers), limit


class Config:
    """A JSON file of settings, read with errors that name it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = path = file_of(folder, name)
        check_json_size(path)
        try:
            self.settings = json.loads(path.read_text(encoding="utf-8"))
        except RecursionError:
            raise QkvError(f"{path}: nested too deeply") from None
        except OSError as error:
            raise QkvError(f"{path}: cannot read: {error.strerror}") from None
        except ValueError as error:
            raise QkvError(f"{path}: not JSON: {error}") from None
        if not isinstance(self.settings, dict):
            raise QkvError(f"{path}: not a JSON object")

    def require(self, name: str, wanted: str, default: str | None = None) -> None:
        found = self.settings.get(name, default)
        if found != wanted:
            raise QkvError(f"{self.path}: {name} is {found!r}; only {wanted!r} can be read")

    def number(self, name: str, default: int | None = None) -> int:
        found = self.settings.get(name, default)
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise QkvError(f"{self.path}: {name} is {found!r}, not a number above 0")
        return found

    def epsilon(self) -> float:
        found = self.settings.get("layer_norm_eps", 1e-12)
        if not isinstance(found, int | float) or not 0 < found < 1:
            raise QkvError(f"{self.path}: layer_norm_eps is {found!r}, not between 0 and 1")
        return float(found)

    def activation(self) -> str:
        found = self.settings.get("hidden_act")
        if not isinstance(found, str) or found not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise QkvError(f"{self.path}: hidden_act is {found!r}; there are {known}")
        return ACTIVATIONS[found]


class BertTensors:
    """The tensors of a file under the names that BERT has for them."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        # A model saved with a head for another task has its encoder under a name of its own.
        word_table = "bert.embeddings.word_embeddings.weight"
        self.prefix = "bert." if word_table in tensors.names else ""

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        return self.tensors.read(self.prefix + name, shape, f" as {CONFIG} of a BERT has it")

    def linear(self, name: str, d_in: int, d_out: int) -> Linear:
        weight = self(f"{name}.weight", d_out, d_in)
        return Linear(_by_columns(weight), self(f"{name}.bias", d_out))

    def norm(self, name: str, d: int, epsilon: float) -> LayerNorm:
        return LayerNorm(self(f"{name}.weight", d), self(f"{name}.bias", d), epsilon)


def _by_columns(weight: np.ndarray) -> np.ndarray:
    """The same matrix, each column contiguous: x·Wᵀ of a short text takes BLAS a fifth less time,
    since what it reads next lies together.
    """
    columns = np.empty(weight.shape[::-1], weight.dtype)
    for start in range(0, len(weight), TILE):
        columns[:, start : start + TILE] = weight[start : start + TILE].T
    return columns.T


def _embedding(config: Config, tensors: BertTensors) -> TokenEmbedding:
    d, n_kinds = config.number("hidden_size"), config.number("type_vocab_size", 2)
    kinds = tensors("embeddings.token_type_embeddings.weight", n_kinds, d)
    n_positions = config.number("max_position_embeddings")
    n_words = config.number("vocab_size")
    return TokenEmbedding(
        Embedding(tensors("embeddings.word_embeddings.weight", n_words, d)),
        LearnedPositions(tensors("embeddings.position_embeddings.weight", n_positions, d)),
        kinds[0],
        tensors.norm("embeddings.LayerNorm", d, config.epsilon()),
    )


def _layer(config: Config, tensors: BertTensors, i: int) -> EncoderLayer:
    d, d_hidden = config.number("hidden_size"), config.number("intermediate_size")
    n_heads, name = config.number("num_attention_heads"), f"encoder.layer.{i}"
    if d % n_heads:
        raise QkvError(f"{config.path}: {d} dimensions do not divide into {n_heads} heads")
    attention = MultiHeadAttention(
        tensors.linear(f"{name}.attention.self.query", d, d),
        tensors.linear(f"{name}.attention.self.key", d, d),
        tensors.linear(f"{name}.attention.self.value", d, d),
        tensors.linear(f"{name}.attention.output.dense", d, d),
        n_heads,
    )
    return EncoderLayer(
        attention,
        tensors.norm(f"{name}.attention.output.LayerNorm", d, config.epsilon()),
        FeedForward(
            tensors.linear(f"{name}.intermediate.dense", d, d_hidden),
            tensors.linear(f"{name}.output.dense", d_hidden, d),
            config.activation(),
        ),
        tensors.norm(f"{name}.output.LayerNorm", d, config.epsilon()),
    )


def _check_pooling(folder: Path) -> None:
    """A text's vector must be the mean of its tokens', or it is no sum that reasons can open."""
    path = folder / POOLING
    if path.exists():
        settings = Config(folder, POOLING).settings
        chosen = [
            name.removeprefix("pooling_mode_")
            for name, is_on in settings.items()
            if name.startswith("pooling_mode_") and is_on is True
        ]
        chosen += [settings["pooling_mode"]] if "pooling_mode" in settings else []
        if chosen not in (["mean_tokens"], ["mean"]):
            raise QkvError(f"{path}: pools by {chosen}; only the mean of all tokens can be read")


def _limit(folder: Path, n_positions: int) -> int:
    if not (folder / LENGTH).exists():
        return n_positions
    config = Config(folder, LENGTH)
    if config.settings.get("max_seq_length") is None:
        return n_positions
    return min(config.number("max_seq_length"), n_positions)

"""A sentence encoder of the BERT family from its folder, as this package's own layers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from qkvsearch.errors import QkvError, listed_names
from qkvsearch.text.pretrained.model_files import (
    Tensors,
    TokenizerFile,
    file_of,
    open_tensors,
    read_json,
)

CONFIG = "config.json"
TENSORS = "model.safetensors"
TOKENIZER = "tokenizer.json"
POOLING = "1_Pooling/config.json"
LENGTH = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
MODULES = "modules.json"
# Other files that weights are published in, and what to say of them.
OTHER_TENSORS = {
    "model.safetensors.index.json": "its weights are in several files; save them in one",
    "pytorch_model.bin": "pytorch_model.bin can run code as it is read; save it as safetensors",
}

# The families that are read, and how many rows of the table of positions come before that of a
# text's first token: in RoBERTa, as many as the number of the padding token, and one more.
BERT, ROBERTA = "bert", ("roberta", "xlm-roberta")
ROBERTA_PADDING = 1
# By which names a configuration calls what a query, or a text that is searched, begins with.
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("document", "passage", "corpus")
# How a text's vector is made of its tokens', and how configurations call that.
MEAN, CLS = "mean", "cls"
POOLINGS = {"mean_tokens": MEAN, "mean": MEAN, "cls_token": CLS, "cls": CLS}
# The steps of a sentence encoder that are done here. All vectors have length 1, normalized or not.
STEPS = ("Transformer", "Pooling", "Normalize")
# Names of activations in a Hugging Face configuration, and here.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(eq=False)
class TokenEmbedding:
    """The input of the first layer: word + position + kind, normed.

    words (n_words, d), positions (n_positions, d), kind (d,), the vector of a first sentence;
    ids (..., L) -> (..., L, d). positions: int (L,), that of each token in its text; by default
    0 … L − 1.   Devlin et al. 2019 (BERT), section 3, figure 2.
    """

    words: Embedding
    positions: LearnedPositions
    kind: np.ndarray
    norm: LayerNorm

    def __call__(self, ids: npt.ArrayLike, positions: np.ndarray | None = None) -> np.ndarray:
        return self.norm(self.positions(self.words(ids), positions) + self.kind)


class Prompts(NamedTuple):
    """What the model was trained to read before a query, and before a text that is searched."""

    query: str = ""
    passage: str = ""


NO_PROMPTS = Prompts()


class Input(NamedTuple):
    """What comes before the layers, and how a text's vector is made of what they return.

    limit: the maximal number of tokens of a text, [CLS] and [SEP] included. pooling: `MEAN` of all
    tokens, or `CLS`, the first token's vector.
    """

    tokenizer: TokenizerFile
    embedding: TokenEmbedding
    limit: int
    prompts: Prompts
    pooling: str


def read_input(folder: Path) -> Input:
    """Read what comes before the layers. Raises `QkvError` that names the file and what is wrong in
    it.
    """
    config = Config(folder, CONFIG)
    config.require("model_type", (BERT, *ROBERTA))
    config.require("position_embedding_type", ("absolute",), default="absolute")
    _check_steps(folder)
    pooling = _pooling(folder)
    with open_tensors(_tensors_file(folder)) as file:
        embedding = _embedding(config, BertTensors(file))
    limit = _limit(folder, len(embedding.positions.weight))
    tokenizer = TokenizerFile(file_of(folder, TOKENIZER), limit)
    tokenizer.check_ids(len(embedding.words.weight))
    return Input(tokenizer, embedding, limit, _prompts(folder), pooling)


def read_layers(folder: Path) -> Encoder:
    """Read the layers. Raises `QkvError` that names the file and what is wrong in it."""
    config = Config(folder, CONFIG)
    with open_tensors(file_of(folder, TENSORS)) as file:
        tensors, n_layers = BertTensors(file), config.number("num_hidden_layers")
        return Encoder([_layer(config, tensors, i) for i in range(n_layers)])


def file_facts(folder: Path) -> str:
    """Return sizes and times of all files of a model, which tell whether it is still the same."""
    names = (CONFIG, TENSORS, TOKENIZER, POOLING, LENGTH, PROMPTS)
    paths = [folder / name for name in names]
    stats = [path.stat() if path.exists() else None for path in paths]
    return json.dumps([stat and [stat.st_size, stat.st_mtime_ns] for stat in stats])


class Config:
    """A JSON file of settings, read with errors that name it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = file_of(folder, name)
        self.settings = read_json(self.path, dict)

    def require(self, name: str, known: Sequence[str], default: str | None = None) -> None:
        value = self.settings.get(name, default)
        if value not in known:
            readable = listed_names([repr(each) for each in known])
            raise QkvError(f"{self.path}: {name} is {value!r}; what can be read is {readable}")

    def number(self, name: str, default: int | None = None) -> int:
        value = self.settings.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise QkvError(f"{self.path}: {name} is {value!r}, not a number above 0")
        return value

    def epsilon(self) -> float:
        value = self.settings.get("layer_norm_eps", 1e-12)
        if not isinstance(value, int | float) or not 0 < value < 1:
            raise QkvError(f"{self.path}: layer_norm_eps is {value!r}, not between 0 and 1")
        return float(value)

    def activation(self) -> str:
        value = self.settings.get("hidden_act")
        if not isinstance(value, str) or value not in ACTIVATIONS:
            supported = ", ".join(ACTIVATIONS)
            raise QkvError(f"{self.path}: hidden_act is {value!r}; there are {supported}")
        return ACTIVATIONS[value]


WORD_TABLE = "embeddings.word_embeddings.weight"
AS_CONFIGURED = f" as {CONFIG} of a BERT has it"


class BertTensors:
    """The tensors of a file by their names in BERT."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        # A model saved with a head for another task has its encoder under a prefix.
        prefixes = [
            prefix for prefix in ("bert.", "roberta.") if f"{prefix}{WORD_TABLE}" in tensors.names
        ]
        self.prefix = prefixes[0] if prefixes else ""

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        return self.tensors.read(self.prefix + name, shape, AS_CONFIGURED)

    def half(self, name: str, *shape: int) -> np.ndarray:
        """Read a table, and leave float16 as it is."""
        return self.tensors.read_half(self.prefix + name, shape, AS_CONFIGURED)

    def linear(self, name: str, d_in: int, d_out: int) -> Linear:
        # With contiguous columns, BLAS computes x·Wᵀ of a short text in four fifths of the time.
        weight = np.asfortranarray(self(f"{name}.weight", d_out, d_in))
        return Linear(weight, self(f"{name}.bias", d_out))

    def norm(self, name: str, d: int, epsilon: float) -> LayerNorm:
        return LayerNorm(self(f"{name}.weight", d), self(f"{name}.bias", d), epsilon)


def _embedding(config: Config, tensors: BertTensors) -> TokenEmbedding:
    d, n_kinds = config.number("hidden_size"), config.number("type_vocab_size", 2)
    kinds = tensors("embeddings.token_type_embeddings.weight", n_kinds, d)
    n_positions = config.number("max_position_embeddings")
    positions = tensors("embeddings.position_embeddings.weight", n_positions, d)
    if config.settings["model_type"] in ROBERTA:
        positions = positions[config.number("pad_token_id", ROBERTA_PADDING) + 1 :]
    # In half precision where it is stored so: the words of many languages are a large table.
    words = tensors.half(WORD_TABLE, config.number("vocab_size"), d)
    return TokenEmbedding(
        Embedding(words),
        LearnedPositions(positions),
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


def _tensors_file(folder: Path) -> Path:
    """Return the file of weights. Raises `QkvError` that says what to do with another kind."""
    if not (folder / TENSORS).exists():
        for name, why in OTHER_TENSORS.items():
            if (folder / name).exists():
                raise QkvError(f"{folder}: no {TENSORS}: {why}")
    return file_of(folder, TENSORS)


def _check_steps(folder: Path) -> None:
    """Raise `QkvError` for a sentence encoder with a step that is not read, such as `Dense`."""
    if not (folder / MODULES).exists():
        return
    path = file_of(folder, MODULES)
    for step in read_json(path, list):
        # As in "sentence_transformers.models.Pooling".
        name = str(step.get("type")).rpartition(".")[2] if isinstance(step, dict) else repr(step)
        if name not in STEPS:
            raise QkvError(f"{path}: has the step {name}; what can be read is {', '.join(STEPS)}")


def _pooling(folder: Path) -> str:
    """Return how a text's vector is made: the mean of all tokens unless the folder says else."""
    if not (folder / POOLING).exists():
        return MEAN
    config = Config(folder, POOLING)
    settings = config.settings
    chosen = [
        name.removeprefix("pooling_mode_")
        for name, is_on in settings.items()
        if name.startswith("pooling_mode_") and is_on is True
    ]
    chosen += [settings["pooling_mode"]] if "pooling_mode" in settings else []
    if len(chosen) != 1 or not isinstance(chosen[0], str) or chosen[0] not in POOLINGS:
        raise QkvError(f"{config.path}: pools by {chosen}; what can be read is mean or cls")
    if settings.get("include_prompt") is False:
        raise QkvError(f"{config.path}: include_prompt is false, which cannot be read")
    return POOLINGS[chosen[0]]


def _limit(folder: Path, n_positions: int) -> int:
    if not (folder / LENGTH).exists():
        return n_positions
    config = Config(folder, LENGTH)
    if config.settings.get("max_seq_length") is None:
        return n_positions
    return min(config.number("max_seq_length"), n_positions)


def _prompts(folder: Path) -> Prompts:
    """Return what texts begin with; nothing where the model has no such file."""
    if not (folder / PROMPTS).exists():
        return Prompts()
    config = Config(folder, PROMPTS)
    named = config.settings.get("prompts") or {}
    if not isinstance(named, dict) or not all(isinstance(text, str) for text in named.values()):
        raise QkvError(f"{config.path}: prompts are not texts by name")
    # The prompt of all texts whose kind has none of its own.
    default = named.get(config.settings.get("default_prompt_name"), "")
    query, passage = (
        next((named[name] for name in names if name in named), default)
        for names in (QUERY_PROMPTS, PASSAGE_PROMPTS)
    )
    return Prompts(query, passage)

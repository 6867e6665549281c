"""The files of a model, which may come from anywhere: checked before use, and never executed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.files import real_path
from qkvsearch._utils.limits import MODEL_JSON
from qkvsearch.errors import QkvError, need
from qkvsearch.text.pretrained.subwords import PAD_TOKENS

# For `errors.need`: the extra that has the libraries of the pretrained encoders.
ENCODERS = ("encoders", "a pretrained encoder")
FLOATS = ("F16", "F32", "F64")
# The bits of a float16 without its sign, and the least ones that are no finite number.
SIGNLESS, INFINITY = 0x7FFF, 0x7C00
BLOCK = 1 << 16
# Exceptions that do not mean that a file is damaged.
NOT_ITS_FAULT = (QkvError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)


def file_of(folder: Path, name: str) -> Path:
    """Return the path of a file in a model's folder. Raises `QkvError` for a missing file, and for
    a link out of the folder, except to the `blobs` of a Hugging Face cache.
    """
    path = folder / name
    if not path.is_file():
        raise QkvError(f"{path}: no such file; an encoder's folder has one")
    real, home = real_path(path), real_path(folder)
    blobs = home.parent.parent / "blobs"
    is_cached = home.parent.name == "snapshots" and real.parent == blobs
    if not (real.is_relative_to(home) or is_cached):
        raise QkvError(
            f"{path}: a link out of the model's folder, to {real}; copy the file instead"
        )
    return path


def check_json_size(path: Path) -> None:
    """Raise `QkvError` for a file too large for a tokenizer or a configuration."""
    try:
        MODEL_JSON.check(path.stat().st_size, str(path), QkvError)
    except OSError as error:
        raise QkvError(f"{path}: cannot read: {error.strerror or error}") from None


def read_json(path: Path, kind: type[dict | list]) -> Any:
    """Read a JSON file, an object or an array. Raises `QkvError` that names it."""
    check_json_size(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise QkvError(f"{path}: nested too deeply") from None
    except OSError as error:
        raise QkvError(f"{path}: cannot read: {error.strerror or error}") from None
    except ValueError as error:
        raise QkvError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, kind):
        raise QkvError(f"{path}: not a JSON {'object' if kind is dict else 'array'}")
    return content


class TokenizerFile:
    """A `tokenizers.Tokenizer` from a file, which does not pad and cuts texts at `limit`.

    Its errors are `QkvError`s that name the file.
    """

    def __init__(self, path: Path, limit: int | None = None) -> None:
        need("tokenizers", *ENCODERS)
        self.path = path
        check_json_size(path)
        self._tokenizer = self._whole()
        if limit is not None:
            self._tokenizer.enable_truncation(limit)
        if limit is not None and limit <= self.num_special_tokens_to_add(False):
            raise QkvError(
                f"{path}: its own tokens leave none of the {limit} that config.json and "
                "sentence_bert_config.json allow a text"
            )

    def _whole(self) -> Any:
        """Return a `tokenizers.Tokenizer` of the whole file."""
        from tokenizers import Tokenizer

        with named(f"{self.path}: not a tokenizer"):
            tokenizer = Tokenizer.from_file(str(self.path))
            tokenizer.no_padding()
            tokenizer.no_truncation()
        return tokenizer

    def check_ids(self, n: int) -> None:
        """Raise `QkvError` if a token has no row in a table of n rows."""
        added = self.encode("")
        if len(added.ids) != len(added.tokens):
            raise QkvError(f"{self.path}: damaged: a special token has no id, or several")
        highest = max([self.highest_id(), *added.ids])
        if highest >= n:
            raise QkvError(f"{self.path}: has a token {highest:,}, and the model only {n:,} rows")

    def vocabulary(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return dict(self._tokenizer.get_vocab())

    def highest_id(self) -> int:
        """Return the highest id of a token, −1 where there is none."""
        from tokenizers.models import Unigram

        if not isinstance(self._tokenizer.model, Unigram):
            return max(self.vocabulary().values(), default=-1)
        # Its ids are those of its list of pieces. A dictionary of 250,000 takes half a second.
        added = self._tokenizer.get_added_tokens_decoder()
        return max(self._tokenizer.get_vocab_size(with_added_tokens=False) - 1, *added, -1)

    @property
    def padding_token(self) -> str:
        """The special token that stands for padding."""
        known = (token for token in PAD_TOKENS if self._tokenizer.token_to_id(token) is not None)
        return next(known, PAD_TOKENS[0])

    def encode(self, text: str, **options: Any) -> Any:
        return self._run("encode", text, **options)

    def encode_batch(self, inputs: Sequence[str], **options: Any) -> list[Any]:
        return list(self._run("encode_batch", inputs, **options))

    def encode_batch_fast(self, inputs: Sequence[str], **options: Any) -> list[Any]:
        return list(self._run("encode_batch_fast", inputs, **options))

    @property
    def plain(self) -> Any:
        """The `tokenizers.Tokenizer` of the whole file."""
        return self._tokenizer

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return int(self._tokenizer.num_special_tokens_to_add(is_pair))

    def _run(self, name: str, inputs: Any, **options: Any) -> Any:
        # Questions over HTTP get this message: it has no path of the machine.
        file = f"{self.path.parent.name}/{self.path.name}"
        with named(f"{file}: cannot cut this text into tokens"):
            return getattr(self._tokenizer, name)(inputs, **options)


class Tensors:
    """The arrays of an open safetensors file by name, as finite float32."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        self.names = set(file.keys())

    def read(self, name: str, shape: Sequence[int | None], because: str = "") -> np.ndarray:
        """Read an array of this shape; None stands for any length above 0. Raises `QkvError`."""
        self._check(name, shape, because)
        with np.errstate(over="ignore"):
            array = np.asarray(self.file.get_tensor(name), dtype=np.float32)
        if not np.isfinite(array).all():
            raise self._not_finite(name)
        return array

    def read_half(self, name: str, shape: Sequence[int | None], because: str = "") -> np.ndarray:
        """Read an array like `read`, but leave float16 as it is."""
        if self._check(name, shape, because)[1] != "F16":
            return self.read(name, shape, because)
        array: np.ndarray = self.file.get_tensor(name)
        bits = array.reshape(-1).view("<u2")
        # All bits of the exponent are set, in blocks that stay in the cache: five times as quick.
        blocks = (bits[start : start + BLOCK] for start in range(0, len(bits), BLOCK))
        if any((block & SIGNLESS).max() >= INFINITY for block in blocks):
            raise self._not_finite(name)
        return array

    def _check(
        self, name: str, shape: Sequence[int | None], because: str = ""
    ) -> tuple[tuple[int, ...], str]:
        """Return the shape and the type of an array. Raises `QkvError` if it cannot be read."""
        if name not in self.names:
            first_names = ", ".join(sorted(self.names)[:5]) or "none"
            raise QkvError(f"{self.path}: no tensor {name!r}{because}; there are {first_names}")
        entry = self.file.get_slice(name)
        actual, kind = tuple(entry.get_shape()), entry.get_dtype()
        fits = len(actual) == len(shape) and all(
            length == expected if expected is not None else length > 0
            for length, expected in zip(actual, shape, strict=True)
        )
        if not fits:
            expected = str(tuple(shape)).replace("None", "any")
            raise QkvError(f"{self.path}: {name} is {actual}, not {expected}{because}")
        if kind not in FLOATS:
            raise QkvError(f"{self.path}: {name} holds {kind}; F16, F32 and F64 can be read")
        return actual, kind

    def _not_finite(self, name: str) -> QkvError:
        return QkvError(f"{self.path}: {name} holds numbers that are not finite")


@contextmanager
def open_tensors(path: Path) -> Iterator[Tensors]:
    """Open a safetensors file. Raises `QkvError`."""
    safetensors = need("safetensors", *ENCODERS)
    opened = safetensors.safe_open
    with named(f"{path}: not a safetensors file"), opened(str(path), framework="numpy") as file:
        yield Tensors(path, file)


@contextmanager
def named(what: str) -> Iterator[None]:
    """Turn all errors of a library into a `QkvError`; a panic in Rust is no `Exception`."""
    try:
        yield
    except NOT_ITS_FAULT:
        raise
    except BaseException as error:
        raise QkvError(f"{what}: {error}") from None

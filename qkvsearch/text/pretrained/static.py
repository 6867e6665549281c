"""A static pretrained encoder: one vector for each subword, from the `wordllama` package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import GrowingArray, give_back
from qkvsearch.errors import QkvError, install
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors, unit_rows
from qkvsearch.text.pretrained.model_files import TokenizerFile, open_tensors
from qkvsearch.text.pretrained.recurring_words import LONG, RecurringWords, cuts_words
from qkvsearch.text.pretrained.subword_file import SubwordFile
from qkvsearch.text.pretrained.subwords import is_blank, join_pieces, sum_rows, whole
from qkvsearch.text.text_encoder import NONE_CUT, EncodedQuery, EncodedTexts, TableEncoder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

PACKAGE = "wordllama"
TABLE = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
# A subword of spaces and punctuation.
PUNCTUATION = re.compile(r"[\s▁.,;:!?…'\"‘’“”()\[\]{}–—_-]+")
# Texts, and their characters, that are tokenized at a time, and the tokens that are counted.
BATCH, CHARACTERS, TOKENS = 16_384, 1 << 24, 1 << 22


@dataclass(frozen=True, eq=False)
class CutTexts:
    """Tokenized texts. indptr: int64 (n + 1,), where each begins in ids: int32 (n_tokens,)."""

    indptr: np.ndarray
    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def joined(cls, batches: Iterable[CutTexts]) -> CutTexts:
        """Return the texts of all batches; many tokens are in a file."""
        lengths, ids = [np.zeros(1, np.int64)], GrowingArray(np.int32)
        for batch in batches:
            lengths.append(np.diff(batch.indptr))
            ids.append(batch.ids)
        return cls(np.cumsum(np.concatenate(lengths)), ids.whole())

    def part(self, start: int, end: int) -> CutTexts:
        """Return the texts from one to before another."""
        indptr = self.indptr[start : end + 1]
        return CutTexts(indptr - indptr[0], self.ids[indptr[0] : indptr[-1]])

    def first(self, longest: int) -> list[np.ndarray]:
        """Return the first tokens of each text, int32 (n,)."""
        spans = pairwise(self.indptr.tolist())
        return [self.ids[start : min(end, start + longest)] for start, end in spans]

    def counts(self, n_tokens: int) -> csr_matrix:
        """Count each token in each text: sparse float32 (n, n_tokens)."""
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.ids), np.float32)
        tokens = csr_matrix((ones, self.ids, self.indptr), shape=(len(self), n_tokens))
        # Going through the tokens one after the other takes less time than sorting each text's.
        by_token = tokens.tocsc()
        by_token.sum_duplicates()
        return by_token.tocsr()


@dataclass(frozen=True, eq=False)
class StaticEncoder(TableEncoder):
    """A `TextEncoder`: the weighted sum of a text's subword vectors, scaled to length 1.

    tokenizer: a `tokenizers.Tokenizer`. vectors: float32 or float16 (n_tokens, d). weights: float32
    (n_tokens,), or None for equal weights (mean pooling).

    >>> encoder = StaticEncoder.from_package()              # doctest: +SKIP
    >>> encoder.encode("Deepest sea").labels                # doctest: +SKIP
    ['Deepest', 'sea']
    """

    tokenizer: Any
    vectors: np.ndarray
    weights: np.ndarray | None = None

    # Columns of texts that are cut already: see `having_cut`.
    cut: tuple[tuple[Sequence[str], CutTexts], ...] = ()

    kind: ClassVar[str] = "static"
    is_pretrained: ClassVar[bool] = True

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the weights of the tokens in the catalog; the table is not stored."""
        return {} if self.weights is None else {"weights": np.asarray(self.weights)}

    @classmethod
    def from_package(cls) -> StaticEncoder:
        """Load the table of 32,000 × 256 in the package `wordllama`, without importing it.

        Raises `QkvError` if the package, or a library to read it, is not installed.
        """
        folder = find_package()
        if folder is None:
            raise QkvError(f"no package {PACKAGE!r} here: {install('encoders')}")
        return cls.from_files(folder / TABLE, folder / TOKENIZER)

    @classmethod
    def from_files(cls, table: str | Path, tokenizer: str | Path) -> StaticEncoder:
        """Load a safetensors file with `embedding.weight` (n_tokens, d), and a tokenizer's JSON.

        Raises `QkvError` that names the file that is missing, damaged, or of another kind.
        """
        return cls(SubwordFile(Path(tokenizer)), read_table(Path(table)))

    def weighted(self, weights: np.ndarray) -> StaticEncoder:
        """Return the encoder with weights (n_tokens,). Raises `QkvError` for another shape."""
        if np.shape(weights) != (len(self.vectors),):
            raise QkvError(f"weights are {np.shape(weights)}, not ({len(self.vectors)},)")
        return self._with(weights=np.asarray(weights, dtype=np.float32))

    def having_cut(self, fields: Sequence[Sequence[str]]) -> StaticEncoder:
        """Return the encoder with columns of texts cut into tokens, for their weights and keys."""
        return self._with(cut=tuple((column, self._whole(column)) for column in fields))

    def _with(self, **changed: Any) -> StaticEncoder:
        encoder = replace(self, **changed)
        if "_recurring_words" in vars(self):
            # It cuts words as this one does, which may have read texts.
            vars(encoder)["_recurring_words"] = self._recurring_words
        return encoder

    def read(self, text: str) -> EncodedQuery:
        """Return a labelled vector for each word, and one for each of its pieces in order: zeros
        for those without weight, since the second pass would compare spaces and apostrophes.
        """
        labels, owners, ids = self._pieces(text)
        rows = self._rows(ids)
        counted = rows * (self._shares(ids) > 0)[:, None]
        tokens = LabelledVectors([labels[owner] for owner in owners.tolist()], counted)
        return EncodedQuery(self._parts(labels, owners, ids, rows), tokens)

    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Encode batches of texts, each text once: see `TextEncoder`."""
        done = 0
        for batch in self._batches(texts):
            embeddings = self._embeddings(batch)
            yield EncodedTexts(embeddings, NONE_CUT), batch.first(longest)
            done += len(batch)
            if progress is not None:
                progress("encoding", done, len(texts))

    def unread(self, text: str) -> list[str]:
        """Return no words, since each consists of known pieces, of single bytes if need be."""
        return []

    def _known(self, text: str) -> LabelledVectors:
        """Return the mean of each word's pieces, unweighted, in reading order."""
        labels, owners, ids = self._pieces(text)
        sums = sum_rows(self._rows(ids), owners, len(labels))
        return LabelledVectors(labels, sums / np.bincount(owners)[: len(sums), None].astype("f4"))

    def _embeddings(self, batch: CutTexts) -> np.ndarray:
        """Return embeddings, float32 (n, d)."""
        counts = batch.counts(len(self.vectors))
        counts.data = counts.data * self._shares(counts.indices)
        return unit_rows(counts @ self._float_vectors, NEGLIGIBLE)

    def idf(self, fields: Sequence[Sequence[str]]) -> np.ndarray:
        """Compute weights from a catalog, float32 (n_tokens,): ln((1 + N) / (1 + n)) + 1 for a
        token that n of N items have, 0 for spaces and punctuation, which mean nothing and are rare.
        Manning, Raghavan and Schütze 2008, section 6.2.1, smoothed.

        fields: the text columns, each with one text for each item.
        """
        columns = [self._whole(texts) for texts in fields]
        n_items, n_tokens = len(columns[0]), len(self.vectors)
        lengths = np.sum([np.diff(cut.indptr) for cut in columns], axis=0)
        having = np.zeros(n_tokens, dtype=np.int64)
        start = 0
        for end in _ends_of_batches(lengths.tolist(), TOKENS):
            tokens = sum(cut.part(start, end).counts(n_tokens) for cut in columns)
            having += np.bincount(tokens.indices, minlength=n_tokens)
            start = end
        weights = (np.log((1 + n_items) / (1 + having)) + 1).astype(np.float32)
        vocabulary = self.tokenizer.vocabulary()
        weights[[row for token, row in vocabulary.items() if PUNCTUATION.fullmatch(token)]] = 0
        return weights

    def _rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of tokens, float32 (n, d)."""
        return np.asarray(self.vectors[ids], dtype=np.float32)

    @cached_property
    def _float_vectors(self) -> np.ndarray:
        """All vectors as float32."""
        return np.asarray(self.vectors, dtype=np.float32)

    def _shares(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of tokens, float32."""
        return np.ones(len(ids), np.float32) if self.weights is None else self.weights[ids]

    def _parts(
        self, labels: list[str], owners: np.ndarray, ids: np.ndarray, rows: np.ndarray
    ) -> LabelledVectors:
        shares = rows * self._shares(ids)[:, None]
        total = shares.sum(axis=0)
        length = np.sqrt(total @ total)
        if not len(ids) or length <= NEGLIGIBLE * np.linalg.norm(shares):
            return LabelledVectors([], np.zeros((0, self.n_components), dtype=np.float32))
        return LabelledVectors(labels, sum_rows(shares / length, owners, len(labels)))

    def _pieces(self, text: str) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Return the words of a text, and of each piece its word and its row in the table."""
        text = whole(text)
        if is_blank(text):
            return [], np.zeros(0, np.int64), np.zeros(0, np.int64)
        encoding = self.tokenizer.encode(in_small_letters(text), add_special_tokens=False)
        labels, owners = join_pieces(text, encoding.offsets)
        return labels, owners, self._checked(np.array(encoding.ids, dtype=np.int64))

    def _checked(self, ids: np.ndarray) -> np.ndarray:
        """Return the ids. Raise `QkvError` for one beyond the table, where SciPy would read."""
        if ids.size and ids.max() >= len(self.vectors):
            raise QkvError(
                f"the tokenizer has a token {ids.max():,}, and the table {len(self.vectors):,} rows"
            )
        return ids

    def _whole(self, texts: Sequence[str]) -> CutTexts:
        """Return tokenized texts, all at once."""
        known = self._known_cut(texts)
        return CutTexts.joined(self._batches(texts)) if known is None else known

    def _known_cut(self, texts: Sequence[str]) -> CutTexts | None:
        return next((cut for column, cut in self.cut if column is texts), None)

    def _batches(self, texts: Sequence[str]) -> Iterator[CutTexts]:
        """Yield batches of tokenized texts."""
        start = 0
        known = self._known_cut(texts)
        if known is not None:
            for end in _ends_of_batches(np.diff(known.indptr).tolist(), TOKENS):
                yield known.part(start, end)
                give_back(known.ids)
                start = end
            return
        for end in _ends_of_batches(map(len, texts), CHARACTERS):
            batch = list(map(_readable, texts[start:end]))
            rows = self._cut_by_words(batch)
            others = [text for text, ids in zip(batch, rows, strict=True) if ids is None]
            encodings = self.tokenizer.encode_batch_fast(others, add_special_tokens=False)
            ids_of_others = (np.array(encoding.ids, np.int32) for encoding in encodings)
            ids = [next(ids_of_others) if own is None else own for own in rows]
            indptr = np.cumsum([0, *map(len, ids)])
            yield CutTexts(indptr, self._checked(np.concatenate(ids)))
            start = end

    def _cut_by_words(self, texts: list[str]) -> list[np.ndarray | None]:
        """Return the tokens of long texts, int32 (n,) each; None for those that are cut whole."""
        if max(map(len, texts), default=0) < LONG or self._recurring_words is None:
            return [None] * len(texts)
        return self._recurring_words.of_texts(texts)

    @cached_property
    def _recurring_words(self) -> RecurringWords | None:
        is_file = isinstance(self.tokenizer, TokenizerFile)
        plain = self.tokenizer.plain if is_file else self.tokenizer
        return RecurringWords(self.tokenizer, plain) if cuts_words(plain) else None


def _readable(text: str) -> str:
    """Return a text as the tokenizer reads it, nothing for one that nobody sees."""
    return "" if is_blank(text) else in_small_letters(whole(text))


def _ends_of_batches(lengths: Iterable[int], most: int) -> Iterator[int]:
    """Yield where each batch of texts ends. lengths: of the texts. most: of a batch."""
    n_texts = total = number = 0
    for number, length in enumerate(lengths, 1):
        n_texts += 1
        total += length
        if n_texts == BATCH or total >= most:
            yield number
            n_texts = total = 0
    if n_texts:
        yield number


def in_small_letters(text: str) -> str:
    """Return a text of the same length in small letters: the table's tokenizer cuts a word in
    capitals into other pieces.

    >>> in_small_letters("NASA in İzmir")
    'nasa in İzmir'
    """
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def find_package() -> Path | None:
    """Return the folder of `wordllama` without importing it; None if it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        if (Path(folder) / TABLE).is_file():
            return Path(folder)
    return None


def read_table(path: Path) -> np.ndarray:
    """Read the vectors (n_tokens, d) of a safetensors file, float32 or float16."""
    with open_tensors(path) as tensors:
        return tensors.read_half(TENSOR, (None, None))

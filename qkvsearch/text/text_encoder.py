"""The base class of text encoders, and the keys of items made of their text columns.

An item's key is the weighted sum of its columns' embeddings, scaled to length 1: a sum of words.
The weights of the columns are the same for all items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.validation import check_texts, require
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import (
    NEGLIGIBLE,
    PADDING,
    WRITTEN_PADDING,
    LabelledVectors,
    unit_rows,
)

if TYPE_CHECKING:
    from qkvsearch.text.encoded_text import EncodedText, Hidden

# The number of items whose token vectors, and whose embeddings of columns, are in memory at a time.
ITEMS_PER_BATCH, ROWS_PER_BATCH = 4096, 1 << 16
# The rows of texts that were cut, for an encoder without a limit.
NONE_CUT = np.zeros(0, np.int64)
# A text whose vector recognizes a pretrained encoder.
PROBE = "qnhibbae qxnpzsqo"
# The weight of each text column in a key; None for equal weights.
Weights: TypeAlias = "Sequence[float] | np.ndarray | None"


class EncodedQuery(NamedTuple):
    """An encoded query.

    parts: labelled vectors that add up to the text's embedding. tokens: one labelled vector for
    each token in reading order, for the second pass. n_unread: words beyond the limit.
    """

    parts: LabelledVectors
    tokens: LabelledVectors
    n_unread: int = 0


class EncodedTexts(NamedTuple):
    """Embeddings of texts, float32 (n, d): rows of length 1, or zeros for texts without a known
    word. cut: rows of the texts that were longer than the encoder's limit, int64.
    """

    embeddings: np.ndarray
    cut: np.ndarray


class TextEncoder(ABC):
    """An encoder of texts as labelled vectors that add up to an embedding of length 1, or to zero.

    kind: its name for users. is_pretrained: whether it was trained on other texts, so that a build
    stores only what it learned from the catalog. limit: the maximal number of tokens that it reads
    of a text, None for no limit.
    """

    kind: ClassVar[str]
    is_pretrained: ClassVar[bool]
    limit: int | None

    @property
    @abstractmethod
    def n_components(self) -> int:
        """The size d of an embedding."""

    @property
    def table(self) -> np.ndarray | None:
        """One vector for each token, (n_terms, d); None if the vectors depend on the context."""
        return None

    @abstractmethod
    def read(self, text: str) -> EncodedQuery:
        """Return the parts and the tokens of a text, reading it once."""

    @abstractmethod
    def unread(self, text: str) -> list[str]:
        """Return the distinct words that the embedding does not contain: unknown words, words that
        the encoder ignores, and words beyond its limit."""

    @abstractmethod
    def attend(self, text: str, mask: str = "none", hide: Hidden = ()) -> EncodedText:
        """Compute the attention between the words of a text. mask: "none", "padding" or "causal".
        hide: words that nothing attends to either, or their positions from 0. A word that may
        attend to nothing has a row of zeros. Raises `QkvError` for another mask, for a word that
        is not there, and for a text too long to be shown."""

    @abstractmethod
    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Yield batches of encoded texts with the first `longest` tokens of each, read once.

        Tokens are int32 (n,), rows of `table`, or without a table int8 (n, d), the directions of
        their vectors. `cut` are rows of the batch. `progress` is called as ("encoding", texts done,
        number of texts).
        """

    def encode_items(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Yield what `encode_with_tokens` does of the texts of items, which may be cached."""
        return self.encode_with_tokens(texts, longest, progress)

    @abstractmethod
    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays learned from the catalog, by name, to be stored in a build."""

    @property
    def probe(self) -> np.ndarray:
        """The embedding of a fixed text, (d,), by which a build recognizes its encoder."""
        return self.encode(PROBE).total

    def encode(self, text: str) -> LabelledVectors:
        """Return one labelled vector for each word; they add up to the embedding. Raises
        `DataError` for what is no text.
        """
        require(isinstance(text, str), "text", text, "a text")
        return self.read(text).parts

    def encode_item(self, text: str) -> LabelledVectors:
        """Return the same for a text of an item, where the encoder reads queries otherwise."""
        return self.encode(text)

    def encode_texts(self, texts: Sequence[str], progress: Progress | None = None) -> EncodedTexts:
        """Encode texts. `progress` is called as ("encoding", texts done, number of texts).

        Raises `DataError` for a single text, and for a value that is no text.
        """
        if not isinstance(texts, AnalyzedTexts):
            texts = check_texts("texts", texts)
        embeddings = np.zeros((len(texts), self.n_components), np.float32)
        start, cut = 0, [NONE_CUT]
        for batch, _ in self.encode_with_tokens(texts, 0, progress):
            cut.append(batch.cut + start)
            embeddings[start : start + len(batch.embeddings)] = batch.embeddings
            start += len(batch.embeddings)
        return EncodedTexts(embeddings, np.concatenate(cut))

    def encode_many(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return only the embeddings of `encode_texts`."""
        return self.encode_texts(texts, progress).embeddings

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embeddings of queries, float32 (n, d), where the encoder reads them otherwise
        than items.
        """
        return self.encode_many(texts)

    def tokens_many(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[np.ndarray]:
        """Yield only the tokens of `encode_with_tokens`, so that those of a large catalog need not
        fit into memory. `progress` is called as ("reading tokens", texts done, number of texts).
        """

        def report(_: str, done: int, total: int) -> None:
            if progress is not None:
                progress("reading tokens", done, total)

        for _, tokens in self.encode_items(texts, longest, report):
            yield from tokens


class TableEncoder(TextEncoder):
    """An encoder with one vector for each token in any context. vectors: (n_terms, d)."""

    vectors: np.ndarray
    limit = None

    @property
    def n_components(self) -> int:
        """The size d of an embedding."""
        return int(self.vectors.shape[1])

    @property
    def table(self) -> np.ndarray:
        """The vectors of the tokens."""
        return self.vectors

    def sequence(self, text: str) -> LabelledVectors:
        """Return the unweighted vectors of the known words in reading order, with repetitions.

        `<PAD>` in the text is one of them, with a vector of zeros.
        """
        labels: list[str] = []
        vectors = [np.zeros((0, self.n_components), dtype=np.float32)]
        for i, piece in enumerate(WRITTEN_PADDING.split(text)):
            is_padding = i % 2 == 1
            if is_padding:
                labels.append(PADDING)
                vectors.append(np.zeros((1, self.n_components), dtype=np.float32))
            elif piece.strip():
                known = self._known(piece)
                labels += known.labels
                vectors.append(known.vectors)
        return LabelledVectors(labels, np.concatenate(vectors))

    @abstractmethod
    def _known(self, text: str) -> LabelledVectors:
        """Return the same of a text without padding."""

    def attend(self, text: str, mask: str = "none", hide: Hidden = ()) -> EncodedText:
        """Apply attention without parameters to `sequence`: see `TextEncoder`."""
        from qkvsearch.text.encoded_text import attend_without_layers

        return attend_without_layers(self.sequence(text), mask, self.unread(text), self.kind, hide)


# --- items ---


class EncodedItems(NamedTuple):
    """The embeddings of items.

    columns: those of each text column, float32 (n_items, d). cut: uint16 (n_items,), the number of
    an item's texts that were longer than the encoder's limit; None for an encoder without one.
    """

    columns: list[np.ndarray]
    cut: np.ndarray | None

    def keys(self, weights: Weights = None) -> np.ndarray:
        """Return the items' keys, float32 (n_items, d), with these weights of the columns."""
        return _weighted_sum(self.columns, weights)

    @classmethod
    def joined(cls, pieces: Sequence[EncodedItems]) -> EncodedItems:
        """Return the items of all pieces, in order."""
        if len(pieces) == 1:
            return pieces[0]
        by_column = zip(*(piece.columns for piece in pieces), strict=True)
        columns = [np.concatenate(embeddings) for embeddings in by_column]
        cuts = [piece.cut for piece in pieces if piece.cut is not None]
        return cls(columns, np.concatenate(cuts) if cuts else None)


def encode_items(
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    progress: Progress,
    longest: int = 0,
) -> EncodedItems:
    """Encode items, given as columns of texts, by the encoder of the dense head `name`.

    longest: how many tokens of each will be needed too; a cache takes them at the same time.

    With a pretrained encoder, `progress` is called as ("encoding with NAME", texts done, number of
    texts).
    """
    batches = encoded_with_tokens(name, encoder, fields, longest, progress)
    return EncodedItems.joined([items for items, _ in batches])


def encoded_with_tokens(
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    longest: int,
    progress: Progress,
) -> Iterator[tuple[EncodedItems, list[np.ndarray]]]:
    """Yield batches of `encode_items` with the first `longest` tokens of each item, column after
    column, as from `TextEncoder.tokens_many`. Each text is read once.
    """
    n_items = len(fields[0])
    done = 0
    total = sum(len(texts) for texts in fields)

    def report(_: str, n: int, __: int) -> None:
        progress(f"encoding with {name}", done + n, total)

    # Token vectors take far more memory than row numbers of a table.
    step = ITEMS_PER_BATCH if encoder.table is None else ROWS_PER_BATCH
    for start in range(0, max(n_items, 1), step):
        columns: list[np.ndarray] = []
        spans: list[list[np.ndarray]] = []
        cut = np.zeros(min(step, n_items - start), np.uint16)
        for texts in fields:
            # A slice of analyzed texts would be analyzed again.
            batch = texts if step >= n_items else texts[start : start + step]
            embeddings: list[np.ndarray] = []
            tokens: list[np.ndarray] = []
            for encoded, text_tokens in encoder.encode_items(batch, longest, report):
                cut[encoded.cut + len(tokens)] += 1
                embeddings.append(encoded.embeddings)
                tokens += text_tokens
            done += len(batch)
            columns.append(_joined(embeddings, encoder.n_components))
            spans.append(tokens)
        of_items = [np.concatenate(of_columns)[:longest] for of_columns in zip(*spans, strict=True)]
        yield EncodedItems(columns, None if encoder.limit is None else cut), of_items


def _joined(batches: list[np.ndarray], n_components: int) -> np.ndarray:
    """Return the embeddings of all batches, float32 (n, d), without a copy of a single one."""
    if not batches:
        return np.zeros((0, n_components), np.float32)
    return batches[0] if len(batches) == 1 else np.concatenate(batches)


def item_keys(
    encode_many: Callable[[Sequence[str]], np.ndarray],
    fields: Iterable[Any],
    weights: Weights = None,
) -> np.ndarray:
    """Return the keys of items given as columns of texts, float32 (n_items, d).

    A key is the weighted sum of the columns' embeddings, scaled to length 1; zeros where no column
    has a known word.
    """
    return _weighted_sum(map(encode_many, fields), weights)


def _weighted_sum(columns: Iterable[np.ndarray], weights: Weights) -> np.ndarray:
    if weights is None:
        total = sum(columns)
    else:
        # Python's floats do not turn float32 into float64.
        pairs = zip(columns, map(float, weights), strict=True)
        total = sum(column * weight for column, weight in pairs)
    return unit_rows(np.asarray(total), NEGLIGIBLE).astype(np.float32)


def item_pieces(
    encode_item: Callable[[str], LabelledVectors], fields: Sequence[str], weights: Weights = None
) -> LabelledVectors:
    """Return one item's key as labelled vectors that add up to it. encode_item: of an encoder."""
    parts = [encode_item(field) for field in fields]
    if weights is not None:
        parts = [
            LabelledVectors(part.labels, part.vectors * float(weight))
            for part, weight in zip(parts, weights, strict=True)
        ]
    return LabelledVectors.joined(parts)

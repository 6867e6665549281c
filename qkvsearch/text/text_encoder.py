"""What a text encoder can do, in one protocol; and items through an encoder: their keys.

An item's key is the weighted sum of its columns' embeddings at length 1, and so a sum of words. How
much a column counts does not depend on the words of one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors, unit_rows

if TYPE_CHECKING:
    from qkvsearch.text.encoded_text import EncodedText

# What stands for padding in a text.
PADDING = "<PAD>"
# Items of which tokens are held at a time, where each has a vector of its own.
TOGETHER = 4096
# How much each text column counts in a key; None for all alike.
Weights: TypeAlias = "Sequence[float] | np.ndarray | None"


class EncodedQuery(NamedTuple):
    """What one reading of a text gives.

    parts: labelled vectors that add up to the text's embedding. tokens: one labelled vector a
    token in reading order, what a second pass compares. n_unread: the words beyond the limit.
    """

    parts: LabelledVectors
    tokens: LabelledVectors
    n_unread: int = 0


class EncodedTexts(NamedTuple):
    """embeddings: float32 (n, d), rows of length 1, or zeros for a text that says nothing. cut:
    which of the texts were longer than the encoder's limit, int64.
    """

    embeddings: np.ndarray
    cut: np.ndarray


class TextEncoder(Protocol):
    """Text to labelled vectors that add up to an embedding of length 1, or to nothing.

    kind: what a person calls it. is_pretrained: whether it was trained elsewhere, so that a build
    stores only what it learned from the catalog. limit: the most tokens of a text that it reads,
    None for no limit. table: (n_terms, d), the one vector of each token wherever it stands; None
    where the vectors come from the context.
    """

    kind: ClassVar[str]
    is_pretrained: ClassVar[bool]

    @property
    def limit(self) -> int | None: ...

    @property
    def table(self) -> np.ndarray | None: ...

    def encode(self, text: str) -> LabelledVectors:
        """The parts of a text: one labelled vector a word."""

    def read(self, text: str) -> EncodedQuery:
        """The parts and the tokens of a text, which is read once."""

    def unread(self, text: str) -> list[str]:
        """The distinct words of a text that are no part of its embedding: unknown ones, those of
        which an encoder takes no notice, and those beyond its limit."""

    def attend(self, text: str, mask: str = "none") -> EncodedText:
        """What the attention between its words makes of a text. mask: "none", "padding" or
        "causal". Raises `QkvError` for another one, and for a text too long to be shown."""

    def encode_many(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """The embeddings alone of `encode_texts`."""

    def encode_texts(self, texts: Sequence[str], progress: Progress | None = None) -> EncodedTexts:
        """`progress` is called as ("encoding", texts done, texts in all)."""

    def tokens_many(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[np.ndarray]:
        """The first `longest` tokens of each text: int32 (n,), rows of `table`, or without one int8
        (n, d), the directions of their vectors. Some texts are read at a time, so that those of a
        large catalog need not fit into memory.

        `progress` is called as ("reading tokens", texts done, texts in all).
        """

    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """What `encode_texts` and `tokens_many` give, each text read once: some texts at a time, in
        their order; `cut` counts from the first of these.

        `progress` is called as ("encoding", texts done, texts in all).
        """

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """What it learned from the catalog, to be stored with a build; by name."""


# --- items ---


class EncodedItems(NamedTuple):
    """columns: what was made of each text column, float32 (n_items, d). cut: uint16 (n_items,), how
    many of each one's texts were longer than the model's limit, or None for an encoder without one.
    """

    columns: list[np.ndarray]
    cut: np.ndarray | None

    def keys(self, weights: Weights = None) -> np.ndarray:
        """float32 (n_items, d), with these weights of the columns."""
        return _weighed(self.columns, weights)

    @classmethod
    def joined(cls, pieces: Sequence[EncodedItems]) -> EncodedItems:
        """Items of the first piece, then those of the next."""
        columns = zip(*(piece.columns for piece in pieces), strict=True)
        cuts = [piece.cut for piece in pieces if piece.cut is not None]
        return cls(list(map(np.concatenate, columns)), np.concatenate(cuts) if cuts else None)


def encode_items(
    name: str, encoder: TextEncoder, fields: Sequence[Sequence[str]], progress: Progress
) -> EncodedItems:
    """Items given as columns of texts, by the encoder of the dense head `name`.

    Of a pretrained one `progress` is called as ("encoding with NAME", texts done, texts in all).
    """
    done, total = 0, sum(map(len, fields))
    cut = np.zeros(len(fields[0]), dtype=np.uint16)

    def encode(texts: Sequence[str]) -> np.ndarray:
        nonlocal done
        start = done
        done += len(texts)
        found = encoder.encode_texts(
            texts, lambda _, n, __: progress(f"encoding with {name}", start + n, total)
        )
        cut[found.cut] += 1
        return found.embeddings

    columns = [encode(texts) for texts in fields]
    return EncodedItems(columns, None if encoder.limit is None else cut)


def encoded_with_tokens(
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    longest: int,
    progress: Progress,
) -> Iterator[tuple[EncodedItems, list[np.ndarray]]]:
    """As `encode_items`, some items at a time, and the first `longest` tokens of each, column after
    column, as `TextEncoder.tokens_many` gives them: every text is read once.
    """
    done, n_items, total = 0, len(fields[0]), sum(map(len, fields))

    def report(_: str, n: int, __: int) -> None:
        progress(f"encoding with {name}", done + n, total)

    # Vectors of tokens are many times as large as all else; row numbers are not.
    step = TOGETHER if encoder.table is None else max(n_items, 1)
    for start in range(0, n_items, step):
        columns: list[np.ndarray] = []
        spans: list[list[np.ndarray]] = []
        cut = np.zeros(min(step, n_items - start), np.uint16)
        for texts in fields:
            some = texts if step >= n_items else texts[start : start + step]
            embeddings: list[np.ndarray] = []
            tokens: list[np.ndarray] = []
            for found, of_texts in encoder.encode_with_tokens(some, longest, report):
                cut[found.cut + len(tokens)] += 1
                embeddings.append(found.embeddings)
                tokens += of_texts
            done += len(some)
            columns.append(np.concatenate(embeddings))
            spans.append(tokens)
        items = [np.concatenate(of_item)[:longest] for of_item in zip(*spans, strict=True)]
        yield EncodedItems(columns, None if encoder.limit is None else cut), items


def item_keys(
    encode_many: Callable[[Sequence[str]], np.ndarray],
    fields: Iterable[Any],
    weights: Weights = None,
) -> np.ndarray:
    """Keys (n_items, d) float32 of items given as columns of texts: each the sum of its columns'
    embeddings, weighted, at length 1; zeros where no column has a known word."""
    return _weighed(map(encode_many, fields), weights)


def _weighed(columns: Iterable[np.ndarray], weights: Weights) -> np.ndarray:
    if weights is None:
        total = sum(columns)
    else:
        # As Python's numbers, which leave float32 what it is.
        pairs = zip(columns, map(float, weights), strict=True)
        total = sum(column * weight for column, weight in pairs)
    return unit_rows(np.asarray(total), NEGLIGIBLE).astype(np.float32)


def item_pieces(
    encoder: TextEncoder, fields: Sequence[str], weights: Weights = None
) -> LabelledVectors:
    """One item's key as the labelled sum that it is."""
    parts = [encoder.encode(field) for field in fields]
    if weights is not None:
        parts = [
            LabelledVectors(part.labels, part.vectors * float(weight))
            for part, weight in zip(parts, weights, strict=True)
        ]
    return LabelledVectors.joined(parts)

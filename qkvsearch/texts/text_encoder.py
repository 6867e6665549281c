"""What a text encoder can do: the one protocol of those learned from a catalog and those not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from qkvsearch.labelled import LabelledVectors

if TYPE_CHECKING:
    from qkvsearch.progress import Progress
    from qkvsearch.texts.encoded_text import EncodedText

T = TypeVar("T")


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

    def attend(self, text: str, mask: str = "none") -> EncodedText:
        """What the attention between its words makes of a text. mask: "none", "padding" or
        "causal". Raises `QkvError` for another one, and for a text too long to be shown."""

    def encode_many(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """The embeddings alone of `encode_texts`."""

    def encode_texts(self, texts: Sequence[str], progress: Progress | None = None) -> EncodedTexts:
        """`progress` is called as ("encoding", texts done, texts in all)."""

    def tokens_many(
        self, texts: Sequence[str], longest: int, most: int, progress: Progress | None = None
    ) -> list[np.ndarray] | None:
        """The first `longest` tokens of each text: int32 (n,), rows of `table`, or without one int8
        (n, d), the directions of their vectors. None where there are more than `most` in all.

        `progress` is called as ("reading tokens", texts done, texts in all).
        """

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """What it learned from the catalog, to be stored with a build; by name."""


def at_most(most: int, found: Iterable[T], n_tokens: Callable[[T], int] = len) -> list[T] | None:  # type: ignore[assignment]
    """All of `found`; None as soon as they have more than `most` tokens.

    >>> at_most(3, ["ab", "c"]), at_most(2, ["ab", "c"])
    (['ab', 'c'], None)
    """
    kept = []
    for one in found:
        most -= n_tokens(one)
        if most < 0:
            return None
        kept.append(one)
    return kept

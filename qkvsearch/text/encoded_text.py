"""Attention within a text: attention maps, what a word attends to, how vectors change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch._utils.limits import ATTENDED
from qkvsearch._utils.validation import is_whole, require
from qkvsearch.attention import attention, look_ahead_mask
from qkvsearch.errors import QkvError, suggest
from qkvsearch.text.labelled import PADDING, LabelledVectors
from qkvsearch.text.languages import stop_words
from qkvsearch.text.pretrained.subwords import sum_rows

if TYPE_CHECKING:
    import pandas as pd

MASKS = ("none", "padding", "causal")
# Words that nothing attends to: their places in the text, from 0, or words, wherever they are.
Hidden: TypeAlias = "int | str | Iterable[int | str]"
# Term vectors are compared by their cosine, so that a frequent word does not win by its length.
# Doubled, the cosine leaves an unrelated word 1/e² of a word's attention to itself: enough to be
# visible in a short text.
COSINE_SCALE = 2.0


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights between the n tokens of a text, and its outputs.

    weights (n, n), row = the attending token, column = the attended one; outputs (n, d); mask
    bool (n, n), True = may attend; left_out: words without a vector. layer and head of a
    transformer count from 0: both are None for attention without parameters, head alone is None
    for the mean over the layer's heads.
    """

    tokens: list[str]
    weights: np.ndarray
    outputs: np.ndarray
    mask: np.ndarray
    left_out: list[str]
    layer: int | None = None
    head: int | None = None

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each pair of tokens, with layer and head where there are any."""
        where = {} if self.layer is None else {"layer": self.layer, "head": self.head}
        return [
            {
                "query_position": i,
                "query": query,
                "key_position": j,
                "key": key,
                "weight": float(self.weights[i, j]),
                "visible": bool(self.mask[i, j]),
                **where,
            }
            for i, query in enumerate(self.tokens)
            for j, key in enumerate(self.tokens)
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the weights as a table with the tokens as index and columns."""
        import pandas as pd

        return pd.DataFrame(self.weights, index=self.tokens, columns=self.tokens)


@dataclass(frozen=True, eq=False)
class EncodedText:
    """The result of attention for a text of n tokens that are pieces of m words.

    tokens (n), words (m); owners int64 (n,), ascending, the word of each token. hidden
    (n_layers + 1, n, d), before the first layer and after each. weights (n_layers, n_heads, n, n),
    row = the attending token; mask bool (n, n), True = may attend. encoder: the encoder's kind.
    Without `has_layers`, the only layer and head are the attention without parameters.
    """

    tokens: list[str]
    words: list[str]
    owners: np.ndarray
    hidden: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    left_out: list[str]
    encoder: str
    has_layers: bool

    def map(self, layer: int | None = None, head: int | None = None) -> AttentionMap:
        """Return the map of one head; by default of the last layer, as the mean of its heads.

        Raises `QkvError` for a layer or head that does not exist.
        """
        self._check(layer, head)
        index = len(self.weights) - 1 if layer is None else layer
        heads = self.weights[index]
        weights = heads.mean(axis=0) if head is None else heads[head]
        hidden = self.hidden[index + 1]
        if not self.has_layers:
            return AttentionMap(self.tokens, weights, hidden, self.mask, self.left_out)
        return AttentionMap(self.tokens, weights, hidden, self.mask, self.left_out, index, head)

    def head_indices(
        self, layer: int | None = None, head: int | None = None
    ) -> list[tuple[int, int]]:
        """Return (layer, head) of all heads, of the heads of a layer, or of one head of each layer.

        Raises `QkvError` where there are no layers, or not these.
        """
        self._check(0 if layer is None else layer, head)
        n_layers, n_heads = self.weights.shape[:2]
        layers = range(n_layers) if layer is None else [layer]
        heads = range(n_heads) if head is None else [head]
        return [(i, j) for i in layers for j in heads]

    def word_weights(self) -> np.ndarray:
        """Return the weights between words, (n_layers, n_heads, m, m).

        The rows of a word's pieces are averaged and the columns are added, so that rows still add
        up to 1. Clark et al. 2019 ("What does BERT look at?"), section 4.1.
        """
        starts = np.searchsorted(self.owners, np.arange(len(self.words)))
        if not len(starts):
            return self.weights
        sums = np.add.reduceat(np.add.reduceat(self.weights, starts, axis=3), starts, axis=2)
        return sums / np.bincount(self.owners)[:, None]

    def word_vectors(self) -> np.ndarray:
        """Return the mean vector of each word's pieces, (n_layers + 1, m, d)."""
        sums = [sum_rows(vectors, self.owners, len(self.words)) for vectors in self.hidden]
        return np.stack(sums) / np.maximum(np.bincount(self.owners), 1)[:, None]

    def position(self, word: str) -> int:
        """Return the index of the first occurrence of a word, in any case. Raises `QkvError`."""
        return positions_of(self.words, word)[0]

    def _check(self, layer: int | None, head: int | None) -> None:
        """Raise `QkvError` for a layer or head that does not exist."""
        if not self.has_layers and (layer, head) != (None, None):
            raise QkvError(
                f"the encoder here is {self.encoder}, whose attention has no layers and heads to "
                "choose from; add `encoder` minilm, which has"
            )
        requested = {"layer": layer, "head": head}
        for (name, index), n in zip(requested.items(), self.weights.shape[:2], strict=True):
            if index is not None and not 0 <= index < n:
                raise QkvError(f"no {name} {index}: there are {name}s 0 to {n - 1}")


def mask_of(labels: Sequence[str], mask: str) -> np.ndarray:
    """Return one of `MASKS` for these tokens: bool (n, n), True = may attend. Raises `QkvError`.

    >>> mask_of(["a", "<PAD>"], "padding")
    array([[ True, False],
           [ True, False]])
    """
    if mask not in MASKS:
        raise QkvError(f"no mask {mask!r}; there are {', '.join(MASKS)}")
    if mask == "causal":
        return look_ahead_mask(len(labels))
    keep = np.ones((len(labels), len(labels)), dtype=bool)
    if mask == "padding":
        keep &= np.array([label != PADDING for label in labels], dtype=bool)
    return keep


def positions_of(words: Sequence[str], word: str) -> list[int]:
    """Return the indices of a word in a text, in any case. Raises `QkvError` where it is not there.

    >>> positions_of(["The", "bank", "of", "the", "river"], "the")
    [0, 3]
    """
    found = [j for j, name in enumerate(words) if fold(name) == fold(word)]
    if not found:
        distinct = list(dict.fromkeys(words))
        near = suggest(word, distinct) or f" (there are {', '.join(distinct[:12]) or 'none'})"
        raise QkvError(f"no word {word!r} in the text{near}")
    return found


def without_hidden(
    keep: np.ndarray, words: Sequence[str], owners: np.ndarray, hide: Hidden
) -> np.ndarray:
    """Return a mask bool (n, n) in which nothing may attend to the words of `hide` either.

    words (m); owners (n,), the word of each token. Raises `QkvError` for a word that is not there.

    >>> without_hidden(np.ones((2, 2), bool), ["a", "b"], np.arange(2), ["b"])
    array([[ True, False],
           [ True, False]])
    """
    hidden: list[int] = []
    for each in _checked_hide(hide):
        if isinstance(each, str):
            hidden += positions_of(words, each)
            continue
        if not 0 <= each < len(words):
            there = f"there are words 0 to {len(words) - 1}" if words else "there are no words"
            raise QkvError(f"`hide`: no word {each}: {there}")
        hidden.append(int(each))
    return keep & ~np.isin(owners, hidden)


def _checked_hide(hide: Hidden) -> list[int | str]:
    """Return words, or positions, as a list. Raises `DataError` for anything else."""
    expected = "words, or their positions from 0"
    if isinstance(hide, str) or is_whole(hide):
        return [hide]  # type: ignore[list-item]
    is_list = isinstance(hide, Iterable) and not isinstance(hide, bytes | Mapping)
    require(is_list, "hide", hide, expected)
    found = list(hide)  # type: ignore[arg-type]
    for each in found:
        require(isinstance(each, str) or is_whole(each), "hide", each, expected)
    return found


def attend_without_layers(
    tokens: LabelledVectors,
    mask: str,
    left_out: Sequence[str],
    encoder: str,
    hide: Hidden = (),
) -> EncodedText:
    """Compute softmax(2 · cos(X, X) + mask) · X for the words X: they are queries, keys and values.

    mask: "none", "padding" (nothing attends to `<PAD>`) or "causal" (nothing attends to later
    words). hide: words that nothing attends to. Raises `QkvError` for another mask, for a word
    that is not there, and for too many words.

    >>> text = LabelledVectors(["a", "b"], np.eye(2))
    >>> attend_without_layers(text, "causal", [], "corpus").map().weights.round(3)
    array([[1.   , 0.   ],
           [0.119, 0.881]])
    """
    check_length(len(tokens))
    labels = list(tokens.labels)
    keep = without_hidden(mask_of(labels, mask), labels, np.arange(len(tokens)), hide)
    vectors = tokens.vectors
    outputs, weights = attention(
        query=vectors,
        key=vectors,
        value=vectors,
        mask=keep,
        score="cosine",
        scale=COSINE_SCALE,
        return_weights=True,
    )
    return EncodedText(
        tokens=labels,
        words=labels,
        owners=np.arange(len(tokens)),
        hidden=np.stack([vectors, outputs]),
        weights=weights[None, None],
        mask=keep,
        left_out=list(left_out),
        encoder=encoder,
        has_layers=False,
    )


def check_length(n: int) -> None:
    """Raise `QkvError` for more words than can be shown."""
    if n > ATTENDED.value:
        raise QkvError(f"{n:,} words are too many to show; {ATTENDED.value} at most")


# --- one word ---


@dataclass(frozen=True)
class Focus:
    """What one word attends to most: `key`, with this weight; words (m) and row (m,): all weights
    in the head where that weight is.
    """

    key: str
    weight: float
    words: list[str]
    row: np.ndarray


@dataclass(frozen=True)
class WordComparison:
    """Cosines of words with themselves in another text, (n_layers + 1, n_words), by depth."""

    words: list[str]
    cosines: np.ndarray


def focus(text: EncodedText, word: str, at: str | None = None) -> Focus:
    """Return which other word a word attends to most, in the head where it does so most; or how
    much it attends to the word `at`.

    The word itself, special tokens, punctuation and, if there are others, stop words are left out.
    Raises `QkvError` for words that are not in the text, and if there is nothing else to attend to.

    >>> from qkvsearch.text.token_encoder import TokenEncoder
    >>> from qkvsearch.text.vocabulary import Vocabulary
    >>> encoder = TokenEncoder(Vocabulary.of(["cat", "dog"]), np.eye(2), np.ones(2))
    >>> attended = focus(encoder.attend("a dog, a cat"), "dog")
    >>> attended.key, round(attended.weight, 3)
    ('cat', 0.119)
    """
    words = text.words
    rows = text.word_weights()[:, :, text.position(word)].reshape(-1, len(words))
    if at is not None:
        key = text.position(at)
    else:
        named = [(j, fold(name)) for j, name in enumerate(words) if is_word(name)]
        others = [(j, name) for j, name in named if name != fold(word)]
        if not others:
            raise QkvError(f"{word!r} has no other word to look at")
        # Heads that attend to the previous or next word give all weight to it, even a stop word.
        content = [other for other in others if other[1] not in stop_words()]
        key = max((j for j, _ in content or others), key=lambda j: rows[:, j].max())
    row = rows[rows[:, key].argmax()]
    return Focus(words[key], float(row[key]), words, row)


def compare(a: EncodedText, b: EncodedText) -> WordComparison:
    """Compare the vectors of each word that two texts share, layer by layer.

    The first occurrence of a word counts, and the mean of its pieces. Raises `QkvError` if no word
    is shared.
    """
    folded = {fold(name) for name in b.words}
    shared = [name for name in a.words if is_word(name) and fold(name) in folded]
    names = list({fold(name): name for name in reversed(shared)}.values())[::-1]
    if not names:
        raise QkvError("no word is in both texts")
    x = a.word_vectors()[:, [a.position(name) for name in names]]
    y = b.word_vectors()[:, [b.position(name) for name in names]]
    return WordComparison(names, cosine(x, y))


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosine of vectors (..., d), 0 for a vector of zeros."""
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray((a * b).sum(axis=-1) / np.where(lengths > 0, lengths, 1))


def is_word(label: str) -> bool:
    """Return whether a token is neither special, such as [CLS] or <PAD>, nor punctuation."""
    return label[:1] not in "[<" and any(char.isalnum() for char in label)

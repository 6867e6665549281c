"""A pretrained transformer (BERT-type sentence encoder) that runs on this package's attention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch.attention import look_ahead_mask
from qkvsearch.attention.layers.transformer import Encoder, LayerOutput
from qkvsearch.errors import QkvError
from qkvsearch.labelled import LabelledVectors
from qkvsearch.progress import Progress
from qkvsearch.texts.pretrained.bert import TokenEmbedding, read_bert
from qkvsearch.texts.pretrained.encodings import (
    PAD_TOKEN,
    parts_of,
    piece_labels,
    words_beyond,
    words_of,
)
from qkvsearch.texts.pretrained.subwords import is_blank, sum_rows, whole
from qkvsearch.texts.self_attention import MASKS
from qkvsearch.texts.token_encoder import PADDING

# Texts that the tokenizer is given at a time.
BATCH = 4096


class Encoded(NamedTuple):
    """embeddings: float32 (n, d), unit rows. cut: the texts that were longer than the limit."""

    embeddings: np.ndarray
    cut: np.ndarray


class EncodedQuery(NamedTuple):
    """What one pass through the layers makes of a text.

    parts, words: what `encode` and `sequence` give. n_unread: the words beyond the limit.
    """

    parts: LabelledVectors
    words: LabelledVectors
    n_unread: int


class Pieces(NamedTuple):
    """A text as the model reads it.

    ids: int32 (n,), special tokens included; none for a text of nothing to see. owners: int64
    (n,), the word that each piece belongs to, −1 for a special token. n_words: how many there are.
    """

    ids: np.ndarray
    owners: np.ndarray
    n_words: int


@dataclass(frozen=True)
class Layers:
    """What every layer made of a text of n pieces.

    tokens (n), [CLS] and [SEP] included; spans, each one's (start, end) in the text; hidden
    (n_layers + 1, n, d), the first what layer 0 reads; weights (n_layers, n_heads, n, n), row = the
    token that looks; mask bool (n, n), True = may attend.
    """

    tokens: list[str]
    spans: list[tuple[int, int]]
    hidden: np.ndarray
    weights: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, eq=False)
class TransformerEncoder:
    """The mean of a text's contextual token vectors, at length 1.

    tokenizer: a `tokenizers.Tokenizer` that cuts at `limit`. embedding: what the first layer reads.
    limit: the most tokens of a text, special ones included.
    Devlin et al. 2019 (BERT); mean pooling: Reimers and Gurevych 2019 (Sentence-BERT), section 3.

    A text of nothing to see has no vectors, where others give the mean of [CLS] and [SEP].

    >>> encoder = TransformerEncoder.from_folder("models/minilm")     # doctest: +SKIP
    >>> encoder.encode("deep sea").labels                             # doctest: +SKIP
    ['[CLS]', 'deep', 'sea', '[SEP]']
    """

    tokenizer: Any
    embedding: TokenEmbedding
    encoder: Encoder
    limit: int

    is_pretrained: ClassVar[bool] = True

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Nothing: it learns nothing from the catalogue."""
        return {}

    @classmethod
    def from_folder(cls, path: str | Path) -> TransformerEncoder:
        """Read a Hugging Face folder: config.json, model.safetensors, tokenizer.json and, where
        there are any, 1_Pooling/config.json and sentence_bert_config.json.

        Raises `QkvError` naming the file where something is missing, damaged or of another kind.
        """
        return cls(*read_bert(Path(path)))

    @property
    def n_components(self) -> int:
        """The size d of an embedding."""
        return len(self.embedding.kind)

    @property
    def n_layers(self) -> int:
        """How many layers there are."""
        return len(self.encoder.layers)

    @property
    def n_heads(self) -> int:
        """How many heads each layer has."""
        return self.encoder.layers[0].attention.n_heads

    def encode(self, text: str) -> LabelledVectors:
        """One labelled vector for each word and special token, adding up to length 1.

        Each is the sum of its pieces' final vectors, over their number and the mean's length.
        """
        return self.read(text).parts

    def sequence(self, text: str) -> LabelledVectors:
        """One contextual vector for each word in reading order, the mean of its pieces'; special
        tokens are read but left out.
        """
        return self.read(text).words

    def read(self, text: str) -> EncodedQuery:
        """`encode` and `sequence` by one pass, and how much of the text was not read."""
        text, encoding = self._tokenize(text)
        if encoding is None:
            return EncodedQuery(self._nothing(), self._nothing(), 0)
        vectors = self._final(encoding)
        shares = vectors / np.linalg.norm(vectors.sum(axis=0))
        labels, owners = parts_of(text, encoding)
        parts = LabelledVectors(labels, sum_rows(shares, owners, len(labels)))
        unread = [word for word in words_beyond(text, encoding) if any(map(str.isalnum, word))]
        labels, owners = words_of(text, encoding)
        words = LabelledVectors(labels, _word_means(vectors, owners, len(labels)))
        return EncodedQuery(parts, words, len(unread))

    def pieces_many(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """Each text in pieces, some texts read at a time."""
        for start in range(0, len(texts), BATCH):
            batch = [whole(text) for text in texts[start : start + BATCH]]
            for text, found in zip(batch, self.tokenizer.encode_batch(batch), strict=True):
                if self._says_nothing(text, found):
                    yield Pieces(np.zeros(0, np.int32), np.zeros(0, np.int64), 0)
                    continue
                words, owners = words_of(text, found)
                yield Pieces(np.array(found.ids, dtype=np.int32), owners, len(words))

    def sequence_many(
        self, read: Sequence[Pieces], progress: Progress | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The vectors of `sequence` for many texts that `pieces_many` read, as (which text, float32
        (n_words, d)), in the order in which they are done; texts of nothing to see are left out.

        `progress` is called as ("encoding", texts done, texts in all).
        """
        from qkvsearch.attention.layers.packed import SCORES, Buffers, chunks_of, embed, run_layer

        ids = [pieces.ids for pieces in read]
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        chunks = list(chunks_of(lengths))
        done = len(read) - int((lengths > 0).sum())
        hidden = max((len(x.feed_forward.hidden.weight) for x in self.encoder.layers), default=0)
        n_scores = max(SCORES, int(lengths.max(initial=0)) ** 2)
        for chunk in chunks:
            buffers = Buffers(chunk.n_tokens, self.n_components, hidden, n_scores)
            x = embed(self.embedding, chunk, ids, buffers.added)
            for layer in self.encoder.layers:
                run_layer(layer, x, chunk, buffers)
            ends = np.cumsum(lengths[chunk.texts])
            for i, vectors in zip(chunk.texts.tolist(), np.split(x, ends[:-1]), strict=True):
                yield i, _word_means(vectors, read[i].owners, read[i].n_words)
            done += len(chunk.texts)
            if progress is not None:
                progress("encoding", done, len(read))

    def unknown(self, text: str) -> list[str]:
        """The words beyond the limit, once each: `sequence` leaves them out."""
        text, encoding = self._tokenize(text)
        return [] if encoding is None else list(dict.fromkeys(words_beyond(text, encoding)))

    def layers(self, text: str, mask: str = "none") -> Layers:
        """Every layer's hidden states and attention weights, piece by piece.

        mask: "none", "padding" (nobody looks at `<PAD>`) or "causal" (nobody looks ahead); the
        model was trained with none. `<PAD>` in the text is the model's own padding token. Raises
        `QkvError` for another mask.
        """
        if mask not in MASKS:
            raise QkvError(f"no mask {mask!r}; there are {', '.join(MASKS)}")
        text, encoding = self._tokenize(re.sub(PADDING, PAD_TOKEN, text, flags=re.IGNORECASE))
        if encoding is None:
            hidden = np.zeros((self.n_layers + 1, 0, self.n_components), dtype=np.float32)
            weights = np.zeros((self.n_layers, self.n_heads, 0, 0), dtype=np.float32)
            return Layers([], [], hidden, weights, np.ones((0, 0), dtype=bool))
        tokens = piece_labels(text, encoding)
        keep = np.ones((len(tokens), len(tokens)), dtype=bool)
        if mask == "padding":
            keep &= np.array([token != PADDING for token in tokens], dtype=bool)
        elif mask == "causal":
            keep = look_ahead_mask(len(tokens))
        x = self.embedding(np.array(encoding.ids, dtype=np.int64))
        outputs: list[LayerOutput] = self.encoder(x, mask=keep, return_layers=True)[1]
        hidden = np.stack([x, *(output.hidden for output in outputs)])
        weights = np.stack([output.weights for output in outputs])
        return Layers(tokens, encoding.offsets, hidden, weights, keep)

    def encode_many(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Embeddings float32 (n, d), rows of length 1; zeros for a text of nothing to see."""
        return self.encode_batch(texts, progress).embeddings

    def encode_batch(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """`encode_many`, and which texts were cut at the limit.

        `progress` is called as ("encoding", texts done, texts in all).
        """
        from qkvsearch.attention.layers.packed import encode_packed

        ids, cut = self._tokenize_many(texts)
        done = 0

        def report(n: int) -> None:
            nonlocal done
            done += n
            if progress is not None:
                progress("encoding", done, len(texts))

        report(sum(not len(row) for row in ids))
        return Encoded(encode_packed(self.embedding, self.encoder, ids, report), np.array(cut, int))

    def _tokenize_many(self, texts: Sequence[str]) -> tuple[list[np.ndarray], list[int]]:
        """The token numbers of each text, none for a blank one, and the texts that were cut."""
        ids: list[np.ndarray] = []
        cut: list[int] = []
        for start in range(0, len(texts), BATCH):
            batch = [whole(text) for text in texts[start : start + BATCH]]
            for text, found in zip(batch, self.tokenizer.encode_batch_fast(batch), strict=True):
                if found.overflowing:
                    cut.append(len(ids))
                ids.append(np.array([] if self._says_nothing(text, found) else found.ids, np.int32))
        return ids, cut

    def _tokenize(self, text: str) -> tuple[str, Any]:
        """The text, whole, and its encoding: None where there is nothing to see."""
        text = whole(text)
        found = self.tokenizer.encode(text)
        return text, None if self._says_nothing(text, found) else found

    def _says_nothing(self, text: str, encoding: Any) -> bool:
        n_added: int = self.tokenizer.num_special_tokens_to_add(False)
        return is_blank(text) or len(encoding.ids) <= n_added

    def _final(self, encoding: Any) -> np.ndarray:
        vectors: np.ndarray = self.encoder(self.embedding(np.array(encoding.ids, dtype=np.int64)))
        return vectors

    def _nothing(self) -> LabelledVectors:
        return LabelledVectors([], np.zeros((0, self.n_components), dtype=np.float32))


def _word_means(vectors: np.ndarray, owners: np.ndarray, n_words: int) -> np.ndarray:
    """The mean of the vectors of each word's pieces, (n_words, d); special tokens left out."""
    vectors, owners = vectors[owners >= 0], owners[owners >= 0]
    sums = sum_rows(vectors, owners, n_words)
    return np.asarray(sums / np.bincount(owners, minlength=n_words)[:, None].astype(np.float32))

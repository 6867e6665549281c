"""A pretrained transformer (BERT-type sentence encoder) that runs on this package's attention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention import look_ahead_mask
from qkvsearch.attention.layers.transformer import Encoder, LayerOutput
from qkvsearch.embeddings._bert import TokenEmbedding, read_bert
from qkvsearch.embeddings._subwords import is_blank, join_pieces, sum_rows, whole
from qkvsearch.embeddings.context import MASKS
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.embeddings.tokens import PADDING
from qkvsearch.errors import QkvError

Progress = Callable[[str, int, int], None]
# The special token that stands for padding in a BERT vocabulary.
PAD_TOKEN = "[PAD]"
# A piece that continues the word before it.
CONTINUES = "##"
# Texts that the tokenizer is given at a time.
BATCH = 4096


class Encoded(NamedTuple):
    """embeddings: float32 (n, d), unit rows. cut: the texts that were longer than the limit."""

    embeddings: np.ndarray
    cut: np.ndarray


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
        text, encoding = self._tokenize(text)
        if encoding is None:
            return self._nothing()
        vectors = self._final(encoding)
        shares = vectors / np.linalg.norm(vectors.sum(axis=0))
        labels, owners = self._words(text, encoding)
        return LabelledVectors(labels, sum_rows(shares, owners, len(labels)))

    def sequence(self, text: str) -> LabelledVectors:
        """One contextual vector for each word in reading order, the mean of its pieces'; special
        tokens are read but left out.
        """
        text, encoding = self._tokenize(text)
        if encoding is None:
            return self._nothing()
        return self._by_word(text, encoding, self._final(encoding))

    def sequence_many(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The vectors of `sequence` for many texts, as (which text, float32 (n_words, d)), in the
        order in which they are done; texts of nothing to see are left out.

        `progress` is called as ("encoding", texts done, texts in all).
        """
        from qkvsearch.embeddings._packed import SCORES, Buffers, chunks_of, embed, run_layer

        ids, _ = self._tokenize_many(texts)
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        chunks = list(chunks_of(lengths))
        done = len(texts) - int((lengths > 0).sum())
        hidden = max((len(x.feed_forward.hidden.weight) for x in self.encoder.layers), default=0)
        n_scores = max(SCORES, int(lengths.max(initial=0)) ** 2)
        for chunk in chunks:
            buffers = Buffers(chunk.n_tokens, self.n_components, hidden, n_scores)
            x = embed(self.embedding, chunk, ids, buffers.added)
            for layer in self.encoder.layers:
                run_layer(layer, x, chunk, buffers)
            ends = np.cumsum(lengths[chunk.texts])
            for i, vectors in zip(chunk.texts.tolist(), np.split(x, ends[:-1]), strict=True):
                text, encoding = self._tokenize(texts[i])
                yield i, self._by_word(text, encoding, vectors).vectors
            done += len(chunk.texts)
            if progress is not None:
                progress("encoding", done, len(texts))

    def unknown(self, text: str) -> list[str]:
        """The words beyond the limit, once each: `sequence` leaves them out."""
        text, encoding = self._tokenize(text)
        if encoding is None:
            return []
        read = max((end for _, end in _spans(encoding)), default=0)
        beyond = [span for part in encoding.overflowing for span in _spans(part)]
        words, _ = join_pieces(text, [span for span in beyond if span[0] >= read])
        return list(dict.fromkeys(words))

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
        tokens = _piece_labels(text, encoding)
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
        from qkvsearch.embeddings._packed import encode_packed

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

    def _by_word(self, text: str, encoding: Any, vectors: np.ndarray) -> LabelledVectors:
        """The mean of the vectors of each word's pieces; special tokens left out."""
        labels, owners = join_pieces(text, _spans(encoding))
        sums = sum_rows(vectors[~_is_added(encoding)], owners, len(labels))
        return LabelledVectors(labels, sums / np.bincount(owners)[:, None].astype(np.float32))

    def _words(self, text: str, encoding: Any) -> tuple[list[str], np.ndarray]:
        """Labels of words and special tokens, and of each piece the one it belongs to."""
        added = _is_added(encoding)
        words, owners = join_pieces(text, _spans(encoding))
        # A special token is a word of its own, wherever it stands.
        keys = np.empty(len(added), dtype=np.int64)
        keys[~added] = owners
        keys[added] = -1 - np.flatnonzero(added)
        is_first = np.diff(keys, prepend=len(added)) != 0
        firsts = np.flatnonzero(is_first)
        labels = [words[keys[i]] if keys[i] >= 0 else encoding.tokens[i] for i in firsts]
        return labels, np.cumsum(is_first) - 1

    def _nothing(self) -> LabelledVectors:
        return LabelledVectors([], np.zeros((0, self.n_components), dtype=np.float32))


def _is_added(encoding: Any) -> np.ndarray:
    """Which tokens the tokenizer added, and stand nowhere in the text."""
    return np.array(encoding.special_tokens_mask, dtype=bool)


def _spans(encoding: Any) -> list[tuple[int, int]]:
    """Where the pieces of the text itself stand in it."""
    pairs = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    return [span for span, is_added in pairs if not is_added]


def _piece_labels(text: str, encoding: Any) -> list[str]:
    """Pieces as written, "##" before those that continue a word; `<PAD>` and the special tokens."""
    labels = []
    for token, (start, end), is_added in zip(
        encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True
    ):
        if token == PAD_TOKEN:
            labels.append(PADDING)
        elif is_added:
            labels.append(token)
        else:
            continues = CONTINUES if token.startswith(CONTINUES) and len(token) > 2 else ""
            labels.append(continues + text[start:end])
    return labels

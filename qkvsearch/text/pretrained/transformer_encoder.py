"""A pretrained transformer (BERT-type sentence encoder) that runs on this package's attention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, get_ident
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.progress import Progress, part_of
from qkvsearch._utils.query_lock import released
from qkvsearch.attention.layers.packed import Chunk, encode_one, encode_packed
from qkvsearch.attention.layers.transformer import Encoder, LayerOutput
from qkvsearch.errors import QkvError
from qkvsearch.text.encoded_text import EncodedText, check_length, mask_of
from qkvsearch.text.labelled import LabelledVectors, quantize_int8, unit_rows
from qkvsearch.text.pretrained.bert import TokenEmbedding, read_bert
from qkvsearch.text.pretrained.subwords import (
    PAD_TOKEN,
    attended_words,
    is_blank,
    piece_labels,
    sum_rows,
    whole,
    with_tokens,
    words_beyond,
    words_of,
)
from qkvsearch.text.text_encoder import PADDING, EncodedQuery, EncodedTexts

# Texts that the tokenizer is given at a time.
BATCH = 4096
# The encoding of a text of nothing to see.
NOTHING = SimpleNamespace(ids=[], tokens=[], offsets=[], special_tokens_mask=[], overflowing=[])


class Pieces(NamedTuple):
    """A text as the model reads it.

    ids: int32 (n,), special tokens included; none for a text of nothing to see. owners: int64
    (n,), the word that each piece belongs to, −1 for a special token. n_words: how many there are.
    is_cut: whether the text was longer than the limit.
    """

    ids: np.ndarray
    owners: np.ndarray
    n_words: int
    is_cut: bool


@dataclass(frozen=True, eq=False)
class TransformerEncoder:
    """The mean of a text's contextual token vectors, at length 1; a `TextEncoder`.

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

    kind: ClassVar[str] = "a transformer"
    is_pretrained: ClassVar[bool] = True
    # A token's vector depends on the others of its text.
    table: ClassVar[np.ndarray | None] = None

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Nothing: it learns nothing from the catalog."""
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

    def encode(self, text: str) -> LabelledVectors:
        """One labelled vector for each word and special token, adding up to length 1.

        Each is the sum of its pieces' final vectors, over their number and the mean's length.
        """
        return self.read(text).parts

    def read(self, text: str) -> EncodedQuery:
        """`encode`; one contextual vector for each word in reading order, the mean of its pieces',
        special tokens read but left out; and how much of the text was not read.
        """
        text, encoding = self._encoding(text)
        with released():
            ids = np.array(encoding.ids, dtype=np.int64)
            vectors = encode_one(self.encoder, self.embedding(ids))
        _check_finite(vectors)
        shares = vectors / np.linalg.norm(vectors.sum(axis=0))
        words, owners = words_of(text, encoding)
        labels, parts = with_tokens(encoding.tokens, words, owners)
        unread = [word for word in words_beyond(text, encoding) if any(map(str.isalnum, word))]
        return EncodedQuery(
            LabelledVectors(labels, sum_rows(shares, parts, len(labels))),
            LabelledVectors(words, _word_means(vectors, owners, len(words))),
            len(unread),
        )

    def tokens_many(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[np.ndarray]:
        """As `TextEncoder` says: the directions of the words that `read` gives."""
        batches = self._with_tokens(texts, longest, "reading tokens", progress)
        return (tokens for _, found in batches for tokens in found)

    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """As `TextEncoder` says: each text goes through the layers once."""
        return self._with_tokens(texts, longest, "encoding", progress)

    def _with_tokens(
        self, texts: Sequence[str], longest: int, stage: str, progress: Progress | None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        for start in range(0, len(texts), BATCH):
            some = texts[start : start + BATCH]
            yield self._batch(some, longest, stage, part_of(progress, start, len(texts)))

    def _batch(
        self, texts: Sequence[str], longest: int, stage: str, progress: Progress | None
    ) -> tuple[EncodedTexts, list[np.ndarray]]:
        read = list(self._pieces_many(texts))
        embeddings = np.zeros((len(texts), self.n_components), np.float32)
        found = [np.zeros((0, self.n_components), dtype=np.int8)] * len(texts)

        def take(chunk: Chunk, x: np.ndarray) -> None:
            embeddings[chunk.members] = _means(chunk, x)
            for i, vectors in chunk.each(x):
                words = _word_means(vectors, read[i].owners, read[i].n_words)
                found[i] = quantize_int8(words[:longest])

        self._run([pieces.ids for pieces in read], take, stage, progress)
        _check_finite(embeddings)
        cut = np.flatnonzero([pieces.is_cut for pieces in read])
        return EncodedTexts(embeddings, cut), found

    def attend(self, text: str, mask: str = "none") -> EncodedText:
        """As `TextEncoder` says, by every layer and head; the model was trained with no mask.
        `<PAD>` in the text is the model's own padding token.
        """
        text, encoding = self._encoding(re.sub(PADDING, PAD_TOKEN, text, flags=re.IGNORECASE))
        tokens = piece_labels(text, encoding)
        keep = mask_of(tokens, mask)
        check_length(len(tokens))
        words, owners = attended_words(text, tokens, encoding)
        left_out = list(dict.fromkeys(words_beyond(text, encoding)))
        x = self.embedding(np.array(encoding.ids, dtype=np.int64))
        outputs: list[LayerOutput] = self.encoder(x, mask=keep, return_layers=True)[1]
        hidden = np.stack([x, *(output.hidden for output in outputs)])
        weights = np.stack([output.weights for output in outputs])
        return EncodedText(tokens, words, owners, hidden, weights, keep, left_out, self.kind, True)

    def unread(self, text: str) -> list[str]:
        """As `TextEncoder` says: those beyond the limit."""
        return list(dict.fromkeys(words_beyond(*self._encoding(text))))

    def encode_many(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Embeddings float32 (n, d), rows of length 1; zeros for a text of nothing to see."""
        return self.encode_texts(texts, progress).embeddings

    def encode_texts(self, texts: Sequence[str], progress: Progress | None = None) -> EncodedTexts:
        """`encode_many`, and which texts were cut at the limit.

        `progress` is called as ("encoding", texts done, texts in all).
        """
        ids: list[np.ndarray] = []
        cut: list[int] = []
        for _, found in self._encodings(texts, self.tokenizer.encode_batch_fast):
            if found.overflowing:
                cut.append(len(ids))
            ids.append(np.array(found.ids, np.int32))
        embeddings = np.zeros((len(texts), self.n_components), np.float32)

        def take(chunk: Chunk, x: np.ndarray) -> None:
            embeddings[chunk.members] = _means(chunk, x)

        self._run(ids, take, "encoding", progress)
        _check_finite(embeddings)
        return EncodedTexts(embeddings, np.array(cut, np.int64))

    def _run(
        self,
        ids: Sequence[np.ndarray],
        take: Callable[[Chunk, np.ndarray], None],
        stage: str,
        progress: Progress | None,
    ) -> None:
        """Many texts, given as their token numbers, through the layers; each chunk to `take`."""
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        done, counting, caller = 0, Lock(), get_ident()

        def report(n: int) -> None:
            """From the caller's thread alone: what `progress` does may not bear another."""
            nonlocal done
            with counting:
                done += n
            if progress is not None and get_ident() == caller:
                progress(stage, done, len(ids))

        def embed(chunk: Chunk) -> np.ndarray:
            return self.embedding(np.concatenate([ids[i] for i in chunk.members]), chunk.places)

        def take_and_report(chunk: Chunk, x: np.ndarray) -> None:
            take(chunk, x)
            report(len(chunk.members))

        report(int((lengths == 0).sum()))
        encode_packed(self.encoder, lengths, embed, take_and_report)
        report(0)

    def _pieces_many(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """Each text in pieces, some texts read at a time."""
        for text, found in self._encodings(texts, self.tokenizer.encode_batch):
            words, owners = words_of(text, found)
            ids, is_cut = np.array(found.ids, dtype=np.int32), bool(found.overflowing)
            yield Pieces(ids, owners, len(words), is_cut)

    def _encoding(self, text: str) -> tuple[str, Any]:
        """The text, whole, and its encoding."""
        return next(self._encodings([text], lambda texts: [self.tokenizer.encode(texts[0])]))

    def _encodings(
        self, texts: Sequence[str], encode: Callable[[list[str]], list[Any]]
    ) -> Iterator[tuple[str, Any]]:
        """Each text, whole, and its encoding, some texts at a time."""
        n_added: int = self.tokenizer.num_special_tokens_to_add(False)
        for start in range(0, len(texts), BATCH):
            batch = [whole(text) for text in texts[start : start + BATCH]]
            for text, found in zip(batch, encode(batch), strict=True):
                yield text, NOTHING if is_blank(text) or len(found.ids) <= n_added else found


def _check_finite(vectors: np.ndarray) -> None:
    """Raise `QkvError` for what weights that are too large make of a text."""
    if not np.isfinite(vectors).all():
        raise QkvError("the model makes numbers of a text that are not finite: it is damaged")


def _means(chunk: Chunk, x: np.ndarray) -> np.ndarray:
    """The mean of each sequence's vectors at length 1, (n_sequences, d)."""
    return unit_rows(np.concatenate([group.mean(axis=1) for group in chunk.squares(x)]))


def _word_means(vectors: np.ndarray, owners: np.ndarray, n_words: int) -> np.ndarray:
    """The mean of the vectors of each word's pieces, (n_words, d); special tokens left out."""
    vectors, owners = vectors[owners >= 0], owners[owners >= 0]
    sums = sum_rows(vectors, owners, n_words)
    return np.asarray(sums / np.bincount(owners, minlength=n_words)[:, None].astype(np.float32))

"""A pretrained transformer (BERT-type sentence encoder) that runs on this package's attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock, get_ident
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress, part_of
from qkvsearch._utils.query_lock import released
from qkvsearch.attention.layers.fast_encoder import Chunk, encode_one, encode_packed
from qkvsearch.attention.layers.transformer import Encoder, LayerOutput
from qkvsearch.errors import QkvError
from qkvsearch.text.encoded_text import (
    EncodedText,
    Hidden,
    check_length,
    mask_of,
    without_hidden,
)
from qkvsearch.text.labelled import WRITTEN_PADDING, LabelledVectors, quantize_int8, unit_rows
from qkvsearch.text.pretrained import encoding_cache
from qkvsearch.text.pretrained.bert import (
    CLS,
    MEAN,
    NO_PROMPTS,
    Prompts,
    TokenEmbedding,
    file_facts,
    read_input,
    read_layers,
)
from qkvsearch.text.pretrained.encoding_cache import CachedText, EncodingCache, model_key
from qkvsearch.text.pretrained.onnx_layers import (
    MIN_COSINE,
    NUMPY,
    ONNX,
    OnnxLayers,
    make_layers,
    runtime,
    stored_layers,
)
from qkvsearch.text.pretrained.subwords import (
    attended_words,
    behind_prompt,
    is_blank,
    piece_labels,
    sum_rows,
    whole,
    with_tokens,
    words_beyond,
    words_of,
)
from qkvsearch.text.text_encoder import EncodedQuery, EncodedTexts, TextEncoder

# Texts that are tokenized at a time.
BATCH = 4096
# Characters that are encoded, some ten seconds long in NumPy, before they are stored in the cache.
STEP = 400_000
# Texts on which onnxruntime and NumPy are compared when a model is first run.
SAMPLES = (
    "deep sea",
    "How do rivers change their course over the centuries?",
    "A stainless steel kettle, 1.7 l, with a thermometer and an automatic switch-off, in red.",
    "Bei hoher See kentert das Boot; 注意力 is all you need, said nobody in 1742.",
)
# The encoding of a text without a visible character.
NOTHING = SimpleNamespace(ids=[], tokens=[], offsets=[], special_tokens_mask=[], overflowing=[])


@dataclass(frozen=True, eq=False)
class TransformerEncoder(TextEncoder):
    """A `TextEncoder`: the mean of a text's contextual token vectors, scaled to length 1; or the
    vector of its first token, [CLS], where the model was trained so.

    tokenizer: a `tokenizers.Tokenizer` that cuts at `limit`. embedding: the input of the first
    layer. limit: the maximal number of tokens of a text, special ones included. folder: where the
    layers are. prompts: what queries and items begin with; its pieces are special tokens. pooling:
    `MEAN` or `CLS`. fast: the same layers run by onnxruntime, or None to run them here.
    Devlin et al. 2019 (BERT); mean pooling: Reimers and Gurevych 2019 (Sentence-BERT), section 3.

    A text without a visible character has no vectors; other libraries return the mean of [CLS] and
    [SEP].

    >>> encoder = TransformerEncoder.from_folder("models/minilm")     # doctest: +SKIP
    >>> encoder.encode("deep sea").labels                             # doctest: +SKIP
    ['[CLS]', 'deep', 'sea', '[SEP]']
    """

    tokenizer: Any
    embedding: TokenEmbedding
    limit: int
    folder: Path
    prompts: Prompts = NO_PROMPTS
    pooling: str = MEAN
    fast: OnnxLayers | None = None

    kind: ClassVar[str] = "a transformer"
    is_pretrained: ClassVar[bool] = True

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return no arrays, since nothing is learned from the catalog."""
        return {}

    @classmethod
    def from_folder(cls, path: str | Path) -> TransformerEncoder:
        """Read a Hugging Face folder: config.json, model.safetensors, tokenizer.json and, where
        there are any, modules.json, 1_Pooling/config.json, sentence_bert_config.json and
        config_sentence_transformers.json.

        Raises `QkvError` that names the file that is missing, damaged or of another kind.
        """
        folder = Path(path)
        tokenizer, embedding, limit, prompts, pooling = read_input(folder)
        encoder = cls(tokenizer, embedding, limit, folder, prompts, pooling)
        if runtime() == ONNX:
            layers = stored_layers(folder) or encoder._make_fast()
            if layers.cosine >= MIN_COSINE:
                return replace(encoder, fast=layers)
        encoder.encoder  # noqa: B018  (damaged layers raise here)
        return encoder

    def _make_fast(self) -> OnnxLayers:
        """Make the layers for onnxruntime, and compare sample texts with those of NumPy."""

        def lowest_cosine(layers: OnnxLayers) -> float:
            other = replace(self, fast=layers)
            return min(float(self.encode(t).total @ other.encode(t).total) for t in SAMPLES)

        return make_layers(self.folder, self.encoder, self.probe, lowest_cosine)

    @cached_property
    def encoder(self) -> Encoder:
        """The layers in float32, which show how a text attends to itself."""
        return read_layers(self.folder)

    @property
    def probe(self) -> np.ndarray:
        """The embedding of a fixed text by NumPy, whatever runs the layers."""
        return super().probe if self.fast is None else self.fast.probe

    @property
    def n_components(self) -> int:
        """The size d of an embedding."""
        return len(self.embedding.kind)

    def read(self, text: str) -> EncodedQuery:
        """Return one labelled vector for each word and special token, the sum of its pieces' final
        vectors, scaled so that they add up to length 1; one contextual vector for each word in
        reading order, the mean of its pieces'; and the number of words beyond the limit.

        With `CLS` the first token alone has a vector above 0: what it read of each word is not a
        sum.
        """
        return self._read(text, self.prompts.query)

    def encode_item(self, text: str) -> LabelledVectors:
        """Return the vectors of a text of an item: see `TextEncoder`."""
        return self._read(text, self.prompts.passage).parts

    def _read(self, text: str, prompt: str) -> EncodedQuery:
        text, encoding = self._encoding(text, prompt)
        with released():
            ids = np.array(encoding.ids, dtype=np.int64)
            x = self.embedding(ids)
            vectors = encode_one(self.encoder, x) if self.fast is None else self.fast.one(x)
        _check_finite(vectors)
        pooled = vectors
        if self.pooling == CLS:
            pooled = np.zeros_like(vectors)
            pooled[:1] = vectors[:1]
        shares = pooled / np.linalg.norm(pooled.sum(axis=0))
        words, owners = words_of(text, encoding)
        labels, parts = with_tokens(encoding.tokens, words, owners)
        unread = [word for word in words_beyond(text, encoding) if any(map(str.isalnum, word))]
        return EncodedQuery(
            LabelledVectors(labels, sum_rows(shares, parts, len(labels))),
            LabelledVectors(words, _word_means(vectors, owners, len(words))),
            len(unread),
        )

    def encode_with_tokens(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Encode batches of texts, each text once: see `TextEncoder`."""
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            yield self._encode_batch(batch, longest, part_of(progress, start, len(texts)))

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embeddings of queries: see `TextEncoder`."""
        embeddings = np.zeros((len(texts), self.n_components), np.float32)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            encoded, _ = self._encode_batch(batch, 0, None, self.prompts.query)
            embeddings[start : start + len(batch)] = encoded.embeddings
        return embeddings

    def encode_items(
        self, texts: Sequence[str], longest: int, progress: Progress | None = None
    ) -> Iterator[tuple[EncodedTexts, list[np.ndarray]]]:
        """Encode batches of texts that are not in the user's cache, and add them to it."""
        if not encoding_cache.is_on():
            yield from self.encode_with_tokens(texts, longest, progress)
            return
        runs_by = NUMPY if self.fast is None else ONNX
        cache = EncodingCache(model_key(runs_by, self.probe.tobytes(), file_facts(self.folder)))
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            entries = cache.entries(batch, longest)
            # Texts of similar lengths together. What an interrupted build encoded stays.
            new = sorted(set(batch) - entries.keys(), key=lambda text: (len(text), text))
            done = len(batch) - len(new)
            part_of(progress, start, len(texts))("encoding", done, len(batch))
            for step in _steps(new):
                report = part_of(progress, start + done, len(texts))
                encoded, tokens = self._encode_batch(step, longest, report)
                is_cut = np.isin(np.arange(len(step)), encoded.cut).tolist()
                made = map(CachedText, encoded.embeddings, tokens, is_cut)
                added = dict(zip(step, made, strict=True))
                cache.add(added, longest)
                entries |= added
                done += len(step)
            found = [entries[text] for text in batch]
            embeddings = np.stack([entry.embedding for entry in found])
            cut = np.flatnonzero([entry.is_cut for entry in found])
            yield EncodedTexts(embeddings, cut), [entry.tokens for entry in found]

    def _encode_batch(
        self,
        texts: Sequence[str],
        longest: int,
        progress: Progress | None,
        prompt: str | None = None,
    ) -> tuple[EncodedTexts, list[np.ndarray]]:
        """Encode texts behind a prompt, by default that of items."""
        if prompt is None:
            prompt = self.prompts.passage
        encode = self.tokenizer.encode_batch if longest else self.tokenizer.encode_batch_fast
        ids: list[np.ndarray] = []
        words: list[tuple[np.ndarray, int]] = []  # the owner of each piece, and how many words
        is_cut: list[bool] = []
        for text, encoding in self._encodings(texts, encode, prompt):
            ids.append(np.array(encoding.ids, dtype=np.int32))
            is_cut.append(bool(encoding.overflowing))
            if longest:
                labels, owners = words_of(text, behind_prompt(encoding, prompt))
                words.append((owners, len(labels)))
        embeddings = np.zeros((len(texts), self.n_components), np.float32)
        tokens = [np.zeros((0, self.n_components), dtype=np.int8)] * len(texts)

        def take(chunk: Chunk, x: np.ndarray) -> None:
            embeddings[chunk.members] = _pooled(chunk, x, self.pooling)
            if longest:
                for i, vectors in chunk.sequences(x):
                    owners, n_words = words[i]
                    means = _word_means(vectors, owners, n_words)
                    tokens[i] = quantize_int8(means[:longest])

        self._run(ids, take, progress)
        _check_finite(embeddings)
        return EncodedTexts(embeddings, np.flatnonzero(is_cut)), tokens

    def attend(self, text: str, mask: str = "none", hide: Hidden = ()) -> EncodedText:
        """Compute the attention of every layer and head: see `TextEncoder`. The model was trained
        without a mask. `<PAD>` in the text is the model's own padding token. What a model wants
        before queries and items is left out: only the text is shown.
        """
        padding = self.tokenizer.padding_token
        text, encoding = self._encoding(WRITTEN_PADDING.sub(padding, text))
        tokens = piece_labels(text, encoding)
        keep = mask_of(tokens, mask)
        check_length(len(tokens))
        words, owners = attended_words(text, tokens, encoding)
        keep = without_hidden(keep, words, owners, hide)
        left_out = list(dict.fromkeys(words_beyond(text, encoding)))
        x = self.embedding(np.array(encoding.ids, dtype=np.int64))
        outputs: list[LayerOutput] = self.encoder(x, mask=keep, return_layers=True)[1]
        hidden = np.stack([x, *(output.hidden for output in outputs)])
        weights = np.stack([output.weights for output in outputs])
        return EncodedText(tokens, words, owners, hidden, weights, keep, left_out, self.kind, True)

    def unread(self, text: str) -> list[str]:
        """Return the words beyond the limit."""
        return list(dict.fromkeys(words_beyond(*self._encoding(text, self.prompts.passage))))

    def _run(
        self,
        ids: Sequence[np.ndarray],
        take: Callable[[Chunk, np.ndarray], None],
        progress: Progress | None,
    ) -> None:
        """Call `take` with each chunk of texts, given as token numbers, after the last layer."""
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        done, counting, caller = 0, Lock(), get_ident()

        def report(n: int) -> None:
            """Call `progress` from the caller's thread alone, since it need not be thread-safe."""
            nonlocal done
            with counting:
                done += n
            if progress is not None and get_ident() == caller:
                progress("encoding", done, len(ids))

        def embed(chunk: Chunk) -> np.ndarray:
            return self.embedding(np.concatenate([ids[i] for i in chunk.members]), chunk.positions)

        def take_and_report(chunk: Chunk, x: np.ndarray) -> None:
            take(chunk, x)
            report(len(chunk.members))

        report(int((lengths == 0).sum()))
        run = partial(encode_packed, self.encoder) if self.fast is None else self.fast.many
        run(lengths, embed, take_and_report)
        report(0)

    def _encoding(self, text: str, prompt: str = "") -> tuple[str, Any]:
        """Return the text behind the prompt, with valid characters only, and its encoding."""
        encode = self.tokenizer.encode
        [(text, encoding)] = self._encodings([text], lambda texts: [encode(texts[0])], prompt)
        return text, behind_prompt(encoding, prompt)

    def _encodings(
        self, texts: Sequence[str], encode: Callable[[list[str]], list[Any]], prompt: str = ""
    ) -> Iterator[tuple[str, Any]]:
        """Yield each text behind the prompt, with valid characters only, and its encoding."""
        without_text = self.tokenizer.encode(prompt).ids
        prompted = [prompt + whole(text) for text in texts]
        for text, given, encoding in zip(prompted, texts, encode(prompted), strict=True):
            is_read = not is_blank(given) and encoding.ids != without_text
            yield text, encoding if is_read else NOTHING


def _steps(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield runs of texts, each of about `STEP` characters."""
    step: list[str] = []
    size = 0
    for text in texts:
        step.append(text)
        size += len(text)
        if size >= STEP:
            yield step
            step, size = [], 0
    if step:
        yield step


def _check_finite(vectors: np.ndarray) -> None:
    """Raise `QkvError` for infinite numbers and NaNs, which damaged weights give."""
    if not np.isfinite(vectors).all():
        raise QkvError("the model makes numbers of a text that are not finite: it is damaged")


def _pooled(chunk: Chunk, x: np.ndarray, pooling: str) -> np.ndarray:
    """Return the mean or the first of each sequence's vectors, scaled to length 1: (n_sequences,
    d).
    """
    groups = chunk.groups_of(x)
    rows = [group[:, 0] if pooling == CLS else group.mean(axis=1) for group in groups]
    return unit_rows(np.concatenate(rows))


def _word_means(vectors: np.ndarray, owners: np.ndarray, n_words: int) -> np.ndarray:
    """Return the mean vector of each word's pieces, (n_words, d), without special tokens."""
    vectors, owners = vectors[owners >= 0], owners[owners >= 0]
    sums = sum_rows(vectors, owners, n_words)
    return np.asarray(sums / np.bincount(owners, minlength=n_words)[:, None].astype(np.float32))

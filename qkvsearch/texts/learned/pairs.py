"""Contrastive training: the model, pairs of texts of one item, the loss that tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from qkvsearch.attention.gradients import cross_entropy, vjp
from qkvsearch.attention.gradients.attention import unit_vjp
from qkvsearch.attention.gradients.layers import LayerPull
from qkvsearch.attention.layers.basic import Embedding
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.layers.state import prefixed, state
from qkvsearch.attention.training import Adam, Minibatches
from qkvsearch.labelled import NEGLIGIBLE, unit_rows
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.texts.vocabulary import Vocabulary

# The most terms of a text that a step sees.
MOST_TERMS = 32
# Texts that are encoded at a time to validate.
MANY_TEXTS = 64

# A text: its terms' row numbers (L,), each once, and 1 + ln of how often each occurs, (L,).
View = tuple[Array, Array]
# A view for each column; one without terms where the column is empty.
Item = list[View]


@dataclass(eq=False)
class Pooling:
    """A text's vector: the vectors of its terms, weighted, added up, at length 1.

    tokens: `Embedding` (n_terms, d). log_weights: (n_terms,), logarithms, so that training keeps
    weights positive.
    """

    tokens: Embedding
    log_weights: Array

    def __call__(self, rows: Array, shares: Array) -> Array:
        """Terms' row numbers (n, L) and how much each counts (n, L), 0 for padding -> (n, d)."""
        weights = shares * np.exp(self.log_weights[rows])
        return unit_rows((weights[..., None] * self.tokens(rows)).sum(axis=-2))


@dataclass(eq=False)
class Training:
    """What changes from step to step; rng decides the order, the pairs and the words dropped."""

    model: Pooling
    items: Sequence[Item]
    temperature: float
    dropout: float
    batch_size: int
    optimizer: Adam
    rng: np.random.Generator

    def epoch(self) -> None:
        """A step for each batch of the items, in a new order."""
        weights = state(self.model)
        for batch in Minibatches(len(self.items), self.batch_size, self.rng):
            pairs = [self.a_pair(self.items[i]) for i in batch]
            queries, keys = (self.dropped(*padded(views)) for views in zip(*pairs, strict=True))
            gradients = batch_gradients(self.model, queries, keys, self.temperature)[1]
            self.optimizer.step(weights, gradients)

    def a_pair(self, item: Item) -> tuple[View, View]:
        """Two of the item's texts, or two halves of its only one."""
        texts = [view for view in item if len(view[0])]
        if len(texts) == 1:
            texts = halves(texts[0], self.rng)
        one = self.rng.integers(len(texts))
        other = (one + self.rng.integers(1, len(texts))) % len(texts)
        return texts[one], texts[other]

    def dropped(self, rows: Array, shares: Array) -> tuple[Array, Array]:
        """Padded texts (n, L) without some of their terms, but never without all."""
        draws = np.where(shares > 0, self.rng.random(shares.shape), 2)
        order = np.argsort(draws, axis=1)[:, :MOST_TERMS]
        rows, shares, draws = (np.take_along_axis(x, order, axis=1) for x in (rows, shares, draws))
        goes = draws >= 1 - self.dropout
        goes[:, 0] = False
        return rows, np.where(goes, 0, shares)


def items_of(encoder: TokenEncoder, columns: Sequence[Sequence[str]]) -> list[Item]:
    """Every item's texts as the encoder's terms."""

    def views(texts: Sequence[str]) -> list[View]:
        counts = encoder.vocabulary.counts(map(encoder.terms, texts))
        rows = counts.indices.astype(np.int64)
        shares = (1 + np.log(counts.data.astype(np.float64))).astype(np.float32)
        return [(rows[a:b], shares[a:b]) for a, b in pairwise(counts.indptr)]

    return [list(item) for item in zip(*map(views, columns), strict=True)]


def translated(items: Sequence[Item], rows_of: Array) -> list[Item]:
    """The items in another vocabulary, in which term i has the row rows_of[i], -1 for none."""

    def translate(view: View) -> View:
        rows = rows_of[view[0]]
        return rows[rows >= 0], view[1][rows >= 0]

    return [[translate(view) for view in item] for item in items]


def terms_of(items: Sequence[Item]) -> Array:
    """The row numbers of the terms that some item has, ascending."""
    rows = [rows for item in items for rows, _ in item]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *rows]))


def narrowed(
    encoder: TokenEncoder, items: Sequence[Item], used: Array
) -> tuple[TokenEncoder, list[Item]]:
    """The encoder with the terms `used` alone, and the items in these: each step of training costs
    as much as there are terms."""
    rows_of = np.full(len(encoder.vocabulary), -1, dtype=np.int64)
    rows_of[used] = np.arange(len(used))
    terms = Vocabulary(encoder.vocabulary.terms[used])
    narrow = replace(
        encoder, vocabulary=terms, vectors=encoder.vectors[used], weights=encoder.weights[used]
    )
    return narrow, translated(items, rows_of)


def halves(view: View, rng: np.random.Generator) -> Item:
    """The terms of a text, each in one of two texts."""
    order = rng.permutation(len(view[0]))
    parts = order[: len(order) // 2], order[len(order) // 2 :]
    return [(view[0][part], view[1][part]) for part in parts]


def padded(views: Sequence[View]) -> tuple[Array, Array]:
    """Texts side by side: rows (n, L) and shares (n, L), 0 where a text has no more terms.

    >>> padded([(np.array([5, 7]), np.ones(2)), (np.array([6]), np.ones(1))])[0]
    array([[5, 7],
           [6, 0]])
    """
    shape = len(views), max(len(rows) for rows, _ in views)
    all_rows, all_shares = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
    for i, (rows, shares) in enumerate(views):
        all_rows[i, : len(rows)], all_shares[i, : len(rows)] = rows, shares
    return all_rows, all_shares


# --- the loss ---


def batch_gradients(
    model: Pooling, queries: tuple[Array, Array], keys: tuple[Array, Array], temperature: float
) -> tuple[float, dict[str, Array]]:
    """The loss of padded texts and their partners, and its gradients by the names of `state`."""
    encoded_queries, pull_queries = vjp(model, *queries)
    encoded_keys, pull_keys = vjp(model, *keys)
    loss, by_queries, by_keys = info_nce(encoded_queries, encoded_keys, temperature)
    of_queries, of_keys = pull_queries(by_queries)[1], pull_keys(by_keys)[1]
    return loss, {name: of_queries[name] + of_keys[name] for name in of_queries}


def info_nce(queries: Array, keys: Array, temperature: float) -> tuple[float, Array, Array]:
    """How badly each query tells its own key from the others', and each key its query: the mean
    cross entropy of softmax(QKᵀ / temperature) along rows and along columns; gradients by both.

    queries, keys (n, d), those of one row belonging together -> loss, (n, d), (n, d).
    van den Oord et al. 2018, section 2.3, equation 4; both ways: Radford et al. 2021, section 2.3.

    >>> loss, by_queries, by_keys = info_nce(np.eye(2), np.eye(2), temperature=1.0)
    >>> round(loss, 3), by_queries.round(3)
    (0.313, array([[-0.134,  0.134],
           [ 0.134, -0.134]]))
    """
    logits, own = queries @ keys.T / queries.dtype.type(temperature), np.arange(len(queries))
    by_row, by_column = cross_entropy(logits, own), cross_entropy(logits.T, own)
    by_logits = (by_row[1] + by_column[1].T) / queries.dtype.type(2 * temperature)
    return (by_row[0] + by_column[0]) / 2, by_logits @ keys, by_logits.T @ queries


@vjp.register
def pooling_vjp(layer: Pooling, rows: Array, shares: Array) -> tuple[Array, LayerPull]:
    """u = z / |z| with z = Σ sᵢ exp(wᵢ) xᵢ, and back: sᵢ exp(wᵢ) xᵢ·g for wᵢ, sᵢ exp(wᵢ) g for
    xᵢ."""
    x, pull_tokens = vjp(layer.tokens, rows)
    weights = shares * np.exp(layer.log_weights[rows])
    output, pull_unit = unit_vjp((weights[..., None] * x).sum(axis=-2))

    def pull(gradient: Array) -> tuple[tuple[Array, ...], dict[str, Array]]:
        by_total = pull_unit(gradient)[..., None, :]
        by_weights = weights * (x * by_total).sum(axis=-1)
        summed = np.bincount(rows.ravel(), by_weights.ravel(), len(layer.log_weights))
        found = {"log_weights": summed.astype(layer.log_weights.dtype)}
        by_x = weights[..., None] * by_total
        return (), found | prefixed("tokens", pull_tokens(by_x)[1])

    return output, pull


# --- how good it is ---


def mean_reciprocal_rank(model: Pooling, items: Sequence[Item]) -> float:
    """Of items asked for by each of their columns, by what their other columns say; 0 if none can
    be. Of equal scores, the item's own counts as the last."""
    columns = [encoded(model, views) for views in zip(*items, strict=True)]
    total, ranks = sum(columns), []
    for queries in columns:
        keys = total - queries
        lengths = np.linalg.norm(keys, axis=1)
        known = queries.any(axis=1) & (lengths > NEGLIGIBLE)
        if known.any():
            scores = queries[known] @ (keys[known] / lengths[known, None]).T
            ranks.append((scores >= np.diagonal(scores)[:, None]).sum(axis=1))
    return float(np.mean(1 / np.concatenate(ranks))) if ranks else 0.0


def encoded(model: Pooling, views: Sequence[View]) -> Array:
    """Vectors (n, d) of texts, zeros for one without terms; texts of similar lengths together."""
    vectors = np.zeros((len(views), model.tokens.weight.shape[1]), model.tokens.weight.dtype)
    order = np.argsort([len(rows) for rows, _ in views], kind="stable")
    order = order[np.searchsorted([len(views[i][0]) for i in order], 1) :]
    for start in range(0, len(order), MANY_TEXTS):
        some = order[start : start + MANY_TEXTS]
        vectors[some] = model(*padded([views[i] for i in some]))
    return vectors

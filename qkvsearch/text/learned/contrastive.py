"""Contrastive training on the catalog: texts of one item get similar vectors.

`ContrastiveLearning` decides for how long to train; `Training` takes the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import (
    check_positive,
    check_random_state,
    check_whole,
    is_finite,
    random_generator,
    require,
)
from qkvsearch.attention.gradients import unit_vjp
from qkvsearch.attention.layers.basic import Array
from qkvsearch.attention.layers.state_dict import state
from qkvsearch.attention.training import Adam, cross_entropy, minibatches
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import NEGLIGIBLE, unit_rows
from qkvsearch.text.languages import ENGLISH
from qkvsearch.text.learned.svd import cooccurrence_encoder, latent_semantic_encoder
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary

# The maximal number of terms of a text in a training step.
MAX_TERMS = 32
# Cosines that differ by less are equal, so that rounding does not rank equal texts.
ROUNDING = 1e-5


@dataclass(eq=False)
class Pooling:
    """The model: a text's vector is the weighted sum of its terms' vectors, scaled to length 1.

    vectors: (n_terms, d). log_weights: (n_terms,), logarithms, so that training keeps weights
    positive.
    """

    vectors: Array
    log_weights: Array

    def __call__(self, shares: csr_matrix) -> Array:
        """Encode texts, given as the shares of their terms: sparse (n, n_terms) -> (n, d)."""
        return unit_rows(shares @ (np.exp(self.log_weights)[:, None] * self.vectors))

    def of(self, terms: Array) -> Pooling:
        """Return a copy with these terms only."""
        return Pooling(self.vectors[terms], self.log_weights[terms])


@dataclass(frozen=True, eq=False)
class ItemShares:
    """The texts of n items, column after column: sparse (n_columns · n, n_terms).

    A term that occurs k times in a text has the share 1 + ln k.
    """

    shares: csr_matrix
    n_columns: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, columns: Sequence[AnalyzedTexts]) -> ItemShares:
        shares = vstack([column.counts_in(vocabulary) for column in columns], format="csr")
        shares.data = 1 + np.log(shares.data)
        return cls(shares, len(columns))

    def __len__(self) -> int:
        return int(self.shares.shape[0]) // self.n_columns

    def lengths(self) -> Array:
        """Return the number of terms of each text, (n_columns, n)."""
        return np.diff(self.shares.indptr).reshape(self.n_columns, -1)

    def halved(self, rng: np.random.Generator) -> ItemShares:
        """Split the texts of a single column into two columns, each term into one of them."""
        first = halves(self.shares, rng)
        parts = [selected(self.shares, which) for which in (first, ~first)]
        return ItemShares(vstack(parts, format="csr"), 2)


@dataclass(eq=False)
class Training:
    """The state of a training; rng decides the order, the pairs and the dropped words."""

    model: Pooling
    items: ItemShares
    temperature: float
    dropout: float
    batch_size: int
    optimizer: Adam
    rng: np.random.Generator

    def epoch(self) -> None:
        """Take a step for each batch of the items, in a new order."""
        # An item with a single word makes no pair.
        able = np.flatnonzero(self.items.lengths().sum(axis=0) > 1)
        for batch in minibatches(len(able), self.batch_size, self.rng):
            self.step(self.dropped(self.pairs(able[batch])))

    def step(self, texts: csr_matrix) -> None:
        """Take a step from texts and then their partners, in the same order; change their terms."""
        terms, inverse = np.unique(texts.indices, return_inverse=True)
        shape = texts.shape[0], len(terms)
        # With another dtype than that of `indptr`, SciPy would read all to find a common one.
        inverse = inverse.astype(texts.indptr.dtype)
        own = csr_matrix((texts.data, inverse, texts.indptr), shape=shape)
        gradients = batch_gradients(self.model.of(terms), own, self.temperature)[1]
        self.optimizer.step(state(self.model), gradients, terms)

    def pairs(self, items: Array) -> csr_matrix:
        """Draw two texts, or halves of the only one, of each item: rows i and n_items + i."""
        has_terms = self.items.lengths()[:, items] > 0  # (n_columns, n_items)
        # The columns of each item in random order, those without terms last.
        draws = np.where(has_terms, self.rng.random(has_terms.shape), 2)
        order = np.argsort(draws, axis=0)
        is_alone = has_terms.sum(axis=0) == 1
        first, second = order[0], order[min(1, len(order) - 1)]
        second = np.where(is_alone, first, second)
        columns = np.append(first, second)
        texts = self.items.shares[columns * len(self.items) + np.tile(items, 2)]
        if not is_alone.any():
            return texts
        # The only text of an item occurs twice here: once it keeps its first half, once the rest.
        in_first_half = halves(texts[: len(items)], self.rng)
        is_halved = np.repeat(np.tile(is_alone, 2), np.diff(texts.indptr))
        own = in_first_half[is_halved[: len(in_first_half)]]
        stays = ~is_halved
        stays[is_halved] = np.append(own, ~own)
        return selected(texts, stays)

    def dropped(self, texts: csr_matrix) -> csr_matrix:
        """Drop some terms of each text, but never all."""
        draws = self.rng.random(texts.nnz)
        ranks = ranks_in_rows(texts, draws)
        stays = (draws < 1 - self.dropout) & (ranks < MAX_TERMS)
        return selected(texts, stays | (ranks == 0))


def halves(texts: csr_matrix, rng: np.random.Generator) -> Array:
    """Draw the entries of each text that are its first half: bool (nnz,)."""
    lengths = np.diff(texts.indptr)
    return ranks_in_rows(texts, rng.random(texts.nnz)) < np.repeat(lengths // 2, lengths)


def ranks_in_rows(texts: csr_matrix, draws: Array) -> Array:
    """Rank the entries of each row by these numbers from 0 to below 1: int64 (nnz,)."""
    rows = np.repeat(np.arange(texts.shape[0]), np.diff(texts.indptr))
    ranks = np.empty(len(draws), np.int64)
    ranks[np.argsort(rows + draws)] = np.arange(len(draws)) - texts.indptr[rows]
    return ranks


def selected(texts: csr_matrix, which: Array) -> csr_matrix:
    """Return the texts with only the entries where `which` (nnz,) is True."""
    n_selected = np.zeros(len(which) + 1, texts.indptr.dtype)
    np.cumsum(which, out=n_selected[1:])
    indptr = n_selected[texts.indptr]
    return csr_matrix((texts.data[which], texts.indices[which], indptr), shape=texts.shape)


# --- the loss ---


def batch_gradients(
    model: Pooling, texts: csr_matrix, temperature: float
) -> tuple[float, dict[str, Array]]:
    """Compute the loss of texts and of their partners, in the same order, and its gradients.

    With z = Σ sᵢ exp(wᵢ) xᵢ and u = z / |z|: by xᵢ it is sᵢ exp(wᵢ) g, by wᵢ sᵢ exp(wᵢ) xᵢ·g, with
    g the gradient by z.
    """
    n = texts.shape[0] // 2
    weights = np.exp(model.log_weights)[:, None]
    encoded, pull_unit = unit_vjp(texts @ (weights * model.vectors))
    loss, by_texts, by_partners = info_nce(encoded[:n], encoded[n:], temperature)
    by_sums = pull_unit(np.concatenate([by_texts, by_partners]))
    by_vectors = weights * (texts.T @ by_sums)
    by_weights = np.einsum("td,td->t", by_vectors, model.vectors)
    return loss, {"vectors": by_vectors, "log_weights": by_weights}


def info_nce(queries: Array, keys: Array, temperature: float) -> tuple[float, Array, Array]:
    """Compute the mean cross entropy of softmax(QKᵀ / temperature) by row and by column: how well
    each query finds its own key among all, and each key its query; and the gradients.

    queries, keys (n, d), equal rows belonging together -> loss, (n, d), (n, d).
    van den Oord et al. 2018, section 2.3, equation 4; both ways: Radford et al. 2021, section 2.3.

    >>> loss, by_queries, by_keys = info_nce(np.eye(2), np.eye(2), temperature=1.0)
    >>> round(loss, 3), by_queries.round(3)
    (0.313, array([[-0.134,  0.134],
           [ 0.134, -0.134]]))
    """
    as_float = queries.dtype.type  # a Python float would do, but NumPy's float64 widens float32
    logits = queries @ keys.T / as_float(temperature)
    own = np.arange(len(queries))
    row_loss, by_rows = cross_entropy(logits, own)
    column_loss, by_columns = cross_entropy(logits.T, own)
    by_logits = (by_rows + by_columns.T) / as_float(2 * temperature)
    return (row_loss + column_loss) / 2, by_logits @ keys, by_logits.T @ queries


# --- evaluation ---


def mean_reciprocal_rank(model: Pooling, items: ItemShares) -> float:
    """Return the mean reciprocal rank of items that are searched by each of their columns in the
    sum of the other columns; 0 if there are none. Among equal scores, the item is the last."""
    columns = model(items.shares).reshape(items.n_columns, len(items), -1)
    total = sum(columns)
    ranks = []
    for queries in columns:
        keys = total - queries
        lengths = np.linalg.norm(keys, axis=1)
        has_query = queries.any(axis=1) & (lengths > NEGLIGIBLE)
        if has_query.any():
            scores = queries[has_query] @ (keys[has_query] / lengths[has_query, None]).T
            own_score = np.diagonal(scores)[:, None]
            ranks.append((scores >= own_score - ROUNDING).sum(axis=1))
    if not ranks:
        return 0.0
    return float(np.mean(1 / np.concatenate(ranks)))


INITS = {"lsa": latent_semantic_encoder, "ppmi": cooccurrence_encoder}
# The maximal and the minimal number of items held out to choose the number of epochs.
MAX_HELD_OUT, MIN_HELD_OUT = 500, 10
# The search for the best epoch ends after this many epochs without improvement.
PATIENCE = 3


@dataclass(eq=False, repr=False)
class ContrastiveLearning:
    """The implementation of `ContrastiveEncoder` without scikit-learn."""

    n_components: int = 128
    init: str = "ppmi"
    temperature: float = 0.2
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 3e-3
    dropout: float = 0.2
    held_out: float = 0.2
    max_items: int = 5000
    random_state: Any = 0
    language: str = ENGLISH

    def learn(self, columns: Sequence[AnalyzedTexts]) -> None:
        """Fit `encoder_` to columns with shared runs."""
        self._check_parameters()
        # One BLAS thread: the bits must not depend on how many there are.
        with one_blas_thread():
            initial = self._initial(columns)
            sample = self._sample(columns)
            self._choose_epochs(sample)
            self.encoder_ = initial
            if self.n_epochs_:
                self.encoder_ = self._trained(initial, sample)

    def _trained(self, initial: TokenEncoder, columns: Sequence[AnalyzedTexts]) -> TokenEncoder:
        """Return the initial encoder with the vectors and weights of the columns' terms trained."""
        items = ItemShares.of(initial.vocabulary, columns)
        # Without the terms that no text has: the cost of a step grows with their number.
        used, inverse = np.unique(items.shares.indices, return_inverse=True)
        shape = items.shares.shape[0], len(used)
        shares = csr_matrix((items.shares.data, inverse, items.shares.indptr), shape=shape)
        narrow = replace(initial, vectors=initial.vectors[used], weights=initial.weights[used])
        training = self._training(narrow, ItemShares(shares, items.n_columns))
        for _ in range(self.n_epochs_):
            training.epoch()

        vectors = _even(initial.vectors)
        vectors[used] = training.model.vectors
        weights = initial.weights.copy()
        weights[used] = np.exp(training.model.log_weights)
        return replace(initial, vectors=vectors, weights=weights)

    def _sample(self, columns: Sequence[AnalyzedTexts]) -> Sequence[AnalyzedTexts]:
        """Return the items to train on, in their order."""
        n_items = len(columns[0])
        if n_items <= self.max_items:
            return columns
        rng = random_generator(self.random_state)
        chosen = np.sort(rng.choice(n_items, self.max_items, replace=False))
        return [column.take(chosen) for column in columns]

    def _choose_epochs(self, columns: Sequence[AnalyzedTexts]) -> None:
        """Choose the number of epochs after which held-out items are found best."""
        self.n_epochs_ = 0
        self.reciprocal_ranks_ = np.zeros(0)
        if not self.held_out:
            self.n_epochs_ = self.epochs
            return
        rng = random_generator(self.random_state)
        n_items = len(columns[0])
        order = rng.permutation(n_items)
        n_held_out = min(int(self.held_out * n_items), MAX_HELD_OUT)
        if not self.epochs or n_held_out < MIN_HELD_OUT:
            return
        query_items = [column.take(order[:n_held_out]) for column in columns]
        rest = [column.take(order[n_held_out:]) for column in columns]
        # Learned without them: a word that only one item has would reveal it.
        initial = self._initial(rest)
        held_out = ItemShares.of(initial.vocabulary, query_items)
        if len(columns) == 1:
            held_out = held_out.halved(rng)
        training = self._training(initial, ItemShares.of(initial.vocabulary, rest))
        ranks = [mean_reciprocal_rank(training.model, held_out)]
        while len(ranks) <= min(self.epochs, int(np.argmax(ranks)) + PATIENCE):
            training.epoch()
            ranks.append(mean_reciprocal_rank(training.model, held_out))
        self.n_epochs_ = int(np.argmax(ranks))
        self.reciprocal_ranks_ = np.array(ranks)

    def _initial(self, columns: Sequence[AnalyzedTexts]) -> TokenEncoder:
        """Return the encoder that training starts from."""
        whole = AnalyzedTexts.joined(columns)
        return INITS[self.init](whole, self.n_components, self.random_state)

    def _training(self, initial: TokenEncoder, items: ItemShares) -> Training:
        return Training(
            Pooling(_even(initial.vectors), np.log(initial.weights)),
            items,
            self.temperature,
            self.dropout,
            self.batch_size,
            Adam(self.learning_rate),
            random_generator(self.random_state),
        )

    def _check_parameters(self) -> None:
        check_random_state(self.random_state)
        check_whole("n_components", self.n_components)
        check_whole("batch_size", self.batch_size)
        check_whole("max_items", self.max_items)
        check_positive("temperature", self.temperature)
        check_positive("learning_rate", self.learning_rate)
        check_whole("epochs", self.epochs, minimum=0)
        is_init = isinstance(self.init, str) and self.init in INITS
        require(is_init, "init", self.init, f"one of {', '.join(INITS)}")
        for name in ("dropout", "held_out"):
            share = getattr(self, name)
            valid = is_finite(share) and 0 <= share < 1
            require(valid, name, share, "a number from 0 to below 1")


def _even(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to a mean length of 1, so that one learning rate suits every start."""
    size = float(np.sqrt(np.square(vectors).sum() / max(len(vectors), 1))) or 1.0
    return vectors / np.float32(size)

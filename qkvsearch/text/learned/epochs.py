"""How an encoder is trained on the catalog, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import check_positive, check_whole, is_finite, require
from qkvsearch.attention.training import Adam
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.language.languages import ENGLISH
from qkvsearch.text.learned.directions import (
    Directions,
    cooccurrence_encoder,
    latent_semantic_encoder,
)
from qkvsearch.text.learned.pairs import ItemShares, Pooling, Training, mean_reciprocal_rank
from qkvsearch.text.token_encoder import TokenEncoder

INITS = {"lsa": latent_semantic_encoder, "ppmi": cooccurrence_encoder}
# The most and the fewest items that are held out to tell how long to train; fewer say nothing sure.
MOST_HELD_OUT, FEWEST_HELD_OUT = 500, 10
# Epochs without a better one after which the search for the best ends.
PATIENCE = 3


@dataclass(eq=False, repr=False)
class ContrastiveLearning:
    """How `ContrastiveEncoder` learns, and its parameters, without scikit-learn."""

    n_components: int = 128
    init: str = "ppmi"
    temperature: float = 0.2
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 3e-3
    dropout: float = 0.2
    held_out: float = 0.2
    max_items: int = 5000
    random_state: int | None = 0
    language: str = ENGLISH

    def learn(self, columns: Sequence[AnalyzedTexts], near: Directions | None = None) -> Directions:
        """As `ContrastiveEncoder.fit`, of columns with the same runs, but for `embeddings_`; the
        directions of the start. near: those of nearly the same texts, from which the search for
        these begins.
        """
        self._check_parameters()
        # One BLAS thread: the bits must not depend on how many there are.
        with one_blas_thread():
            start, directions = self._start(columns, near)
            sample = self._sample(columns)
            self._choose_epochs(sample)
            items = ItemShares.of(start.vocabulary, sample)
            # Each step costs as much as there are terms.
            used, places = np.unique(items.shares.indices, return_inverse=True)
            shape = items.shares.shape[0], len(used)
            shares = csr_matrix((items.shares.data, places, items.shares.indptr), shape=shape)
            narrow = replace(start, vectors=start.vectors[used], weights=start.weights[used])
            training = self._training(narrow, ItemShares(shares, items.n_columns))
            for _ in range(self.n_epochs_):
                training.epoch()
        self.encoder_ = _encoder(start, training.model, used if self.n_epochs_ else None)
        return directions

    def _sample(self, columns: Sequence[AnalyzedTexts]) -> Sequence[AnalyzedTexts]:
        """The items to train on, in their order."""
        n_items = len(columns[0])
        if n_items <= self.max_items:
            return columns
        rng = np.random.default_rng(self.random_state)
        chosen = np.sort(rng.choice(n_items, self.max_items, replace=False))
        return [column.take(chosen) for column in columns]

    def _choose_epochs(self, columns: Sequence[AnalyzedTexts]) -> None:
        """Train without some items for as long as that helps to find them."""
        self.n_epochs_, self.reciprocal_ranks_ = 0, np.zeros(0)
        if not self.held_out:
            self.n_epochs_ = self.epochs
            return
        rng, n_items = np.random.default_rng(self.random_state), len(columns[0])
        order = rng.permutation(n_items)
        n_held_out = min(int(self.held_out * n_items), MOST_HELD_OUT)
        if not self.epochs or n_held_out < FEWEST_HELD_OUT:
            return
        asked, rest = (
            [column.take(rows) for column in columns]
            for rows in (order[:n_held_out], order[n_held_out:])
        )
        # Learned without them: a word that one item alone has would give it away.
        start, _ = self._start(rest)
        held_out = ItemShares.of(start.vocabulary, asked)
        if len(columns) == 1:
            held_out = held_out.halved(rng)
        training = self._training(start, ItemShares.of(start.vocabulary, rest))
        ranks = [mean_reciprocal_rank(training.model, held_out)]
        while len(ranks) <= min(self.epochs, int(np.argmax(ranks)) + PATIENCE):
            training.epoch()
            ranks.append(mean_reciprocal_rank(training.model, held_out))
        self.n_epochs_, self.reciprocal_ranks_ = int(np.argmax(ranks)), np.array(ranks)

    def _start(
        self, columns: Sequence[AnalyzedTexts], near: Directions | None = None
    ) -> tuple[TokenEncoder, Directions]:
        whole = AnalyzedTexts.joined(columns)
        return INITS[self.init](whole, self.n_components, self.random_state, near)

    def _training(self, start: TokenEncoder, items: ItemShares) -> Training:
        return Training(
            Pooling(_even(start.vectors), np.log(start.weights)),
            items,
            self.temperature,
            self.dropout,
            self.batch_size,
            Adam(self.learning_rate),
            np.random.default_rng(self.random_state),
        )

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components)
        check_whole("batch_size", self.batch_size)
        check_whole("max_items", self.max_items)
        check_positive("temperature", self.temperature)
        check_positive("learning_rate", self.learning_rate)
        if self.epochs != 0:
            check_whole("epochs", self.epochs)
        require(self.init in INITS, "init", self.init, f"one of {', '.join(INITS)}")
        for name in ("dropout", "held_out"):
            share = getattr(self, name)
            valid = is_finite(share) and 0 <= share < 1
            require(valid, name, share, "a number from 0 to below 1")


def _even(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 in the mean: one learning rate then suits every start."""
    size = float(np.sqrt(np.square(vectors).sum() / max(len(vectors), 1))) or 1.0
    return vectors / np.float32(size)


def _encoder(start: TokenEncoder, model: Pooling, trained: np.ndarray | None) -> TokenEncoder:
    """The start with what was learned of its terms in the rows `trained`; None for nothing."""
    if trained is None:
        return start
    vectors, weights = _even(start.vectors), start.weights.copy()
    vectors[trained], weights[trained] = model.vectors, np.exp(model.log_weights)
    return replace(start, vectors=vectors, weights=weights)
